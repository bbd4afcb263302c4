"""``rexmq bench``: the project's own benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "rexmq bench files --quick --json figures.json"

BENCHMARKS = (
    "machine",
    "files",
    "language",
    "detection",
    "growth",
    "hybrid",
    "deployment",
    "matching",
    "changes",
    "walks",
    "operators",
    "subscriptions",
    "ways",
    "choice",
    "brokers",
    "peers",
    "floods",
    "store",
    "fanout",
    "connect",
    "network",
    "simulator",
    "multicore_costs",
    "processing_costs",
    "gpu",
    "spark",
)
"""Modules of ``benchmarks`` with ``run(quick)``, in the order in which they are measured."""
OF_STUDIES = {
    "operators": "bench_operators",
    "multicore_costs": "bench_multicore",
    "gpu": "bench_gpu",
}
"""Modules of ``studies``, by the names of their benchmarks."""
CALIBRATE = "calibrate"
MACHINE = "machine"
"""Measured before each of the others: figures depend on it."""


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which benchmarks; else all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, rough figures.")] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON too.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option("--costs", metavar="FILE", help="Where calibrate writes what it measures."),
    ] = None,
) -> None:
    """Run the project's own benchmarks and print one table.

    Each figure is said on standard error and written as soon as it is measured. A measure that
    fails has a row that says so and the exit status 1; what else was measured is printed and
    written all the same, as it is when this is interrupted.

    `rexmq bench calibrate` is apart from them: it measures what the engine `auto` takes the
    parts of a detection to cost, and writes it where `auto` finds it (--costs, else REXMQ_COSTS,
    else rexmq/costs.toml in the user's configuration folder).
    """
    from broker.cli.outcome import UsageError

    if names == [CALIBRATE]:
        _calibrate(quick, costs)
        return
    if CALIBRATE in (names or ()) or costs is not None:
        raise UsageError(f"bench {CALIBRATE} runs by itself, and --costs belongs to it")
    unknown = sorted(set(names or ()) - set(BENCHMARKS))
    if unknown:
        raise UsageError(
            f"bench: there is no {unknown[0]!r}; there are {', '.join((*BENCHMARKS, CALIBRATE))}"
        )
    _measure(names or [*BENCHMARKS], quick, json)


def _measure(names: list[str], quick: bool, json: Path | None) -> None:
    """Print and write what could be measured; Exit with status 1 where something could not."""
    from broker.cli.outcome import REFUSED
    from matcher.formats.outputs import write_text

    report = _benchmark("report")
    rows: dict[str, list[Any]] = {}
    try:
        for name in names:
            print(f"rexmq: measuring {name}", file=sys.stderr)
            if name != MACHINE:
                rows[f"{MACHINE} before {name}"] = _benchmark(MACHINE).state(name, quick)
            rows[name] = []
            for row in report.attempted(name, lambda name=name: _benchmark(name).run(quick)):
                rows[name].append(row)
                print(report.line(row), file=sys.stderr, flush=True)
                if json is not None:
                    write_text(json, report.document(rows))
    finally:
        measured = [row for of in rows.values() for row in of]
        print(report.table(measured))
    if any(row.value is None for row in measured):
        raise typer.Exit(REFUSED)


def _benchmark(name: str) -> Any:
    """The module of that benchmark."""
    from broker.cli import checkout

    of_studies = OF_STUDIES.get(name)
    return checkout.module(f"studies.{of_studies}" if of_studies else f"benchmarks.{name}", "bench")


def _calibrate(quick: bool, file: Path | None) -> None:
    """Measure the unit costs, tell how well ``auto`` would choose by them, and write them."""
    import os
    import platform
    from dataclasses import asdict

    from broker import calibration, costs as files
    from broker.cli.table import table
    from broker.warmup import warm_up
    from rules.engine import Costs

    warm_up("aip")
    events, repeats = (2_000, 1) if quick else (30_000, 3)
    measured = []
    for place, trial in enumerate(calibration.TRIALS, 1):
        print(f"rexmq: trial {place} of {len(calibration.TRIALS)}", file=sys.stderr)
        measured.append(calibration.measure(trial, events, repeats))
    found, shipped = calibration.fitted(measured), Costs()
    rows = [
        {"cost": name, "nanoseconds": round(figure, 1), "shipped": getattr(shipped, name)}
        for name, figure in asdict(found).items()
    ]
    print(table(rows, ("cost", "nanoseconds", "shipped")))
    for name, costs in (("these", found), ("the shipped ones", shipped)):
        losses = [calibration.loss(one, costs) for one in measured]
        print(
            f"by {name}, the way chosen took {max(losses):.2f} times the better one's time at most"
        )
    file = file or files.place(os.environ)
    origin = f"By rexmq bench calibrate, on {platform.machine()} with Python"
    files.write(file, found, f"{origin} {platform.python_version()}.")
    print(f"written to {file}")
