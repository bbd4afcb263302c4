"""Errors of the language (tesla.md section 5).

A text is refused whole: :class:`RuleErrors` holds every :class:`Problem` found in it, each with
its place, the offending text underlined, what was expected, and a hint where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text: ``start`` to ``end`` (exclusive); ``line``, ``column`` from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a text; ``span`` is None when it concerns the rules as a whole."""

    message: str
    span: Span | None = None
    hint: str | None = None


class RuleErrors(ValueError):
    """A text, or a set of rules, that is refused, with every problem found.

    ``str`` gives, for each problem, ``file:line:column: message``, the line with a caret under
    the offending text, and the hint.
    """

    def __init__(self, problems: Sequence[Problem], text: str = "", file: str = "<rules>") -> None:
        self.problems = tuple(problems)
        self.text = text
        self.file = file
        super().__init__("\n".join(self._describe(problem) for problem in self.problems))

    def _describe(self, problem: Problem) -> str:
        hint = f"\n  hint: {problem.hint}" if problem.hint else ""
        if problem.span is None:
            return f"{self.file}: {problem.message}{hint}"
        span = problem.span
        lines = self.text.splitlines() or [""]
        line = lines[span.line - 1] if span.line <= len(lines) else ""
        width = max(1, min(span.end - span.start, len(line) - span.column + 1))
        # Tabs before the caret stay tabs, so that it stands under its text in any terminal.
        margin = "".join("\t" if char == "\t" else " " for char in line[: span.column - 1])
        return (
            f"{self.file}:{span.line}:{span.column}: {problem.message}\n"
            f"  {line}\n  {margin}{'^' * width}{hint}"
        )
