"""Errors of the language (tesla.md section 5).

A text is refused whole: :class:`RuleErrors` holds every :class:`Problem` found in it, each with
its place, the offending text underlined, what was expected, and a hint where there is one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LINE_WIDTH_MAX = 160
"""Characters of an offending line that are shown; of a longer one, those around the caret."""

SHOWN_MAX = 100
"""Problems of one text that are printed; all of them are in ``RuleErrors.problems``."""


class Span(NamedTuple):
    """A stretch of text: ``start`` to ``end`` (exclusive); ``line``, ``column`` from 1.

    A plain tuple, because every token and every node has one. Lines end with a line feed, and
    with nothing else.
    """

    start: int
    end: int
    line: int
    column: int

    def to(self, other: Span) -> Span:
        """From the start of this stretch to the end of another."""
        return _new(Span, (self.start, other.end, self.line, self.column))


_new = tuple.__new__
"""The constructor that a NamedTuple calls in the end, without the detour: there are many."""


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
        lines = text.split("\n")
        shown = [self._describe(problem, lines) for problem in self.problems[:SHOWN_MAX]]
        if len(self.problems) > SHOWN_MAX:
            shown.append(f"{file}: and {len(self.problems) - SHOWN_MAX} more problems")
        super().__init__("\n".join(shown))

    def _describe(self, problem: Problem, lines: Sequence[str]) -> str:
        hint = f"\n  hint: {problem.hint}" if problem.hint else ""
        if problem.span is None:
            return f"{self.file}: {problem.message}{hint}"
        line, column = problem.span.line, problem.span.column
        shown = _underlined(lines[line - 1] if line <= len(lines) else "", problem.span)
        return f"{self.file}:{line}:{column}: {problem.message}\n{shown}{hint}"

    def __reduce__(self) -> tuple[type[RuleErrors], tuple[tuple[Problem, ...], str, str]]:
        """Pickled by its parts: the message alone would not do to make it again."""
        return RuleErrors, (self.problems, self.text, self.file)


class FilesErrors(RuleErrors):
    """The errors of several files, one after the other; ``errors`` holds each file's."""

    def __init__(self, errors: Sequence[RuleErrors]) -> None:
        super().__init__([problem for error in errors for problem in error.problems])
        self.errors = tuple(errors)
        self.args = ("\n".join(map(str, errors)),)

    def __reduce__(self) -> tuple[type[FilesErrors], tuple[tuple[RuleErrors, ...]]]:  # type: ignore[override]
        """Pickled by its parts."""
        return FilesErrors, (self.errors,)


def _underlined(line: str, span: Span) -> str:
    """The offending line, or what of a long one is near the place, over a row of carets."""
    line, place = line.rstrip("\r"), span.column - 1
    width = max(1, min(span.end - span.start, len(line) - place))
    if len(line) > LINE_WIDTH_MAX:
        first = max(0, place - LINE_WIDTH_MAX // 4)
        line, place = line[first : first + LINE_WIDTH_MAX], place - first
        width = max(1, min(width, len(line) - place))
    # Tabs before the caret stay tabs, so that it stands under its text in any terminal; other
    # characters that do not print are shown as blanks.
    shown = "".join(char if char.isprintable() or char == "\t" else " " for char in line)
    margin = "".join("\t" if char == "\t" else " " for char in line[:place])
    return f"  {shown}\n  {margin}{'^' * width}"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the known word nearest to ``word``, if one is near."""
    words = sorted(set(known))
    exact = [other for other in words if other.lower() == word.lower() and other != word]
    near = exact or difflib.get_close_matches(word[:64], words, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else None
