"""Tables of what was measured on a device, from the rows that :mod:`studies.bench_gpu` keeps, and
sentences judged by them.

A row's name says where it belongs: ``detection/6.7/4000/each CPU CDP`` is of figure 6.7, at the
place 4000, on the line ``each CPU CDP``; ``operators/join, 10 queries, copy in``, of an operator,
has its line behind the last comma. A table has a row for each line and a column for each place.

Law: a sentence is judged by what was measured, whole; where a figure that it needs is missing, a
part having been cut off, say, it is not yet measured on a device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.report import Row
from studies.reproduction.engine_claims import claim, unmeasured
from studies.reproduction.experiment import Chart, Claim, Figure, Outcome, Table
from studies.reproduction.verdicts import Asked, Estimate
from studies.rows import text_of

CPU = "cpu"
DEFAULT = "default"
"""The place of the default scenario in tables of other figures."""
NOT_YET = "not yet measured on a device"
NOTHING = Table((NOT_YET,), ())
"""The table until a device has run it."""
Line = list[Estimate]
Told = tuple[str, Sequence[Asked]]


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of one or several runs, the last of a name, and the devices that they are of."""

    rows: Sequence[Row]
    devices: Sequence[str]

    @classmethod
    def read(cls, file: Path) -> Kept:
        """The rows of a file, but for those of quick runs and of what failed."""
        rows: dict[str, Row] = {}
        devices: dict[str, None] = {}
        for line in text_of(file).splitlines():
            told = json.loads(line)
            if told["quick"] or told["value"] is None:
                continue
            devices[f"{told['device']} beside {told['cores']} cores"] = None
            row = Row(**{name: told[name] for name in Row.__dataclass_fields__})
            rows[row.name] = row
        return cls(tuple(rows.values()), tuple(devices))

    def table(self, heading: str, prefix: str) -> Table:
        """The table of the rows whose names begin with a prefix; NOTHING where none does."""
        cells: dict[str, dict[str, float]] = {}
        places: dict[str, None] = {}
        for row in self.rows:
            if row.name.startswith(prefix) and row.value is not None:
                place, line = _split(row.name.removeprefix(prefix))
                unit = "" if row.unit.startswith("us") else f" [{row.unit}]"
                places[place] = None
                cells.setdefault(line + unit, {})[place] = row.value
                if row.baseline_name == CPU and row.baseline_value is not None:
                    cells.setdefault(CPU + unit, {})[place] = row.baseline_value
        if not cells:
            return NOTHING
        ordered = sorted(places, key=float) if all(map(_is_number, places)) else list(places)
        rows: list[tuple[Figure, ...]] = [
            (line, *(found.get(place) for place in ordered)) for line, found in cells.items()
        ]
        return Table((heading, *ordered), tuple(rows))

    def with_default(self, table: Table) -> Table:
        """The table of another figure, and on each line, if it is there, its figure in the default
        scenario, as a place of its own.
        """
        default = self.table("", "detection/6.5/")
        if not table.rows or not default.rows:
            return table
        found = {row[0]: row[1] for row in default.rows}
        rows = [(row[0], found.get(row[0]), *row[1:]) for row in table.rows]
        return Table((table.columns[0], DEFAULT, *table.columns[1:]), tuple(rows))


def _split(name: str) -> tuple[str, str]:
    """Place and line of what is left of a name."""
    place, slash, line = name.partition("/")
    if not slash:
        place, _, line = name.rpartition(", ")
    return place, line


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Grid:
    """A table, read by its lines and places; KeyError for a figure that it has not."""

    table: Table

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the places, in order, but for that of the default scenario."""
        return tuple(one for one in self.table.columns[1:] if one != DEFAULT)

    def at(self, line: str, place: str) -> Estimate:
        """A figure, of a single run."""
        rows = {row[0]: row for row in self.table.rows}
        if place not in self.table.columns[1:]:
            raise KeyError(place)
        value = rows[line][self.table.columns.index(place)]
        if not isinstance(value, int | float):
            raise KeyError(f"{line} at {place}")
        return Estimate.single(float(value), f"{line} at {place}")

    def line(self, line: str, places: Sequence[str] | None = None) -> Line:
        """The figures of a line at some places, or at all."""
        chosen = self.places if places is None else places
        if not chosen:
            raise KeyError(line)
        return [self.at(line, place) for place in chosen]

    def has(self, line: str, place: str) -> bool:
        """Whether there is a figure."""
        try:
            self.at(line, place)
        except KeyError:
            return False
        return True

    def enough(self, places: Sequence[str]) -> Sequence[str]:
        """These places; KeyError where they are less than two of several."""
        if len(places) < min(2, len(self.places)):
            raise KeyError("too few places")
        return places

    def known(self, line: str) -> Line:
        """The figures of a line where it has some, in order."""
        return self.line(line, self.enough([one for one in self.places if self.has(line, one)]))

    def ratio(self, line: str, to: str, places: Sequence[str] | None = None) -> Line:
        """The figures of a line over another's."""
        pairs = zip(self.line(line, places), self.line(to, places), strict=True)
        return [one / other for one, other in pairs]


def listed(name: str, line: Iterable[Estimate]) -> str:
    """A line's figures, in words."""
    return f"{name}: {', '.join(f'{one.value:.3g}' for one in line)}"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a paper, and what it asks of a table, once for what was published and once, if
    it can be, for ours.
    """

    published: str
    asks: Callable[[Grid], Told]
    ours: Callable[[Grid], Told] | None = None

    def judged(self, table: Table) -> Claim:
        """The sentence beside a table (Law)."""
        found = _judged(self.published, self.asks, table)
        if self.ours is None:
            return found
        other = _judged(self.published, self.ours, table)
        return replace(found, otherwise=other)


def _judged(published: str, asks: Callable[[Grid], Told], table: Table) -> Claim:
    try:
        told, asked = asks(Grid(table))
    except KeyError:
        return unmeasured(published, NOT_YET)
    return claim(published, told, asked)


DRAWN_MIN = 3
"""Places from which on there is a picture."""


def outcome(table: Table, sentences: Sequence[Sentence], charts: Sequence[str] = ()) -> Outcome:
    """The claims on a table, and its pictures: a chart for each beginning of its lines."""
    claims = tuple(one.judged(table) for one in sentences)
    if not table.rows:
        return Outcome(NOTHING, (), claims)
    drawn, lines = _drawn(table), [str(row[0]) for row in table.rows if is_drawn(str(row[0]))]
    if len(drawn.rows) < DRAWN_MIN:
        charts = ()
    found = [
        Chart(tuple(one for one in lines if one.startswith(beginning)), "us", (True, True))
        for beginning in charts
    ]
    return Outcome(table, tuple(one for one in found if one.lines), claims, drawn)


def is_drawn(line: str) -> bool:
    """Whether a line is in a picture: those of whole engines are."""
    return "launched" not in line and "alone" not in line and "waited for" not in line


def _drawn(table: Table) -> Table:
    """The table on its side: a row for each place."""
    columns = (table.columns[0], *(str(row[0]) for row in table.rows))
    rows = [
        (float(place) if _is_number(place) else place, *(row[number] for row in table.rows))
        for number, place in enumerate(table.columns[1:], 1)
        if place != DEFAULT
    ]
    return Table(columns, tuple(rows))
