"""Brokers of which some have stores, and may be killed, or set back to an older store."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from brokers import Network

import rules.engine
from routing.config import NodeConfig
from routing.effects import Effect, Store
from routing.messages import Confirmed, Delivery
from routing.network.brokers.broker import Broker
from routing.network.strategy import make
from routing.overlay.config import OverlayConfig
from simulator.simulation import Simulation
from simulator.stores import SimulatedStore

SYNC_S = 0.003


class Kept(Network):
    """Brokers of which some have stores, and may be killed."""

    def __init__(self, count: int, stores: str, **options: Any) -> None:
        self.stores: dict[str, SimulatedStore] = {}
        self.writes: Counter[str] = Counter()
        self.doomed: dict[str, int] = {}
        """Brokers that are killed when their stores have kept so many Stores more."""
        self.got: list[tuple[str, bool]] = []
        """Events that the client of the sink was given, and whether marked."""
        self.deals: Callable[[int], bool] = lambda number: True
        """Whether it acknowledges the event of a number."""
        self._lives: Counter[str] = Counter()
        self._with_stores = stores.split()
        super().__init__(count, **options)

    def link(self, one: str, other: str) -> None:
        super().link(one, other)
        for name in (one, other):
            if name in self._with_stores and name not in self.stores:
                self.stores[name] = SimulatedStore(Simulation(0), name, SYNC_S)
                self.brokers[name].recall(self.stores[name].read(), self.mesh.now)
                self._keep_for(name)

    def _keep_for(self, name: str) -> None:
        """Take a broker's Stores out of its effects, and keep them a moment later."""
        broker, life = self.brokers[name], self._lives[name]
        take = broker.take_effects

        def take_effects() -> list[Effect]:
            left = []
            for effect in take():
                if isinstance(effect, Store):
                    self.mesh.at(self.mesh.now + SYNC_S, lambda one=effect: keep(one))
                else:
                    left.append(effect)
            return left

        def keep(store: Store) -> None:
            if life != self._lives[name]:
                return  # it was killed in between
            self.stores[name]._keep_all([store])
            self.writes[name] += 1
            if self.doomed.get(name) == self.writes[name]:
                del self.doomed[name]
                self.kill(name)
            else:
                broker.stored(store.number, self.mesh.now)

        broker.take_effects = take_effects  # type: ignore[method-assign]

    def kill(self, name: str) -> None:
        """End a broker, and start it again with what its store has."""
        now = self.mesh.now
        self._lives[name] += 1
        for client, peer in self._peers.items():
            if (name, peer) in self.mesh.wires and client in self.clients:
                self.clients[client].lose(now)
        overlay = OverlayConfig(name, incarnation=round(now * 1e6) + 1, **self.overlay)  # type: ignore[arg-type]
        config = NodeConfig(name, wall_clock=False)
        broker = Broker(config, overlay, rules.engine.make("naive"), make(self.strategy), now)
        broker.recall(self.stores[name].read(), now)
        self.brokers[name] = self.mesh.parties[name] = broker  # type: ignore[assignment]
        self._keep_for(name)
        for owner, peer in list(self.mesh.wires):
            if owner == name and peer.decode() in self.brokers:
                broker.add_link(peer, now, 5_000)

    def backup(self, name: str) -> SimulatedStore:
        """A copy of what the store of a broker has."""
        store, copy = self.stores[name], SimulatedStore(Simulation(0), name, SYNC_S)
        for field in ("_records", "_log", "_position", "_reach"):
            setattr(copy, field, deepcopy(getattr(store, field)))
        return copy

    def _note(self, name: str) -> None:
        session = self.clients.get(name)
        for result in session.take_results() if session is not None else ():
            if isinstance(result, Delivery):
                assert session is not None
                session.consume(len(result))
                for place, event in enumerate(_names(result)):
                    self.got.append((event, result.again))
                    number = result.number - len(result) + 1 + place
                    if self.deals(number):
                        session.acknowledge_each([number])
            elif not isinstance(result, Confirmed):
                self.lines.append(f"{name}: {result}")

    def home(self) -> str:
        (found,) = [
            name
            for name, one in self.brokers.items()
            if "billing" in one.service.durables and not one.service.durables.get("billing").heir[0]  # type: ignore[union-attr]
        ]
        return found


def _names(delivery: Delivery) -> list[str]:
    """The events of a delivery, in its order."""
    found = [
        f"{event.type}@{event.time}{list(event.data.values())}"
        for batch in delivery.batches
        for event in batch.events()
    ]
    order = range(len(found)) if delivery.order is None else delivery.order.tolist()
    return [found[place] for place in order]
