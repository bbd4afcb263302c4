"""Several brokers as processes of this machine, linked to one another."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Self

from broker.client.address import Address
from broker.errors import BrokerError
from broker.process import BrokerProcess
from broker.throwaway import ThrowawayKeys

FILE_NAME = re.compile(r"\w[\w.-]{0,30}", re.ASCII)
PATH_MAX = 100
"""Characters of a socket file's path that every system can do with."""


@dataclass(frozen=True, slots=True)
class Member:
    """One broker: its name, the brokers that it links to, where it listens besides, and what else
    it alone is told.
    """

    name: str
    links: tuple[str, ...] = ()
    listen: str | None = None
    flags: tuple[str, ...] = ()


def members(
    brokers: Sequence[tuple[str, str | None]],
    links: Sequence[tuple[str, str]],
    flags: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[Member, ...]:
    """The members of a network; of a link's two brokers the later one in order makes it."""
    places = {name: place for place, (name, _) in enumerate(brokers)}
    made: dict[str, list[str]] = {name: [] for name in places}
    for link in links:
        earlier, later = sorted(link, key=lambda name: places[name])
        made[later].append(earlier)
    return tuple(
        Member(name, tuple(made[name]), listen, flags.get(name, ())) for name, listen in brokers
    )


class BrokerNetwork:
    """The running brokers; a context manager that stops them.

    Raises BrokerError when one does not come up. ``arguments`` are given to each. ``secure``: they
    have keys of their own, and ``keys`` those of a client.

    All of them come up, or none is left. Each listens on a socket file of its own, for the links
    between them. One that ends by itself ends nothing else: the others do without it.
    """

    def __init__(
        self,
        network: Sequence[Member],
        *arguments: str,
        log: IO[str] | int | None = subprocess.DEVNULL,
        secure: bool = False,
    ) -> None:
        self.processes: dict[str, BrokerProcess] = {}
        self._start: dict[str, Callable[[], BrokerProcess]] = {}
        self._gone: set[str] = set()
        self.keys: ThrowawayKeys | None = None
        with ExitStack() as opened:
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="rexmq-"))
            files = {
                member.name: _file(Path(folder), member.name, place)
                for place, member in enumerate(network, 1)
            }
            if secure:
                self.keys = ThrowawayKeys(Path(folder) / "keys", files)
            for member in network:
                own = ["--name", member.name, *member.flags]
                own += [word for name in member.links for word in ("--link", files[name])]
                own += self.keys.flags(member.name) if self.keys is not None else ()
                listen = [files[member.name], *([member.listen] if member.listen else [])]
                self._start[member.name] = partial(
                    BrokerProcess, *own, *arguments, listen=listen, log=log, patient=False
                )
                self._begin(member.name, opened)
            self._opened = opened.pop_all()

    def _begin(self, name: str, opened: ExitStack) -> None:
        self.processes[name] = self._start[name]()
        opened.callback(_end, self.processes[name])

    def await_ready(self) -> Iterator[tuple[str, str]]:
        """Wait for one broker after another; gives the name and the endpoint to reach it by."""
        for name, process in self.processes.items():
            try:
                process.await_ready()
            except BrokerError as error:
                raise BrokerError(f"broker {name}: {error}") from None
            yield name, process.endpoints[-1]

    def endpoint(self, name: str) -> str:
        """Where a broker that is ready can be reached."""
        return self.processes[name].endpoints[-1]

    def address(self, name: str) -> str | Address:
        """The address of a broker that is ready, for a client."""
        endpoint = self.endpoint(name)
        return endpoint if self.keys is None else self.keys.address(name, endpoint)

    def take_ended(self) -> list[tuple[str, int]]:
        """The brokers that have ended by themselves since the last call, with exit statuses.

        That of one that a signal ended is the signal's number, negative.
        """
        ended = []
        for name, process in self.processes.items():
            status = process.child.poll()
            if status is not None and name not in self._gone:
                self._gone.add(name)
                ended.append((name, status))
        return ended

    @property
    def running(self) -> bool:
        """Whether any broker runs, as far as ``take_ended`` has found."""
        return len(self._gone) < len(self.processes)

    def restart(self, name: str) -> None:
        """Kill a broker that is ready (SIGKILL), and start it again where it was."""
        self.processes[name].kill()
        self._begin(name, self._opened)
        self.processes[name].await_ready()

    def kill(self) -> None:
        """End them at once: they need not finish what they are at."""
        for process in self.processes.values():
            process.kill()
        self._opened.close()

    def stop(self) -> None:
        """Stop them all, at once."""
        for process in self.processes.values():
            if process.child.poll() is None:
                process.child.terminate()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _file(folder: Path, name: str, place: int) -> str:
    """A socket file, called as the broker is where a file can be called so."""
    path = folder / (name if FILE_NAME.fullmatch(name) else f"broker {place}")
    if len(str(path)) > PATH_MAX:
        raise BrokerError(f"{path}: too long for a socket file")
    return f"ipc://{path}"


def _end(process: BrokerProcess) -> None:
    """Stop a broker, and at the latest make an end of it."""
    with suppress(subprocess.TimeoutExpired):  # then it was killed
        process.stop()
