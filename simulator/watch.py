"""Checks of a run at every moment: brokers are looked at while they run.

A look costs some hundred microseconds, as much as some ten messages. So there is one whenever
``LINES`` messages have been carried, ``EVERY_S`` after the last at the earliest, and whenever the
network has come to rest with other tables than before. All in all that is a tenth of a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from routing.config import Ordering
from routing.deployment import Deployed
from routing.effects import Peer
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import WhenFull
from routing.network.brokers.broker import Broker
from rules.pattern import TIMER
from simulator.agreement import check_tables, check_trees, parts_of, trees_of
from simulator.due import Due
from simulator.hosts import BrokerHost
from simulator.network import Network

EVERY_S = 0.47
"""Seconds between looks: no part of a heartbeat, at whose instants some broker is always busy."""
LINES = 128
RESTED_S = 5.0
"""So often it is noted that the network is at rest still."""
FOUND_MAX = 20
"""Differences that are kept of each check; what goes wrong once goes wrong at every look."""

Scope: TypeAlias = tuple[Any, ...]
"""Within which marks do not go back: other objects or values, and they begin anew."""
Marks: TypeAlias = tuple[Scope, Mapping[str, int]]


@dataclass(slots=True)
class Seen:
    """A host as it was last looked at, in one life of its broker."""

    broker: Broker
    marks: dict[str, Marks] = field(default_factory=dict)
    fathers: dict[tuple[str, int], str | None] = field(default_factory=dict)


class Watch:
    """Watches one network, from ``start`` on; ``found`` has what was not as it must be.

    A watch sends nothing, draws no chance and changes nothing, so a run that is watched is the same
    run, byte for byte. It looks between two inputs, when every broker has done all that follows
    from what has come to it.
    """

    def __init__(self, network: Network) -> None:
        self.found: dict[str, dict[str, None]] = {}
        """By check, the differences in words, each once."""
        self._homes: dict[str, str] = {}
        self._moved: set[str] = set()
        self.looks = self.rests = 0
        """How often brokers were looked at, and how often all tables were."""
        self._network = network
        self._simulation = network.simulation
        self._lines = 0
        self._seen: dict[str, Seen] = {}
        self._restless: str | None = None
        """A broker that was not at rest when that was last asked: most likely it is not yet."""
        self._agreed: list[Any] = []
        """The facts that the tables followed from when they were last looked at."""
        self.rested_at: float | None = None
        """When the whole network was last at rest."""

    def start(self) -> None:
        """Look from now on."""
        self._simulation.after(EVERY_S, self._wake)

    def _wake(self, due: Due) -> None:
        lines = self._simulation.trace.lines
        if lines >= self._lines + LINES:
            self._lines = lines
            self.look()
        self.look_at_rest()
        self._simulation.after(EVERY_S, self._wake)

    def look(self) -> None:
        """Look at all brokers that run: their marks, buffers and trees."""
        self.looks += 1
        hosts = [host for host in self._network.brokers.values() if host.is_running]
        for host in hosts:
            self._look_at_homes(host)
        for host in hosts:
            seen = self._seen.get(host.name)
            if seen is None or seen.broker is not host.broker:
                seen = self._seen[host.name] = Seen(host.broker)
            self._note("marks", self._look_at_marks(host, seen))
            self._note("buffers", self._look_at_buffers(host))
            self._note("trees", _look_at_fathers(host, seen))
        self._note("buffers", self._look_at_clients())
        self._note("trees", _look_for_cycles(hosts))

    def _note(self, check: str, lines: Iterator[str]) -> None:
        for line in lines:
            found = self.found.setdefault(check, {})
            if len(found) < FOUND_MAX:
                found[line] = None

    # --- marks ---

    def _look_at_homes(self, host: BrokerHost) -> None:
        """Note the types of sources that have gone on at another broker."""
        for stay in host.broker.context.accounts:
            if self._homes.setdefault(stay.name, stay.home) != stay.home:
                self._homes[stay.name] = stay.home
                self._moved.update(stay.types)

    def _look_at_marks(self, host: BrokerHost, seen: Seen) -> Iterator[str]:
        """Whether promises never to go back hold from one look to the next: within a plan the
        output watermarks of rules and the marks that have gone up to a father; in one tree the
        marks of a broker's engine and fragments; at all times those that the root has found in the
        whole network, and up to where rules are committed; of a sink's broker, what it has of a
        rule all of whose types are published, at a root at all times, elsewhere within an epoch,
        within a plan where rules are pulled; on one link what an open source has promised. Lives of
        a broker, versions of a rule and generations of a tree begin anew, and so do marks of a type
        of which a source has gone on at another broker.
        """
        before, seen.marks = seen.marks, dict(_marks_of(host.broker, self._sinks_in_force))
        for what, (scope, marks) in seen.marks.items():
            was = before.get(what)
            if was is None or len(was[0]) != len(scope) or not all(map(_same, was[0], scope)):
                continue
            for name, mark in was[1].items():
                if name in self._moved and what.endswith(" type"):
                    continue
                if marks.get(name, mark) < mark:
                    yield f"broker {host.name}: {what} {name} went back"

    @property
    def _sinks_in_force(self) -> set[Peer | None]:
        """Others have been told nothing that they could rely on."""
        return {sink.peer for sink in self._network.sinks.values() if sink.is_in_force}

    # --- buffers ---

    def _look_at_buffers(self, host: BrokerHost) -> Iterator[str]:
        """Whether each buffer keeps to its bound: messages for a neighbour, events for a sink,
        events of own sources, remembered ids and events.
        """
        broker = host.broker
        for what, held, most in _held_by(broker):
            if held > most:
                yield f"broker {host.name}: more {what} than the {most} that are allowed"
        replay_buffer, context = broker.context.detection.replay_buffer, broker.context
        if len(replay_buffer) > replay_buffer.events_max and len(list(replay_buffer)) > 1:
            yield f"broker {host.name}: more events of own sources are kept than may be"
        sources = len(self._network.sources)
        for sink in context.sinks:
            most = 0
            if sink.when_full is WhenFull.BLOCK:
                if sink.rules:
                    continue  # nothing bounds what rules make of what is still under way
                most = sources * context.config.publish_credit
            if sink.excess > most:
                yield f"broker {host.name}: the queue of sink {sink.name} is longer than its limit"

    def _look_at_clients(self) -> Iterator[str]:
        """Whether clients keep no more unacknowledged events than they may."""
        for source in self._network.sources:
            if source.session.ready and source.session.outgoing.room < 0:
                yield f"source {source.name}: more is not acknowledged than its session keeps"

    # --- tables ---

    def look_at_rest(self) -> None:
        """Look at the tables, where the network is at rest and they may be others than before."""
        hosts, now = self._network.brokers, self._simulation.now
        agreed = list(_agreed_on(self._network))
        is_same = len(agreed) == len(self._agreed) and all(map(_same, agreed, self._agreed))
        if is_same and self.rested_at is not None and now < self.rested_at + RESTED_S:
            return
        if self._restless is not None and not _is_at_rest(hosts[self._restless]):
            return
        self._restless = next((name for name in hosts if not _is_at_rest(hosts[name])), None)
        if self._restless is not None:
            return
        parts = list(parts_of(self._network))
        if not all(part.is_at_rest for part in parts):
            return
        self.rested_at, self._agreed = now, agreed
        if not is_same:
            self.rests += 1
            self.look()
            for part in parts:
                self._note("tables", check_tables(part))
                self._note("trees", check_trees(part))


def _is_at_rest(host: BrokerHost) -> bool:
    return not host.is_running or host.broker.is_at_rest


def _same(one: Any, other: Any) -> bool:
    return one is other or one == other


def _agreed_on(network: Network) -> Iterator[Any]:
    """The facts that tables follow from: where none has changed, neither have they."""
    for host in network.brokers.values():
        if host.is_running:
            broker = host.broker
            yield broker
            yield broker.agreed.plan
            yield broker.agreed.catalog
            yield broker.context.sinks.version
    for lanes in network.lanes.values():
        yield lanes[0].is_cut


# --- what a broker is looked at for ---


def _marks_of(broker: Broker, sinks: Collection[Peer | None]) -> Iterator[tuple[str, Marks]]:
    """All marks of a broker, of its sinks those of these: what they are, and within what they do
    not go back.
    """
    context, plan = broker.context, broker.agreed.plan
    detection, router = context.detection, context.router
    for source in context.sources:
        if source.is_open:
            yield "the promise of source", ((source, source.peer), {source.name: source.promise})
    if context.config.ordering is Ordering.ARRIVAL:
        return  # there are none: everything is evaluated when it comes
    yield from _marks_in_tree("the single tree", detection.evaluator, plan)
    for root, tree in trees_of(broker):
        yield from _marks_in_tree(f"the tree of {root}", tree.evaluator, tree)
    found = {"type": detection.type_marks, "the last event of type": detection.fronts}
    for what, marks in found.items():
        yield f"the mark in the network of {what}", ((), dict(marks))
    yield "what was committed of rule", ((), dict(detection.committed))
    epoch = "root" if router.is_root else router.epoch
    for sink in context.sinks:
        if sink.peer not in sinks:
            continue
        # What nobody here wants any more may begin anew for whoever wants it next.
        rules = [one for one in sink.rules if _is_supplied(broker, one)]
        had = {_told(one): detection.reached(one.rule.name) for one in rules}
        numbers = tuple(sorted(one.number for one in sink.interests))
        yield f"what sink {sink.peer.decode()} has of rule", ((epoch, sink.peer, numbers), had)


def _is_supplied(broker: Broker, deployed: Deployed) -> bool:
    """Whether all that a rule needs is published, by the plan. What is said of one that waits for a
    type is no mark: what comes of that may be from before it.
    """
    plan = broker.agreed.plan
    if plan is None:
        return False
    published = {TIMER.name}
    published.update(*(types for _, _, types in plan.nodes), *(types for _, types in plan.absent))
    return broker.context.deployments.needs(deployed.rule.name) <= published


def _told(deployed: Deployed) -> str:
    return f"{deployed.name}, version {deployed.version} since {deployed.since}"


def _marks_in_tree(tree: str, evaluator: TreeEvaluator, plan: Any) -> Iterator[tuple[str, Marks]]:
    yield f"the mark in {tree} of type", ((evaluator,), evaluator.progress.types)
    yield f"what has gone up in {tree} of type", ((evaluator, plan), evaluator.forwarder.marks)
    output_watermarks = {name: evaluator.output_watermark(name) for name in evaluator.rules}
    yield f"the output watermark in {tree} of rule", ((evaluator, plan), output_watermarks)


def _held_by(broker: Broker) -> Iterator[tuple[str, int, int]]:
    """The buffers of a broker, each with its size and its bound."""
    context, overlay = broker.context, broker.overlay
    config, links = context.config, overlay.config
    for channel in overlay.links.values():
        neighbour = channel.neighbour
        yield f"messages for {neighbour}", channel.buffered, links.buffer_max
        yield f"packets under way to {neighbour}", channel.under_way, links.window_max
        yield f"packets of {neighbour} before their turn", channel.kept, links.window_max
    yield "brokers", len(overlay.topology.states), links.nodes_max
    # What a message brings is remembered whole.
    most = 2 * (config.repeat_ids_max + config.publish_credit)
    yield "ids of events remembered", broker.remembered, most
    for source in context.sources:
        yield f"credit of source {source.name}", source.outstanding, config.publish_credit
        yield f"types of source {source.name}", len(source.floors), config.types_max
    for evaluator in context.detection.evaluators:
        if evaluator.missing.absent:
            waiting = sum(evaluator.missing.waiting.values())
            yield "events waiting for a type", waiting, config.waiting_events_max


# --- trees ---


def _look_at_fathers(host: BrokerHost, seen: Seen) -> Iterator[str]:
    """Whether, within an epoch of a tree, a broker has one father, or none any more."""
    before = seen.fathers
    seen.fathers = {(one.root, one.epoch): one.father for one in host.broker.overlay.topology.trees}
    for (root, epoch), father in seen.fathers.items():
        was = before.get((root, epoch), father)
        if father is not None and father != was:
            yield f"broker {host.name}: its father in the tree of {root} was {was}, is {father}"


def _look_for_cycles(hosts: Sequence[BrokerHost]) -> Iterator[str]:
    """Whether nobody is above itself in a tree (routing.overlay.trees); a broker that has restarted
    may be, until the next epoch.
    """
    trees: dict[tuple[str, int], dict[str, str]] = {}
    for host in hosts:
        if host.starts == 1:
            for tree in host.broker.overlay.topology.trees:
                if tree.father is not None:
                    trees.setdefault((tree.root, tree.epoch), {})[host.name] = tree.father
    for (root, _), fathers in trees.items():
        above: set[str] = set()
        for name in fathers:
            below: set[str] = set()
            while name in fathers and name not in above:
                if name in below:
                    yield f"the tree of {root}: {name} is above itself"
                    return
                below.add(name)
                name = fathers[name]
            above |= below
