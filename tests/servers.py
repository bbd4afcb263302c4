"""Servers of other systems: real ones, each in a process of its own on a free port."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest


def program_of(name):
    """The path of a program, also where only root's shell looks; None if it is not installed."""
    return shutil.which(name, path=f"/usr/lib/rabbitmq/bin:{os.environ.get('PATH', '')}:/usr/sbin")


def needs(name, package):
    """The mark of tests that need a program of a Debian package."""
    return pytest.mark.skipif(
        program_of(name) is None, reason=f"there is no {name}: apt-get install {package}"
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Server:
    """A server that is started, killed and started again with what it had."""

    def __init__(self, port, *words, environment=None):
        self.port, self._words = port, [program_of(words[0]), *map(str, words[1:])]
        self._environment = os.environ | (environment or {})
        self._process = None

    def start(self):
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(
            self._words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,  # some are shells that start the server
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self._process.poll() is None, f"{self._words} has ended"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.05)
        raise TimeoutError(self._words)

    def kill(self):
        """End it at once, as kill -9 does, with all processes that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def serving(server):
    """The server while it runs; ended at last."""
    try:
        server.start()
        yield server
    finally:
        server.kill()


def nats(folder):
    port = free_port()
    return Server(port, "nats-server", "-a", "127.0.0.1", "-p", port, "-js", "-sd", folder / "nats")


def redis(folder):
    port = free_port()
    words = "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--appendfsync", "always"
    return Server(port, "redis-server", "--port", port, *words)


def rabbitmq(folder):
    """RabbitMQ, with a program of names for nodes (epmd) that ends with it: one that it started
    would go on, for all addresses.
    """
    port, internal, names = free_port(), free_port(), free_port()
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\nloopback_users = none\nlog.console = false\n"
    )
    (folder / "rabbitmq").mkdir(exist_ok=True)
    environment = {
        "HOME": str(folder / "rabbitmq"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_MNESIA_BASE": str(folder / "rabbitmq"),
        "RABBITMQ_LOG_BASE": str(folder / "rabbitmq"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_NODENAME": f"rexmq{port}@localhost",
        "RABBITMQ_DIST_PORT": str(internal),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none "
        "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    both = f"epmd & exec {program_of('rabbitmq-server')}"
    return Server(port, "sh", "-c", both, environment=environment)
