"""Plans into tables: the owner of everything that only deploying and removing rules changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import TIME_MAX, AnyArray, Int64s
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.assembler import Assembler, loaded
from rules.engine.linking.automata import AutomatonTables, LinkedAutomaton
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.horizons import Horizons, Lookbacks
from rules.engine.linking.interner import Interner
from rules.engine.linking.static_index import unchain
from rules.engine.linking.steps import StepRecords, previous
from rules.engine.linking.straight import straight_words
from rules.engine.linking.tables import BlockTable, RecordTable
from rules.engine.order.catalogue import Deployed
from rules.engine.order.groups import Groups
from rules.engine.order.last_words import name_bytes
from rules.pattern import Policy
from rules.planning.plan import RulePlan, StepKind, laid_out
from rules.planning.planner import plans_of
from rules.planning.program import TRUE, Program
from rules.planning.sequences import AutomatonPlan, access_of, automaton_of
from runtime.memory import sheltered, zeros


@dataclass(slots=True)
class LinkedRule:
    """The places that a rule, or a variant of it, has in the tables, to be given back when it is
    removed.
    """

    deployed: Deployed
    plan: RulePlan
    number: int
    source: int
    steps: tuple[int, int]
    code: tuple[int, int]
    values: tuple[int, int]
    private: tuple[int, int]
    texts: tuple[int, ...]
    functions: tuple[int, ...]  # of strings
    holds: tuple[int, ...]  # how long the rule may look back in each access
    uses: tuple[int, ...]  # accesses, once a step
    automaton: LinkedAutomaton | None
    arrivals: Mapping[int, int]  # for each selected event, an access that it enters as it comes
    straight: tuple[int, int] | None
    name: AnyArray  # the text that layout.RULE has the address of


@dataclass(frozen=True, slots=True)
class _Value:
    """How an attribute of composite events is found: see layout.VALUE."""

    event: int
    offset: int
    program: int

    def placed(self, code: int) -> tuple[int, int, int]:
        """Its record, once the rule's programs begin at instruction ``code``."""
        return self.event, self.offset, code + self.program


class Linker:
    """Owner of the tables, which ``show`` lets the kernels see.

    Linking a rule touches its own records and the chains that they join, nothing else. What holds
    for all rules at once (their order within an instant, from when on events are of use) is
    computed on whole arrays, rules being rows; only rules that changed are looked at.
    """

    def __init__(self, strings: Interner) -> None:
        self._strings = strings
        self.tables = ColumnTables(strings)
        self._automata = self._tables_of_automata()
        self.rules = RecordTable(layout.RULE)
        self.groups: AnyArray = zeros((0,), layout.GROUP)
        self.steps = BlockTable(layout.STEP)
        self._values = BlockTable(layout.VALUE)
        self._private = BlockTable(np.int64)
        self._straight = BlockTable(np.int64, unit=layout.LINE_WORDS)
        self._lookbacks = Lookbacks()  # beside ``rules``
        self._group_numbers: Mapping[frozenset[str], int] = {}
        self.linked: dict[str, tuple[LinkedRule, ...]] = {}  # the variants of each rule
        self.by_number: dict[int, LinkedRule] = {}
        self.depth = 1
        self.slots = 1
        self.events = 1

    def _tables_of_automata(self) -> AutomatonTables:
        return AutomatonTables(self.tables)

    def _model_of(self, plan: RulePlan, incremental: bool) -> AutomatonPlan | None:
        """The automaton of a rule, if it is to have one."""
        return automaton_of(plan) if incremental and not plan.has_rivals else None

    def link(self, deployed: Deployed, source: int, *, incremental: bool = False) -> None:
        """Enter a deployed rule; ``source`` is the number of its composite events' source.

        An ``incremental`` one has an automaton, if it can (``sequences``).
        """
        plans = plans_of(deployed.rule)
        # What one variant consumes would leave the links of the others behind.
        incremental = incremental and (len(plans) == 1 or not deployed.rule.consuming)
        linked = tuple(self._link(deployed, source, plan, incremental) for plan in plans)
        self.linked[deployed.rule.name] = linked
        self._share_private(linked)

    def _link(
        self, deployed: Deployed, source: int, plan: RulePlan, incremental: bool
    ) -> LinkedRule:
        """Enter a rule, or one of its variants, by its plan."""
        tables, assembler = self.tables, Assembler(self._strings)
        self._strings.payer = deployed.rule.owner
        model = self._model_of(plan, incremental)
        plan = plan if model is None else model.plan
        values = [_value(program, assembler) for program in plan.values]
        links = () if model is None else model.enumerations
        steps = StepRecords(plan.steps, assembler, tables, links)
        code = tables.code.add(assembler.instructions)
        value_block = self._values.add([value.placed(code) for value in values])
        first = steps.place(self.steps, code)
        last = first + steps.outer
        reaches, uses = steps.reaches, steps.uses
        automaton = None
        if model is not None:
            automaton = self._automata.add(model, first + steps.before_links)
            reaches, uses = automaton.joined(reaches, uses)
        private = [access for access in reaches if tables.owner(access)]
        private_block = self._private.add([*private, -1])
        column = tables.use_column(plan.terminator).number
        name = sheltered(name_bytes(deployed.rule.name))
        number = self.rules.add(
            name=name.ctypes.data,
            type=tables.type_number(deployed.rule.defines),
            column=column,
            first_step=first,
            last_step=last,
            previous=previous(plan.steps, steps.outer, first),
            first_value=value_block,
            value_count=len(values),
            events=len(plan.event_types),
            key_high=_signed(deployed.key[0]),
            key_low=_signed(deployed.key[1]),
            source=source,
            next=-1,
            straight=-1,
            consumes=sum(1 << event for event in plan.consumed_alone),
            runs=plan.runs,
            latest=plan.rule.latest,
            private=private_block,
            final_each=_ends_in_each(plan) and all(value.event >= 0 for value in values),
            automaton=-1 if automaton is None else automaton.number,
        )
        self._enchain(number, column)
        straight = None
        if model is None:
            key = _signed(deployed.key[0]), _signed(deployed.key[1])
            type_number = tables.type_number(deployed.rule.defines)
            if words := straight_words(plan, type_number, key, source, tables):
                straight = self._straight.add(words), len(words)
        self.depth = max(self.depth, assembler.depth)
        self.slots = max(self.slots, plan.slots)
        self.events = max(self.events, len(plan.event_types))
        linked = self.by_number[number] = LinkedRule(
            deployed,
            plan,
            number,
            source,
            (first, len(steps)),
            (code, len(assembler.instructions)),
            (value_block, len(values)),
            (private_block, len(private) + 1),
            tuple(assembler.texts),
            tuple(assembler.functions),
            self._lookbacks.add(number, source, reaches),
            tuple(uses),
            automaton,
            self._arrivals(plan, model),
            straight,
            name,
        )
        self._decide_straight(linked)
        return linked

    def _enchain(self, rule: int, column: int) -> None:
        """Enter a rule behind those with the same terminators: most run in that order."""
        record = self.tables.columns.array[column]
        if record["first_rule"] < 0:
            record["first_rule"] = rule
        else:
            self.rules.array[int(record["last_rule"])]["next"] = rule
        record["last_rule"] = rule

    def _unchain(self, rule: int, column: int) -> None:
        """Take a rule out of the chain of its terminators."""
        columns, rules = self.tables.columns, self.rules.array
        unchain(self.rules, rule, columns, column, "first_rule")
        if columns.array[column]["last_rule"] == rule:
            last, following = -1, int(columns.array[column]["first_rule"])
            while following >= 0:
                last, following = following, int(rules[following]["next"])
            columns.array[column]["last_rule"] = last

    def _decide_straight(self, linked: LinkedRule) -> None:
        """Let a rule be evaluated as a straight one if it is, and no step of it is strict."""
        is_strict = any(step.strict for step in linked.plan.steps)
        straight = -1 if linked.straight is None or is_strict else linked.straight[0]
        self.rules.array[linked.number]["straight"] = straight

    def _arrivals(self, plan: RulePlan, model: AutomatonPlan | None) -> Mapping[int, int]:
        selections = [step for step in plan.steps if step.kind is StepKind.SELECT]
        found = {step.event: access_of(step) for step in selections}
        found.update({} if model is None else model.arrivals)
        return {event: self.tables.access_number(access) for event, access in found.items()}

    def _share_private(self, variants: Sequence[LinkedRule]) -> None:
        """Let all variants share what one consumes: it leaves the columns of all (S11)."""
        if len(variants) == 1 or not variants[0].plan.rule.consuming:
            return
        private = {access for one in variants for access in one.uses if self.tables.owner(access)}
        for one in variants:
            self._private.release(*one.private)
        for one in variants:
            block = self._private.add([*sorted(private), -1])
            one.private = (block, len(private) + 1)
            self.rules.array[one.number]["private"] = block

    def unlink(self, name: str) -> tuple[int, ...]:
        """Take a rule out, and with it the columns and accesses that no other rule uses.

        Gives the accesses that are gone: their lists must be forgotten before the next ``link``.
        """
        return tuple(access for one in self.linked.pop(name) for access in self.release(one))

    def release(self, linked: LinkedRule) -> tuple[int, ...]:
        """Take one variant of a rule out, or a rule that was linked anew; see ``unlink``."""
        del self.by_number[linked.number]
        tables = self.tables
        column = int(self.rules.array[linked.number]["column"])
        self._unchain(linked.number, column)
        self._lookbacks.remove(linked.number, linked.holds)
        for function in linked.functions:
            self._strings.drop(function)
        tables.drop_column(linked.plan.terminator)
        gone = tuple(access for access in linked.uses if tables.drop_access(access))
        if linked.automaton is not None:
            self._automata.remove(linked.automaton)
        self.steps.release(*linked.steps)
        tables.code.release(*linked.code)
        self._values.release(*linked.values)
        self._private.release(*linked.private)
        if linked.straight is not None:
            self._straight.release(*linked.straight)
        self.rules.release(linked.number)
        return gone

    def refresh(
        self, changed: Collection[Deployed], used: Collection[str], groups: Groups
    ) -> Int64s | None:
        """Take ranks, groups and floors from the catalogue; which types are stored follows.

        Gives the numbers of the sources of composite events in the order of E4 (S15); None where
        no rule has changed, and those that are left stand as they did.
        """
        groups.rest()
        self.groups = groups.records
        self._number_groups(groups.numbers)
        for one in changed:
            variants = self.linked[one.rule.name]
            if variants[0].deployed.rule is not one.rule:
                for linked, plan in zip(variants, plans_of(one.rule), strict=True):
                    self._decide_strict(linked, plan)
            for place, linked in enumerate(variants):
                self._follow(linked, one, place)
        self._decide_stores(used)
        if not changed:
            return None
        in_order, sources = self._lookbacks.order()
        self.rules.array["priority"][in_order] = np.arange(len(in_order))
        return sources

    def _number_groups(self, numbers: Mapping[frozenset[str], int]) -> None:
        """Follow the numbers of groups; rules whose group is gone are among the changed."""
        old, self._group_numbers = self._group_numbers, numbers
        if old is numbers or not old:
            return
        now = np.array([numbers.get(group, 0) for group in old], np.int64)
        self.rules.array["group"] = now[self.rules.array["group"]]

    def _follow(self, linked: LinkedRule, deployed: Deployed, variant: int) -> None:
        """Take over what the catalogue says of one rule, for one of its variants."""
        linked.deployed = deployed
        record = self.rules.array[linked.number]
        record["since"] = deployed.since
        if linked.straight is not None:
            self._straight.array[linked.straight[0] + layout.STRAIGHT_SINCE] = deployed.since
        record["floor"] = _floor(deployed)
        record["group"] = self._group_numbers[deployed.group]
        self._lookbacks.place(
            linked.number, deployed.rank, deployed.since, deployed.position, variant
        )

    def end(self, deployed: Deployed) -> None:
        """Take over from the catalogue that a rule has ended."""
        for linked in self.linked[deployed.rule.name]:
            linked.deployed = deployed
            self.rules.array[linked.number]["floor"] = _floor(deployed)

    def _decide_stores(self, used: Collection[str]) -> None:
        """Decide whose composite events enter columns: those of types that some rule uses."""
        is_used = np.zeros(len(self.tables.types.array), np.int64)
        is_used[[self.tables.type_numbers[name] for name in used]] = 1
        self.rules.array["stores"] = is_used[self.rules.array["type"]]

    @property
    def looks(self) -> int:
        """In how many accesses rules look back, each rule counted: what horizons cost."""
        return len(self._lookbacks)

    @property
    def holds(self) -> AnyArray:
        """How long rules may look back in accesses; see :meth:`Lookbacks.holds`."""
        return self._lookbacks.holds

    def horizons(self, until: int) -> Horizons:
        """From when on events are of use; see :meth:`Lookbacks.horizons`."""
        return self._lookbacks.horizons(until, self.groups, self.rules.array, self.tables)

    def _decide_strict(self, linked: LinkedRule, plan: RulePlan) -> None:
        """Follow a rule that another one drew into a cycle, or let out of one (S12)."""
        linked.plan = plan
        for place, step in enumerate(laid_out(plan.steps), linked.steps[0]):
            self.steps.array[place]["strict"] = step.strict
        self._decide_straight(linked)

    def constants(self) -> set[int]:
        """The codes of all strings that rules mention."""
        used = {code for linked in self.by_number.values() for code in linked.texts}
        return used | self.tables.constants()

    def show(self, arrays: Arrays) -> None:
        """Let the kernels see the tables as they now are."""
        self.tables.show(arrays)
        self._automata.show(arrays)
        arrays["rules"] = self.rules.array
        arrays["groups"] = self.groups
        arrays["steps"] = self.steps.array
        arrays["values"] = self._values.array
        arrays["private"] = self._private.array
        arrays["straight"] = self._straight.array


def _value(program: Program, assembler: Assembler) -> _Value:
    """The value that a program computes; a mere attribute needs none."""
    if (attribute := loaded(program)) is not None:
        return _Value(*attribute, 0)
    return _Value(-1, 0, assembler.program(program))


def _floor(deployed: Deployed) -> int:
    """Every instant before it is done with."""
    return TIME_MAX if deployed.has_ended else max(deployed.floor, deployed.since)


def _ends_in_each(plan: RulePlan) -> bool:
    """Whether every candidate of the last step makes a match, with nothing to test or note."""
    if not plan.steps or plan.rule.consuming or plan.rule.latest:
        return False
    last = plan.steps[-1]
    return (
        last.kind is StepKind.SELECT
        and last.policy is Policy.EACH
        and last.residue is TRUE
        and not last.inner
    )


def _signed(number: int) -> int:
    """An unsigned 64-bit number as the signed one of the same bits."""
    return number - 2**64 if number >= 2**63 else number
