"""What was measured once, judged again: for when a sentence or the rule has changed.

    python -m studies.reproduction.judging [NAME...]

reads the tables of ``docs/reproduction`` and the rows of ``studies/results/study.jsonl.xz``, and
writes their sections and pictures anew. Nothing is measured; a section keeps what it says of the
machine.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from studies.reproduction import study, writing
from studies.reproduction.distribution_runs import Study
from studies.reproduction.experiment import Experiment, Figure, Outcome, Table
from studies.reproduction.gathering import Rows
from studies.reproduction.registry import EXPERIMENTS
from studies.rows import RESULTS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reproduction"
ROWS = RESULTS / "study.jsonl.xz"
SIZES = ("whole", "full")
"""Sizes of the study that have pages."""


def read(file: Path) -> Table:
    """A table that was written as CSV."""
    columns, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
    return Table(tuple(columns), tuple(tuple(map(_figure, row)) for row in rows))


def _figure(text: str) -> Figure:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def judged(names: Sequence[str] = ()) -> Iterator[tuple[Experiment, Outcome]]:
    """The experiments that have been measured, each with what is said of it now."""
    chosen = [EXPERIMENTS[name] for name in names] or EXPERIMENTS.values()
    for one in chosen:
        file = FOLDER / f"{one.stem}.csv"
        table = read(file) if file.is_file() else one.unmeasured
        if one.judge is not None and table is not None:
            yield one, one.judge(table)
    for size in SIZES:
        made = Study(study.SIZES[size], Rows(ROWS, of_any_code=True))
        for one in chosen:
            told = study.told(made, one)
            if one.gathered is not None and (FOLDER / f"{told.stem}.csv").is_file():
                yield told, one.gathered.outcome(made)


def machine_of(experiment: Experiment) -> str:
    """What the page says of the machine that an experiment was measured on; nothing of one that was
    not.
    """
    page = FOLDER / f"{experiment.page}.md"
    section = writing.sections_of(page.read_text(encoding="utf-8"))[experiment.name]
    found = re.findall(r", measured on (.*)\.$", section, re.MULTILINE)
    return str(found[0]) if found else ""


if __name__ == "__main__":
    for experiment, outcome in judged(sys.argv[1:]):
        writing.write(experiment, outcome, FOLDER, machine_of(experiment))
