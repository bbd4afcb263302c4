"""Networks of brokers to tell stories in: simulated or live, with sessions as clients.

A story asks, publishes and waits; which host carries it, it cannot tell.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conversation import batches_of, events_of, printed
from live_hosts import Hosts
from networks import match_few

import rules.engine
from broker.client.address import Address
from broker.client.connection import Connection
from broker.errors import RefusedError
from broker.network import Member, members
from matcher.matching import Matching
from matcher.model import EventType
from routing.config import NodeConfig, SessionConfig
from routing.messages import Confirmed, Delivery, Refused, StatusRequest
from routing.network import strategy
from routing.network.brokers.broker import Broker
from routing.overlay.config import FORGET_S, OverlayConfig
from routing.session import Result, Session
from simulator.clients import Client, Place
from simulator.hosts import BrokerHost, Driver, join
from simulator.lanes import Lane, Quality
from simulator.simulation import Simulation

HEARTBEAT_S = 0.5


class World:
    """Brokers b1, b2, ... and clients by name."""

    def __init__(self, strategy: str) -> None:
        self.strategy = strategy
        self.sessions: dict[str, Session] = {}
        self.got: dict[str, list[str]] = {}
        self.schemas: dict[str, EventType] = {}

    # --- what stories do ---

    def advertise(self, name: str, broker: str, *types: EventType) -> str:
        """A source's types; "" when confirmed, else the code of the refusal."""
        self.schemas.update((schema.name, schema) for schema in types)
        self.connect(name, broker, SessionConfig(name, 1, HEARTBEAT_S))
        return self.ask(name, lambda session: session.advertise(types))

    def subscribe(self, name: str, broker: str, text: str) -> str:
        self.connect(name, broker, SessionConfig("", 1, HEARTBEAT_S))
        return self.ask(name, lambda session: session.subscribe(text)[0])

    def deploy(self, broker: str, text: str) -> str:
        name = f"manager {len(self.sessions)}"
        self.connect(name, broker, SessionConfig("", 1, HEARTBEAT_S))
        return self.ask(name, lambda session: session.deploy(text))

    def publish(self, name: str, text: str, promise_s: int) -> None:
        self.run(0.0)
        batches = batches_of(text, self.schemas)
        self.sessions[name].publish(batches, self.now(), promise_s * 1_000_000)
        self.run(0.0)

    def close(self, name: str) -> None:
        self.sessions[name].close(self.now())
        self.run(0.0)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Let time pass until something is so; 30 s at most."""
        deadline = self.now() + 30
        while not holds():
            assert self.now() < deadline, what
            self.run(0.02)

    def expect(self, sink: str, *lines: str) -> None:
        """This is what a sink has got in all, and nothing else for a while."""
        self.until(lambda: len(self.got[sink]) >= len(lines), f"{sink} got {self.got[sink]}")
        self.run(0.1)
        assert self.got[sink] == list(lines)

    def rule(self, broker: str) -> dict[str, Any]:
        (facts,) = self.status(broker)["rules"]
        return dict(facts)

    def take(self, name: str, result: Result) -> None:
        if isinstance(result, Delivery):
            self.sessions[name].consume(len(result))
            self.got[name] += [printed(event) for event, _ in events_of(result)]

    # --- what hosts differ in ---

    def now(self) -> float:
        raise NotImplementedError

    def run(self, seconds: float) -> None:
        """Let time pass, and carry out what sessions want done."""
        raise NotImplementedError

    def connect(self, name: str, broker: str, config: SessionConfig) -> None:
        raise NotImplementedError

    def ask(self, name: str, request: Callable[[Session], int]) -> str:
        """ "" when a request is confirmed, else the code of the refusal."""
        raise NotImplementedError

    def status(self, broker: str) -> dict[str, Any]:
        raise NotImplementedError

    def crash(self, broker: str) -> None:
        raise NotImplementedError

    def restart(self, broker: str) -> None:
        raise NotImplementedError

    def break_links(self, broker: str) -> None:
        """What is on its way over a broker's links is lost; they come back."""
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def await_one_tree(self, brokers: Sequence[str]) -> None:
        def formed() -> bool:
            facts = [self.status(name)["network"] for name in brokers]
            return len({(one["root"], one["centre"]) for one in facts}) == 1 and all(
                one["settled"]
                and one["root"] == one["centre"]
                and sum(other["reachable"] for other in one["brokers"]) == len(brokers)
                for one in facts
            )

        self.until(formed, "one tree")


class Guest(Client):
    """A simulated client that a story speaks for."""

    def __init__(self, world: "Simulated", place: Place, name: str, config: SessionConfig) -> None:
        self.config = config
        super().__init__(place, name, source=config.name)
        self.world = world
        self.answers: dict[int, str] = {}

    def _begin(self, place: Place) -> None:
        super()._begin(place)
        self.session = Session(self.config)
        self._driver = Driver(
            place.simulation, self.session, self._send, self._close, self._take_results
        )

    def settle(self) -> None:
        self._driver.settle()

    def take(self, result: Result) -> None:
        if isinstance(result, Confirmed | Refused) and result.request is not None:
            self.answers[result.request] = result.code.value if isinstance(result, Refused) else ""
        self.world.take(self.name, result)


class Simulated(World):
    """Hosted by the simulator."""

    matching = Matching()
    forget_s = FORGET_S

    def __init__(self, strategy: str, links: Sequence[tuple[str, str]], folder: Path) -> None:
        super().__init__(strategy)
        self.simulation = Simulation(1)
        names = sorted({name for link in links for name in link})
        self.hosts = {name: BrokerHost(self.simulation, name, self._making(name)) for name in names}
        self.lanes = {link: join(*map(self.hosts.get, link), self._lane, 1_000) for link in links}  # type: ignore[misc,arg-type]
        self.clients: dict[str, Guest] = {}
        for host in self.hosts.values():
            host.start()
        self.await_one_tree(names)

    def _making(self, name: str) -> Callable[[float], Any]:
        def make(now: float) -> Any:
            config = NodeConfig(
                name=name, heartbeat_s=HEARTBEAT_S, wall_clock=False, matching=self.matching
            )
            incarnation, forget_s = 1 + round(now * 1e6), self.forget_s
            overlay = OverlayConfig(name, incarnation, heartbeat_s=HEARTBEAT_S, forget_s=forget_s)
            engine = rules.engine.make("naive")
            return Broker(config, overlay, engine, strategy.make(self.strategy), now)

        return make

    def _lane(self, name: str, deliver: Callable[[list[bytes]], None]) -> Lane:
        return Lane(self.simulation, name, Quality(0.001), deliver)

    def now(self) -> float:
        return self.simulation.now

    def run(self, seconds: float) -> None:
        for client in self.clients.values():
            client.settle()
        self.simulation.run(self.simulation.now + max(seconds, 1e-6))

    def connect(self, name: str, broker: str, config: SessionConfig) -> None:
        place = Place(self.simulation, (self.hosts[broker],), Quality(0.0), HEARTBEAT_S)
        self.clients[name] = Guest(self, place, name, config)
        self.sessions[name], self.got[name] = self.clients[name].session, []
        self.clients[name].start()
        self.run(0.01)

    def ask(self, name: str, request: Callable[[Session], int]) -> str:
        number, answers = request(self.sessions[name]), self.clients[name].answers
        self.until(lambda: number in answers, f"an answer for {name}")
        return answers[number]

    def status(self, broker: str) -> dict[str, Any]:
        return dict(self.hosts[broker].broker.status(self.now()))

    def crash(self, broker: str) -> None:
        self.hosts[broker].crash()

    def restart(self, broker: str) -> None:
        self.hosts[broker].start()

    def break_links(self, broker: str) -> None:
        lanes = [lane for link, both in self.lanes.items() if broker in link for lane in both]
        for lane in lanes:
            lane.is_cut = True
        self.simulation.after(0.05, lambda _: [setattr(lane, "is_cut", False) for lane in lanes])

    def end(self) -> None:
        pass


class ByPcm(Simulated):
    """The same, by another matcher, however few subscriptions there are."""

    matching = Matching("pcm")

    def __init__(self, *words: Any) -> None:
        self._patch = pytest.MonkeyPatch()
        match_few(self._patch)
        super().__init__(*words)

    def end(self) -> None:
        self._patch.undo()


class Live(World):
    """Hosted by threads with real sockets; sessions by this thread."""

    def __init__(self, strategy: str, links: Sequence[tuple[str, str]], folder: Path) -> None:
        super().__init__(strategy)
        names = sorted({name for link in links for name in link})
        network: tuple[Member, ...] = members([(name, None) for name in names], links)
        options = {"engine": "naive", "strategy": strategy, "heartbeat_s": HEARTBEAT_S}
        self.hosts = Hosts(folder, network, **options)
        self.connections: dict[str, Connection] = {}
        self.connections_of: dict[str, Connection] = {}
        try:
            self.await_one_tree(names)
        except BaseException:
            self.end()
            raise

    def now(self) -> float:
        return time.time()

    def run(self, seconds: float) -> None:
        until = time.time() + seconds
        while True:
            for connection in [*self.connections.values(), *self.connections_of.values()]:
                connection.pump()
            if time.time() >= until:
                return
            time.sleep(0.002)

    def _open(
        self, broker: str, config: SessionConfig, take: Callable[[Result], None]
    ) -> Connection:
        connection = Connection(Address(self.hosts.endpoint(broker)), config, take)
        connection.start()
        return connection

    def connect(self, name: str, broker: str, config: SessionConfig) -> None:
        self.got[name] = []
        connection = self._open(broker, config, lambda result: self.take(name, result))
        self.connections[name], self.sessions[name] = connection, connection.session

    def ask(self, name: str, request: Callable[[Session], int]) -> str:
        return self._answer(self.connections[name], request)[0]

    def _answer(
        self, connection: Connection, request: Callable[[Session], int]
    ) -> tuple[str, dict[str, Any]]:
        answer = connection.answer(request(connection.session))
        self.until(answer.done, "an answer")
        try:
            return "", dict(answer.result())
        except RefusedError as refusal:
            return refusal.code, {}

    def status(self, broker: str) -> dict[str, Any]:
        if broker not in self.connections_of:
            config = SessionConfig("", 1, HEARTBEAT_S)
            self.connections_of[broker] = self._open(broker, config, lambda result: None)
        return self._answer(
            self.connections_of[broker], lambda session: session.ask(StatusRequest)
        )[1]

    def crash(self, broker: str) -> None:
        self.hosts.crash(broker)

    def restart(self, broker: str) -> None:
        self.hosts.start(broker)

    def break_links(self, broker: str) -> None:
        self.hosts.break_links(broker)

    def end(self) -> None:
        for connection in [*self.connections.values(), *self.connections_of.values()]:
            connection.close()
        self.hosts.__exit__()
