"""Many runs of one scenario file that differ in some of its keys: the table ``[sweep]``.

Each key of the table is one of the file, with dots (``"workload.rules" = [50, 100]``), and has a
list of values; every combination is run once, spread over the cores. What comes of it is one tidy
table: a row a run, with the hash of its scenario, its settings, and its figures.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator import scenario
from simulator.measures import Figure, measured
from simulator.processes import Processes
from simulator.scenario import ScenarioError

RUNS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Run:
    """One combination: the document without its sweep, and what was set in it."""

    file: Path
    document: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """16 hexadecimal digits of the document, of the files that it names, and of its seed."""
        digest = hashlib.sha256(json.dumps(self.document, sort_keys=True).encode())
        for name in _files(self.document):
            digest.update((self.file.parent / name).read_bytes())
        return digest.hexdigest()[:16]


def _files(document: Mapping[str, Any]) -> Iterator[str]:
    if "rules" in document:
        yield document["rules"]
    for source in document.get("source", ()):
        yield source["events"]
    for change in document.get("change", ()):
        if "rules" in change:
            yield change["rules"]
    if "file" in document.get("topology", {}):
        yield document["topology"]["file"]
    if document.get("protocol", {}).get("processing", "measured") != "measured":
        yield document["protocol"]["processing"]


def runs(document: Mapping[str, Any], file: Path) -> list[Run]:
    """The runs of a document with a sweep, each checked. Raises ScenarioError."""
    sweep = _flat(document["sweep"])
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            raise ScenarioError(f"{file}: sweep.{key}: expected a list of values")
    count = 1
    for values in sweep.values():
        count *= len(values)
    if count > RUNS_MAX:
        raise ScenarioError(f"{file}: sweep: {count} runs, and at most {RUNS_MAX}")
    plain = {key: value for key, value in document.items() if key != "sweep"}
    found = []
    for values in itertools.product(*sweep.values()):
        settings = dict(zip(sweep, values, strict=True))
        run = Run(file, _with(plain, settings, file), settings)
        scenario.of(run.document, file)
        found.append(run)
    return found


def _flat(table: Any, prefix: str = "") -> dict[str, Any]:
    """``{"workload": {"rules": [1]}}`` is the same as ``{"workload.rules": [1]}``."""
    found: dict[str, Any] = {}
    for key, value in table.items() if isinstance(table, dict) else ():
        if isinstance(value, dict):
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


def _with(
    document: Mapping[str, Any], settings: Mapping[str, Any], file: Path
) -> Mapping[str, Any]:
    changed = copy.deepcopy(dict(document))
    for key, value in settings.items():
        *tables, name = key.split(".")
        place = changed
        for number, table in enumerate(tables, 1):
            place = place.setdefault(table, {})
            if not isinstance(place, dict):
                named = ".".join(tables[:number])
                raise ScenarioError(f"{file}: sweep.{key}: expected a table, but {named} is none")
        place[name] = value
    return changed


def rows(
    todo: Sequence[Run], processes: int | None = None, prepare: Callable[[], None] | None = None
) -> Iterator[Mapping[str, Figure]]:
    """The rows of the runs, in their order, as they are done; each process prepares first."""
    count = min(processes or os.cpu_count() or 1, len(todo))
    if count <= 1:
        if prepare is not None:
            prepare()
        yield from map(row, todo)
        return
    with Processes(count, prepare) as pool:
        yield from pool.map(row, todo)


def row(run: Run) -> Mapping[str, Figure]:
    """Run it."""
    read = scenario.of(run.document, run.file)
    settings = {key: _cell(value) for key, value in run.settings.items()}
    return {"scenario": run.hash, "seed": read.seed, **settings, **measured(read)}


def _cell(value: Any) -> Figure:
    return value if isinstance(value, int | float | str) else json.dumps(value)


def write(todo: Sequence[Run], file: Path, processes: int | None = None) -> None:
    """Run them all, and write the table row by row as it grows; what is there stays until the first
    row has come.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    writer: csv.DictWriter[str] | None = None
    with ExitStack() as opened:
        for one in rows(todo, processes):
            if writer is None:
                output = opened.enter_context(file.open("w", newline="", encoding="utf-8"))
                writer = csv.DictWriter(output, list(one), lineterminator="\n")
                writer.writeheader()
            writer.writerow({name: _plain(figure) for name, figure in one.items()})
            output.flush()


def _plain(figure: Figure) -> str:
    return "" if figure is None else f"{figure:.6g}" if isinstance(figure, float) else str(figure)
