"""Many random cases, each against the oracle; what fails is made small and written down."""

from __future__ import annotations

import re
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from routing.network import strategy
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment
from simulator.fuzzing.case import Case
from simulator.fuzzing.making import random_case
from simulator.fuzzing.shrinking import shrink
from simulator.processes import Processes

AGAIN_S = 60.0
"""Seconds after which events lost below a link may still be sent again."""
AT_ONCE = 8
"""Cases that a process takes at a time."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that is not as the oracle says, in what respects."""

    case: Case
    differences: tuple[str, ...]


def failures(cases: Iterable[tuple[int, str]], processes: int) -> Iterator[Failure]:
    """Failing cases, by seed and strategy, in their order."""
    if processes == 1:
        found: Iterable[Failure | None] = map(_failure, cases)
        yield from filter(None, found)
        return
    with Processes(processes) as pool:
        yield from filter(None, pool.map(_failure, cases, chunksize=AT_ONCE))


def cases_of(seeds: Iterable[int], strategies: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Every seed with every strategy."""
    for seed in seeds:
        for name in strategies:
            yield seed, name


def strategies() -> tuple[str, ...]:
    """All that are registered."""
    return strategy.names()


def _failure(named: tuple[int, str]) -> Failure | None:
    case = random_case(*named)
    found = differences(case)
    return Failure(case, tuple(found)) if found else None


def smallest(failure: Failure) -> Failure:
    """A failure of the same kind, with all left out that it does without."""
    kinds = kinds_of(failure.differences)

    def fails(case: Case) -> bool:
        return not kinds.isdisjoint(kinds_of(differences(case)))

    case = shrink(failure.case, fails)
    return Failure(case, tuple(differences(case)))


def kinds_of(differences: Iterable[str]) -> set[str]:
    """The subjects of differences. How many came, and how many were expected, is said whatever is
    missing or surplus, so that counts only where nothing else is said.
    """
    kinds = {_kind(line) for line in differences}
    return {kind for kind in kinds if not kind.endswith(", expected 0")} or kinds


def _kind(difference: str) -> str:
    """The subject of a difference: its words but for names and numbers."""
    kind = re.sub(r"^(sink|broker) \w+:", r"\1:", difference)
    return re.sub(r"\d+", "0", kind.partition(" of ")[0])


def differences(case: Case) -> list[str]:
    """Differences between a case's run and what it should give, in words."""
    with tempfile.TemporaryDirectory() as folder:
        path = case.write(Path(folder))
        try:
            outcome = Experiment(scenario.read(path)).run()
            if not outcome.settled:
                return ["it did not settle"]
            outcome.experiment.simulation.run(outcome.ended_at + AGAIN_S)
            return check(outcome)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            return [f"{type(error).__name__}: {error} ({place})"]
