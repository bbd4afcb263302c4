"""``rexmq bench``: the project's own benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq bench files --quick --json figures.json"

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
"""The benchmarks of a source checkout: beside the packages, and not installed with them."""
_NOT_BENCHMARKS = {"report"}


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Which benchmarks; else all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, rough figures.")] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON too.")
    ] = None,
) -> None:
    """Run the project's own benchmarks and print one table."""
    import importlib

    from broker.cli.outcome import UsageError

    if not (FOLDER / "report.py").is_file():
        raise UsageError(f"bench needs a source checkout: there is no folder {FOLDER}")
    known = sorted({path.stem for path in FOLDER.glob("*.py")} - _NOT_BENCHMARKS)
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise UsageError(f"bench: there is no {unknown[0]!r}; there are {', '.join(known)}")
    if str(FOLDER.parent) not in sys.path:
        sys.path.insert(0, str(FOLDER.parent))
    report = importlib.import_module("benchmarks.report")
    rows = {}
    for name in names or known:
        print(f"rexmq: measuring {name}", file=sys.stderr)
        rows[name] = importlib.import_module(f"benchmarks.{name}").run(quick)
    print(report.table([row for measured in rows.values() for row in measured]))
    if json is not None:
        json.write_text(report.document(rows))
