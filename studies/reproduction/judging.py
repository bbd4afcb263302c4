"""What was measured once, judged again: for when a sentence or the rule has changed.

    python -m studies.reproduction.judging [NAME...]

reads the tables of ``docs/reproduction`` and the rows of ``studies/results/study.jsonl.xz``, and
writes their sections and pictures anew. Nothing is measured; a section keeps what it says of how
its table was made (provenance).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from studies.reproduction import provenance, study, writing
from studies.reproduction.distribution_runs import Study
from studies.reproduction.experiment import Experiment, Figure, Outcome, Table
from studies.reproduction.gathering import Rows
from studies.reproduction.provenance import Provenance
from studies.reproduction.registry import EXPERIMENTS
from studies.rows import RESULTS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reproduction"
ROWS = RESULTS / "study.jsonl.xz"
SIZES = ("whole", "full")
"""Sizes of the study that have pages."""


def read(file: Path) -> Table:
    """A table that was written as CSV, with its figures seed by seed if they were."""
    columns, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
    runs = file.parent / writing.RUNS / file.name
    return Table(
        tuple(columns),
        tuple(tuple(map(_figure, row)) for row in rows),
        read(runs) if runs.is_file() else None,
    )


def _figure(text: str) -> Figure:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def judged(
    names: Sequence[str] = (),
) -> Iterator[tuple[Experiment, Outcome, Provenance | None]]:
    """The experiments that have been measured, each with what is said of it now, and, if it is made
    of kept rows, how these were made.
    """
    chosen = [EXPERIMENTS[name] for name in names] or EXPERIMENTS.values()
    for one in chosen:
        file = FOLDER / f"{one.stem}.csv"
        table = read(file) if file.is_file() else one.unmeasured
        if one.judge is not None and table is not None:
            yield one, one.judge(table), None
    for size in SIZES:
        made = Study(study.SIZES[size], Rows(ROWS, of_any_code=True))
        for one in chosen:
            told = study.told(made, one)
            if one.gathered is not None and (rows := list(study.rows_of(made, one))):
                known = provenance.read(FOLDER).get(told.stem, Provenance())
                yield told, one.gathered.outcome(made), provenance.of_rows(known, rows)


if __name__ == "__main__":
    for experiment, outcome, how in judged(sys.argv[1:]):
        writing.write(experiment, outcome, FOLDER, how)
