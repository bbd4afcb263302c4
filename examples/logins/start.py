"""The journal of systemd to rules about logins: python examples/logins/start.py [JOURNAL]

Starts a broker with the rule of logins.tesla, gives the connector of logins.toml what journalctl
says of sshd from now on, or a file that was recorded with `journalctl -t sshd -o json`, and prints
logins that somebody may have guessed, until Ctrl-C.
"""

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from broker import RuleManager, Subscriber

HERE = Path(__file__).parent
BROKER = "tcp://127.0.0.1:7461"
REXMQ = sys.executable, "-m", "broker"
JOURNAL = "journalctl", "-f", "-n", "0", "-t", "sshd", "-o", "json"


def main(recorded: list[str]) -> None:
    with ExitStack() as stack:

        def start(*words: str, **options: int) -> "subprocess.Popen[bytes]":
            process = stack.enter_context(subprocess.Popen(words, **options))
            stack.callback(process.terminate)
            return process

        start(*REXMQ, "broker", "--listen", BROKER)
        with RuleManager(BROKER, connect_timeout_s=60) as manager:
            manager.add((HERE / "logins.tesla").read_text())
        logins = stack.enter_context(Subscriber(BROKER, "Guessed()"))
        journal = start(*(["cat", *recorded] if recorded else JOURNAL), stdout=subprocess.PIPE)
        assert journal.stdout is not None
        start(*REXMQ, "connect", str(HERE / "logins.toml"), stdin=journal.stdout.fileno())
        for login in logins:
            print(
                f"{login.data['host']}, after three wrong ones: {login.data['message']}", flush=True
            )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(0)
