"""``rexmq simulate``: one scenario, from its file to its tables (cli.md)."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment
from simulator.report import summary, write_deliveries, write_tables
from simulator.simulation import Trace


def simulate(
    file: Path,
    *,
    seed: int | None,
    out: Path | None,
    deliveries: Path | None,
    trace: Path | None,
    checked: bool,
    refuse: type[Exception] = scenario.ScenarioError,
) -> int:
    """Run a scenario and print what came of it; how many differences ``checked`` found.

    Raises ``refuse`` for a bad scenario, EventError, RuleErrors and OSError.
    """
    try:
        read = scenario.read(file, seed)
        return _simulate(read, out, deliveries, trace, checked)
    except scenario.ScenarioError as error:
        raise refuse(str(error)) from None


def _simulate(
    read: scenario.Scenario,
    out: Path | None,
    deliveries: Path | None,
    trace: Path | None,
    checked: bool,
) -> int:
    with ExitStack() as stack:
        lines = None if trace is None else stack.enter_context(trace.open("w", encoding="utf-8"))
        outcome = Experiment(read, Trace(lines)).run()
        if deliveries is not None:
            write_deliveries(outcome, stack.enter_context(deliveries.open("wb")))
    if out is not None:
        write_tables(outcome, out)
    print(summary(outcome))
    if not checked:
        return 0
    differences = check(outcome)
    for line in differences:
        print(f"rexmq: {line}", file=sys.stderr)
    print(f"check   {'as the oracle' if not differences else f'{len(differences)} differences'}")
    return len(differences)
