"""Brokers of one network and their clients, under the clock of a mesh."""

from collections.abc import Mapping
from random import Random

from conversation import batches_of, events_of, printed, schema_of, seconds
from mesh import Mesh, Wire

import rules
import rules.engine
from matcher.model import EventType
from routing.config import NodeConfig, SessionConfig
from routing.conversation import State
from routing.effects import BROKER
from routing.messages import Acknowledged, Confirmed, Delivery, Refused, Rejected
from routing.network.brokers.broker import Broker
from routing.network.strategy import make
from routing.overlay.config import OverlayConfig
from routing.session import Session

Schemas = Mapping[str, EventType]
SCHEMAS: Schemas = {
    "Temp": schema_of("Temp(room: string, value: float)"),
    "Smoke": schema_of("Smoke(room: string)"),
}


class Network:
    """Brokers in a line b1 - b2 - ..., whose centre is in the middle, and clients anywhere."""

    strategy = "centralized"
    overlay: Mapping[str, float] = {}
    """Choices of the overlay that are not as usual."""

    def __init__(self, count: int, **options: object) -> None:
        self.mesh = Mesh(Random(0))
        self.mesh.after = self._note
        self.brokers: dict[str, Broker] = {}
        self.clients: dict[str, Session] = {}
        self._links: dict[str, int] = {}
        """By client, how often it has connected; each of its links is another peer."""
        self._peers: dict[str, bytes] = {}
        self.lines: list[str] = []
        for number in range(1, count + 1):
            name = f"b{number}"
            config = NodeConfig(**{"name": name, "wall_clock": False, **options})  # type: ignore[arg-type]
            broker = Broker(
                config,
                OverlayConfig(name, **self.overlay),  # type: ignore[arg-type]
                rules.engine.make("naive", composites_max=config.composites_per_instant_max),
                make(self.strategy),
            )
            self.brokers[name] = self.mesh.parties[name] = broker  # type: ignore[assignment]
            if number > 1:
                self.link(f"b{number - 1}", name)
        self.run(2)

    def link(self, one: str, other: str) -> None:
        for name, far in ((one, other), (other, one)):
            self._wire(name, far.encode(), far, name.encode(), 0.005)
            self.brokers[name].add_link(far.encode(), self.mesh.now, 5_000)

    def both_ways(self, one: str, other: str) -> list[Wire]:
        """The wires of the link between two brokers."""
        return [self.mesh.wires[name, far.encode()] for name, far in ((one, other), (other, one))]

    def _wire(self, name: str, peer: bytes, far: str, known_as: bytes, delay_s: float) -> None:
        def deliver(frames: list[bytes], now: float) -> None:
            party = self.mesh.parties[far]
            if isinstance(party, Session):
                party.receive_frames(frames, now)
            else:
                party.receive_frames(known_as, frames, now)  # type: ignore[attr-defined]

        self.mesh.wires[name, peer] = Wire(deliver, delay_s)

    def connect(
        self, name: str, broker: str, party: str = "", lasts_s: float = 0.1, **options: object
    ) -> Session:
        """``party``: what the test calls it, where other clients bear the name."""
        session = Session(SessionConfig(name, **options))  # type: ignore[arg-type]
        party = party or name
        self.clients[party] = self.mesh.parties[party] = session  # type: ignore[assignment]
        links = self._links[party] = self._links.get(party, 0) + 1
        if links > 1:  # what still comes on the link before is for nobody
            self.mesh.wires.pop((broker, self._peers[party]), None)
        peer = self._peers[party] = f"client {party}{links if links > 1 else ''}".encode()
        self._wire(party, BROKER, broker, peer, 0.0)
        self._wire(broker, peer, party, BROKER, 0.0)
        session.connect(self.mesh.now)
        self.run(lasts_s)
        return session

    def lose(self, name: str, broker: str) -> None:
        """A client's link breaks, and both ends notice."""
        self.clients.pop(name).lose(self.mesh.now)
        del self.mesh.parties[name]
        self.brokers[broker].lose(self._peers[name], self.mesh.now)

    def drain(self, name: str) -> None:
        """Have a broker begin to drain."""
        self.brokers[name].drain(self.mesh.now)
        self.mesh.settle()
        self.run(0.05)

    def move(self, name: str, broker: str) -> int:
        """Let a client that was sent away try another broker, until it may publish there; gives how
        often it has tried.
        """
        session = self.clients[name]
        for attempt in range(20):
            peer = f"client {name} {attempt}".encode()
            self._wire(name, BROKER, broker, peer, 0.0)
            self._wire(broker, peer, name, BROKER, 0.0)
            session.connect(self.mesh.now)
            self.run(0.2)
            if session.state is State.READY:
                return attempt + 1
        raise AssertionError(f"{name} is not let in at {broker}")

    def publish(
        self, name: str, text: str, promise: float | None = None, schemas: Schemas = SCHEMAS
    ) -> None:
        mark = None if promise is None else round(promise * 1e6)
        self.clients[name].publish(batches_of(text, schemas), self.mesh.now, mark)
        self.run(0.1)

    def run(self, time_s: float) -> None:
        self.mesh.run(self.mesh.now + time_s)

    def take_lines(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def _note(self, name: str) -> None:
        session = self.clients.get(name)
        for result in session.take_results() if session is not None else ():
            match result:
                case Delivery():
                    session.consume(len(result))  # type: ignore[union-attr]
                    self.lines += [f"{name}: {printed(one)}" for one, _ in events_of(result)]
                case Confirmed(_, detail):
                    facts = "".join(
                        f" {one['name']} since {seconds(one['since'])}"
                        for one in detail.get("rules", ())
                    )
                    self.lines.append(f"{name}: confirmed{facts}")
                case Refused(_, code, reason):
                    self.lines.append(f"{name}: refused ({code.value}): {reason.splitlines()[0]}")
                case Rejected(code, _, reason):
                    self.lines.append(f"{name}: rejected ({code.value}): {reason}")
                case Acknowledged():
                    pass
