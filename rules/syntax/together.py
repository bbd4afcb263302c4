"""Several rules files as one: their statements in the order in which the files are named.

Each file must be whole by itself; then all are read as one text, so that whatever is done with one
file's tree is done with that of several. Messages name the file that a place lies in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rules.errors import FilesErrors, Problem, RuleErrors, Span
from rules.syntax import ast
from rules.syntax.parser import Reading, read


def read_together(files: Sequence[tuple[str, str]]) -> Reading:
    """The tree of files, given by their names and texts.

    Raises RuleErrors with every error of syntax in them.
    """
    readings = [read(text, file=name) for name, text in files]
    refuse([refusal(one.file, one.problems) for one in readings if one.problems])
    if len(readings) == 1:
        return readings[0]
    parts = tuple(_parts(files))
    whole = read("".join(part.text for part in parts), file=", ".join(name for name, _ in files))
    return replace(whole, file=replace(whole.file, parts=parts))


def refuse(errors: Sequence[RuleErrors]) -> None:
    """Raise the errors of files, if there are any."""
    if errors:
        raise errors[0] if len(errors) == 1 else FilesErrors(errors)


def refusal(file: ast.File, problems: Iterable[Problem]) -> RuleErrors:
    """The error for a file, or for the files that it was read from, with problems in order of
    place.
    """
    ordered = sorted(problems, key=lambda problem: problem.span or ast.NOWHERE)
    found = [
        RuleErrors([_moved(one, part) for one in some], part.text, part.name)
        for part in file.parts
        if (some := [one for one in ordered if one.span is not None and part.holds(one.span)])
    ]
    general = [one for one in ordered if not file.parts or one.span is None]
    if general:
        found.insert(0, RuleErrors(general, file.text, file.name))
    return found[0] if len(found) == 1 else FilesErrors(found)


def _moved(problem: Problem, part: ast.Part) -> Problem:
    """The problem with its place in its own file."""
    span = problem.span
    assert span is not None, "a problem of a part has a place"
    start, end = span.start - part.start, span.end - part.start
    return replace(problem, span=Span(start, end, span.line - part.lines_before, span.column))


def _parts(files: Sequence[tuple[str, str]]) -> Iterator[ast.Part]:
    start = lines = 0
    for name, text in files:
        own = text if text.endswith("\n") else text + "\n"
        yield ast.Part(name, own, start, lines)
        start, lines = start + len(own), lines + own.count("\n")
