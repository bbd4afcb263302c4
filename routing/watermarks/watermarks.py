"""Up to which instant the engine may evaluate (protocol.md section 4, tesla.md S14).

Law 1: the mark of a type is the least of those who say something of it here: the local sources, and
in a network each child that forwards it (input_watermarks). Own sources of Temp promise 40 s, child
b3 says 35 s: its mark is 35 s. Of a type of which nobody has ever said anything the engine is given
nothing, and the rules that use it wait (missing_types).

Law 2: a type that nobody publishes any more holds nothing up and runs ahead of nothing, or a source
that comes later could publish nothing: it has the mark of the furthest of its *coupled types*,
those that are looked at together with it, be it through others, or lies just beyond their last
event. What has nothing to do with it moves it no further. Temp has closed at 30 s, Smoke is at 50
s, fire uses both: Temp is at 50 s. Where Smoke closes, too, with an event of 55 s, both are just
beyond that, and fire has no more to say. So it is with a type that rules alone define, once all of
these are over.

Law 3: ``Timer`` (S13) has the mark of the clock where the host's ``now`` is one; else it is as far
as the rules that need it are without it. It is furthest where it is, for the types that rules need
beside it: others may be of recordings, whose sources come back and publish what is long past by the
clock.

After an input only what it may have changed is looked at: the types of which somebody has said
something else. After another arrangement that is everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from matcher.model import TIME_MIN
from routing.watermarks.ends import CLOSED, Defining, Uses, ended
from routing.watermarks.input_watermarks import InputWatermarks
from routing.watermarks.type_progress import UNSAID, CoupledTypes, TypeProgress, TypeRecords
from rules.pattern import TIMER


class Watermarks:
    """Owner of these marks. After an input come ``hear``, ``look_beyond``, ``engine_marks`` and
    ``end``, in this order, each with the types that have moved so far.
    """

    def __init__(self) -> None:
        self.type_records = TypeRecords()
        self.inputs = InputWatermarks(self.type_records)
        self.clock = self.type_records[TIMER.name]
        self.over: frozenset[str] = frozenset()
        """The rules here that have been evaluated up to their ends."""
        self.finished: frozenset[str] = frozenset()
        """The types that rules here define, all of which are over."""
        self.ended_types: frozenset[str] = frozenset()
        """The types of which nothing more will come, from sources or from rules."""
        self.ended_rules: frozenset[str] = frozenset()
        """The rules here all of whose types have ended."""
        self._looked_for_ends: tuple[int, bool] | None = None
        """How often closings had changed, and whether the clock counted, when ends were looked for
        last; None where rules have changed since."""
        self._uses: Uses = {}
        self._defining: Defining = {}
        self._timed: Uses = {}
        """Of the rules that need Timer all types that bind them, through other rules here too."""
        self._timed_types: frozenset[str] = frozenset()
        """All of these types."""
        self._timer = TIME_MIN
        self._kept: dict[str, int] = {}
        """By type of masters, how far what is kept elsewhere for them has come."""
        self._grown: set[CoupledTypes] = set()
        """The groups of which events have come that are further than all before."""

    # --- rules ---

    def arrange(
        self,
        uses: Uses,
        defining: Defining,
        timed: Uses,
        together: Iterable[Collection[str]],
        over: frozenset[str],
    ) -> None:
        """Set the rules here: what they use and define, and of those that need Timer all that binds
        them. ``together``: types that are looked at together, by these rules or for others;
        ``over`` as in note_over. ``inputs.arrange`` must follow.
        """
        self._uses, self._defining, self._timed = uses, defining, timed
        self._timed_types = frozenset[str]().union(*timed.values())
        self._arrange_coupled(together)
        self._set_over(over)

    def _arrange_coupled(self, together: Iterable[Collection[str]]) -> None:
        """Arrange which types are coupled; none are by Timer, which goes with all."""
        coupled = {one.name: {one.name} for one in self.type_records.values()}
        for names in together:
            _couple(coupled, [name for name in names if name != TIMER.name])
        self._grown.clear()
        for names in {id(names): names for names in coupled.values()}.values():
            types = [self.type_records[name] for name in sorted(names)]
            coupled_types = CoupledTypes(types)
            for one in types:
                one.coupled_types = coupled_types

    def note_over(self, over: frozenset[str]) -> bool:
        """Note that rules here are over; whether that is news."""
        if over == self.over:
            return False
        self._set_over(over)
        return True

    def _set_over(self, over: frozenset[str]) -> None:
        self.over, self._looked_for_ends = over, None
        finished = (name for name, of in self._defining.items() if over.issuperset(of))
        self.finished = frozenset(finished if over else ())

    # --- inputs ---

    def reach(self, one: TypeProgress, front: int) -> bool:
        """Events of a type have come, or were found, up to this time; whether none was further."""
        if front <= one.front:
            return False
        one.front = front
        if front > one.coupled_types.front:
            one.coupled_types.front = front
            self._grown.add(one.coupled_types)
        return True

    def hear_kept(self, name: str, until: int) -> None:
        """Hear how far that has come which is kept elsewhere for masters of a type."""
        self._kept[name] = max(until, self._kept.get(name, until))

    # --- after an input ---

    def look_beyond(self, moved: set[TypeProgress], *, is_anew: bool) -> None:
        """Types of which nothing is published any more move with their coupled types (Law 2): adds
        to the types that have moved by what was said.
        """
        groups = self._grown.union(
            [one.coupled_types for one in (self.type_records.values() if is_anew else moved)]
        )
        groups.update(self.type_records[name].coupled_types for name in self._kept)
        self._grown.clear()
        for coupled_types in groups:
            beyond = self._beyond_of(coupled_types)
            if beyond != coupled_types.beyond:
                coupled_types.beyond = beyond
                moved.update(filter(self._is_gone, coupled_types.types))

    def engine_marks(self, moved: set[TypeProgress], clock: int | None) -> dict[str, int]:
        """The marks that the engine is to be given; adds Timer to the types that have moved, if it
        has. ``clock``: its mark, None where the clock does not count.
        """
        ticks = bool(self._timed)
        timer = self._timer
        if ticks:
            timer = self._without_clock() if clock is None else clock
        if timer != self._timer:
            self._timer = timer
            moved.add(self.clock)
            timed = map(self.type_records.__getitem__, self._timed_types)
            moved.update(filter(self._is_gone, timed))
        marks = {}
        for one in moved:
            if one.mark < CLOSED:
                marks[one.name] = one.mark
            elif one.mark == CLOSED:
                marks[one.name] = self.beyond_gone(one)
        for one in map(self.type_records.__getitem__, self.finished):
            if one.mark == UNSAID:
                marks[one.name] = self.beyond_gone(one)
        if ticks:
            marks[TIMER.name] = timer
        return marks

    def _is_gone(self, one: TypeProgress) -> bool:
        """Whether nothing of a type is published any more, or nothing at all will come."""
        return one.mark == CLOSED or one.name in self.ended_types

    def end(self, moved: set[TypeProgress], *, is_timed: bool) -> Collection[str]:
        """See what has ended; adds to the types that have moved those that have, or have not any
        more, and gives such rules. ``is_timed``: the clock counts.
        """
        if self._looked_for_ends == (self.inputs.closings, is_timed):
            return ()
        self._looked_for_ends = self.inputs.closings, is_timed
        types_before, rules_before = self.ended_types, self.ended_rules
        closed, said = ({one.name for one in of} for of in (self.inputs.closed, self.inputs.types))
        names, over = closed.union(self._defining.keys() - said), self.over
        uses = {rule: frozenset() if rule in over else used for rule, used in self._uses.items()}
        self.ended_types, self.ended_rules = ended(names, uses, self._defining, is_timed=is_timed)
        for one in map(self.type_records.__getitem__, self.ended_types ^ types_before):
            if one.mark != UNSAID or one.name in self._defining:
                moved.add(one)
        return (self.ended_rules ^ rules_before).intersection(self._uses)

    # --- marks ---

    def brought(self, one: TypeProgress) -> int:
        """The mark of a type of which something is said, but for the rules here (Law 2)."""
        return self.beyond_gone(one) if one.is_closed else one.mark

    def beyond_gone(self, one: TypeProgress) -> int:
        """The mark of a type of which nothing is published any more (Laws 2 and 3)."""
        beyond = self._beyond_of(one.coupled_types)
        return max(beyond, self._timer) if one.name in self._timed_types else beyond

    def beyond(self, name: str) -> int:
        """How far the coupled types of a type have come (Law 2)."""
        return self._beyond_of(self.type_records[name].coupled_types)

    def _beyond_of(self, coupled_types: CoupledTypes) -> int:
        """Just beyond all that has come of some types, or was promised, or is kept for masters that
        do not come any more.
        """
        beyond = self.inputs.furthest(coupled_types)
        if coupled_types.front >= beyond and coupled_types.front > TIME_MIN:
            beyond = coupled_types.front + 1
        for name, until in self._kept.items():
            one = self.type_records[name]
            if one.coupled_types is coupled_types and one.is_closed:
                beyond = max(beyond, until + 1)
        return beyond

    def _without_clock(self) -> int:
        """The mark of Timer where the clock does not count (Law 3)."""
        found = [
            min(map(self._said_of, self._from_sources(needs)), default=TIME_MIN)
            for needs in self._timed.values()
        ]
        return max(found, default=TIME_MIN)

    def _from_sources(self, needs: Iterable[str]) -> list[TypeProgress]:
        """The records of these types, but for Timer and those that rules here alone define."""
        records = [self.type_records[name] for name in needs if name != TIMER.name]
        return [one for one in records if one.mark != UNSAID or one.name not in self._defining]

    def _said_of(self, one: TypeProgress) -> int:
        return TIME_MIN if one.mark == UNSAID else self.brought(one)


def _couple(coupled: dict[str, set[str]], names: Sequence[str]) -> None:
    """Have these types, and all that they are coupled to, in one set. The smaller one moves."""
    for name in names:
        small, large = coupled.setdefault(names[0], {names[0]}), coupled.setdefault(name, {name})
        if small is not large:
            if len(small) > len(large):
                small, large = large, small
            large |= small
            coupled.update(dict.fromkeys(small, large))
