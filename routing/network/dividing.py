"""A broker of a network whose rules are divided over the tree (thesis 7.3.5, architecture.md 4.4).

Law 1: rules are divided by one function of the tree, of what is published where, and of the rules
in force. The root tells all three (Known, then Plan), and every broker works out the same.

Law 2: before the root changes any of them it lets the whole tree pause: all brokers hold their
local sources, and say how far they are once all that came before has gone up. So a rule holds
from an instant beyond all that has been evaluated anywhere, a source that joins begins beyond all
marks, and no event is under way when the division changes.

Law 3: what a broker's sources publish, or have published, stays its own for as long as the root
does: a source that leaves moves no rule. One that joins may; such a rule holds anew, from an
instant beyond everything, at its new place, and the log says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_args

from routing.config import NodeConfig
from routing.effects import Peer
from routing.errors import ProtocolError, Refusal
from routing.link import Link
from routing.messages import (
    Advertise,
    Answered,
    Asked,
    Asking,
    Code,
    Confirmed,
    Deploy,
    Flow,
    Forward,
    Known,
    Pause,
    Paused,
    Plan,
    Refused,
    Remove,
    Unadvertise,
)
from routing.network.broker import Broker, check_path
from routing.network.divided import DividedDetection, DividedRouter
from routing.network.knowledge import knowledge_of, rules_of
from routing.network.overview import DividedOverview, division_facts
from routing.network.petitions import REQUESTS_MAX
from routing.network.rounds import Round, raise_all
from routing.network.station import Division
from routing.network.strategy import Strategy
from routing.node import Node
from routing.overlay.config import OverlayConfig
from routing.partition.placement import Tree, partition
from routing.status import Overview
from rules.engine.engine import Detector

Nodes = tuple[tuple[str, str, tuple[str, ...]], ...]


class DividingBroker(Broker):
    """A Broker that evaluates its part of the rules."""

    _detection: DividedDetection
    _router: DividedRouter

    def __init__(
        self,
        config: NodeConfig,
        overlay: OverlayConfig,
        engine: Detector,
        strategy: Strategy,
        now: float = 0.0,
    ) -> None:
        self._round: Round | None = None
        self._to_pause: tuple[str, int] | None = None
        """Who has asked this broker to pause; it will, once it knows all of its children."""
        self._plan: Plan | None = None
        self._last_round = 0
        self._planned_for: tuple[str, int] | None = None
        """The tree for which the rules were last divided."""
        self._due: deque[tuple[Peer, Asking] | tuple[str, Asked]] = deque()
        """At the root: requests that wait for the tree to pause."""
        self._homes: dict[str, set[str]] = {}
        """At the root: what is published at each broker (Law 3)."""
        self._moved: dict[tuple[str, str], float] = {}
        """When each neighbour below has last moved a type's mark, for status."""
        super().__init__(config, overlay, engine, strategy, now)

    def _make_router(self, name: str) -> DividedRouter:
        return DividedRouter(name)

    def _make_detection(self, engine: Detector) -> DividedDetection:
        return DividedDetection(
            self.overlay.name,
            self._router,
            self._config,
            engine,
            self._advertisements,
            self._deployments,
            on_types=self._check_interests,
            on_rules=self._sinks.index,
        )

    def _make_overview(self) -> Overview:
        return DividedOverview(
            self.overlay.name,
            self._division,
            self._moved,
            self._detection,
            self._deployments,
            self._advertisements,
            self._sources,
            self._sinks,
        )

    def status(self, now: float) -> Mapping[str, Any]:
        """What StatusRequest is answered with: here also what this broker does for which rules."""
        station = self._detection.station
        facts = dict(super().status(now))
        facts["network"] = {**facts["network"], **division_facts(self._division())}
        return {
            **facts,
            "root": self._router.root,
            "father": self._router.father,
            "evaluates": sorted(station.rules),
            "forwards": station.forwards,
        }

    # --- requests ---

    def _ask(self, link: Link, request: Asking) -> None:
        if not self._router.is_root or not isinstance(request, _CHANGING):
            super()._ask(link, request)
            return
        if len(self._due) >= REQUESTS_MAX:
            raise Refusal(Code.LIMIT, f"{REQUESTS_MAX} requests wait for the network already")
        if isinstance(request, Advertise):
            self._advertisements.check(request.types, link.name)
        self._due.append((link.peer, request))
        self._tell_soon()

    def _ask_root(self, peer: Peer, client: str, request: Asking) -> None:
        super()._ask_root(peer, client, request)
        if peer and isinstance(request, Advertise):
            self._detection.expect([schema.name for schema in request.types])

    def _hear_asked(self, neighbour: str, asked: Asked) -> None:
        if not self._router.is_root or not isinstance(asked.request, _CHANGING):
            super()._hear_asked(neighbour, asked)
            return
        check_path(neighbour, asked)
        self._due.append((neighbour, asked))
        self._tell_soon()

    def _change_root(self) -> None:
        self._detection.expect_nothing()
        super()._change_root()

    def _hear_answered(self, neighbour: str, answered: Answered) -> None:
        petition = None if answered.path else self._petitions.find(answered.number)
        if petition is not None:
            peer, request = petition
            if peer and isinstance(request, Advertise):
                self._detection.expect_no_more([schema.name for schema in request.types])
        super()._hear_answered(neighbour, answered)

    def _carry_out(self, link: Link, request: Asking, answer: Confirmed) -> None:
        super()._carry_out(link, request, answer)
        if isinstance(request, Advertise) and link.source is not None:
            self._detection.add_own(link.source, [schema.name for schema in request.types])

    def _carry_out_due(self) -> None:
        """At the root, while the tree pauses: do what was asked."""
        due, self._due = self._due, deque()
        for sender, asked in due:
            if isinstance(asked, Asked):
                assert isinstance(sender, str)
                answered = Answered(asked.path[:-1], asked.number, self._answer(asked))
                if isinstance(answered.answer, Confirmed):
                    self._note_home(asked.path[0], asked.request)
                self._answered.append((sender, answered))
            else:
                assert isinstance(sender, bytes)
                self._do_own(sender, asked)

    def _do_own(self, peer: Peer, request: Asking) -> None:
        link = self._links.find(peer)
        if link is None:
            return
        try:
            Node.handlers[type(request)](self, link, request)
        except Refusal as refusal:
            self._send(peer, Refused(request.request, refusal.code, str(refusal)))
        except ProtocolError as error:
            self._expel(peer, error.code, str(error))
        else:
            self._note_home(self.overlay.name, request)
            if isinstance(request, Advertise) and link.source is not None:
                self._detection.add_own(link.source, [schema.name for schema in request.types])

    def _note_home(self, home: str, request: Asking) -> None:
        if isinstance(request, Advertise):
            self._homes.setdefault(home, set()).update(schema.name for schema in request.types)

    # --- rounds (Law 2) ---

    def _tell(self) -> None:
        self._detection.tell_marks()
        super()._tell()
        if self._due and self._router.is_root:
            self._begin_round()

    def _follow_overlay(self, now: float) -> None:
        super()._follow_overlay(now)
        if self._router.is_root:
            is_another = self._planned_for != self._router.epoch
            if is_another or (self._due and self._round is None and self._tell_at is None):
                self._begin_round()
        elif self._to_pause is not None:
            neighbour, number = self._to_pause
            if neighbour == self._router.father and self._has_whole_tree:
                self._to_pause = None
                self._pause(number)

    @property
    def _has_whole_tree(self) -> bool:
        """Whether all children are known."""
        tree = self.overlay.single_tree
        return tree is not None and tree.is_complete

    def _begin_round(self) -> None:
        """At the root: let the tree pause, unless it does already, or is not complete yet."""
        is_idle = self._round is None or self._planned_for != self._router.epoch
        if is_idle and self._has_whole_tree:
            self._last_round += 1
            self._pause(self._last_round)
            self._settle()

    def _pause(self, number: int) -> None:
        if self._planned_for != self._router.epoch:
            self._detection.station.forget_children()
        self._planned_for = self._router.epoch
        children = [branch.neighbour for branch in self._router.children]
        self._round = Round(number, set(children))
        self._detection.hold()
        for child in children:
            self.overlay.send(child, Pause(number), self._now)
        self._look_whether_all_pause()

    def _hear_pause(self, neighbour: str, message: Pause) -> None:
        # It may come before this broker knows that the sender is its father.
        self._to_pause = neighbour, message.number

    def _hear_paused(self, neighbour: str, message: Paused) -> None:
        if self._round is not None and message.number == self._round.number:
            self._round.add(message)
            self._round.awaited.discard(neighbour)
            self._look_whether_all_pause()

    def _look_whether_all_pause(self) -> None:
        if self._round is None or self._round.awaited:
            return
        done, self._round = self._round, None
        self._settle()  # all that has come goes up before the answer
        station = self._detection.station
        done.nodes.append((self.overlay.name, self._router.father or ""))
        published = self._detection.published
        own = [self._advertisements.find(name) for name in published]
        raise_all(
            done.fronts,
            ((one.schema.name, one.front) for one in own if one and one.front is not None),
        )
        raise_all(done.marks, station.type_marks.items())
        raise_all(done.rules, ((name, station.mark(name)) for name in station.rules))
        if self._router.is_root:
            self._divide(done)
        elif self._router.father is not None:
            tables = (done.fronts, done.marks, done.rules)
            said = (tuple(sorted(table.items())) for table in tables)
            paused = Paused(done.number, tuple(done.nodes), *said)
            self.overlay.send(self._router.father, paused, self._now)

    # --- plans (Law 1) ---

    def _divide(self, found: Round) -> None:
        """At the root: the whole tree pauses."""
        detection = self._detection
        detection.fronts, detection.type_marks = found.fronts, found.marks
        detection.rule_marks = found.rules
        before = self._division()
        self._carry_out_due()
        nodes = tuple(
            (name, father, tuple(sorted(self._homes.get(name, ()))))
            for name, father in sorted(found.nodes)
        )
        self._plan = Plan(found.number, nodes)
        self._known = knowledge_of(self._advertisements, self._deployments)
        if before is not None:
            self._restart_moved(before)
        answered, self._answered = self._answered, []
        self._tell_known()
        self._send_plan()
        self._answered = answered
        self._told_version = -1  # the answers follow

    def _restart_moved(self, before: Division) -> None:
        after = self._division()
        assert after is not None
        was = {one.rule.name: one for one in before.rules}
        for one in after.rules:
            name = one.rule.name
            places = before.partition.places.get(name), after.partition.places[name]
            old = was.get(name)
            if old is None or old.version != one.version or places[0] == places[1]:
                continue
            since = self._detection.beyond(sorted(self._deployments.needs(name)))
            if since is not None:
                self._deployments.restart(name, since)
                self._log("warning", "a rule has moved", rule=name, places=places, since=since)
        self._known = knowledge_of(self._advertisements, self._deployments)

    def _send_plan(self) -> None:
        assert self._plan is not None
        for branch in self._router.children:
            self.overlay.send(branch.neighbour, self._plan, self._now)
        division = self._division()
        assert division is not None
        self._moved.clear()
        self._detection.follow(division)

    def _hear_plan(self, neighbour: str, plan: Plan) -> None:
        if neighbour == self._router.father:
            self._plan, self._round = plan, None
            self._tell_known()  # it may have come with the plan, and must go on before it
            self._send_plan()

    def _division(self) -> Division | None:
        if self._plan is None:
            return None
        return divided(self._plan.nodes, self._known)

    def _change_role(self) -> None:
        super()._change_role()
        self._round, self._plan, self._planned_for = None, None, None
        self._homes.clear()
        if self._router.is_root and self._detection.published:
            self._homes[self.overlay.name] = set(self._detection.published)
        due, self._due = self._due, deque()
        for sender, asked in due:
            if not isinstance(asked, Asked):
                assert isinstance(sender, bytes)
                reason = "the network has changed before the answer came"
                self._send_to(sender, Refused(asked.request, Code.SILENT, reason))

    # --- events of other brokers ---

    def _hear_flow(self, neighbour: str, flow: Flow) -> None:
        if neighbour not in self._router.branches:
            return  # of a tree that is no more
        self._check_schemas(flow.batches)
        if any(batch.is_composite for batch in flow.batches):
            self._router.pass_detected(flow.batches, flow.order, neighbour)
        elif flow.batches:
            self._sinks.offer(flow.batches, flow.order)
            self._router.route(flow.batches, flow.order, neighbour)
        if flow.marks:
            self._router.pass_marks(flow.marks, neighbour)
        for name, mark in flow.promises:
            self._hear_promise(name, mark)

    def _hear_forward(self, neighbour: str, message: Forward) -> None:
        if neighbour in self._router.branches:
            self._check_schemas(message.batches)
            self._detection.station.take(neighbour, message)
            self._moved.update(((neighbour, name), self._now) for name, _ in message.marks)

    def _settle(self) -> None:
        super()._settle()
        forwards = self._detection.station.take_forwards()
        if self._router.father is not None:
            for message in forwards:
                self.overlay.send(self._router.father, message, self._now)

    def _is_congested(self) -> bool:
        return super()._is_congested() or self._detection.is_held


@lru_cache(maxsize=8)
def divided(nodes: Nodes, known: Known) -> Division:
    """The division that follows from what the root has told (Law 1); one for all brokers."""
    deployed, types = rules_of(known), known.types
    (root,) = (name for name, father, _ in nodes if not father)
    children: dict[str, tuple[str, ...]] = {}
    for name, father, _ in nodes:
        if father:
            children[father] = (*children.get(father, ()), name)
    published = {name: frozenset(names) for name, _, names in nodes}
    schemas = {schema.name: schema for schema in types}
    found = partition(Tree(root, children), published, [one.rule for one in deployed])
    fathers = {name: father for name, father, _ in nodes if father}
    return Division(found, fathers, published, deployed, schemas)


_CHANGING = (Advertise, Unadvertise, Deploy, Remove)
"""Requests that change what the division follows from."""

DividingBroker.handlers = {
    **Broker.handlers,
    **dict.fromkeys(get_args(Asking), DividingBroker._ask),
}
DividingBroker.heard = {
    **Broker.heard,
    Flow: DividingBroker._hear_flow,
    Asked: DividingBroker._hear_asked,
    Answered: DividingBroker._hear_answered,
    Pause: DividingBroker._hear_pause,
    Paused: DividingBroker._hear_paused,
    Plan: DividingBroker._hear_plan,
    Forward: DividingBroker._hear_forward,
}
