"""Live brokers in threads of this process: real sockets, the wall clock, no start to wait for."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from broker import RuleManager
from broker.configuration import load
from broker.host import Host
from broker.links import LinkedTransport
from broker.network import Member
from broker.service import make_host, make_transport
from broker.transport import Transport


class Hosts:
    """The brokers of a network; a context manager that stops them."""

    def __init__(self, folder: Path, network: tuple[Member, ...], **options: object) -> None:
        self._folder = folder
        self._members = {member.name: member for member in network}
        self._options = options
        self._running: dict[str, tuple[Host, Transport, threading.Thread]] = {}
        for name in self._members:
            self.start(name)

    def add(self, member: Member, **options: object) -> None:
        """Start one more."""
        self._members[member.name] = member
        self.start(member.name, **options)

    def endpoint(self, name: str) -> str:
        return f"ipc://{self._folder}/{name}"

    def start(self, broker: str, **options: object) -> None:
        links = [self.endpoint(far) for far in self._members[broker].links]
        flags = {"name": broker, "listen": [self.endpoint(broker)], "link": links}
        configuration = load(None, {}, {**flags, **self._options, **options})
        transport = make_transport(configuration)
        transport.listen(self.endpoint(broker))
        host = make_host(configuration, transport)
        thread = threading.Thread(target=host.run, name=broker)
        self._running[broker] = host, transport, thread
        thread.start()

    def stop(self, name: str) -> None:
        """Stop a broker gracefully."""
        host, _, thread = self._running.pop(name)
        host.stop()
        thread.join()
        host.close("the broker stops")

    def crash(self, name: str) -> None:
        """End a broker without a word, as SIGKILL does."""
        host, transport, thread = self._running.pop(name)
        host.stop()
        thread.join()
        transport.close(0)

    def break_links(self, name: str) -> None:
        """End the connections that a broker has made to others."""
        host, transport, _ = self._running[name]
        assert isinstance(transport, LinkedTransport)

        def end() -> None:
            host.when_woken = lambda: None
            for peer in list(transport._links):
                transport._end(peer, 0)
                transport._ended.append(peer)

        host.when_woken = end
        host.wake()

    def await_ready(self) -> list[tuple[str, str]]:
        return [(name, self.endpoint(name)) for name in self._members]

    def address(self, name: str) -> str:
        return self.endpoint(name)

    def restart(self, name: str) -> None:
        self.crash(name)
        self.start(name)

    def kill(self) -> None:
        for name in list(self._running):
            self.crash(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for name in list(self._running):
            self.stop(name)


def await_acknowledged(endpoint: str, name: str, number: int) -> None:
    """Return when the broker has heard of it."""
    await_durables(endpoint, lambda durables: durables.get(name, {}).get("acknowledged") == number)


def await_durables(endpoint: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Return when that holds of the durable subscriptions, by name: nobody tells a subscriber what
    the broker has heard by now.
    """
    with RuleManager(endpoint) as manager:
        deadline = time.monotonic() + 60.0
        while not holds(durables := {one["name"]: one for one in manager.durables()}):
            assert time.monotonic() < deadline, durables
            time.sleep(0.05)
