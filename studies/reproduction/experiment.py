"""What an experiment of a paper is, and what running it again gives.

Law: an experiment measures and judges; it neither prints nor writes. Its table is what was
measured, its charts draw figures of the table and nothing else, and each claim stands as the
paper makes it, beside the figures of the table that speak for or against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from studies.reproduction.verdicts import Asked, Verdict, decided_by, judge

Figure: TypeAlias = float | int | str | None
"""A cell of a table; None where nothing was measured."""


SEED = "seed"
"""The second column of what was measured seed by seed."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures under their columns' names, units in brackets: ``OCM [ms]``.

    ``runs``: the same figures seed by seed, where they were kept: a table with the same first
    column, then SEED, then those columns that differ by the seed.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Figure, ...], ...]
    runs: Table | None = None

    def column(self, name: str) -> list[Figure]:
        """A column from top to bottom; ValueError for a name that is none."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def by_seed(self, name: str) -> list[tuple[float, ...]]:
        """A column's figures seed by seed, for each row; empty where they were not kept."""
        if self.runs is None or name not in self.runs.columns:
            return [()] * len(self.rows)
        kept: dict[Figure, list[float]] = {}
        places, figures = self.runs.column(self.runs.columns[0]), self.runs.column(name)
        for place, figure in zip(places, figures, strict=True):
            if figure is not None:
                kept.setdefault(place, []).append(float(figure))
        return [tuple(kept.get(place, ())) for place in self.column(self.columns[0])]


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns ``lines`` of what is drawn over its first: lines, or bars where that is text.

    ``intervals`` are columns too, one for each line: half the width of its figures' intervals.
    """

    lines: tuple[str, ...]
    y_label: str
    logarithmic: tuple[bool, bool] = (False, False)
    """Whether x and y are."""
    intervals: tuple[str, ...] = ()
    kinds: int = 0
    """Lines that belong together, of several cases one behind the other: a colour for each kind, a
    stroke for each case."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, in our words; what was measured; how it stands by that (verdicts).

    Where nothing here could measure it, ``measured`` says why. ``decided``: the ratio by which the
    verdict is as it is. ``otherwise``: the same, measured in the paper's own way where ours is
    another.
    """

    published: str
    measured: str
    verdict: Verdict
    otherwise: Claim | None = None
    decided: str = ""

    @classmethod
    def judged(cls, published: str, measured: str, asked: Sequence[Asked]) -> Claim:
        """A sentence by the ratios that it asks for."""
        return cls(published, measured, judge(asked), decided=decided_by(asked))

    @classmethod
    def unmeasured(cls, published: str, why: str) -> Claim:
        """A sentence that nothing here has measured."""
        return cls(published, why, Verdict.UNMEASURED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run gave.

    ``lines``: the columns that charts draw, where those of the table are not side by side.
    """

    table: Table
    charts: tuple[Chart, ...]
    claims: tuple[Claim, ...]
    lines: Table | None = None

    @property
    def drawn(self) -> Table:
        """What charts draw columns of."""
        return self.table if self.lines is None else self.lines


class Gathered(Protocol):
    """An experiment that is made of many runs, whose rows may be there or not (gathering)."""

    def settings(self, size: Any) -> Sequence[Mapping[str, Any]]:
        """The scenarios that it asks for at a size."""
        ...

    def outcome(self, study: Any) -> Outcome:
        """What the rows of a study that are there come to."""
        ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """One figure or table of a paper.

    ``name`` is that of the command line, ``thesis-4.7``; ``page`` the page that it is told on;
    ``setting`` says in a sentence or two what is run, and what is not as in the paper. ``run``
    takes whether to be quick: small and rough, to see that it works. ``gathered``: how it is made
    of many runs that are kept, where it is. ``variant``: which of several runs of it this is, where
    several are told, each on a page of its own. ``says`` and ``other_way``: what stands over its
    claims, and over what is judged otherwise. ``judge``: what is drawn and said of a table of it
    that was measured before. ``unmeasured``: what stands for its table until it is measured, where
    it has a section before; without rows. ``seeds``: of a run that is not quick.
    """

    name: str
    page: str
    title: str
    setting: str
    run: Callable[[bool], Outcome]
    gathered: Gathered | None = None
    variant: str = ""
    says: str = "the thesis says"
    other_way: str = ""
    judge: Callable[[Table], Outcome] | None = None
    unmeasured: Table | None = None
    seeds: str = "1"

    @property
    def stem(self) -> str:
        """The name of its files but for their endings."""
        return f"{self.name}-{self.variant}" if self.variant else self.name
