"""Steps of the plan as records for the kernels.

A step's record names its programs by the number of their first instruction, its access by the
number that the column tables gave it, and the steps that a failure goes back to by their places.
"""

from __future__ import annotations

from collections.abc import Sequence

from matcher.model import Kind
from rules.engine.kernels import layout
from rules.engine.kernels.aggregates import FUNCTIONS
from rules.engine.linking.assembler import Assembler, loaded
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.tables import BlockTable
from rules.pattern import Policy
from rules.planning.plan import (
    AccessPlan,
    Bound,
    Probe,
    Range,
    Step,
    StepKind,
    key_kind,
    laid_out,
)
from rules.planning.program import frame_place

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
_PROGRAMS = ("residue", "program", "first_probe", "second_probe", "lower", "upper", "links")
"""The fields that name a program, or are -1."""


class StepRecords:
    """The records of one rule's steps, before they have places: see ``laid_out``; then links.

    ``reaches`` is how long, in microseconds, the rule looks back in each access; ``uses`` are the
    accesses that it uses, once a step.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        assembler: Assembler,
        tables: ColumnTables,
        links: Sequence[Step] = (),
    ) -> None:
        self._steps = steps
        self._assembler = assembler
        self._tables = tables
        self.reaches: dict[int, int] = {}
        self.uses: list[int] = []
        self._laid_out = laid_out(steps)
        self._records = [self._fields(step) for step in self._laid_out]
        self._links = [self._fields(step) for step in links]

    @property
    def outer(self) -> int:
        """How many steps stand first, each after the other; all others stand behind them."""
        return len(self._steps)

    @property
    def before_links(self) -> int:
        """How many steps stand before those that enumerate links (``sequences``)."""
        return len(self._records)

    def __len__(self) -> int:
        return self.before_links + len(self._links)

    def _fields(self, step: Step) -> dict[str, int]:
        """A step's record; its instructions still count from the rule's first."""
        assembler = self._assembler
        fields = {
            "kind": int(step.kind),
            "event": step.event,
            "policy": _POLICIES[step.policy],
            "rank": step.rank,
            "first_probe": -1,
            "second_probe": -1,
            "ordered": -1,
            "lower": -1,
            "upper": -1,
            "residue": assembler.condition(step.residue),
            "anchor": step.span.later,
            "earlier": step.span.earlier,
            "duration": step.span.duration,
            "strict": int(step.strict),
            "slot": step.slot,
            "program": assembler.condition(step.program),
            "function": FUNCTIONS[step.function],
            "offset": -1 if step.attribute is None else layout.offset_of(step.attribute),
            "kind_of_value": _KINDS[step.value_kind],
            "run": step.run,
            "neighbour": frame_place(step.neighbour),
            "links": assembler.condition(step.links),
            "most": step.most,
        }
        if step.access is None:
            return fields
        number = self._tables.use_access(step.access)
        self.uses.append(number)
        self.reaches[number] = max(self.reaches.get(number, 0), step.access.reach)
        type_ = step.access.column.type
        fields["access"] = number
        fields["type"] = self._tables.type_number(type_)
        places = zip(("first", "second"), step.probes, step.access.keys, strict=False)
        for name, probe, key in places:
            fields[f"{name}_probe"] = assembler.program(probe.program)
            fields[f"{name}_kind"] = probe_kind(probe, step.access, key)
            event, offset = loaded(probe.program) or (-1, 0)
            fields[f"{name}_event"], fields[f"{name}_offset"] = event, offset
        if step.ordered is not None:
            fields.update(self._bounds(step.ordered))
        return fields

    def _bounds(self, ordered: Range) -> dict[str, int]:
        """The fields of a step's interval."""
        fields = {
            "ordered": layout.offset_of(ordered.attribute),
            "ordered_kind": _KINDS[ordered.kind],
        }
        for name, bound in (("lower", ordered.lower), ("upper", ordered.upper)):
            if bound is not None:
                fields[name] = self._assembler.program(bound.program)
                fields[f"{name}_kind"] = bound_kind(bound, ordered)
                fields[f"{name}_strict"] = int(bound.is_strict)
        return fields

    def place(self, table: BlockTable, code: int) -> int:
        """Write the records, whose programs begin at instruction ``code``: the first's number."""
        first = table.reserve(len(self))
        behind = first + self.outer
        behind = self._refer("inner", self._steps, 0, behind)
        rivals = behind - first
        behind = self._refer("rivals", self._steps, 0, behind)
        self._refer("inner", self._laid_out[rivals : behind - first], rivals, behind)
        for place, fields in enumerate(self._records[: self.outer]):
            fields["previous"] = previous(self._steps, place, first)
        for place, fields in enumerate((*self._records, *self._links), first):
            for name in _PROGRAMS:
                if fields[name] >= 0:
                    fields[name] += code
            record = table.array[place]
            for name in layout.STEP.names or ():
                record[name] = fields.get(name, 0)
        return first

    def _refer(self, name: str, steps: Sequence[Step], place: int, behind: int) -> int:
        """Let the records from ``place`` on say where what belongs to their steps stands: from
        number ``behind`` on. Gives the number behind all of it.
        """
        for fields, step in zip(self._records[place:], steps, strict=False):
            fields[name] = behind
            behind += len(getattr(step, name))
            fields[f"{name}_end"] = behind
        return behind


def probe_kind(probe: Probe, access: AccessPlan, key: int) -> int:
    """How a probe's value becomes a word of the key: layout.PROBE_..."""
    kinds = probe.kind, key_kind(access.column.type, key)
    return _PROBES.get(kinds, layout.PROBE_SAME)


def bound_kind(bound: Bound, ordered: Range) -> int:
    """How a bound's value becomes a word of what it bounds: layout.PROBE_..."""
    return _PROBES.get((bound.kind, ordered.kind), layout.PROBE_SAME)


def previous(steps: Sequence[Step], place: int, first: int) -> int:
    """The nearest step before ``place`` that may have another candidate, or -1."""
    for earlier in range(place - 1, -1, -1):
        step = steps[earlier]
        if step.kind is StepKind.SELECT and step.policy is Policy.EACH:
            return first + earlier
    return -1
