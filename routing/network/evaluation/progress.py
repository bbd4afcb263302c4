"""Up to where rules have come at one broker, in one tree, and types with them.

What is told of a type is the least of its watermark here (routing.watermarks) and of how far the
rules that are evaluated here and define it have come.

After an input only what it may have changed is looked at: the types whose watermarks have moved,
and the rules that use them. After another plan that is everything. What sinks are told of a rule,
here and elsewhere, is its outlook, which may lie beyond its mark (outlook).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from routing.network.evaluation.duties import NO_DUTIES, Duties
from routing.network.tables.outlook import Outlook
from routing.order import greatest_time, least_time
from routing.partition.forwarder import Forwarder
from routing.watermarks.ends import CLOSED
from routing.watermarks.standing import UNSAID, Evaluated, TypeProgress
from routing.watermarks.watermarks import Watermarks
from rules.engine.engine import Detector
from rules.pattern import Rule


class Progress:
    """Owner of what follows from these watermarks. After an input comes ``rise``, with the types
    that have moved.
    """

    def __init__(self, watermarks: Watermarks) -> None:
        self._watermarks = watermarks
        self._standings = watermarks.standings
        self._rules: dict[str, Evaluated] = {}
        self.news: Sequence[str] = ()
        """The rules here that have another outlook by the last ``rise``, or have ended, or have
        not any more; all, after another plan."""
        self.front = TIME_MIN
        """The greatest time of an event that is or was here; TIME_MIN for none."""
        self.has_gone_far = False
        """Whether a type's front is worth a look."""
        self._outlook = Outlook()
        self._duties = NO_DUTIES

    @property
    def types(self) -> dict[str, int]:
        """The marks of types, which never go back."""
        return {one.name: one.given for one in self._standings if one.given != UNSAID}

    def marks_of(self, names: Iterable[str]) -> list[int]:
        """The marks, as of now, of those of some types of which more may come."""
        standings = map(self._standings.of, names)
        return [
            one.here
            for one in standings
            if one.here < CLOSED and not (one.is_closed or one.has_ended)
        ]

    def furthest_of(self, names: Iterable[str]) -> int:
        """The greatest time of an event of some types that has come; TIME_MIN for none."""
        return max([self._standings.of(name).front for name in names], default=TIME_MIN)

    def begun(self, names: Collection[str]) -> int:
        """How far events of some types had come when the plan that there is was begun with; if none
        had, the least time of the first of each that came since; TIME_MAX where none has.
        """
        standings = [self._standings.of(name) for name in names]
        begun = max([one.begun for one in standings], default=TIME_MIN)
        return min([one.first for one in standings]) if begun == TIME_MIN else begun

    def note_looked(self, step: int) -> None:
        """Fronts are worth a look again when they are so much further."""
        self.has_gone_far = False
        for one in self._standings:
            one.looked_at_from = TIME_MIN if one.front == TIME_MIN else one.front + step

    def open_mark(self, name: str) -> int:
        """The mark of a type as of now; CLOSED where it has ended, or nothing is known of it."""
        one = self._standings.of(name)
        return CLOSED if one.has_ended else min(one.here, CLOSED)

    def outlook(self, rule: str) -> int | None:
        """Up to where it is certain that no more of a rule will be found than has been (outlook);
        None for one that is not here, or before the first ``rise``.
        """
        return self._outlook.of(rule)

    def mark(self, rule: str) -> int | None:
        """Up to where a rule was evaluated when it was last advanced, for who asks after that; None
        as for ``outlook``.
        """
        found = self._rules.get(rule)
        return None if found is None or found.mark == UNSAID else found.mark

    # --- deployment ---

    def forget(self) -> None:
        """Rules begin anew: what has come, and what children have said, counts no more."""
        self._duties = NO_DUTIES
        self._rules = {}
        self._outlook.forget()
        self._watermarks.said.forget()

    def forget_far(self, is_far: Callable[[str, int], bool]) -> bool:
        """Types that have come too far have not come anywhere; whether there are any."""
        far = [
            one
            for one in self._standings
            if is_far(one.name, one.front) or (one.given != UNSAID and is_far(one.name, one.given))
        ]
        for one in far:
            one.forget()
        if far:
            self.front = max([one.front for one in self._standings])
        return bool(far)

    def arrange(
        self,
        duties: Duties,
        published: frozenset[str],
        together: Iterable[Collection[str]],
        over: frozenset[str],
    ) -> None:
        """Set the duties from now on; local sources publish these types.
        ``together``: types that fragments look at together. ``over`` as in Watermarks.
        """
        watermarks = self._watermarks
        for child, released in duties.released(self._duties):
            watermarks.said.doubt(child, released)
        self._duties = duties
        for one in self._standings:
            one.begun = one.front
        self._arrange_types(duties)
        here = ((*uses, duties.rules[rule].rule.defines.name) for rule, uses in duties.uses.items())
        coupled = (*here, *together)
        watermarks.arrange(duties.uses, duties.defining, duties.timed, coupled, over)
        self._outlook.arrange(duties.rules)
        watermarks.said.arrange(published, duties.expected)

    def _arrange_types(self, duties: Duties) -> None:
        of = self._standings.of
        for one in self._standings:
            one.users, one.defining, one.opened = [], [], []
            one.is_used = False
        for name in duties.used:
            of(name).is_used = True
        self._rules = {
            name: Evaluated(name, of(deployed.rule.defines.name), _opening(deployed.rule, of))
            for name, deployed in duties.rules.items()
        }
        for name, users in duties.users.items():
            of(name).users = [self._rules[rule] for rule in users]

    # --- inputs ---

    def see(self, batch: EventBatch) -> None:
        """Events have come, or were found, that may be terminators of rules here."""
        self._outlook.see(batch)

    def reach(self, batch: EventBatch) -> None:
        """Events have come."""
        front = self.note_come(batch)
        if front > self.front:
            self.front = front

    def note_come(self, batch: EventBatch) -> int:
        """Events have come, or were found; gives the greatest time of one."""
        one, front = self._standings.of(batch.type.name), greatest_time(batch)
        is_first = one.front == TIME_MIN
        if self._watermarks.reach(one, front):
            if is_first:
                one.first = least_time(batch)
            if front >= one.looked_at_from:
                self.has_gone_far = True
        return front

    # --- after an input ---

    def rise(
        self,
        moved: set[TypeProgress],
        changed: Collection[str],
        engine: Detector,
        forwarder: Forwarder,
        *,
        is_anew: bool,
    ) -> None:
        """Work out the marks of rules, and of types with them; adds those types to ``moved``.

        ``changed``: rules that have ended, or have not any more. ``forwarder``: what uses types
        beside the rules here.
        """
        if is_anew:
            for one in self._standings:
                one.here = UNSAID
                if one.defining or one.has_ended:
                    moved.add(one)
        risen: set[Evaluated] = set()
        for rule in self._rules.values() if is_anew else self._touched_by(moved):
            mark = engine.mark(rule.name)
            if mark != rule.mark:
                rule.mark = mark
                risen.add(rule)
                moved.add(rule.defined)
        moved.discard(self._watermarks.clock)
        for one in moved:
            if one.mark == UNSAID and not (one.defining or one.has_ended):
                one.here = UNSAID  # it had ended, and has not any more
                continue
            mark = one.here = self._mark_here(one)
            # What nobody publishes any more and no rule has used may begin anew at any time.
            if not one.is_closed or one.is_used or forwarder.looks_at(one.name):
                one.given = mark if one.given == UNSAID else max(mark, one.given)
        self.news = sorted(self._look_ahead(risen, moved, changed, is_anew=is_anew))

    def _touched_by(self, moved: Iterable[TypeProgress]) -> Collection[Evaluated]:
        """The rules here whose marks may move with those of these types."""
        return {rule for one in moved for rule in one.users} if self._rules else ()

    def _look_ahead(
        self,
        risen: set[Evaluated],
        moved: Iterable[TypeProgress],
        changed: Collection[str],
        *,
        is_anew: bool,
    ) -> Collection[str]:
        """Work out the outlooks of rules; gives ``news``."""
        if not self._rules:
            return changed
        news = set(self._rules if is_anew else changed)
        if is_anew:
            risen.update(self._rules.values())
        for one in moved:
            risen.update(one.opened)
        for rule in risen:
            if self._outlook.rise(rule.name, rule.mark, rule.bound()):
                news.add(rule.name)
        return news

    def _mark_here(self, one: TypeProgress) -> int:
        """The mark of a type, the rules here included."""
        watermarks = self._watermarks
        mark = TIME_MAX if one.mark == UNSAID else watermarks.brought(one)
        if one.defining:
            running = [rule for rule in one.defining if rule.name not in watermarks.over]
            if not running and one.mark == UNSAID:
                mark = watermarks.beyond_gone(one)
            for rule in running:
                mark = min(mark, rule.mark)
        return max(mark, watermarks.beyond_gone(one)) if one.has_ended else mark


def _opening(rule: Rule, of: Callable[[str], TypeProgress]) -> list[TypeProgress]:
    return [of(used.name) for used in rule.opening]
