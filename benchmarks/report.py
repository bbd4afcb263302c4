"""Figures and how they are shown: one row a measurement, with its baseline beside it.

Law: a measure that fails costs its own figure and no other. It becomes a row that says so, and what
was measured before it, or is measured after, stands beside it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, and the same unit's figure of what it is compared with, if anything.

    ``value`` is None where the measure failed; the note says why.
    """

    name: str
    value: float | None
    unit: str
    baseline_name: str = ""
    baseline_value: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of its baseline."""
        if self.value is None or not self.baseline_value:
            return None
        return self.value / self.baseline_value


def attempted(name: str, measure: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """The rows of a measure; where it fails, those before and one of this name that says so."""
    try:
        yield from measure()
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        said = "".join(traceback.format_exception_only(error)).splitlines()
        yield Row(name, None, "", note=said[0])


HEADINGS = ("measurement", "value", "unit", "baseline", "baseline value", "ratio", "note")
_TO_THE_RIGHT = (1, 4, 5)


def table(rows: Sequence[Row]) -> str:
    """Rows as an aligned table of text, without a line end after it."""
    cells = [HEADINGS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def line(row: Row) -> str:
    """A row by itself, as it is said when it has been measured."""
    name, value, unit, baseline_name, baseline, ratio, note = _cells(row)
    beside = f"{baseline_name} {baseline}, ratio {ratio}" if baseline else ""
    return "; ".join(part for part in (f"{name}: {value} {unit}".rstrip(), beside, note) if part)


def document(rows: Mapping[str, Sequence[Row]]) -> str:
    """The figures of several benchmarks, by name, and what they were measured on, as JSON."""
    machine = {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
    }
    figures = {
        name: [asdict(row) | {"ratio": row.ratio} for row in of] for name, of in rows.items()
    }
    return json.dumps({"machine": machine, "benchmarks": figures}, indent=2) + "\n"


def seconds_of(
    action: Callable[[], object],
    *,
    repeats: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The least time of an action that is run once before to warm up, by a clock of seconds.

    The least, not the mean: what disturbs a measurement, other programs of the machine above
    all, only ever adds to it.
    """
    action()
    durations = []
    for _ in range(repeats):
        begun = clock()
        action()
        durations.append(clock() - begun)
    return min(durations)


def _cells(row: Row) -> tuple[str, ...]:
    baseline = "" if row.baseline_value is None else figure(row.baseline_value)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    value = "failed" if row.value is None else figure(row.value)
    return row.name, value, row.unit, row.baseline_name, baseline, ratio, row.note


def figure(value: float) -> str:
    """A number with three significant digits at least, and its thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        text.rjust(width) if place in _TO_THE_RIGHT else text.ljust(width)
        for place, (text, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
