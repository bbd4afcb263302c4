"""Where the figures of a table come from: commit, day, processor, seeds, duration, load.

Law: a table that is written says all of these, and says of one that it is unknown. A table whose
measured code has changed since its commit is marked as stale; so is one of kept rows if any of
them is of code that sent something else.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from matcher.formats.outputs import write_text
from studies.reproduction.gathering import Row, traffic

ROOT = Path(__file__).parents[2]
FILE = "provenance.json"
UNKNOWN = "unknown"
ENGINES = ("matcher", "runtime", "rules")
MEASURED: Mapping[str, tuple[str, ...]] = {
    "engine": ENGINES,
    "growth": ENGINES,
    "gpu": (*ENGINES, "studies/cdp_on_cuda", "studies/operators"),
    "hybrid-figures": ("rules/engine/chains", "studies/multicore"),
    "matching": ("matcher", "runtime"),
}
"""The code that pages of timed figures measure, by the page."""
STALE = "**Stale**: the code that is measured here has changed since."
OLD_ROWS = "**Stale**: what brokers send has changed since these rows were run."


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is known of how a table was made. ``seeds`` and the others are told as they stand."""

    commit: str = UNKNOWN
    """That of the code; of older tables, the one that brought the table."""
    day: str = UNKNOWN
    processor: str = UNKNOWN
    load: str = UNKNOWN
    python: str = UNKNOWN
    seeds: str = UNKNOWN
    duration: str = UNKNOWN
    is_stale: bool = False
    digests: tuple[str, ...] = ()
    """Of kept rows: what the code sent that they were run with, ``STRATEGY ORDERING DIGEST``."""

    def __str__(self) -> str:
        told = (
            f"commit {self.commit}, {self.day}; processor: {self.processor}; load: {self.load}; "
            f"Python: {self.python}; seeds: {self.seeds}; duration: {self.duration}."
        )
        if not self.is_stale:
            return told
        return f"{told} {OLD_ROWS if self.digests else STALE}"


def now(seeds: str, seconds: float, quick: bool = False) -> Provenance:
    """That of a table which has just been measured; ``quick``: at its small size."""
    return Provenance(
        commit_of_now(),
        datetime.now(UTC).strftime("%-d %B %Y"),
        processor(),
        f"{os.getloadavg()[0]:.1f}",
        platform.python_version(),
        "1" if quick else seeds,
        f"{seconds / 60:.2g} min" + (", made with --quick: at a small size" if quick else ""),
    )


def processor() -> str:
    """The processor of this machine, with its cores."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        model = next(
            (one.split(": ", 1)[1] for one in lines if one.startswith("model name")), model
        )
    return f"{os.cpu_count()} cores, {model}"


def commit_of_now() -> str:
    """The commit of the checkout, and that it has changes, if so."""
    head = _git("rev-parse", "--short=8", "HEAD")
    if head is None:
        return UNKNOWN
    return f"{head} with changes" if _git("diff", "--quiet", "HEAD") is None else head


def has_changed(page: str, commit: str) -> bool | None:
    """Whether code that a page measures has changed since a commit; None if git cannot tell."""
    paths = MEASURED.get(page)
    known = commit.split(" ", 1)[0]
    if paths is None or _git("cat-file", "-e", f"{known}^{{commit}}") is None:
        return None
    return _git("diff", "--quiet", known, "HEAD", "--", *paths) is None


def _git(*arguments: str) -> str | None:
    """What git prints; None if it fails, or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def of_rows(kept: Provenance, rows: Iterable[Row]) -> Provenance:
    """The same with what kept rows say: their seeds, what they took, and whether they are stale."""
    there = list(rows)
    if not there:
        return kept
    seeds = sorted({row["seed"] for row in there})
    digests = sorted({f"{row['strategy']} {row['ordering']} {row['traffic']}" for row in there})
    return replace(
        kept,
        seeds=_range(seeds),
        duration=f"{sum(row['cpu_s'] for row in there) / 3600:.2g} h of one core",
        digests=tuple(digests),
        is_stale=not all(map(is_current, digests)),
    )


def is_current(digest: str) -> bool:
    """Whether the code still sends what it sent when rows of a digest were run."""
    strategy, ordering, told = digest.split()
    return traffic(strategy, ordering) == told


def _range(seeds: list[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def read(folder: Path) -> dict[str, Provenance]:
    """Those of the tables of a folder, by their stems."""
    file = folder / FILE
    if not file.is_file():
        return {}
    told = json.loads(file.read_text(encoding="utf-8"))
    return {
        stem: Provenance(**{**one, "digests": tuple(one.get("digests", ()))})
        for stem, one in told.items()
    }


def keep(folder: Path, stem: str, one: Provenance) -> None:
    """Keep that of a table."""
    every = read(folder) | {stem: one}
    told = {name: _told(every[name]) for name in sorted(every)}
    write_text(folder / FILE, json.dumps(told, indent=1) + "\n")


def _told(one: Provenance) -> dict[str, object]:
    return {name: value for name, value in asdict(one).items() if value not in ((), False)}
