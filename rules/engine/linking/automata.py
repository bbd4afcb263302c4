"""Automata into tables: what incremental processing keeps of each rule, for the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matcher.model import TIME_MIN
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.tables import BlockTable, RecordTable
from rules.planning.plan import AccessPlan
from rules.planning.sequences import AutomatonPlan, StatePlan


@dataclass(slots=True)
class LinkedAutomaton:
    """An automaton's places in the tables; ``reaches`` and ``uses`` as those of StepRecords."""

    number: int
    reaches: dict[int, int] = field(default_factory=dict)
    uses: list[int] = field(default_factory=list)
    states: tuple[int, int] = (0, 0)
    links: list[tuple[int, int]] = field(default_factory=list)

    def joined(
        self, reaches: Mapping[int, int], uses: Sequence[int]
    ) -> tuple[dict[int, int], list[int]]:
        """Its reaches and uses together with others of the same rule."""
        longest = {
            access: max(reaches.get(access, 0), self.reaches.get(access, 0))
            for access in (*reaches, *self.reaches)
        }
        return longest, [*uses, *self.uses]


class AutomatonTables:
    """Owner of the tables of automata, states and links. Instances and links are accesses that no
    other rule shares, and that events do not enter by themselves; all else about them is as for any
    access.
    """

    def __init__(self, tables: ColumnTables) -> None:
        self._tables = tables
        self._automata = RecordTable(layout.AUTOMATON)
        self._states = BlockTable(layout.STATE)
        self._links = BlockTable(layout.LINK)

    def add(self, plan: AutomatonPlan, step: int) -> LinkedAutomaton:
        """Enter an automaton whose steps for links stand from number ``step`` on.

        It has taken in nothing yet.
        """
        linked = LinkedAutomaton(self._automata.add(taken_in=TIME_MIN))
        records = []
        for state in plan.states:
            records.append(self._state(state, step, linked))
            step += len(state.links)
        first = self._states.add(records)
        linked.states = first, len(records)
        record = self._automata.array[linked.number]
        record["first_state"], record["last_state"] = first, first + len(records)
        return linked

    def _state(self, plan: StatePlan, step: int, linked: LinkedAutomaton) -> tuple[int, ...]:
        """One state's record."""
        targets = [self._use(link.links, linked) for link in plan.links]
        links = self._links.add(
            [
                (step + place, link.kept, target)
                for place, (link, target) in enumerate(zip(plan.links, targets, strict=True))
            ]
        )
        linked.links.append((links, len(plan.links)))
        type_ = self._tables.type_number(plan.arrivals.column.type)
        return (
            plan.event,
            type_,
            layout.LAST_OF_RUN if plan.is_run else type_,
            self._use(plan.arrivals, linked),
            plan.arrivals.reach,
            self._use(plan.instances, linked),
            int(plan.waits),
            links,
            links + len(plan.links),
        )

    def _use(self, access: AccessPlan, linked: LinkedAutomaton) -> int:
        number = self._tables.use_access(access)
        linked.uses.append(number)
        linked.reaches[number] = max(linked.reaches.get(number, 0), access.reach)
        return number

    def remove(self, linked: LinkedAutomaton) -> None:
        """Take an automaton out; its accesses are its user's to drop."""
        record = self._automata.array[linked.number]
        record["first_state"] = record["last_state"] = 0
        self._automata.release(linked.number)
        self._states.release(*linked.states)
        for block in linked.links:
            self._links.release(*block)

    def show(self, arrays: Arrays) -> None:
        """Let the kernels see the tables as they now are."""
        arrays["automata"] = self._automata.array
        arrays["states"] = self._states.array
        arrays["links"] = self._links.array
