"""``rexmq simulate``: one scenario, or a sweep, from its file to its tables (docs/scenarios.md)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matcher.formats.inputs import verify_files
from matcher.formats.outputs import replaced, replaced_text
from simulator import scenario, sweep
from simulator.checkers import check, refusals
from simulator.experiment import Experiment
from simulator.figures import write_figures
from simulator.picture import DrawingError, draw, refuse_picture, sketch_of
from simulator.report import line, summary, write_deliveries, write_tables
from simulator.simulation import Replay, Trace


@dataclass(frozen=True, slots=True)
class Wanted:
    """The command's wishes: what to do with a scenario, and what to write.

    ``replay``: a saved trace that the run is to repeat, instead of writing one to ``trace``;
    ``picture``: where the network is drawn.
    """

    seed: int | None = None
    out: Path | None = None
    deliveries: Path | None = None
    trace: Path | None = None
    replay: Path | None = None
    picture: Path | None = None
    checked: bool = False


def simulate(file: Path, wanted: Wanted, refuse: type[Exception] = scenario.ScenarioError) -> int:
    """Run a scenario and print what came of it; how many differences were found.

    Raises ``refuse`` for a bad scenario, or for a picture that cannot be drawn; EventError,
    RuleErrors and OSError.
    """
    try:
        document = scenario.parse(file)
        if "sweep" in document:
            return _sweep(document, file, wanted)
        read = scenario.of(document, file, wanted.seed)
        _verify_files(read, wanted)
        return _simulate(read, wanted)
    except (scenario.ScenarioError, DrawingError) as error:
        raise refuse(str(error)) from None


def _verify_files(read: scenario.Scenario, wanted: Wanted) -> None:
    """EventError where a file that the scenario is made of would be written to."""
    inputs = [read.file, read.rules, *(source.events for source in read.sources), wanted.replay]
    outputs = [wanted.deliveries, wanted.trace, wanted.picture]
    verify_files(
        list(filter(None, dict.fromkeys(inputs))), [one for one in outputs if one is not None]
    )


def _sweep(document: Mapping[str, Any], file: Path, wanted: Wanted) -> int:
    if wanted != Wanted(seed=wanted.seed, out=wanted.out):
        reason = "a sweep gives one table, and takes --seed and --out alone"
        raise scenario.ScenarioError(f"{file}: {reason}")
    if wanted.seed is not None:
        document = {**document, "seed": wanted.seed}
    todo = sweep.runs(document, file)
    table = (wanted.out or Path()) / "runs.csv"
    sweep.write(todo, table)
    print(f"{len(todo)} runs: {table}")
    return 0


def _simulate(read: scenario.Scenario, wanted: Wanted) -> int:
    with ExitStack() as stack:
        # What cannot be written is said before the run, which may take hours.
        if wanted.out is not None:
            wanted.out.mkdir(parents=True, exist_ok=True)
        if wanted.picture is not None:
            refuse_picture(wanted.picture)
        output = wanted.deliveries and replaced(wanted.deliveries)
        deliveries = stack.enter_context(output) if output else None
        trace = _trace(wanted, stack)
        outcome = Experiment(read, trace, is_watched=wanted.checked).run()
        if deliveries is not None:
            write_deliveries(outcome, deliveries)
        differences = []
        if isinstance(trace, Replay) and trace.difference is not None:
            differences.append(f"{wanted.replay}: {trace.difference}")
    if wanted.out is not None:
        write_tables(outcome, wanted.out)
        if not write_figures(outcome, wanted.out):
            print("rexmq: no figures: they need matplotlib (rexmq[plots])", file=sys.stderr)
    if wanted.picture is not None:
        draw(sketch_of(outcome), read.graph, wanted.picture)
    print(summary(outcome))
    if wanted.checked:
        found = check(outcome.concluded())
        print(line("check", "as the oracle" if not found else f"{len(found)} differences"))
        differences += found
    else:
        for refusal in refusals(outcome.experiment):
            print(f"rexmq: {refusal}", file=sys.stderr)
    if wanted.replay is not None and len(differences) == 0:
        print(line("replay", "the same"))
    for difference in differences:
        print(f"rexmq: {difference}", file=sys.stderr)
    return len(differences)


def _trace(wanted: Wanted, stack: ExitStack) -> Trace:
    if wanted.replay is not None:
        # What is no text differs from what is carried, as any other line.
        saved = wanted.replay.open(encoding="utf-8", errors="surrogateescape")
        return Replay(stack.enter_context(saved))
    if wanted.trace is not None:
        return Trace(stack.enter_context(replaced_text(wanted.trace)))
    return Trace()
