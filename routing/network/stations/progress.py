"""Up to where types have come at one broker, in one tree, and the rules that are evaluated there.

Law 1: the mark of a type is the least of those who say something of it here: the local sources,
each child that forwards it (said), and the rules evaluated here that define it.

Law 2: a type that nobody publishes any more holds nothing up and runs ahead of nothing (see
routing.serving.watermark): it has the mark of the type that is furthest, or lies just beyond the
last event.

Law 3: after an input only what it may have changed is looked at: the types of which somebody has
said something else, and the rules that use them. After another plan that is everything.

Law 4: what sinks are told of a rule, here and elsewhere, is its outlook, which may lie beyond its
mark (outlook).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from routing.network.stations.duties import NO_DUTIES, Duties
from routing.network.stations.lingering import Lingering
from routing.network.stations.said import Said
from routing.network.tables.ends import Ends
from routing.network.tables.outlook import Outlook
from routing.network.tables.router import CLOSED
from routing.order import greatest_time
from routing.partition.pulls import Pulls
from rules.engine.engine import Detector
from rules.pattern import TIMER


class Progress:
    """Owner of these marks. After an input come ``hear``, ``due``, ``end`` and ``rise``, in this
    order, each with the types that have moved so far.
    """

    def __init__(self, lingering: Lingering) -> None:
        self.said = Said()
        self.ends = Ends()
        self.types: dict[str, int] = {}
        """The marks of types, which never go back."""
        self.here: dict[str, int] = {}
        """Those as of now."""
        self.rules: dict[str, int] = {}
        """The marks of the rules here since they were last advanced, for who asks after that."""
        self.news: Sequence[str] = ()
        """The rules here that have another outlook by the last ``rise``, or have ended, or have
        not any more; all, after another plan."""
        self.front = TIME_MIN
        """The greatest time of an event that is or was here; TIME_MIN for none."""
        self._beyond = self._timer = TIME_MIN
        self._outlook = Outlook()
        self._lingering = lingering
        self._duties = NO_DUTIES
        self._awaited: dict[str, int] = {}
        """For which types events waited when it was last asked, and up to when."""

    def outlook(self, rule: str) -> int | None:
        """Up to where it is certain that no more of a rule will be found than has been (Law 4);
        None for one that is not here, or before the first ``rise``.
        """
        return self._outlook.marks.get(rule)

    # --- deployment ---

    def forget(self) -> None:
        """Rules begin anew: what has come, and what children have said, counts no more."""
        self._duties = NO_DUTIES
        self.rules.clear()
        self._outlook.forget()
        self.said.forget()

    def arrange(self, duties: Duties, published: frozenset[str], given_up: frozenset[str]) -> None:
        """These are the duties from now on; local sources publish these types, and those are given
        up.
        """
        for child, released in duties.released(self._duties):
            self.said.doubt(child, released)
        self._duties = duties
        self.rules.clear()
        self._outlook.arrange({name: one.rule for name, one in duties.rules.items()})
        self.arrange_ends()
        self.said.arrange(published, given_up & duties.used, duties.expected)

    def arrange_ends(self) -> None:
        """Rules that linger use something else than before."""
        duties = self._duties
        self.ends.arrange(self._lingering.uses(duties.uses), duties.defining)

    def give_up(self, names: frozenset[str]) -> None:
        """These types are brought by nobody, whoever might have."""
        self.said.give_up(names & self._duties.used)

    # --- inputs ---

    def see(self, batch: EventBatch) -> None:
        """Events have come, or were found, that may be terminators of rules here."""
        self._outlook.see(batch)

    def reach(self, batch: EventBatch) -> None:
        """Events have come."""
        self.front = max(self.front, greatest_time(batch))

    # --- after an input ---

    def hear(self, own: Mapping[str, int], pulls: Pulls | None, *, is_anew: bool) -> set[str]:
        """Take in what is said; gives the types that have another mark by that (Laws 1 and 2).

        ``pulls``: which types wait below until they are asked for, if any do.
        """
        said = self.said
        moved = said.hear(own)
        if pulls is not None:
            pulls.learn({name: said.told[name] for name in moved})
            said.bound(pulls.take_limits(), moved)
        if is_anew:
            moved = set(said.marks)
        beyond = max(said.furthest, self.front + 1 if self.front > TIME_MIN else TIME_MIN)
        if beyond != self._beyond:
            self._beyond = beyond
            moved |= said.closed
            moved |= self.ends.types
        if pulls is not None:
            pulls.keep(beyond)
        return moved

    def due(self, moved: set[str], clock: int | None) -> dict[str, int]:
        """The marks that the engine is to be given; adds Timer to the types that have moved, if it
        has. ``clock`` as in Station.advance.
        """
        marks = {name: self._given(name) for name in moved if name in self.said.marks}
        if TIMER.name in self._duties.users:
            timer = self._without_clock() if clock is None else clock
            if timer != self._timer:
                self._timer = timer
                moved.add(TIMER.name)
            marks[TIMER.name] = timer
        return marks

    def end(self, moved: set[str], *, is_timed: bool) -> Collection[str]:
        """See what has ended; adds to the types that have moved, and gives rules (Ends.look)."""
        return self.ends.look(self.said, moved, is_timed=is_timed)

    def rise(
        self,
        moved: set[str],
        changed: Collection[str],
        engine: Detector,
        looks_at: Callable[[str], bool],
        *,
        is_anew: bool,
    ) -> None:
        """Work out the marks of rules, and of types with them; adds those types to ``moved``.

        ``changed``: rules that have ended, or have not any more. ``looks_at``: whether events of a
        type are used beside the rules here.
        """
        if is_anew:
            self.here = {}
            moved.update(self._duties.defining, self.ends.types)
        rules, marks, lingering = self._duties.rules, self.rules, self._lingering
        risen: set[str] = set()
        for rule in rules if is_anew else self._touched_by(moved):
            mark = lingering.mark(rule, engine)
            if mark != marks.get(rule):
                marks[rule] = mark
                risen.add(rule)
                moved.add(rules[rule].rule.defines.name)
        moved.discard(TIMER.name)
        used, closed = self._duties.used, self.said.closed
        for name in moved:
            mark = self.here[name] = self._mark_here(name)
            # What nobody publishes any more and no rule has used may begin anew at any time.
            if name not in closed or name in used or looks_at(name):
                self.types[name] = max(mark, self.types.get(name, TIME_MIN))
        outlook, news = self._outlook, set(rules if is_anew else changed)
        for rule in rules if is_anew else outlook.concerned(risen, moved):
            if outlook.rise(rule, marks[rule], self.here):
                news.add(rule)
        self.news = sorted(news)

    def _touched_by(self, moved: Iterable[str]) -> Collection[str]:
        """The rules here whose marks may move with those of these types."""
        users = self._duties.users
        return {rule for name in moved for rule in users.get(name, ())} if users else ()

    def _given(self, name: str) -> int:
        """The mark of a type, but for the rules here (Law 2)."""
        mark = self.said.marks.get(name, TIME_MIN)
        return self._beyond if mark == CLOSED else mark

    def _mark_here(self, name: str) -> int:
        """The mark of a type, the rules here included (Laws 1 and 2)."""
        said = self.said.marks.get(name)
        mark = TIME_MAX if said is None else self._beyond if said == CLOSED else said
        rules = self._duties.defining.get(name)
        if rules is not None:
            running = self._lingering.running(rules)
            if not running and said is None:
                mark = self._beyond
            for rule in running:
                mark = min(mark, self.rules[rule])
        return max(mark, self._beyond) if name in self.ends.types else mark

    def _without_clock(self) -> int:
        """The mark of Timer where the clock does not count: as far as rules that need it are."""
        found = [
            min((self._given(name) for name in uses - {TIMER.name}), default=TIME_MIN)
            for uses in self._duties.uses.values()
            if TIMER.name in uses
        ]
        return max(found, default=TIME_MIN)

    def take_awaited(self) -> dict[str, int]:
        """Up to when events have waited for types that rules here use, since it was last asked."""
        before, here = self._awaited.items(), self.here
        waited = {name: front for name, front in before if here.get(name, CLOSED) <= front}
        self._awaited = {
            name: self.front for name in self._duties.used if here.get(name, CLOSED) <= self.front
        }
        return waited
