"""``rexmq reproduce``: experiments of the papers, run again."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "rexmq reproduce thesis-4.7 --quick --out figures"


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which experiments; else all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, rough figures.")] = False,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")] = Path(
        "reproduction"
    ),
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="NAME",
            help="Of the simulation study: quick, whole, full. Keeps rows.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", metavar="FILE", help="Where runs are kept; else DIR/study.jsonl."),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option("--runs", metavar="N", help="With --size: run so many at most; 0: none."),
    ] = None,
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy", metavar="NAME", help="With --size: run only these; repeat for several."
        ),
    ] = None,
) -> None:
    """Run experiments of the papers again.

    They go by the names of figures and tables; hybrid-6 stands for all its parts. Writes, for
    each, its figures as CSV, a picture, and a section of a page that sets what the paper says
    beside what was measured. Prints the files written.

    With --size the runs of the simulation study (thesis-7.9 to 7.18, adaptive) are kept, each as it
    ends, and what is there already is not run again. What is written is made of the runs that are
    there, and says how many.
    """
    from broker.cli.outcome import UsageError

    experiments = _study("registry").EXPERIMENTS
    names = names and [part for name in names for part in _parts(name, experiments)]
    written: list[str] = []
    if size is not None:
        chosen = [experiments[name] for name in names or experiments]
        if names is None:
            chosen = [one for one in chosen if one.gathered is not None]
        _check_gathered(chosen, size, strategies or ())
        kept = rows or out / "study.jsonl"
        written += _gather(chosen, size, kept, runs, strategies or (), out)
    elif any(one is not None for one in (rows, runs, strategies)):
        raise UsageError("reproduce: --rows, --runs and --strategy go with --size")
    for name in (names or experiments) if size is None else ():
        print(f"rexmq: running {name}", file=sys.stderr)
        written += _measure(experiments[name], quick, out)
    if not any(file.endswith(".svg") for file in written):
        print("rexmq: no pictures: they need matplotlib (the extra 'studies')", file=sys.stderr)
    print("\n".join(dict.fromkeys(written)))


def _measure(experiment: Any, quick: bool, out: Path) -> list[str]:
    """Run an experiment, and write it with how it was made."""
    begun = time.monotonic()
    outcome = experiment.run(quick)
    made = _study("provenance").now(experiment.seeds, time.monotonic() - begun, quick)
    return [str(file) for file in _study("writing").write(experiment, outcome, out, made)]


def _study(name: str) -> Any:
    """The module of that name of ``studies.reproduction``."""
    from broker.cli import checkout

    return checkout.module(f"studies.reproduction.{name}", "reproduce")


def _parts(name: str, experiments: Mapping[str, Any]) -> list[str]:
    """The experiment of a name, or those of a figure's parts: the name and a letter."""
    from broker.cli.outcome import UsageError

    if name in experiments:
        return [name]
    found = [one for one in experiments if one[:-1] == name and one[-1].isalpha()]
    if not found:
        there = ", ".join(experiments)
        raise UsageError(f"reproduce: there is no {name!r}; there are {there}")
    return found


def _check_gathered(experiments: Sequence[Any], size: str, strategies: Sequence[str]) -> None:
    from broker.cli.outcome import UsageError
    from routing.network import strategy

    study = _study("study")
    if size not in study.SIZES:
        raise UsageError(
            f"reproduce: --size: expected one of {', '.join(study.SIZES)}, not {size!r}"
        )
    unknown = [name for name in strategies if name not in strategy.names()]
    if unknown:
        there = ", ".join(strategy.names())
        raise UsageError(f"reproduce: --strategy: there is no {unknown[0]!r}; there are {there}")
    for one in experiments:
        if one.gathered is None:
            raise UsageError(f"reproduce: the runs of {one.name} are not kept: it has no --size")


def _gather(
    experiments: Sequence[Any],
    size: str,
    rows: Path,
    runs: int | None,
    strategies: Sequence[str],
    out: Path,
) -> list[str]:
    """Run what is missing, until it is interrupted; write what is there."""
    module = _study("study")
    study = module.study_of(size, rows)
    try:
        module.run_missing(study, experiments, runs, _tell, strategies)
    except KeyboardInterrupt:
        print(f"rexmq: interrupted; {rows} keeps {len(study.rows)} runs", file=sys.stderr)
    return [str(file) for file in module.write(study, experiments, out)]


def _tell(text: str) -> None:
    print(f"rexmq: {text}", file=sys.stderr)
