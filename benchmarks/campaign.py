"""Campaigns: long runs of real processes, at whose end stands what was lost, came twice or grew.

    python -m benchmarks.campaign NAME [OPTIONS]
    python -m benchmarks.campaign NAME --help

A campaign is a module of this folder with a generator ``campaign(folder, ...)``, of an outcome a
run. ``folder`` is an empty one for its files; all other parameters are options. A line is printed
for each outcome, and the exit status is 1 if one has faults. The files are kept unless every run
was as it should be.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path
from typing import NamedTuple

import typer

from benchmarks.processes import stop_children_on_sigterm

CAMPAIGNS = (
    "soak",
    "kill",
    "faults",
    "connected",
    "spark_kill",
    "spark_hour",
    "load",
    "overload",
    "steps",
)
"""Modules of this folder with ``campaign``."""


class Worker(threading.Thread):
    """A thread that works until it is told to end, or this process ends."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ending = threading.Event()

    def end(self) -> None:
        """Have it end, and wait for that."""
        self.ending.set()
        self.join()


class Outcome(NamedTuple):
    """A run's figures, and each thing that is not as it should be, in words; None: the run is
    measured, and not judged.
    """

    said: str
    faults: Sequence[str] | None = ()

    def __str__(self) -> str:
        verdict = [] if self.faults is None else ["; ".join(self.faults) or "as it should be"]
        return "; ".join([self.said, *verdict, f"load {os.getloadavg()[0]:.1f}"])


Campaign = Callable[..., Iterator[Outcome]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the campaign of that name; SystemExit with its exit status."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback(help=_help(sys.modules[__name__]))(lambda: None)
    for name in CAMPAIGNS:
        module = import_module(f"benchmarks.{name}")
        app.command(name, help=_help(module))(_command(name, module.campaign))
    app(arguments, prog_name="python -m benchmarks.campaign")


def _help(module: object) -> str:
    """A module's docstring, in which lines of usages and of tables stay apart, by \\b."""
    return (getdoc(module) or "").replace("\n\n", "\n\n\b\n")


def _command(name: str, campaign: Campaign) -> Callable[..., None]:
    """A command whose options are the campaign's parameters, but for the folder."""

    def command(**options: object) -> None:
        raise typer.Exit(judged(name, campaign, **options))

    own = signature(campaign, eval_str=True)
    _, *parameters = own.parameters.values()
    command.__signature__ = own.replace(parameters=parameters, return_annotation=None)
    return command


def judged(name: str, campaign: Campaign, **options: object) -> int:
    """Run a campaign, and print its outcomes; the exit status."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    print(f"{name}: files in {folder}", flush=True)
    is_good = True
    for outcome in campaign(folder, **options):
        print(outcome, flush=True)
        is_good = is_good and not outcome.faults
    if is_good:
        shutil.rmtree(folder)
    return int(not is_good)


def faults_of(counts: Mapping[str, int]) -> list[str]:
    """Those of these counts that are not 0, in words."""
    return [f"{count:,} {what}" for what, count in counts.items() if count]


def tell(number: int, what: str, waited_s: float) -> None:
    """Print a line for something that has befallen processes: when they went on after it."""
    print(f"{number:>4}  {what:<58}goes on after {waited_s:5.1f} s", flush=True)


if __name__ == "__main__":
    stop_children_on_sigterm()
    os.environ.pop("REXMQ_BROKER", None)
    main()
