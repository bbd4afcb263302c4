"""``rexmq reproduce``: experiments of the papers, run again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq reproduce thesis-4.7 --quick --out figures"

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
"""The experiments stand with the benchmarks of a source checkout."""


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which experiments; else all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, rough figures.")] = False,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")] = Path(
        "reproduction"
    ),
) -> None:
    """Run experiments of the papers again, by the names of their figures and tables.

    Writes, for each, its figures as CSV, a picture, and a section of a page that sets what the
    paper says beside what was measured. Prints the files written.
    """
    from broker.cli.outcome import UsageError

    if not (FOLDER / "reproduction").is_dir():
        raise UsageError(f"reproduce needs a source checkout: there is no {FOLDER}/reproduction")
    if str(FOLDER.parent) not in sys.path:
        sys.path.insert(0, str(FOLDER.parent))
    experiments = importlib.import_module("benchmarks.reproduction.registry").EXPERIMENTS
    writing = importlib.import_module("benchmarks.reproduction.writing")
    unknown = [name for name in names or () if name not in experiments]
    if unknown:
        raise UsageError(
            f"reproduce: there is no {unknown[0]!r}; there are {', '.join(experiments)}"
        )
    machine: str = writing.machine_of_now()
    written: list[str] = []
    for name in names or experiments:
        print(f"rexmq: running {name}", file=sys.stderr)
        files = writing.write(experiments[name], experiments[name].run(quick), out, machine)
        written.extend(str(file) for file in files)
    if not any(file.endswith(".png") for file in written):
        print("rexmq: no pictures: they need matplotlib (the extra 'plots')", file=sys.stderr)
    print("\n".join(dict.fromkeys(written)))
