"""A broker of a network whose rules are divided over the tree (thesis 7.3.5, architecture.md 4.4).

Law 1: what changes the division is done at the root while the tree pauses (planning). So a rule
holds from an instant beyond all that has been evaluated anywhere, and a source that joins begins
beyond all marks.

Law 2: what a broker's sources publish, or have published, stays its own: a source that leaves
moves no rule. One that joins may; then rules begin anew, and nothing is lost.

Law 3: a published event crosses a link once: upwards as a Forward, for those above that want it and
for rules alike, downwards as a Flow, for those below that want it. Each broker offers what it has
not seen to its own sinks (arrivals).

Law 4: what a father has sent before it answered a pause may come to a child that has answered it.
Published events pass it. Composite events wait for the plan; if rules begin anew, they are dropped,
for what this broker has told is due comes again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

from matcher.model import EventBatch
from routing.effects import Peer
from routing.errors import ProtocolError, Refusal
from routing.messages import (
    Advertise,
    Amended,
    Answered,
    Asked,
    Asking,
    Awaited,
    Awakening,
    Code,
    Committed,
    Confirmed,
    Deploy,
    Flow,
    Forward,
    Known,
    ListRules,
    Need,
    Pause,
    Paused,
    Plan,
    Refused,
    Remove,
    ShowRule,
    Survey,
    Surveyed,
    Unadvertise,
)
from routing.network.agreement.petitions import REQUESTS_MAX
from routing.network.brokers.awaiting import AwaitingBroker
from routing.network.brokers.broker import Broker, check_path
from routing.network.setup import Setup
from routing.network.stations.overview import DividedOverview, division_facts
from routing.network.tables.router import CLOSED
from routing.node import Node
from routing.order import in_sequence
from routing.partition.asking import Asked as AskedBelow
from routing.serving.link import Link
from routing.serving.sources import Source
from routing.serving.status import Overview


class DividingBroker(AwaitingBroker):
    """A Broker that evaluates its part of the rules."""

    _overviewing: ClassVar[type[DividedOverview]] = DividedOverview

    def __init__(self, setup: Setup) -> None:
        self._due: deque[tuple[Peer, Asking] | tuple[str, Asked]] = deque()
        """At the root: requests that wait for the tree to pause."""
        self._moved: dict[tuple[str, str], float] = {}
        """When each neighbour below has last moved a type's mark, for status."""
        self._detected: list[tuple[str, Flow]] = []
        """Composite events and marks that have come since this broker answered a pause (Law 4)."""
        super().__init__(setup)

    def _make_overview(self) -> Overview:
        return self._overviewing(
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
        stations = self._detection.stations
        facts = dict(super().status(now))
        facts["network"] = {**facts["network"], **division_facts(self._division())}
        return {
            **facts,
            "root": self._router.root,
            "father": self._router.father,
            "evaluates": sorted({name for station in stations for name in station.rules}),
            "forwards": self._detection.station.forwards,
            "kept": len(self._detection.ledger),
            "given_up": self._detection.ledger.given_up,
            "out_of_reach": [name for name, _ in self._known_absent],
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
        """What was asked may be lost: what can be asked twice is asked again."""
        self._detection.expect_nothing()
        due, self._due = self._due, deque()
        own = [(one, asked) for one, asked in due if isinstance(one, bytes)]
        lost = [*self._petitions.take_lost(), *own]
        for peer, request in lost:
            if isinstance(request, _REPEATABLE):
                self._petitions.wait(peer, request)
            elif not isinstance(request, Asked):
                reason = "the network has changed before the answer came"
                self._send_to(peer, Refused(request.request, Code.SILENT, reason))
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

    @property
    def _has_work(self) -> bool:
        return bool(self._due) or super()._has_work

    def _carry_out_due(self, homes: dict[str, set[str]]) -> None:
        """At the root, while the tree pauses: do what was asked. ``homes``: by broker, what is
        published there; what comes to it is added.
        """
        due, self._due = self._due, deque()
        for sender, asked in due:
            if isinstance(asked, Asked):
                assert isinstance(sender, str)
                answered = Answered(asked.path[:-1], asked.number, self._answer(asked))
                if isinstance(answered.answer, Confirmed):
                    _note_home(homes, asked.path[0], asked.request)
                self._answered.append((sender, answered))
            else:
                assert isinstance(sender, bytes)
                if self._do_own(sender, asked):
                    _note_home(homes, self.overlay.name, asked)

    def _do_own(self, peer: Peer, request: Asking) -> bool:
        """Do what an own client has asked; whether it was done."""
        link = self._links.find(peer)
        if link is None:
            return False
        try:
            Node.handlers[type(request)](self, link, request)
        except Refusal as refusal:
            self._send(peer, Refused(request.request, refusal.code, str(refusal)))
        except ProtocolError as error:
            self._expel(peer, error.code, str(error))
        else:
            if isinstance(request, Advertise) and link.source is not None:
                self._detection.add_own(link.source, [schema.name for schema in request.types])
            return True
        return False

        # --- events (Law 3) ---

    def _offer(self, source: Source, batches: tuple[EventBatch, ...]) -> None:
        if source.whole is not None:  # another broker may have passed them on before it was lost
            batches = self._arrivals.news(batches)
        super()._offer(source, batches)

    def _hear_flow(self, neighbour: str, flow: Flow) -> None:
        if neighbour not in self._router.branches:
            return  # of a tree that is no more
        for name, mark in flow.promises:
            self._hear_promise(name, mark)
        if not self._is_planned or neighbour not in self._router.partners:
            return
        self._check_schemas(flow.batches)
        is_composite = _are_detected(flow.batches)
        if flow.batches and not is_composite:
            self._pass_published(flow.batches, neighbour)
        if is_composite or flow.marks:
            self._detected.append((neighbour, flow))
        if self._detected:
            self._pass_detected()

    def _pass_detected(self) -> None:
        """Take over what was detected elsewhere, unless a pause is answered (Law 4)."""
        if not self._detection.is_at_work:
            return
        come, self._detected = self._detected, []
        for neighbour, flow in come:
            if _are_detected(flow.batches):
                self._router.pass_detected(flow.batches, flow.order, neighbour)
            if flow.marks:
                self._router.pass_marks(flow.marks, neighbour)

    def _stop_work(self) -> None:
        super()._stop_work()
        self._detected.clear()

    def _follow_plan(self, plan: Plan) -> None:
        if plan.anew:
            self._detected.clear()  # it comes again
        super()._follow_plan(plan)
        self._pass_detected()

    def _hear_forward(self, neighbour: str, message: Forward) -> None:
        if self._works_with(neighbour):
            self._check_schemas(message.batches)
            if message.fresh:
                self._pass_published(message.batches[: message.fresh], neighbour)
            self._detection.station.take(neighbour, message)
            for name, _ in message.marks:
                self._moved[neighbour, name] = self._now

    def _hear_awakening(self, neighbour: str, message: Awakening) -> None:
        if message.asked and neighbour == self._router.father and self._works_with(neighbour):
            self._detection.station.awake(message.asked)

    def _pass_published(self, batches: tuple[EventBatch, ...], sender: str) -> None:
        order, news = in_sequence(batches), self._arrivals.news(batches)
        self._sinks.offer(news, order if news is batches else in_sequence(news))
        self._router.route_down(batches, order, sender)

    def _settle(self) -> None:
        super()._settle()
        detection, father = self._detection, self._router.father
        outbox, is_at_work = detection.station.outbox, detection.is_at_work
        for message in outbox.take() if outbox.waiting else ():
            if is_at_work and father is not None:
                self.overlay.send(father, message, self._now)
        if is_at_work:
            self._ask_below()
        if detection.leaving:
            for name in detection.take_leaving():
                self._router.promise(name, CLOSED)
            self._send_flows()
        if is_at_work:
            self._look_at_ledger()

    def _ask_below(self) -> None:
        """Ask for what waits below."""
        if self._detection.station.is_pulling:
            for child, asked in self._asked_along_tree().items():
                self.overlay.send(child, Awakening(asked), self._now)

    def _asked_along_tree(self) -> dict[str, AskedBelow]:
        """By child; who is out of reach will send what waits there when all begins anew."""
        asked = self._detection.station.take_asked()
        return {child: of for child, of in asked.items() if child in self._router.branches}

    def _is_congested(self) -> bool:
        return super()._is_congested() or self._detection.is_held


def _are_detected(batches: Sequence[EventBatch]) -> bool:
    """Whether there are composite events among them."""
    for batch in batches:  # noqa: SIM110 (a generator has a step for each)
        if batch.is_composite:
            return True
    return False


def _note_home(homes: dict[str, set[str]], home: str, request: Asking) -> None:
    if isinstance(request, Advertise):
        homes.setdefault(home, set()).update(schema.name for schema in request.types)


_CHANGING = (Advertise, Unadvertise, Deploy, Remove)
"""Requests that change what the division follows from."""
_REPEATABLE = (Advertise, Unadvertise, ListRules, ShowRule)
"""Requests that may be made twice."""

DividingBroker.handlers = {
    **Broker.handlers,
    **dict.fromkeys(get_args(Asking), DividingBroker._ask),
}
DividingBroker.heard = {
    **Broker.heard,
    Known: DividingBroker._hear_known,
    Amended: DividingBroker._hear_amended,
    Flow: DividingBroker._hear_flow,
    Asked: DividingBroker._hear_asked,
    Answered: DividingBroker._hear_answered,
    Pause: DividingBroker._hear_pause,
    Paused: DividingBroker._hear_paused,
    Plan: DividingBroker._hear_plan,
    Forward: DividingBroker._hear_forward,
    Awakening: DividingBroker._hear_awakening,
    Awaited: DividingBroker._hear_awaited,
    Need: DividingBroker._hear_need,
    Survey: DividingBroker._hear_survey,
    Surveyed: DividingBroker._hear_surveyed,
    Committed: DividingBroker._hear_committed,
}
