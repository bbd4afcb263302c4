"""The simulation study at any size, from the rows that are there: run on, and written (gathering).

Law: what is written says how many seeds each of its points has. Runs that are missing are counted,
and what they will take is estimated, before the first begins; whoever stops them loses those that
are under way and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from studies.reproduction import writing
from studies.reproduction.distribution import FULL_PAGE
from studies.reproduction.distribution_runs import QUICK, THESIS, WHOLE, Study, prepare
from studies.reproduction.experiment import Experiment
from studies.reproduction.gathering import Row, Rows, estimate_s, gather
from studies.reproduction.provenance import now, of_rows

SIZES = {"quick": QUICK, "whole": WHOLE, "full": THESIS}


def study_of(size: str, rows: Path) -> Study:
    """The study of a size of SIZES with the rows of a file."""
    return Study(SIZES[size], Rows(rows))


def run_missing(
    study: Study,
    experiments: Sequence[Experiment],
    runs_max: int | None,
    tell: Callable[[str], None],
    strategies: Collection[str] = (),
) -> None:
    """Run what experiments still need, at most so many runs; tells how far it is.

    ``strategies``: only what is missing of these; of all, where none is named.
    """
    settings = [
        one
        for experiment in experiments
        if experiment.gathered is not None
        for one in experiment.gathered.settings(study.size)
    ]
    every = {run.hash for run in study.runs(settings)}
    chosen = strategies or study.strategies
    todo = [one for one in study.missing(settings) if one.document["strategy"] in chosen]
    hours = estimate_s(todo, study.rows) / 3600
    tell(f"{len(todo)} of {len(every)} runs are missing: about {hours:.3g} hours of one core")
    todo = todo if runs_max is None else todo[:runs_max]
    for count, row in enumerate(gather(todo, study.rows, prepare=prepare), 1):
        told = f"{row['strategy']}, {row['brokers']} brokers, seed {row['seed']}"
        tell(f"{count} of {len(todo)}: {told}: {row['cpu_s']:.1f} s")


def write(study: Study, experiments: Sequence[Experiment], out: Path) -> list[Path]:
    """Write the figures as they are by now."""
    written: dict[Path, None] = {}
    for experiment in experiments:
        if experiment.gathered is not None:
            outcome = experiment.gathered.outcome(study)
            made = of_rows(now("", 0.0), rows_of(study, experiment))
            files = writing.write(told(study, experiment), outcome, out, made)
            written.update(dict.fromkeys(files))
    return list(written)


def rows_of(study: Study, experiment: Experiment) -> Iterator[Row]:
    """The rows of a study that an experiment is made of."""
    assert experiment.gathered is not None
    for point in study.found(experiment.gathered.settings(study.size)):
        for rows in point.values():
            yield from rows


def told(study: Study, experiment: Experiment) -> Experiment:
    """The experiment as it is told of a study: at the thesis's size on a page of its own."""
    is_full = study.size is THESIS
    return replace(experiment, page=FULL_PAGE, variant="full") if is_full else experiment
