"""Surveys: up to where composite events have arrived, so that brokers can forget (4.3).

Law 1: a broker that keeps many events of its own sources asks the root for a survey. It goes down
the tree, the answers come back up, and what they say together is told to all as committed: a
survey that is begun after an event came follows it on every way, and so does what is committed.

Law 2: while brokers are out of reach there is no survey, for they may need everything.
"""

from __future__ import annotations

from routing.messages import (
    Committed,
    Need,
    Needed,
    Plan,
    Survey,
    Surveyed,
)
from routing.network.agreement.rounds import Tally
from routing.network.brokers.planning import PlanningBroker
from routing.network.setup import Setup


class SurveyingBroker(PlanningBroker):
    """A Broker that lets go of what nobody needs any more."""

    def __init__(self, setup: Setup) -> None:
        self._tally: Tally | None = None
        """The survey whose answers are awaited."""
        self._needs_survey = False
        """At the root: whether somebody has asked for one."""
        self._asked_for_survey = False
        super().__init__(setup)

    def _stop_work(self) -> None:
        super()._stop_work()
        self._tally = None

    def _follow_plan(self, plan: Plan) -> None:
        self._tally, self._asked_for_survey = None, False
        super()._follow_plan(plan)

    def _need(self, need: Need) -> None:
        if self._router.is_root and need.what is Needed.SURVEY:
            self._needs_survey = True
            self._begin_survey()
        else:
            super()._need(need)

    def _begin_survey(self) -> None:
        """At the root: ask up to where composite events have arrived, if that can be known."""
        ready = self._tally is None and self._is_planned and not self._known_absent
        if self._needs_survey and ready and self._round is None:
            self._needs_survey = False
            self._last_number += 1
            self._survey(Survey(self._last_number))

    def _add_to(self, tally: Tally) -> None:
        """Add what this broker has measured to a survey: nothing, if nobody goes by it."""

    def _weigh(self, tally: Tally) -> None:
        """At the root: a survey has brought this."""

    def _hear_survey(self, neighbour: str, survey: Survey) -> None:
        if neighbour == self._router.father and self._detection.is_at_work:
            self._survey(survey)

    def _survey(self, survey: Survey) -> None:
        self._detection.ledger.survey()
        children = [branch.neighbour for branch in self._router.children]
        self._tell_all_marks()
        due = self._detection.due_of(self._wanted_rules)
        self._tally = Tally(survey.number, set(children), due)
        self._add_to(self._tally)
        for child in children:
            self.overlay.send(child, survey, self._now)
        self._look_whether_all_answered()

    def _hear_surveyed(self, neighbour: str, message: Surveyed) -> None:
        if self._tally is not None and message.number == self._tally.number:
            self._tally.add(message)
            self._tally.awaited.discard(neighbour)
            self._look_whether_all_answered()

    def _look_whether_all_answered(self) -> None:
        tally = self._tally
        if tally is None or tally.awaited:
            return
        self._tally = None
        said = tally.said()
        if self._router.is_root:
            self._commit(Committed(said.number, said.due))
            self._weigh(tally)
        elif self._router.father is not None:
            self.overlay.send(self._router.father, said, self._now)

    def _hear_committed(self, neighbour: str, message: Committed) -> None:
        if neighbour == self._router.father and self._detection.is_at_work:
            self._commit(message)

    def _commit(self, message: Committed) -> None:
        self._asked_for_survey = False
        self._committed = dict(message.due)
        self._detection.commit(self._committed)
        for branch in self._router.children:
            self.overlay.send(branch.neighbour, message, self._now)

    def _look_at_ledger(self) -> None:
        """Ask for what the station and the ledger need of the root, while there is a plan."""
        detection = self._detection
        hopeless = detection.take_hopeless()
        if hopeless:
            self._need(Need(Needed.RELEASE, hopeless))
        if detection.ledger.is_full and not self._asked_for_survey:
            self._asked_for_survey = True
            self._need(Need(Needed.SURVEY))
