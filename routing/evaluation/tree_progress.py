"""Up to where rules have come at one broker, in one tree, and types with them.

What is told of a type is the least of its watermark here (routing.watermarks) and of how far the
rules that are evaluated here and define it have come.

After an input only what it may have changed is looked at: the types whose watermarks have moved.
After another plan that is everything. How far rules have come is looked up when somebody asks for
it, be it the father for types that they define, neighbours for rules that are wanted there, or a
sink that holds events: a thousand rules of which nobody asks cost nothing. What is told of a rule
is its output watermark, which may lie beyond its mark (output_watermarks).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from routing.evaluation.duties import NO_DUTIES, Duties
from routing.order import greatest_time, least_time
from routing.partition.forwarder import Forwarder
from routing.watermarks.ends import CLOSED
from routing.watermarks.output_watermarks import OutputWatermarks
from routing.watermarks.type_progress import UNSAID, RulesRecord, TypeProgress
from routing.watermarks.watermarks import Watermarks
from rules.engine.engine import Detector


class TreeProgress:
    """Owner of what follows from these watermarks. After an input comes ``rise``, with the types
    that have moved. ``engine``: of the rules here; ``forwarder``: what uses types beside these.
    """

    def __init__(self, watermarks: Watermarks, engine: Detector, forwarder: Forwarder) -> None:
        self._watermarks = watermarks
        self._type_records = watermarks.type_records
        self._engine = engine
        self._forwarder = forwarder
        self._rules: dict[str, RulesRecord] = {}
        self.front = TIME_MIN
        """The greatest time of an event that is or was here; TIME_MIN for none."""
        self.has_gone_far = False
        """Whether a type's front is worth a look."""
        self._is_heard = False
        """Whether the watermarks are those of the plan that there is."""
        self._moved: Collection[TypeProgress] = ()
        """The types that moved with the last ``rise``."""
        self.have_rules_moved = False
        """Whether rules here may have come further by that, or have ended."""
        self.have_rules_changed = False
        """Whether some have ended, or have not any more, or all are to be looked at."""
        self._changed: Collection[str] = ()
        """Rules that have ended, or have not any more; or all."""
        self._output_watermarks = OutputWatermarks(engine.mark)
        self._duties = NO_DUTIES
        self._marks: Mapping[str, int] = {}
        """Up to where all rules have been evaluated, if that was asked for since ``rise``."""
        self._output: dict[str, int] = {}
        """The output watermarks of rules that were looked at since then."""
        self._looked_at: set[TypeProgress] = set()
        """The types that they define which were."""
        self._forwarded: frozenset[TypeProgress] = frozenset()
        """The types that rules here define, and that may be forwarded."""

    @property
    def types(self) -> dict[str, int]:
        """The marks of types, which never go back."""
        self._here_of_all()
        return {one.name: one.given for one in self._type_records.values() if one.given != UNSAID}

    def marks_of(self, names: Iterable[str]) -> list[int]:
        """The marks, as of now, of those of some types of which more may come."""
        left = map(self._type_records.__getitem__, set(names) - self._watermarks.ended_types)
        marks = [self._here(one) for one in left if not one.is_closed]
        return [mark for mark in marks if mark < CLOSED]

    def furthest_of(self, names: Iterable[str]) -> int:
        """The greatest time of an event of some types that has come; TIME_MIN for none."""
        return max([self._type_records[name].front for name in names], default=TIME_MIN)

    def begun(self, names: Collection[str]) -> int:
        """How far events of some types had come when the plan that there is was begun with; if none
        had, the least time of the first of each that came since; TIME_MAX where none has.
        """
        type_records = [self._type_records[name] for name in names]
        begun = max([one.begun for one in type_records], default=TIME_MIN)
        return min([one.first for one in type_records]) if begun == TIME_MIN else begun

    def note_looked(self, step: int) -> None:
        """Fronts are worth a look again when they are so much further."""
        self.has_gone_far = False
        for one in self._type_records.values():
            one.looked_at_from = TIME_MIN if one.front == TIME_MIN else one.front + step

    @property
    def marks(self) -> Mapping[str, int]:
        """Up to where the rules here have been evaluated."""
        names = tuple(self._rules)
        return dict(zip(names, self._marks_of(names), strict=True))

    def open_mark(self, name: str) -> int:
        """The mark of a type as of now; CLOSED where it has ended, or nothing is known of it."""
        if name in self._watermarks.ended_types:
            return CLOSED
        return min(self._here(self._type_records[name]), CLOSED)

    def output_watermarks(self, rules: Iterable[str]) -> dict[str, int]:
        """Up to where it is certain that no more of rules will be found (output_watermarks)."""
        names = tuple(rules)
        found = self._output if self._is_heard else {}
        news = [rule for rule in names if rule not in found]
        bounds: dict[RulesRecord, int] = {}
        for rule, mark in zip(news, self._marks_of(news), strict=True):
            alike = self._rules.get(rule)
            if alike is None or not self._is_heard:
                found[rule] = max(mark, self._output_watermarks.of(rule))
                continue
            if alike not in bounds:
                here = [self._here(self._type_records[name]) for name in alike.wiring.opening]
                bounds[alike] = min([TIME_MIN if one == UNSAID else one for one in here])
            opening, bound = alike.wiring.opening, bounds[alike]
            found[rule] = self._output_watermarks.rise(rule, opening, mark, bound)
        return {rule: found[rule] for rule in names}

    def _marks_of(self, rules: Collection[str]) -> Sequence[int]:
        """Up to where rules have been evaluated: of all, where many of them are asked for."""
        are_many = 8 * len(rules) > len(self._rules) + 8
        found = self._marks or (self._engine.marks if are_many else {})
        if self._is_heard:
            self._marks = found
        return [found[one] for one in rules] if found else list(map(self._engine.mark, rules))

    # --- deployment ---

    def forget(self, engine: Detector, forwarder: Forwarder) -> None:
        """Rules begin anew, with these: what has come, and what children have said, counts no
        more.
        """
        self.settle()
        self._engine, self._forwarder = engine, forwarder
        self._duties = NO_DUTIES
        self._rules = {}
        self._output_watermarks.forget(engine.mark)
        self._watermarks.inputs.forget()

    def forget_far(self, is_far: Callable[[str, int], bool]) -> bool:
        """Types that have come too far have not come anywhere; whether there are any."""
        self._here_of_all()
        far = [
            one
            for one in self._type_records.values()
            if is_far(one.name, one.front) or (one.given != UNSAID and is_far(one.name, one.given))
        ]
        for one in far:
            one.forget()
        if far:
            self.front = max([one.front for one in self._type_records.values()])
        return bool(far)

    def release_marks(self, names: Iterable[str]) -> None:
        """Let no mark of these types bind who comes to publish them."""
        for name in names:
            self._type_records[name].given = UNSAID

    def settle(self) -> None:
        """Rules are about to be others: note how far the types have come that they define."""
        self._here_of_all()
        self._is_heard, self._marks, self._output = False, {}, {}

    def arrange(
        self,
        duties: Duties,
        published: frozenset[str],
        together: Iterable[Collection[str]],
        over: frozenset[str],
        stay: Collection[str],
    ) -> None:
        """Set the duties from now on; local sources publish these types. ``settle`` was called.
        ``together``: types that fragments look at together. ``over`` as in Watermarks,
        ``stay`` as in OutputWatermarks.
        """
        watermarks = self._watermarks
        for child, released in duties.released(self._duties):
            watermarks.inputs.doubt(child, released)
        self._duties, self._marks = duties, {}
        for one in self._type_records.values():
            one.begun = one.front
        self._arrange_types(duties)
        coupled = (*((*one.used, one.defined) for one in duties.alike), *together)
        watermarks.arrange(duties.uses, duties.defining, duties.timed, coupled, over)
        self._output_watermarks.arrange(duties.alike, stay)
        watermarks.inputs.arrange(published, duties.expected)

    def _arrange_types(self, duties: Duties) -> None:
        type_records = self._type_records
        for one in type_records.values():
            one.users, one.defining = [], []
        records = {
            one: RulesRecord(rules, one, type_records) for one, rules in duties.alike.items()
        }
        self._rules = {rule: one for one in records.values() for rule in one.rules}
        for name, users in duties.users.items():
            type_records[name].users = [records[one] for one in users]

    # --- inputs ---

    def take(self, batch: EventBatch, *, is_found: bool = False) -> None:
        """Events have come, from sources or from below, or were found here."""
        one, front = self._type_records[batch.type.name], greatest_time(batch)
        if front > one.front:
            if one.front == TIME_MIN:
                one.first = least_time(batch)
            self._watermarks.reach(one, front)
            if front >= one.looked_at_from:
                self.has_gone_far = True
        if front > self.front and not is_found:
            self.front = front
        if one.name in self._output_watermarks.types:
            self._output_watermarks.see(one.name, least_time(batch), front)

    # --- after an input ---

    def rise(self, moved: set[TypeProgress], changed: Collection[str], *, is_anew: bool) -> None:
        """Work out the marks of types; adds those of rules here to ``moved`` that are forwarded.

        ``changed``: rules that have ended, or have not any more.
        """
        if is_anew:
            self._rise_anew(moved)
        elif self._forwarded:
            defined = {alike.defined for one in moved for alike in one.users}
            moved.update(defined & self._forwarded)
        clock, ended_types = self._watermarks.clock, self._watermarks.ended_types
        self._looked_at.clear()
        self._is_heard, self._marks, self._output = True, {}, {}
        self._moved, self._changed = moved, self._rules.keys() if is_anew else changed
        self.have_rules_moved = self.have_rules_changed = is_anew or bool(changed)
        if clock in moved:
            moved.discard(clock)  # nobody is told of it
            self._moved, self.have_rules_moved = (*moved, clock), True
        for one in moved:
            mark = one.mark
            if one.users:
                self.have_rules_moved = True
            if mark >= CLOSED or one.defining or one.name in ended_types:
                self._look_at(one)
                continue
            one.here = mark
            if one.given == UNSAID or mark > one.given:
                one.given = mark

    def _rise_anew(self, moved: set[TypeProgress]) -> None:
        looks_at, type_records = self._forwarder.looks_at, self._type_records
        for one in type_records.values():
            one.here = UNSAID
        defined = [one for one in type_records.values() if one.defining]
        self._forwarded = frozenset([one for one in defined if looks_at(one.name)])
        moved.update(self._forwarded, map(type_records.__getitem__, self._watermarks.ended_types))

    def news(self, wanted: frozenset[str]) -> Collection[str]:
        """The rules among these that may have moved."""
        risen = set(wanted.intersection(self._changed))
        for one in self._moved:
            for alike in one.users:
                risen.update(wanted.intersection(alike.rules))
        return risen

    def _here_of_all(self) -> None:
        if self._is_heard and not self._marks:
            self._marks_of(self._rules)  # all at once
        for one in self._type_records.values():
            self._here(one)

    def _here(self, one: TypeProgress) -> int:
        """The mark of a type as of now, the rules here included."""
        if one.defining and self._is_heard and one not in self._looked_at:
            self._looked_at.add(one)
            self._look_at(one)
        return one.here

    def _look_at(self, one: TypeProgress) -> None:
        """Work out the mark of a type, the rules here included."""
        ended_types = self._watermarks.ended_types
        if one.mark == UNSAID and not (one.defining or one.name in ended_types):
            one.here = UNSAID  # it had ended, and has not any more
            return
        mark = one.here = self._mark_here(one)
        # What nobody publishes any more and no rule has used may begin anew at any time.
        is_used = one.name in self._duties.used or self._forwarder.looks_at(one.name)
        if one.mark != CLOSED or is_used:
            one.given = mark if one.given == UNSAID else max(mark, one.given)

    def _mark_here(self, one: TypeProgress) -> int:
        watermarks = self._watermarks
        mark = TIME_MAX if one.mark == UNSAID else watermarks.brought(one)
        if one.mark == UNSAID and one.name in watermarks.finished:
            mark = watermarks.beyond_gone(one)
        for alike in one.defining:
            rules = [rule for rule in alike.rules if rule not in watermarks.over]
            mark = min([mark, *self._marks_of(rules)])
        if one.name in watermarks.ended_types:
            mark = max(mark, watermarks.beyond_gone(one))
        return mark
