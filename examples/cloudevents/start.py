"""CloudEvents over HTTP to rules to a webhook: python examples/cloudevents/start.py

Starts a broker that takes CloudEvents at /events, with the rule of outages.tesla, the connector of
outages.toml, and a receiver that says whose webhooks it takes, checks their signatures and prints
them; then posts outages of a service, until Ctrl-C. It needs `pip install 'rexmq[http]'`.
"""

import hashlib
import hmac
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from broker import RuleManager

HERE = Path(__file__).parent
BROKER, PAGE, HOOK_PORT = "tcp://127.0.0.1:7461", "127.0.0.1:9464", 8080
REXMQ = sys.executable, "-m", "broker"
SECRET = (HERE / "secret").read_bytes().strip()


class Receiver(BaseHTTPRequestHandler):
    """Prints the CloudEvents that are posted to it with the right signature."""

    def do_OPTIONS(self) -> None:
        self.send_response(200)
        self.send_header("WebHook-Allowed-Origin", "outages.example")
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        digest = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        is_ours = hmac.compare_digest(self.headers["Webhook-Signature"], f"sha256={digest}")
        if is_ours:
            event = json.loads(body)
            print(f"{event['time']} {event['type']} {event['data']['service']}", flush=True)
        self.send_response(204 if is_ours else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing else."""


def post(number: int) -> None:
    """Tell the broker of an outage; it answers when it has the event."""
    event = {
        "specversion": "1.0",
        "type": "Down",
        "source": "probes/1",
        "id": str(number),
        "data": {"service": "billing"},
    }
    headers = {"Content-Type": "application/cloudevents+json"}
    request = urllib.request.Request(f"http://{PAGE}/events", json.dumps(event).encode(), headers)
    urllib.request.urlopen(request, timeout=10).close()


def main() -> None:
    with ExitStack() as stack:

        def start(*words: str) -> None:
            stack.callback(stack.enter_context(subprocess.Popen(words)).terminate)

        start(*REXMQ, "broker", "--listen", BROKER, "--http", PAGE)
        with RuleManager(BROKER, connect_timeout_s=60) as manager:
            manager.add((HERE / "outages.tesla").read_text())
        receiver = HTTPServer(("127.0.0.1", HOOK_PORT), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        start(*REXMQ, "connect", str(HERE / "outages.toml"))
        number = int(time.time() * 1_000)
        while True:
            number += 1
            post(number)
            time.sleep(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
