"""Columns and the ways into them: what the rules ask for of the events, each thing once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from matcher.model import TIME_MAX, TIME_MIN, EventType, Kind
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.assembler import Assembler, word_of
from rules.engine.linking.interner import Interner
from rules.engine.linking.static_index import StaticIndex, unchain
from rules.engine.linking.tables import BlockTable, RecordTable
from rules.pattern import TIMER
from rules.planning.plan import AccessPlan, ColumnPlan, key_kind
from rules.planning.program import conjunction
from rules.terms import CANDIDATE, AttributeOf, Compare, Comparison, Expression, Literal


@dataclass(slots=True)
class LinkedColumn:
    """A column's places in the tables, to be given back with its last user."""

    number: int
    code: tuple[int, int]
    texts: tuple[int, ...]
    functions: tuple[int, ...]
    dispatch: tuple[int, int] | None  # record and word, for a dispatched column
    users: int = 0


@dataclass(slots=True)
class _LinkedAccess:
    number: int
    plan: AccessPlan
    users: int = 0


class ColumnTables:
    """Owner of the tables of types, columns and accesses, and of the columns' programs.

    ``depth`` is the stack that the programs need, ``width`` the words of the widest row.

    Equal columns are one column and equal accesses one access, whichever rules ask for them; what
    no rule asks for any more is unlinked. (Thesis 5.7 keeps columns per rule; sharing them is what
    makes an event cost what is distinct, not what is deployed.) A column is found through the
    static index by one of its conditions, and tested on the others.
    """

    def __init__(self, strings: Interner) -> None:
        self._strings = strings
        self.types = RecordTable(layout.TYPE)
        self.columns = RecordTable(layout.COLUMN)
        self.accesses = RecordTable(layout.ACCESS)
        self.code = BlockTable(layout.CODE)
        self.type_numbers: dict[str, int] = {}
        self.event_types: list[EventType] = []
        self.depth = 1
        self.width = layout.HEADER
        self._index = StaticIndex(self.types, self.columns)
        self._column_of: dict[ColumnPlan, LinkedColumn] = {}
        self._access_of: dict[AccessPlan, _LinkedAccess] = {}  # whatever the reach
        self._access_by_number: dict[int, _LinkedAccess] = {}

    def owner(self, access: int) -> str:
        """The name of the rule that alone uses an access, or empty (S11)."""
        return self._access_by_number[access].plan.column.owner

    def show(self, arrays: Arrays) -> None:
        """Let the kernels see the tables as they now are."""
        arrays["types"] = self.types.array
        arrays["columns"] = self.columns.array
        arrays["accesses"] = self.accesses.array
        arrays["code"] = self.code.array
        self._index.show(arrays)

    def constants(self) -> set[int]:
        """The codes of all strings that columns mention."""
        return {code for column in self._column_of.values() for code in column.texts}

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
                taken_in=TIME_MIN,
            )
            self.type_numbers[type_.name] = number
            self.event_types[number : number + 1] = [type_]
            self.width = max(self.width, layout.HEADER + len(type_.attributes))
        return number

    def unused_types(self, names: Iterable[str], used: Collection[str]) -> tuple[int, ...]:
        """The numbers of those types of which no event is of use any more."""
        numbers = self.type_numbers
        return tuple(numbers[name] for name in names if name in numbers and name not in used)

    def forget_types(self, names: Iterable[str], known: Collection[str]) -> tuple[int, ...]:
        """Give back the numbers of those types, without columns and rows, that no rule knows."""
        gone = [name for name in names if name in self.type_numbers and name not in known]
        numbers = tuple(map(self.type_numbers.pop, gone))
        for number in numbers:
            self._index.forget_type(number)
            self.types.release(number)
        return numbers

    # --- columns and accesses --------------------------------------------------------------

    def use_column(self, plan: ColumnPlan) -> LinkedColumn:
        """The column of a plan, with one more user."""
        linked = self._column_of.get(plan)
        if linked is None:
            linked = self._column_of[plan] = self._add_column(plan)
        linked.users += 1
        return linked

    def _add_column(self, plan: ColumnPlan) -> LinkedColumn:
        type_number = self.type_number(plan.type)
        chosen = next(filter(_constant_equality, plan.conditions), None)
        assembler = Assembler(self._strings)
        rest = [condition for condition in plan.conditions if condition is not chosen]
        program = assembler.condition(conjunction(rest))
        block = (self.code.add(assembler.instructions), len(assembler.instructions))
        self.depth = max(self.depth, assembler.depth)
        number = self.columns.add(
            type=type_number,
            code=-1 if program < 0 else block[0] + program,
            next=-1,
            first_access=-1,
            first_rule=-1,
            last_rule=-1,
        )
        equality = None if chosen is None else _constant_equality(chosen)
        if equality is None:
            self._index.open(number, type_number)
            texts, functions = tuple(assembler.texts), tuple(assembler.functions)
            return LinkedColumn(number, block, texts, functions, None)
        word = word_of(equality[1].value, self._strings)
        if equality[1].kind is Kind.STRING:
            assembler.texts.append(word)
        dispatch = self._index.enter(number, type_number, equality[0], word)
        texts, functions = tuple(assembler.texts), tuple(assembler.functions)
        return LinkedColumn(number, block, texts, functions, dispatch)

    def drop_column(self, plan: ColumnPlan) -> None:
        """Take a user from a plan's column; with the last, the column is gone."""
        linked = self._column_of[plan]
        linked.users -= 1
        if linked.users:
            return
        del self._column_of[plan]
        if linked.dispatch is None:
            self._index.close(linked.number, self.type_numbers[plan.type.name])
        else:
            self._index.leave(linked.number, linked.dispatch)
        for function in linked.functions:
            self._strings.drop(function)
        self.code.release(*linked.code)
        self.columns.release(linked.number)

    def use_access(self, plan: AccessPlan) -> int:
        """The number of a plan's access, with one more user."""
        plan = replace(plan, reach=0)
        linked = self._access_of.get(plan)
        if linked is None:
            column = self.use_column(plan.column)
            offsets = [*map(layout.offset_of, plan.keys), 0, 0]
            kinds = [key_kind(plan.column.type, key) for key in plan.keys]
            number = self.accesses.add(
                column=column.number,
                next=self.columns.array[column.number]["first_access"],
                keys=len(plan.keys),
                first_key=offsets[0],
                second_key=offsets[1],
                float_keys=sum((kind is Kind.FLOAT) << bit for bit, kind in enumerate(kinds)),
                horizon=TIME_MIN,
                list=-1,
            )
            if not plan.derived:
                self.columns.array[column.number]["first_access"] = number
            linked = self._access_of[plan] = _LinkedAccess(number, plan)
            self._access_by_number[number] = linked
        linked.users += 1
        return linked.number

    def access_number(self, plan: AccessPlan) -> int:
        """The number of an access that is in use."""
        return self._access_of[replace(plan, reach=0)].number

    def access_plan(self, number: int) -> AccessPlan:
        """The plan of an access that is in use, whatever the reach."""
        return self._access_by_number[number].plan

    def drop_access(self, number: int) -> bool:
        """Take a user from an access; whether it was the last, and the access is gone."""
        linked = self._access_by_number[number]
        linked.users -= 1
        if linked.users:
            return False
        del self._access_of[linked.plan], self._access_by_number[number]
        column = self._column_of[linked.plan.column]
        if not linked.plan.derived:
            unchain(self.accesses, number, self.columns, column.number, "first_access")
        self.drop_column(linked.plan.column)
        self.accesses.release(number)
        return True


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
