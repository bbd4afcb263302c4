"""Many runs whose rows are kept in a file: begun today, interrupted, and gone on with tomorrow.

Law 1: a row is written as its run ends, whole or not at all, and never changed. What is in the file
is what was run, whoever ran it and when.

Law 2: a row counts for as long as the code sends what it sent. What that is, is asked of the code
itself: ``traffic`` is the digest of all that brokers send one another in a small run with all that
the study's workloads are made of, under the same strategy and ordering. Code that is faster or
better told keeps its rows; code that says something else in it loses those of the strategies that
do.

Law 3: the order of the runs is that of seeds, so that what is there at any time is every point with
fewer seeds rather than fewer points.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

from routing.network.strategy import chosen_by, make
from simulator import scenario, sweep
from simulator.experiment import Experiment
from simulator.processes import Processes
from studies.rows import add, text_of

Row = Mapping[str, Any]
SMALL: Mapping[str, Any] = {
    "seed": 1,
    "engine": "naive",
    "topology": {"kind": "waxman", "brokers": 5, "degree": 3.0, "delay_ms": 5.0},
    "workload": {
        "types": 9,
        "rules": 6,
        "rates": [0.2, 4.0],
        "horizon_s": 20.0,
        "window_s": 5.0,
        "values": 2,
        "keys": 2,
        "selection": {"last": 0.6, "first": 0.2, "each": 0.2},
        "parameters": 0.4,
        "negations": 0.4,
        "aggregates": 0.4,
        "subscriptions": 3,
    },
}
"""The run that says what the code sends (Law 2)."""
CHOSEN: Mapping[str, Any] = {
    **SMALL,
    "seed": 6,
    "workload": {
        **SMALL["workload"],
        "rates": [0.05, 8.0],
        "horizon_s": 40.0,
        "selection": {"last": 0.2, "first": 0.0, "each": 0.8},
        "subscriptions": 1,
        "values": 1,
        "keys": 1,
        "parameters": 0.0,
        "negations": 0.0,
        "aggregates": 0.0,
    },
}
"""A second one, of what chooses among strategies: so long, and with so many composite events, that
it does."""
CPU_US = 40.0
"""A guess at what a published event costs at each broker, while there is no row to go by."""


@lru_cache
def traffic(strategy: str, ordering: str = "watermark") -> str:
    """What the code sends with a strategy, as 16 hexadecimal digits for each run (Law 2)."""
    chooses = any(chosen_by(type(make(strategy))))
    runs = (SMALL, CHOSEN) if chooses else (SMALL,)
    return "".join(_digest({**run, "strategy": strategy, "ordering": ordering}) for run in runs)


def _digest(document: Mapping[str, Any]) -> str:
    read = scenario.of(document, Path("traffic.toml"))
    return Experiment(read).run().digest[:16]


def traffic_of(run: sweep.Run) -> str:
    """What the code sends with the strategy of a run."""
    return traffic(run.document["strategy"], run.document.get("ordering", "watermark"))


@dataclass(slots=True)
class Rows:
    """Rows of finished runs, by their scenarios' hashes; ``file`` None: they are kept nowhere.

    ``of_any_code``: rows count whatever the code sent that they were run with, the last of each
    scenario. What was measured once can be judged again so, and nothing else.
    """

    file: Path | None = None
    of_any_code: bool = False
    _found: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file is not None and self.file.is_file():
            for row in _read(self.file):
                code = "" if self.of_any_code else row["traffic"]
                self._found[f"{row['scenario']}/{code}"] = row

    def __len__(self) -> int:
        return len(self._found)

    def find(self, run: sweep.Run) -> Row | None:
        """The row of a run, if it has been run with code that sends the same."""
        return self._found.get(self._key(run))

    def add(self, run: sweep.Run, row: Row) -> Row:
        """Keep the row of a run."""
        document = run.document
        told = {
            "scenario": run.hash,
            "traffic": self._traffic(run),
            "strategy": document["strategy"],
            "ordering": document.get("ordering", "watermark"),
            "seed": document["seed"],
            "brokers": document["topology"]["brokers"],
            **row,
            "settings": document,
        }
        self._found[self._key(run)] = told
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            add(self.file, told)
        return told

    def __iter__(self) -> Iterator[Row]:
        yield from self._found.values()

    def _key(self, run: sweep.Run) -> str:
        return f"{run.hash}/{self._traffic(run)}"

    def _traffic(self, run: sweep.Run) -> str:
        """Rows that are kept nowhere are of this code."""
        return "" if self.file is None or self.of_any_code else traffic_of(run)


def _read(file: Path) -> Iterator[Row]:
    """The rows of a file; a last line that was being written when all ended is taken away."""
    text = text_of(file)
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    yield from map(json.loads, whole.splitlines())


def missing(todo: Iterable[sweep.Run], rows: Rows) -> list[sweep.Run]:
    """The runs without a row, each once, in the order in which they are to be run (Law 3)."""
    found = {run.hash: run for run in todo if rows.find(run) is None}
    return sorted(found.values(), key=lambda run: run.document["seed"])


def estimate_s(todo: Sequence[sweep.Run], rows: Rows) -> float:
    """The seconds of one core that runs will take, by what others of their strategies took.

    What a run takes is taken to grow with its published events times its brokers.
    """
    taken: dict[str, list[float]] = {}
    for row in rows:
        if row["published"]:
            share = row["cpu_s"] / (row["published"] * row["brokers"])
            taken.setdefault(row["strategy"], []).append(share)
    guess = mean(map(mean, taken.values())) if taken else CPU_US / 1e6
    return sum(
        (mean(taken[name]) if (name := run.document["strategy"]) in taken else guess)
        * _events(run.document)
        * run.document["topology"]["brokers"]
        for run in todo
    )


def _events(document: Mapping[str, Any]) -> float:
    """How many events sources will publish, about: rates between the bounds are exponential."""
    workload = document["workload"]
    least, greatest = workload["rates"]
    begin, end = workload.get("part") or (0.0, math.inf)
    seconds = workload.get("horizon_s") or min(end - begin, workload["rarest_count"] / least)
    rate = (greatest - least) / math.log(greatest / least) if least < greatest else least
    return float(workload["types"] * rate * seconds)


def gather(
    todo: Sequence[sweep.Run],
    rows: Rows,
    processes: int | None = None,
    prepare: Callable[[], None] | None = None,
) -> Iterator[Row]:
    """Run what is to be run, spread over the cores, and keep each row as its run ends (Law 1)."""
    count = min(processes or os.cpu_count() or 1, len(todo))
    if count <= 1:
        if prepare is not None:
            prepare()
        for run in todo:
            yield rows.add(run, sweep.row(run))
        return
    with Processes(count, prepare) as pool:
        under_way = {pool.submit(sweep.row, run): run for run in todo}
        try:
            for done in as_completed(under_way):
                yield rows.add(under_way[done], done.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
