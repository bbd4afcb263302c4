"""A broker as a child process, for networks, the demo, the benchmarks and the tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Self

from broker.errors import BrokerError

READY = "listening on "
"""The words that the command ``broker`` prints before each of its endpoints, once it can be
reached.
"""
STOP_S = 10.0


class BrokerProcess:
    """``rexmq broker`` with these arguments, as a child; a context manager that stops it.

    ``endpoint`` is the first one that it listens on. Raises BrokerError when it does not come up.
    ``patient`` False: it is not waited for; ``await_ready`` does that, and gives the endpoints.
    """

    program: Sequence[str] = (sys.executable, "-m", "broker")
    """The command ``rexmq``."""

    def __init__(
        self,
        *arguments: str,
        listen: Sequence[str] = ("tcp://127.0.0.1:*",),
        log: IO[str] | int | None = subprocess.DEVNULL,
        patient: bool = True,
    ) -> None:
        self._listens = len(listen)
        flags = [word for endpoint in listen for word in ("--listen", endpoint)]
        self.child = subprocess.Popen(
            [*self.program, "broker", *flags, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self.endpoints: list[str] = []
        """The endpoints that it listens on, once it is ready."""
        if patient:
            self.await_ready()

    @property
    def endpoint(self) -> str:
        """The first endpoint that it listens on."""
        return self.endpoints[0]

    def await_ready(self) -> None:
        """Wait until it can be reached."""
        try:
            self.endpoints = [self._endpoint() for _ in range(self._listens)]
        except BaseException:  # an interrupt too: no child is left behind
            self.kill()
            raise

    def _endpoint(self) -> str:
        """The next endpoint that the child says it listens on."""
        assert self.child.stdout is not None
        line = self.child.stdout.readline().rstrip("\n")
        if not line.startswith(READY):
            status = self.child.wait(STOP_S)
            raise BrokerError(f"the broker did not start: exit status {status}")
        return line.removeprefix(READY)

    def stop(self) -> int:
        """Stop it gracefully (SIGTERM) and give its exit status."""
        if self.child.poll() is None:
            self.child.terminate()
        try:
            return self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            assert self.child.stdout is not None
            self.child.stdout.close()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self.child.kill()
        self.child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
