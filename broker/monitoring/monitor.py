"""The broker's end of its pages: it owns the address, and keeps the process running that serves."""

from __future__ import annotations

import errno
import importlib.util
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TypeAlias

from msgspec.structs import replace

from broker.errors import AddressTaken, ConfigurationError
from broker.log import log
from broker.monitoring.settings import Settings, User
from broker.security.gate import Gate

RESTART_S = 1.0
"""Seconds until a process that has ended by itself is started again."""
STOP_S = 5.0
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
NEEDED = ("prometheus_client", "starlette", "uvicorn")

Address: TypeAlias = tuple[str, int]
"""A host and a port; port 0 is any that is free."""


class Monitor:
    """Serves the pages of a broker at ``address``, from ``begin`` until ``end``. ``log_format``: of
    the lines that the process writes, a key of ``broker.log.FORMS``. ``token``: what is asked of
    who looks; ``data``: the folder of the broker's store; ``names`` and ``proxies``: as Settings
    has them.

    Raises ConfigurationError where the packages for it are missing, or for an address that is not
    this machine's, and AddressTaken.

    The process that serves cannot harm the broker: it shares nothing with it but the socket. When
    it ends by itself that is logged, and another one is started on the same socket.
    """

    def __init__(
        self,
        address: Address,
        log_format: str = "text",
        token: str | None = None,
        data: str | None = None,
        names: tuple[str, ...] = (),
        proxies: tuple[str, ...] = (),
    ) -> None:
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigurationError(
                f"http: {', '.join(missing)} not installed; pip install 'rexmq[http]'"
            )
        self._socket = _bound(address)
        own = names if address[0] == "" else (address[0], *names)
        self._settings = Settings(
            "", log_format, token=token, data=data, names=own, proxies=proxies
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()
        self._renews = False
        """Whether the process is to end, and another one to know what has changed."""
        self._keeper = threading.Thread(target=self._keep, name="monitoring", daemon=True)

    @property
    def url(self) -> str:
        """The address of the pages."""
        host, port = self._socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def asks(self) -> bool:
        """Whether a token of the pages is asked for there."""
        return self._settings.token is not None

    def know(self, users: tuple[User, ...]) -> None:
        """Let these users sign in, and no others from now on: all sign in anew."""
        if users == self._settings.users:
            return
        self._settings = replace(self._settings, users=users)
        if self._process is not None:
            self._renews = True
            self._hang_up()

    def begin(self, endpoint: str, gate: Gate | None = None) -> None:
        """Serve the pages of the broker that listens on ``endpoint``, and lets in by ``gate``."""
        keys: tuple[str, ...] = ()
        if gate is not None:
            pair = gate.admit("monitoring")
            keys = (pair.public, pair.secret, gate.own.public)
        self._settings = replace(self._settings, endpoint=reachable(endpoint), keys=keys)
        self._keeper.start()

    def end(self) -> None:
        """Serve no more, and free the address."""
        self._ending.set()
        self._hang_up()
        if self._keeper.is_alive():
            self._keeper.join(STOP_S)
        if self._process is not None and self._keeper.is_alive():
            self._process.kill()
        self._socket.close()

    def _keep(self) -> None:
        while not self._ending.is_set():
            try:
                self._process = self._start()
            except OSError as error:  # no descriptors, processes or memory left
                fields = {"reason": error.strerror, "again_in_s": RESTART_S}
                log("error", "no process to serve http", fields, "monitoring")
                self._ending.wait(RESTART_S)
                continue
            if self._ending.is_set():  # too late for ``end`` to see it
                self._hang_up()
            status = self._process.wait()
            self._hang_up()
            if self._renews:
                self._renews = False
            elif not self._ending.is_set():
                fields = {"exit_status": status, "again_in_s": RESTART_S}
                log("error", "the process that serves http has ended", fields, "monitoring")
                self._ending.wait(RESTART_S)

    def _hang_up(self) -> None:
        """Close the process's standard input, whereupon it ends."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _start(self) -> subprocess.Popen[bytes]:
        descriptor = self._socket.fileno()
        process = subprocess.Popen(
            [sys.executable, "-m", "broker.monitoring.server", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            start_new_session=True,  # Ctrl-C is the broker's to answer
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already
            process.stdin.write(self._settings.line)  # nobody else can read it
            process.stdin.flush()
        return process


def reachable(endpoint: str) -> str:
    """An endpoint that a broker listens on, as somebody on the same machine reaches it."""
    return endpoint.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _bound(address: Address) -> socket.socket:
    host, port = address
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigurationError(f"http: {host}: {error.strerror}") from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
        bound.listen()  # else another broker could bind it, too, until the process serves
    except OSError as error:
        bound.close()
        text = f"http: {host}:{port}: {error.strerror}"
        raise (AddressTaken if error.errno in _TAKEN else ConfigurationError)(text) from None
    return bound
