"""Checkpoints: up to where composite events have arrived, so that brokers can forget.

Law 1: a broker that keeps many events of its own sources, or has found many of which no state
tells, asks the root for a checkpoint. It goes down the tree, answers come up, and what they say
together is told to all as committed: a checkpoint begun after an event came follows it on every
way, and so does what is committed. b3 keeps 4,096 Temps; all have fire to 40 s: to 35 s they go.

Law 2: the root takes checkpoints, too, while rules end (planner, Law 6): first ENDING_S after the
plan, then after twice as long each time, at most ENDING_MAX_S. When one can be dropped there is a
plan. fire ends at 26 s: all have come there in the checkpoint after 3 s, and a plan drops it.

Law 3: while brokers are out of reach there is no checkpoint, for they may need everything. So
nobody whose link to a child was just lost answers one, until there is another plan. b3 is out of
reach: b1 and b2 keep all Temps, and count those beyond their bounds. Nor does a broker take one
that has just started and is alone: its neighbours are about to be heard.

Law 4: before the root tells what was committed it tells the states of rules whose memory no window
bounds, as of then (routing.durability.state_table): with the first checkpoint of a plan all of
them, and then what is new. So whoever lets go of events has the state that stands for them. fire
consumes its Temps: all are told its Fires up to 40 s, and that 40 s is committed, and let go of the
Temps before 35 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routing.messages import (
    CheckpointCommitted,
    CheckpointProbe,
    Report,
    RootRequest,
    RootTask,
    RuleState,
)
from routing.network.agreement.rounds import combined
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.measurements import Measurements
from routing.network.brokers.report_collector import ReportCollector
from routing.network.brokers.root_requests import RootRequests
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.recovery.resume_points import over

ENDING_S, ENDING_MAX_S = 1.0, 60.0
"""Seconds (Law 2)."""
HEARD = 4
"""Heartbeats within which a broker that has started hears from its neighbours, if they live."""
BEHIND = 2
"""Checkpoints that begin here until one has surely begun after now: one may be on its way."""


class Checkpoints:
    """Lets go of what nobody needs any more. ``measurements`` count what these bring, if any."""

    def __init__(
        self,
        context: BrokerContext,
        agreed: Agreed,
        timer: UpdateTimer,
        root_requests: RootRequests,
        collector: ReportCollector,
        measurements: Measurements | None,
    ) -> None:
        self._context = context
        self._router = context.router
        self._detection = context.detection
        self._agreed = agreed
        self._timer = timer
        self._root_requests = root_requests
        self._collector = collector
        self._measurements = measurements
        config = context.overlay.config
        self._heard_at = context.moment.now + (HEARD * config.heartbeat_s if config.terms else 0.0)
        """When this broker has heard from all neighbours that live, if there may be any."""
        self._has_asked = False
        """Whether this broker has asked for a checkpoint, and has not heard of one since."""
        self._has_told_states = False
        """At the root: whether all have been told all states since the plan."""
        self.due_at: float | None = None
        """When the root looks next at rules that end (Law 2); None elsewhere, and without any."""
        self._after_s = ENDING_S
        self.has_work = False
        """At the root: whether a rule can be dropped."""
        self._behind: list[tuple[Callable[[], object], int]] = []
        """Functions to be called behind a checkpoint, each with how many it has yet to hear of."""

    def begin_anew(self) -> None:
        """There is another plan."""
        self._has_asked = self._has_told_states = False
        self._behind = [(go_on, BEHIND) for go_on, _ in self._behind]
        self.has_work, self._after_s, self.due_at = False, ENDING_S, None
        if self._router.is_root and self._context.deployments.ending:
            self.due_at = self._context.moment.now + self._after_s

    def once_passed(self, go_on: Callable[[], object]) -> None:
        """Do something once a checkpoint has been concluded that began after this: then all marks
        have been told that anybody knows now (Law 1).
        """
        self._behind.append((go_on, BEHIND))

    def handle_timer(self) -> None:
        """Look at rules that end."""
        self._after_s = min(2 * self._after_s, ENDING_MAX_S)
        self.due_at = self._context.moment.now + self._after_s
        if self._router.is_root and self._detection.is_at_work:
            self.begin()

    @property
    def _is_new(self) -> bool:
        """Whether this broker is alone because it has just started (Law 3)."""
        return self._detection.is_alone and self._context.moment.now < self._heard_at

    def begin(self) -> None:
        """At the root: ask up to where composite events have arrived, if that can be known."""
        is_idle = self._collector.question is None and (self._behind or not self._is_new)
        if is_idle and self._agreed.is_planned and not self._agreed.out_of_reach:
            self._probe(CheckpointProbe(self._agreed.next_number()))

    def hear_probe(self, neighbour: str, probe: CheckpointProbe) -> None:
        """The root asks."""
        if neighbour == self._router.father and self._detection.is_at_work:
            self._probe(probe)

    def _probe(self, probe: CheckpointProbe) -> None:
        epoch = self._router.epoch
        if epoch is None or not self._router.partners <= self._router.branches.keys():
            return
        context, detection = self._context, self._detection
        detection.probe()
        self._behind = [(go_on, left - 1) for go_on, left in self._behind]
        context.tell_all_marks()
        resume_from, promises = detection.resume_points_of(context.wanted_rules), detection.promises
        own = Report(
            *epoch,
            probe.number,
            resume_from=tuple(resume_from.items()),
            promises=tuple(promises.items()),
        )
        if self._measurements is not None:
            own = self._measurements.added_to(own)
        self._collector.ask(probe, lambda reports: self._conclude_kept(combined(own, reports)))

    def _conclude_kept(self, report: Report) -> None:
        """Conclude once this broker would know after a restart what its part of the report says."""
        epoch = self._router.epoch

        def conclude() -> None:
            if self._router.epoch == epoch and self._detection.is_at_work:
                self._conclude(report)

        self._context.outlet.once_kept(conclude)

    def _conclude(self, report: Report) -> None:
        """All below have answered."""
        if self._router.is_root:
            now, detection = self._context.moment.now, self._detection
            said = self._agreed.resume_points(detection, report, (), now)
            resume_from = detection.not_before_committed(said)
            self._tell_states(resume_from)
            self._commit(CheckpointCommitted(report.number, tuple(sorted(resume_from.items()))))
            if over(self._context.deployments.rules, self._detection.committed):
                self.has_work = True
                self._timer.tell_soon()
            if self._measurements is not None:
                self._measurements.weigh(report)
        elif self._router.father is not None:
            self._context.send(self._router.father, report)

    def _tell_states(self, resume_from: Mapping[str, int]) -> None:
        """At the root: tell all what others need to go on with rules whose memory no window bounds
        (Law 4).
        """
        news = self._detection.put_down(resume_from)
        for one in news if self._has_told_states else self._detection.states.beyond({}):
            self._pass_on(one)
        self._has_told_states = True

    def hear_state(self, neighbour: str, state: RuleState) -> None:
        """The root tells all how far a rule has come, or a child tells the root."""
        self._detection.states.take(state)
        if neighbour == self._router.father:
            self._pass_on(state)

    def _pass_on(self, message: CheckpointCommitted | RuleState) -> None:
        for branch in self._router.children:
            self._context.send(branch.neighbour, message)

    def hear_committed(self, neighbour: str, message: CheckpointCommitted) -> None:
        """The root tells what was found."""
        if neighbour == self._router.father and self._detection.is_at_work:
            self._commit(message)

    def _commit(self, message: CheckpointCommitted) -> None:
        self._has_asked = False
        self._detection.commit(dict(message.resume_from))
        self._pass_on(message)
        passed = [go_on for go_on, left in self._behind if left <= 0]
        self._behind = [one for one in self._behind if one[1] > 0]
        for go_on in passed:
            go_on()

    def look_at_replay_buffer(self) -> None:
        """Ask the root for what the evaluator and the buffer need, while there is a plan."""
        detection, evaluator = self._detection, self._detection.part.evaluator
        may_wait = evaluator.missing.absent or detection.tree_table.trees
        if may_wait and (unpublished := detection.take_unpublished()):
            self._root_requests.say(RootRequest(RootTask.RELEASE, unpublished))
        is_due = (detection.replay_buffer.is_full or evaluator.notes.are_many) and not self._is_new
        if not self._has_asked and (is_due or self._behind):
            self._has_asked = True
            self._root_requests.say(RootRequest(RootTask.CHECKPOINT))
