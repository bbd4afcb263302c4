"""Plans into tables: the owner of everything that only deploying and removing rules changes.

Law 1: equal columns are one column and equal accesses one access, whichever rules ask for them;
what no rule asks for any more is unlinked. (Thesis 5.7 keeps columns per rule; sharing them is
what makes an event cost what is distinct, not what is deployed.)

Law 2: linking a rule touches its own records and the chains that they join, nothing else.

Law 3: what holds for all rules at once (their order within an instant, from when on events are
of use) is computed on whole arrays, rules being rows; only rules that changed are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, AnyArray, EventType, Int64s, Kind
from rules.engine.assembler import Assembler, word_of
from rules.engine.catalogue import Deployed, Groups
from rules.engine.interner import Interner
from rules.engine.kernels import layout
from rules.engine.kernels.aggregates import FUNCTIONS
from rules.engine.kernels.arrays import Arrays
from rules.engine.static_index import StaticIndex, unchain
from rules.engine.tables import BlockTable, RecordTable
from rules.pattern import (
    CANDIDATE,
    TIMER,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Literal,
    Policy,
)
from rules.plan import (
    AccessPlan,
    ColumnPlan,
    RulePlan,
    Step,
    StepKind,
    compile_rule,
    conjunction,
)

_KINDS = {
    Kind.INT: layout.KIND_INT,
    Kind.FLOAT: layout.KIND_FLOAT,
    Kind.BOOL: layout.KIND_BOOL,
    Kind.STRING: layout.KIND_STRING,
}
_POLICIES = {
    Policy.EACH: layout.POLICY_EACH,
    Policy.FIRST: layout.POLICY_FIRST,
    Policy.LAST: layout.POLICY_LAST,
}
_PROBES = {  # by the kinds of value and attribute
    (Kind.FLOAT, Kind.FLOAT): layout.PROBE_FLOAT,
    (Kind.FLOAT, Kind.INT): layout.PROBE_FLOAT_TO_INT,
    (Kind.INT, Kind.FLOAT): layout.PROBE_INT_TO_FLOAT,
}


PLACE = np.dtype(
    [("source", np.int64), ("rank", np.int64), ("since", np.int64), ("position", np.int64)]
)
"""What orders rules, beside their records; ``source`` is -1 where there is no rule."""
HOLD = np.dtype([("rule", np.int64), ("access", np.int64), ("reach", np.int64)])
"""How long, in microseconds, a rule may look back in an access; ``rule`` is -1 for none."""


@dataclass(frozen=True, slots=True, eq=False)
class Horizons:
    """The times from which on events are of use: by access, by type, and to anybody.

    TIME_MAX where no rule looks; times are microseconds.
    """

    accesses: Int64s
    types: Int64s
    least: int


@dataclass(slots=True)
class LinkedRule:
    """What a rule holds in the tables, to be given back when it is removed."""

    deployed: Deployed
    plan: RulePlan
    number: int
    source: int
    steps: tuple[int, int]
    code: tuple[int, int]
    values: tuple[int, int]
    private: tuple[int, int]
    texts: tuple[int, ...]
    holds: tuple[int, ...]  # how long the rule may look back in each access
    uses: tuple[int, ...]  # accesses, once a step


@dataclass(slots=True)
class _LinkedColumn:
    number: int
    code: tuple[int, int]
    texts: tuple[int, ...]
    dispatch: tuple[int, int] | None  # record and word, for a dispatched column
    users: int = 0


@dataclass(slots=True)
class _LinkedAccess:
    number: int
    key: tuple[ColumnPlan, tuple[int, ...]]
    users: int = 0


class Linker:
    """Owner of the tables, which ``show`` lets the kernels see."""

    def __init__(self, strings: Interner) -> None:
        self._strings = strings
        self.types = RecordTable(layout.TYPE)
        self.columns = RecordTable(layout.COLUMN)
        self.accesses = RecordTable(layout.ACCESS)
        self.rules = RecordTable(layout.RULE)
        self.groups: AnyArray = np.zeros(0, layout.GROUP)
        self.steps = BlockTable(layout.STEP)
        self._code = BlockTable(layout.CODE)
        self._values = BlockTable(np.int64)
        self._private = BlockTable(np.int64)
        self._index = StaticIndex(self.types, self.columns)
        self._places = RecordTable(PLACE)  # beside ``rules``
        self._holds = RecordTable(HOLD)
        self._group_numbers: Mapping[frozenset[str], int] = {}
        self.type_numbers: dict[str, int] = {}
        self.event_types: list[EventType] = []
        self._column_of: dict[ColumnPlan, _LinkedColumn] = {}
        self._access_of: dict[tuple[ColumnPlan, tuple[int, ...]], _LinkedAccess] = {}
        self._access_by_number: dict[int, _LinkedAccess] = {}
        self.linked: dict[str, LinkedRule] = {}
        self.by_number: dict[int, LinkedRule] = {}
        self.depth = 1
        self.slots = 1
        self.events = 1
        self.width = layout.HEADER

    # --- types -----------------------------------------------------------------------------

    def type_number(self, type_: EventType) -> int:
        """The number of an event type; a new one at first."""
        number = self.type_numbers.get(type_.name)
        if number is None:
            number = self.types.add(
                width=layout.HEADER + len(type_.attributes),
                horizon=TIME_MAX,
                first_open=-1,
                first_dispatch=-1,
                ticks=type_.name == TIMER.name,
            )
            self.type_numbers[type_.name] = number
            self.event_types[number : number + 1] = [type_]
            self.width = max(self.width, layout.HEADER + len(type_.attributes))
        return number

    def unused_types(self, used: Collection[str]) -> tuple[int, ...]:
        """The numbers of types of which no event is of use any more."""
        return tuple(number for name, number in self.type_numbers.items() if name not in used)

    def forget_types(self, known: Collection[str]) -> None:
        """Give back the numbers of types, without columns and rows, that no rule knows."""
        for name in [name for name in self.type_numbers if name not in known]:
            number = self.type_numbers.pop(name)
            self._index.forget_type(number)
            self.types.release(number)

    # --- rules -----------------------------------------------------------------------------

    def link(self, deployed: Deployed, source: int) -> None:
        """Enter a deployed rule; ``source`` is the number of its composite events' source."""
        plan = compile_rule(deployed.rule)
        assembler = Assembler(self._strings)
        values = [assembler.program(program) for program in plan.values]
        reaches: dict[int, int] = {}
        uses: list[int] = []
        outer = [self._fields(step, assembler, reaches, uses) for step in plan.steps]
        inner = [
            [self._fields(step, assembler, reaches, uses) for step in one.inner]
            for one in plan.steps
        ]
        code = self._code.add(assembler.instructions)
        value_block = self._values.add([code + value for value in values])
        first = self._place_steps(plan.steps, outer, inner, code)
        private = [
            number
            for number in reaches
            if self._access_by_number[number].key[0].owner == deployed.rule.name
        ]
        private_block = self._private.add([*private, -1])
        column = self._use_column(plan.terminator).number
        number = self.rules.add(
            type=self.type_number(deployed.rule.defines),
            column=column,
            first_step=first,
            last_step=first + len(outer),
            previous=_previous(plan.steps, len(outer), first),
            first_value=value_block,
            value_count=len(values),
            events=len(plan.event_types),
            key_high=_signed(deployed.key[0]),
            key_low=_signed(deployed.key[1]),
            source=source,
            next=self.columns.array[column]["first_rule"],
            consumes=sum(1 << event for event in deployed.rule.consuming),
            private=private_block,
            record=layout.OUT_HEADER + len(values) + layout.CAUSE_WORDS * len(plan.event_types),
        )
        self.columns.array[column]["first_rule"] = number
        place = self._places.add(source=source)
        assert place == number, "places stand beside rules"
        holds = tuple(
            self._holds.add(rule=number, access=access, reach=reach)
            for access, reach in reaches.items()
        )
        self.depth = max(self.depth, assembler.depth)
        self.slots = max(self.slots, plan.slots)
        self.events = max(self.events, len(plan.event_types))
        self.linked[deployed.rule.name] = self.by_number[number] = LinkedRule(
            deployed,
            plan,
            number,
            source,
            (first, len(outer) + sum(map(len, inner))),
            (code, len(assembler.instructions)),
            (value_block, len(values)),
            (private_block, len(private) + 1),
            tuple(assembler.texts),
            holds,
            tuple(uses),
        )

    def unlink(self, name: str) -> tuple[int, ...]:
        """Take a rule out, and with it the columns and accesses that no other rule uses.

        Gives the accesses that are gone: their lists must be forgotten before the next ``link``.
        """
        linked = self.linked.pop(name)
        del self.by_number[linked.number]
        terminator = linked.plan.terminator
        column = self._column_of[terminator].number
        unchain(self.rules, linked.number, self.columns, column, "first_rule")
        for hold in linked.holds:
            self._holds.array[hold]["rule"] = -1
            self._holds.release(hold)
        self._places.array[linked.number]["source"] = -1
        self._places.release(linked.number)
        self._drop_column(terminator)
        gone = tuple(access for access in linked.uses if self._drop_access(access))
        self.steps.release(*linked.steps)
        self._code.release(*linked.code)
        self._values.release(*linked.values)
        self._private.release(*linked.private)
        self.rules.release(linked.number)
        return gone

    def refresh(self, changed: Iterable[Deployed], used: Collection[str], groups: Groups) -> Int64s:
        """Take ranks, groups and floors from the catalogue; which types are stored follows.

        Gives the numbers of the sources of composite events in the order of E4 (S15).
        """
        self.groups = np.zeros(len(groups.marks), layout.GROUP)
        self.groups["evaluated"] = self.groups["mark"] = groups.marks
        if self._group_numbers is not groups.numbers:
            self._group_numbers = groups.numbers
            for linked in self.by_number.values():
                if linked.deployed.group in groups.numbers:  # else it is among the changed
                    group = groups.numbers[linked.deployed.group]
                    self.rules.array[linked.number]["group"] = group
        for one in changed:
            self._follow(self.linked[one.rule.name], one)
        self._decide_stores(used)
        places = self._places.array[: len(self._places)]
        alive = np.flatnonzero(places["source"] >= 0)
        places = places[alive]
        order = np.lexsort((places["position"], places["since"], places["rank"]))
        self.rules.array["priority"][alive[order]] = np.arange(len(alive))
        sources: Int64s = places["source"][np.lexsort((places["position"], places["since"]))]
        return sources

    def _follow(self, linked: LinkedRule, deployed: Deployed) -> None:
        """Take over what the catalogue says of one rule."""
        if linked.deployed.rule is not deployed.rule:
            self._decide_strict(linked, deployed)
        linked.deployed = deployed
        record, place = self.rules.array[linked.number], self._places.array[linked.number]
        record["since"] = place["since"] = deployed.since
        record["floor"] = max(deployed.floor, deployed.since)
        record["group"] = self._group_numbers[deployed.group]
        place["rank"], place["position"] = deployed.rank, deployed.position

    def _decide_stores(self, used: Collection[str]) -> None:
        """Which rules' composite events enter columns: those of types that some rule uses."""
        is_used = np.zeros(len(self.types.array), np.int64)
        is_used[[self.type_numbers[name] for name in used]] = 1
        self.rules.array["stores"] = is_used[self.rules.array["type"]]

    def horizons(self, until: int) -> Horizons:
        """From when on events are of use to rules that will not look at instants before their
        marks, nor, for the present, at any before ``until``.
        """
        numbers = np.flatnonzero(self._places.array["source"][: len(self.rules)] >= 0)
        rules = self.rules.array
        marks = np.full(len(self.rules), TIME_MAX, np.int64)
        marks[numbers] = np.maximum(
            rules["floor"][numbers], self.groups["mark"][rules["group"][numbers]]
        )
        marks = np.minimum(marks, until)
        holds = self._holds.array[: len(self._holds)]
        holds = holds[holds["rule"] >= 0]
        looks = marks[holds["rule"]]
        # No farther back than a time can be; and a rule sees nothing before it holds (S15).
        looks = np.where(looks < TIME_MIN + holds["reach"], TIME_MIN, looks - holds["reach"])
        looks = np.maximum(looks, rules["since"][holds["rule"]])
        accesses = np.full(len(self.accesses), TIME_MAX, np.int64)
        np.minimum.at(accesses, holds["access"], looks)
        types = np.full(len(self.types), TIME_MAX, np.int64)
        columns = self.columns.array
        np.minimum.at(types, columns["type"][rules["column"][numbers]], marks[numbers])
        looked_at = columns["type"][self.accesses.array["column"][: len(accesses)]]
        np.minimum.at(types, looked_at, accesses)
        return Horizons(accesses, types, int(types.min(initial=TIME_MAX)))

    def _decide_strict(self, linked: LinkedRule, deployed: Deployed) -> None:
        """Follow a rule that another one drew into a cycle, or let out of one (S12)."""
        linked.plan = compile_rule(deployed.rule)
        steps = linked.plan.steps
        everything = [*steps, *(inner for step in steps for inner in step.inner)]
        for place, step in enumerate(everything, linked.steps[0]):
            self.steps.array[place]["strict"] = step.strict

    def constants(self) -> set[int]:
        """The codes of all strings that rules mention."""
        used = {code for linked in self.linked.values() for code in linked.texts}
        used.update(code for column in self._column_of.values() for code in column.texts)
        return used

    # --- steps -----------------------------------------------------------------------------

    def _fields(
        self, step: Step, assembler: Assembler, reaches: dict[int, int], uses: list[int]
    ) -> dict[str, int]:
        """A step's record; its instructions still count from the rule's first."""
        fields = {
            "kind": int(step.kind),
            "event": step.event,
            "policy": _POLICIES[step.policy],
            "rank": step.rank,
            "first_probe": -1,
            "second_probe": -1,
            "residue": assembler.condition(step.residue),
            "anchor": step.span.later,
            "earlier": step.span.earlier,
            "duration": step.span.duration,
            "strict": int(step.strict),
            "slot": step.slot,
            "program": assembler.condition(step.program),
            "function": FUNCTIONS[step.function],
            "offset": layout.HEADER + step.attribute if step.attribute >= 0 else -1,
            "kind_of_value": _KINDS[step.attribute_kind],
        }
        if step.access is None:
            return fields
        number = self._use_access(step.access)
        uses.append(number)
        reaches[number] = max(reaches.get(number, 0), step.access.reach)
        type_ = step.access.column.type
        fields["access"] = number
        fields["type"] = self.type_number(type_)
        places = zip(("first", "second"), step.probes, step.access.keys, strict=False)
        for name, probe, key in places:
            fields[f"{name}_probe"] = assembler.program(probe.program)
            kinds = probe.kind, type_.attributes[key].kind
            fields[f"{name}_kind"] = _PROBES.get(kinds, layout.PROBE_SAME)
        return fields

    def _place_steps(
        self,
        steps: Sequence[Step],
        outer: list[dict[str, int]],
        inner: list[list[dict[str, int]]],
        code: int,
    ) -> int:
        """Write a rule's steps, the inner ones behind the others: the first's number."""
        first = self.steps.reserve(len(outer) + sum(map(len, inner)))
        behind = first + len(outer)
        for place, fields in enumerate(outer):
            fields["inner"] = behind
            behind += len(inner[place])
            fields["inner_end"] = behind
            fields["previous"] = _previous(steps, place, first)
        everything = [*outer, *(fields for group in inner for fields in group)]
        for place, fields in enumerate(everything, first):
            for name in ("residue", "program", "first_probe", "second_probe"):
                if fields[name] >= 0:
                    fields[name] += code
            record = self.steps.array[place]
            for name in layout.STEP.names or ():
                record[name] = fields.get(name, 0)
        return first

    # --- columns and accesses --------------------------------------------------------------

    def _use_column(self, plan: ColumnPlan) -> _LinkedColumn:
        """The column of a plan, with one more user."""
        linked = self._column_of.get(plan)
        if linked is None:
            linked = self._column_of[plan] = self._add_column(plan)
        linked.users += 1
        return linked

    def _add_column(self, plan: ColumnPlan) -> _LinkedColumn:
        type_number = self.type_number(plan.type)
        chosen = next(filter(_constant_equality, plan.conditions), None)
        assembler = Assembler(self._strings)
        rest = [condition for condition in plan.conditions if condition is not chosen]
        program = assembler.condition(conjunction(rest))
        block = (self._code.add(assembler.instructions), len(assembler.instructions))
        self.depth = max(self.depth, assembler.depth)
        number = self.columns.add(
            type=type_number,
            code=-1 if program < 0 else block[0] + program,
            next=-1,
            first_access=-1,
            first_rule=-1,
        )
        equality = None if chosen is None else _constant_equality(chosen)
        if equality is None:
            self._index.open(number, type_number)
            return _LinkedColumn(number, block, tuple(assembler.texts), None)
        word = word_of(equality[1].value, self._strings)
        if equality[1].kind is Kind.STRING:
            assembler.texts.append(word)
        dispatch = self._index.enter(number, type_number, equality[0], word)
        return _LinkedColumn(number, block, tuple(assembler.texts), dispatch)

    def _drop_column(self, plan: ColumnPlan) -> None:
        linked = self._column_of[plan]
        linked.users -= 1
        if linked.users:
            return
        del self._column_of[plan]
        if linked.dispatch is None:
            self._index.close(linked.number, self.type_numbers[plan.type.name])
        else:
            self._index.leave(linked.number, linked.dispatch)
        self._code.release(*linked.code)
        self.columns.release(linked.number)

    def _use_access(self, plan: AccessPlan) -> int:
        """The number of a plan's access, with one more user."""
        key = (plan.column, plan.keys)
        linked = self._access_of.get(key)
        if linked is None:
            column = self._use_column(plan.column)
            offsets = [layout.HEADER + attribute for attribute in plan.keys] + [0, 0]
            kinds = [plan.column.type.attributes[attribute].kind for attribute in plan.keys]
            number = self.accesses.add(
                column=column.number,
                next=self.columns.array[column.number]["first_access"],
                keys=len(plan.keys),
                first_key=offsets[0],
                second_key=offsets[1],
                float_keys=sum((kind is Kind.FLOAT) << bit for bit, kind in enumerate(kinds)),
                horizon=TIME_MIN,
            )
            self.columns.array[column.number]["first_access"] = number
            linked = self._access_of[key] = _LinkedAccess(number, key)
            self._access_by_number[number] = linked
        linked.users += 1
        return linked.number

    def _drop_access(self, number: int) -> bool:
        """Take a user from an access; whether it was the last, and the access is gone."""
        linked = self._access_by_number[number]
        linked.users -= 1
        if linked.users:
            return False
        del self._access_of[linked.key], self._access_by_number[number]
        column = self._column_of[linked.key[0]]
        unchain(self.accesses, number, self.columns, column.number, "first_access")
        self._drop_column(linked.key[0])
        self.accesses.release(number)
        return True

    def show(self, arrays: Arrays) -> None:
        """Let the kernels see the tables as they now are."""
        for name, array in (
            ("types", self.types.array),
            ("columns", self.columns.array),
            ("accesses", self.accesses.array),
            ("rules", self.rules.array),
            ("groups", self.groups),
            ("steps", self.steps.array),
            ("code", self._code.array),
            ("values", self._values.array),
            ("private", self._private.array),
        ):
            arrays[name] = array
        self._index.show(arrays)


def _previous(steps: Sequence[Step], place: int, first: int) -> int:
    """The nearest step before ``place`` that may have another candidate, or -1."""
    for earlier in range(place - 1, -1, -1):
        step = steps[earlier]
        if step.kind is StepKind.SELECT and step.policy is Policy.EACH:
            return first + earlier
    return -1


def _constant_equality(condition: Expression) -> tuple[int, Literal] | None:
    """``attribute = constant`` of one kind, a word for a word: the attribute and the constant."""
    if not (isinstance(condition, Compare) and condition.comparison is Comparison.EQUAL):
        return None
    match condition.left, condition.right:
        case (AttributeOf(event=event) as own, Literal() as constant):
            pass
        case (Literal() as constant, AttributeOf(event=event) as own):
            pass
        case _:
            return None
    if event != CANDIDATE or own.kind is not constant.kind or own.kind is Kind.FLOAT:
        return None
    return own.attribute, constant


def _signed(number: int) -> int:
    """An unsigned 64-bit number as the signed one of the same bits."""
    return number - 2**64 if number >= 2**63 else number
