"""Servers of other systems: real ones, each in a process of its own on a free port, which are
killed and started again with what they had. Tests, campaigns and benchmarks of connectors use them.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import Self

START_S = 60.0


def program_of(name: str) -> str | None:
    """The path of a program, also where only root's shell looks; that of a package beside this
    Python comes first. None if it is not installed.
    """
    own = str(Path(sys.executable).parent)
    debian = "/usr/lib/rabbitmq/bin", *sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)
    folders = own, *debian, os.environ.get("PATH", ""), "/usr/sbin"
    return shutil.which(name, path=os.pathsep.join(folders))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


class Server:
    """A server; a context manager that ends it."""

    def __init__(
        self, port: int, *words: str | Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.port = port
        self._words = [program_of(str(words[0])) or str(words[0]), *map(str, words[1:])]
        self._environment = os.environ | {**(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = process = subprocess.Popen(
            self._words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,  # some are shells that start the server
        )
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if process.poll() is not None:
                raise OSError(f"{self._words[0]} has ended: exit status {process.returncode}")
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.05)
        self.kill()
        raise TimeoutError(f"{self._words[0]} does not listen")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, and all processes that it has started; wait until it has ended."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._process.wait()

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, "it was started"
        return self._process.pid


def mosquitto(folder: Path, *lines: str) -> Server:
    """Mosquitto; it lets everybody in, or is as these lines of its file say."""
    port, file = free_port(), folder / "mosquitto.conf"
    common = f"listener {port} 127.0.0.1", "max_queued_messages 0", "log_type none", "user root"
    file.write_text("\n".join((*common, *(lines or ("allow_anonymous true",)), "")))
    return Server(port, "mosquitto", "-c", file)


def nats(folder: Path, *lines: str) -> Server:
    """NATS with JetStream; or as these lines of its file say."""
    port, file = free_port(), folder / "nats.conf"
    file.write_text("\n".join(lines))
    how = ("-c", file) if lines else ("-js", "-sd", folder / "nats")
    return Server(port, "nats-server", "-a", "127.0.0.1", "-p", str(port), *how)


def redis(folder: Path, *more: str) -> Server:
    """Redis, with all that it has acknowledged on the disk; it listens as these options say, if
    some do.
    """
    port = free_port()
    words = "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--appendfsync", "always"
    how = [word.replace("PORT", str(port)) for word in more] or ["--port", str(port)]
    return Server(port, "redis-server", *words, *how)


def rabbitmq(folder: Path) -> Server:
    """RabbitMQ, with a program of names for nodes (epmd) that ends with it: one that it started
    would go on, for all addresses.
    """
    port, own = free_port(), folder / "rabbitmq"
    own.mkdir(exist_ok=True)
    file = folder / "rabbitmq.conf"
    file.write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\nloopback_users = none\nlog.console = false\n"
    )
    environment = {
        "HOME": str(own),
        "RABBITMQ_CONFIG_FILE": str(file),
        "RABBITMQ_MNESIA_BASE": str(own),
        "RABBITMQ_LOG_BASE": str(own),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_NODENAME": f"rexmq{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none "
        "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    both = f"epmd & exec {program_of('rabbitmq-server')}"
    return Server(port, "sh", "-c", both, environment=environment)


@contextmanager
def postgres() -> Iterator[Server]:
    """PostgreSQL, whose user "plant" needs no password; in a folder of its own, for it does not run
    as root.
    """
    port = free_port()
    user = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
    as_user = user if os.getuid() == 0 else ()
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        if as_user:
            shutil.chown(folder, "postgres", "postgres")
        data = f"{folder}/data"
        made = program_of("initdb") or "initdb", "-D", data, "-U", "plant", "-A", "trust", "-N"
        subprocess.run([*as_user, *made], check=True, capture_output=True, cwd=folder)
        own = "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder
        with Server(port, *as_user, program_of("postgres") or "postgres", *own) as server:
            yield server
