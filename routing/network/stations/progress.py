"""Up to where types have come at one broker, in one tree, and the rules that are evaluated there.

Law 1: the mark of a type is the least of those who say something of it here: the local sources,
each child that forwards it (said), and the rules evaluated here that define it. Own sources of Temp
promise 40 s, child b3 says 35 s: its mark is 35 s.

Law 2: a type that nobody publishes any more holds nothing up and runs ahead of nothing (see
routing.serving.watermark): it has the mark of the furthest of its *kin*, the types that are looked
at together with it, be it through others, or lies just beyond their last event. What has nothing to
do with it moves it no further. Timer is furthest where it is, for the types that rules need beside
it: others may be of recordings, whose sources come back and publish what is long past by the clock.
Temp has closed at 30 s, Smoke is at 50 s, fire uses both: Temp is at 50 s.

After an input only what it may have changed is looked at: the types of which somebody has said
something else, and the rules that use them. After another plan that is everything. What sinks are
told of a rule, here and elsewhere, is its outlook, which may lie beyond its mark (outlook).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from routing.network.stations.duties import NO_DUTIES, Duties
from routing.network.stations.said import Said
from routing.network.stations.standing import UNSAID, Evaluated, Kin, Standings, TypeProgress
from routing.network.tables.ends import CLOSED, Ends
from routing.network.tables.outlook import Outlook
from routing.order import greatest_time, least_time
from routing.partition.forwarder import Forwarder
from routing.partition.pulls import Pulls
from rules.engine.engine import Detector
from rules.pattern import TIMER, Rule


class Progress:
    """Owner of these marks. After an input come ``hear``, ``due``, ``end`` and ``rise``, in this
    order, each with the types that have moved so far.
    """

    def __init__(self) -> None:
        self._standings = Standings()
        self.said = Said(self._standings)
        self.ends = Ends()
        self._clock = self._standings.of(TIMER.name)
        self._rules: dict[str, Evaluated] = {}
        self.news: Sequence[str] = ()
        """The rules here that have another outlook by the last ``rise``, or have ended, or have
        not any more; all, after another plan."""
        self.front = TIME_MIN
        """The greatest time of an event that is or was here; TIME_MIN for none."""
        self.has_gone_far = False
        """Whether a type's front is worth a look."""
        self._kept: dict[str, int] = {}
        """By type of masters, how far what is kept elsewhere for them has come (awaiting)."""
        self._timer = TIME_MIN
        self._grown: set[Kin] = set()
        """The kins of which events have come that are further than all before."""
        self._outlook = Outlook()
        self._over: frozenset[str] = frozenset()
        """The rules here that have been evaluated up to their ends (station, Law 2)."""
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
        self.said.forget()

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
        together: Iterable[Iterable[str]],
        over: frozenset[str],
    ) -> None:
        """Set the duties from now on; local sources publish these types.
        ``together``: types that fragments look at together. ``over`` as in note_over.
        """
        for child, released in duties.released(self._duties):
            self.said.doubt(child, released)
        self._duties, self._over = duties, over
        for one in self._standings:
            one.begun = one.front
        self._arrange_types(duties)
        self._arrange_kins(duties, together)
        self._outlook.arrange(duties.rules)
        self._arrange_ends()
        self.said.arrange(published, duties.expected)

    def _arrange_types(self, duties: Duties) -> None:
        of = self._standings.of
        for one in self._standings:
            one.users, one.defining, one.opened = [], [], []
            one.is_used = one.is_timed = False
        for name in duties.used:
            of(name).is_used = True
        self._rules = {
            name: Evaluated(name, of(deployed.rule.defines.name), _opening(deployed.rule, of))
            for name, deployed in duties.rules.items()
        }
        timed = frozenset(duties.users.get(TIMER.name, ()))
        for name, users in duties.users.items():
            one = of(name)
            one.users = [self._rules[rule] for rule in users]
            one.is_timed = not timed.isdisjoint(users)

    def _arrange_kins(self, duties: Duties, together: Iterable[Iterable[str]]) -> None:
        """Arrange which types are coupled; none are by Timer, which goes with all."""
        here = ((*uses, duties.rules[rule].rule.defines.name) for rule, uses in duties.uses.items())
        coupled = {one.name: {one.name} for one in self._standings}
        for names in (*here, *together):
            _couple(coupled, [name for name in names if name != TIMER.name])
        for names in {id(names): names for names in coupled.values()}.values():
            types = [self._standings.of(name) for name in sorted(names)]
            kin = Kin(types)
            for one in types:
                one.kin = kin

    def note_over(self, over: frozenset[str]) -> bool:
        """Note that rules here are over; whether that is news."""
        if over == self._over:
            return False
        self._over = over
        self._arrange_ends()
        return True

    def _arrange_ends(self) -> None:
        duties = self._duties
        uses = {
            rule: frozenset[str]() if rule in self._over else of for rule, of in duties.uses.items()
        }
        self.ends.arrange(uses, duties.defining)

    # --- inputs ---

    def see(self, batch: EventBatch) -> None:
        """Events have come, or were found, that may be terminators of rules here."""
        self._outlook.see(batch)

    def hear_kept(self, name: str, until: int) -> None:
        """Hear how far that has come which is kept elsewhere for masters of a type."""
        self._kept[name] = max(until, self._kept.get(name, until))

    def reach(self, batch: EventBatch) -> None:
        """Events have come."""
        front = self.note_come(batch)
        if front > self.front:
            self.front = front

    def note_come(self, batch: EventBatch) -> int:
        """Events have come, or were found; gives the greatest time of one."""
        one, front = self._standings.of(batch.type.name), greatest_time(batch)
        if front > one.front:
            if one.front == TIME_MIN:
                one.first = least_time(batch)
            one.front = front
            if front > one.kin.front:
                one.kin.front = front
                self._grown.add(one.kin)
            if front >= one.looked_at_from:
                self.has_gone_far = True
        return front

    # --- after an input ---

    def hear(
        self, own: Mapping[str, int], pulls: Pulls | None, *, is_anew: bool
    ) -> set[TypeProgress]:
        """Take in what is said; gives the types that have another mark by that (Laws 1 and 2).

        ``pulls``: which types wait below until they are asked for, if any do.
        """
        said = self.said
        moved = said.hear(own)
        if pulls is not None:
            pulls.learn({one.name: one.told for one in moved})
            said.bound(pulls.take_limits(), moved)
        if is_anew:
            moved = set(said.types)
        if said.closed or self.ends.types:
            self._look_beyond(moved, is_anew=is_anew)
        elif self._grown:
            self._grown.clear()
        if pulls is not None:
            pulls.keep(self._beyond_type)
        return moved

    def _look_beyond(self, moved: set[TypeProgress], *, is_anew: bool) -> None:
        """Types of which nothing is published any more move with their kin (Law 2)."""
        kins = self._grown.union([one.kin for one in (self._standings if is_anew else moved)])
        kins.update(self._standings.of(name).kin for name in self._kept)
        self._grown.clear()
        for kin in kins:
            beyond = self._beyond_of(kin)
            if beyond != kin.beyond:
                kin.beyond = beyond
                moved.update([one for one in kin.types if one.is_closed or one.has_ended])

    def _beyond_type(self, name: str) -> int:
        return self._beyond_of(self._standings.of(name).kin)

    def _beyond_of(self, kin: Kin) -> int:
        """Just beyond all that has come of some types, or was promised, or is kept for masters that
        do not come any more.
        """
        beyond = self.said.furthest(kin)
        if kin.front >= beyond and kin.front > TIME_MIN:
            beyond = kin.front + 1
        for name, until in self._kept.items():
            one = self._standings.of(name)
            if one.kin is kin and one.is_closed:
                beyond = max(beyond, until + 1)
        return beyond

    def due(self, moved: set[TypeProgress], clock: int | None) -> dict[str, int]:
        """The marks that the engine is to be given; adds Timer to the types that have moved, if it
        has. ``clock`` as in Station.advance.
        """
        ticks = TIMER.name in self._duties.users
        timer = self._timer
        if ticks:
            timer = self._without_clock() if clock is None else clock
        if timer != self._timer:
            self._timer = timer
            moved.add(self._clock)
            moved.update(one for one in self._gone if one.is_timed)
        marks = {one.name: self._brought(one) for one in moved if one.mark != UNSAID}
        if ticks:
            marks[TIMER.name] = timer
        return marks

    @property
    def _gone(self) -> set[TypeProgress]:
        """The types of which nothing is published any more, or nothing at all will come."""
        return self.said.closed.union(map(self._standings.of, self.ends.types))

    def end(self, moved: set[TypeProgress], *, is_timed: bool) -> Collection[str]:
        """See what has ended; adds to the types that have moved, and gives rules (Ends.look)."""
        types, rules = self.ends.look(self.said, is_timed=is_timed)
        for one in map(self._standings.of, types):
            one.has_ended = one.name in self.ends.types
            if one.mark != UNSAID or one.defining:
                moved.add(one)
        return rules

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
        moved.discard(self._clock)
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

    def _brought(self, one: TypeProgress) -> int:
        """The mark of a type, but for the rules here (Law 2)."""
        return self._beyond_gone(one) if one.is_closed else one.mark

    def _beyond_gone(self, one: TypeProgress) -> int:
        beyond = self._beyond_of(one.kin)
        return max(beyond, self._timer) if one.is_timed else beyond

    def _mark_here(self, one: TypeProgress) -> int:
        """The mark of a type, the rules here included (Laws 1 and 2)."""
        mark = TIME_MAX if one.mark == UNSAID else self._brought(one)
        if one.defining:
            running = [rule for rule in one.defining if rule.name not in self._over]
            if not running and one.mark == UNSAID:
                mark = self._beyond_gone(one)
            for rule in running:
                mark = min(mark, rule.mark)
        return max(mark, self._beyond_gone(one)) if one.has_ended else mark

    def _without_clock(self) -> int:
        """The mark of Timer where the clock does not count: as far as rules that need it are."""
        found = [
            min((self._said_of(name) for name in uses - {TIMER.name}), default=TIME_MIN)
            for uses in self._duties.uses.values()
            if TIMER.name in uses
        ]
        return max(found, default=TIME_MIN)

    def _said_of(self, name: str) -> int:
        one = self._standings.of(name)
        return TIME_MIN if one.mark == UNSAID else self._brought(one)


def _couple(coupled: dict[str, set[str]], names: Sequence[str]) -> None:
    """Have these types, and all that they are coupled to, in one set. The smaller one moves."""
    for name in names:
        small, large = coupled.setdefault(names[0], {names[0]}), coupled.setdefault(name, {name})
        if small is not large:
            if len(small) > len(large):
                small, large = large, small
            large |= small
            coupled.update(dict.fromkeys(small, large))


def _opening(rule: Rule, of: Callable[[str], TypeProgress]) -> list[TypeProgress]:
    return [of(used.name) for used in rule.opening]
