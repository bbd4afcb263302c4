"""Measures that are taken in processes of their own, and what becomes of those that fail.

Law: however such a process ends, it is the end of its own figures alone. What it wrote to standard
error is shown where it has failed, and only there; one sentence of it stands for the figures.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import Row

_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one process by name; or none, and the sentence that says why."""

    figures: Mapping[str, float]
    failure: str = ""

    def row(
        self,
        name: str,
        figure: str,
        unit: str,
        baseline_name: str = "",
        baseline_value: float | None = None,
        note: str = "",
    ) -> Row:
        """The row of one figure, or of the failure in its place."""
        value = self.figures.get(figure)
        return Row(name, value, unit, baseline_name, baseline_value, note or self.failure)


def outcome_of(module: str, arguments: Sequence[str]) -> Outcome:
    """Run a module, the last line of whose output is its figures as JSON."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return Outcome(json.loads(lines[-1]))
    print(f"rexmq: {' '.join(arguments)} failed:\n{done.stderr}", file=sys.stderr)
    return Outcome({}, sentence_of(done.stderr, done.returncode))


def sentence_of(errors: str, status: int) -> str:
    """What a process that failed said last: the line that names its exception, if there is one."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    _, is_traced, trace = errors.rpartition(_TRACEBACK)
    said = [line for line in (trace if is_traced else errors).splitlines() if line.strip()]
    if not said:
        return f"ended with status {status} and said nothing"
    named = [line for line in said if not line.startswith(" ")]
    return (named[0] if is_traced and named else said[-1]).strip()
