"""A timeline of why a rule fired: what each clause looked at, in its window, and what it chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from matcher.model import MICROSECONDS, Event
from matcher.times import time_text
from rules.explaining.explanation import Branch, Considered, Explanation, Fate, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLAUSE_SHOWN = 60
"""Characters of a clause beside its row."""
_MARKS = {
    Fate.CHOSEN: ("o", "tab:green"),
    Fate.COUNTED: ("o", "tab:blue"),
    Fate.VIOLATES: ("X", "tab:red"),
}
_OTHERS = ("o", "lightgrey")


class Row(NamedTuple):
    """A row of the timeline: its label, its window, and its events, each with what became of it."""

    label: str
    window: tuple[int, int] | None
    events: tuple[tuple[Event, Fate], ...]


def rows_of(explanation: Explanation) -> list[Row]:
    """The terminator, then each clause, and each aggregate, that looked at events."""
    terminator = Row(explanation.clauses[0], None, ((explanation.event, Fate.CHOSEN),))
    return [terminator, *_rows(explanation.branch)]


def _rows(branch: Branch) -> Iterator[Row]:
    """The rows of a branch and of the first one below it that makes a match, or else the first."""
    for step in branch.steps:
        for label, considered in _considered(step):
            inside = (one for one in considered.candidates if one.fate is not Fate.OUTSIDE)
            events = tuple((one.event, one.fate) for one in inside)
            yield Row(label, (considered.start, considered.end), events)
    below = [one for one in branch.branches if any(one.matches())] or branch.branches
    if below:
        yield from _rows(below[0])


def _considered(step: Step) -> Iterator[tuple[str, Considered]]:
    if step.considered is not None:
        yield step.text, step.considered
    for term in (*step.values, *(term for check in step.checks for term in check.terms)):
        if term.considered is not None:
            yield term.text, term.considered


def draw(explanation: Explanation, axes: Axes | None = None) -> Axes:
    """Draw the timeline on ``axes``, or on those of a new figure; times are seconds before the
    event that is explained.
    """
    rows = rows_of(explanation)
    if axes is None:
        axes = _new_axes(len(rows))
    at = explanation.event.time
    for place, row in enumerate(rows):
        if row.window is not None:
            start, end = ((edge - at) / MICROSECONDS for edge in row.window)
            axes.barh(place, end - start, left=start, height=0.5, color="whitesmoke", zorder=1)
        for event, fate in row.events:
            mark, colour = _MARKS.get(fate, _OTHERS)
            when = (event.time - at) / MICROSECONDS
            axes.plot([when], [place], marker=mark, color=colour, linestyle="", zorder=2)
            if fate in _MARKS:
                axes.annotate(event.id, (when, place), (0, 6), textcoords="offset points")
    axes.axvline(0, color="black", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(rows)), [row.label[:CLAUSE_SHOWN] for row in rows])
    axes.invert_yaxis()
    fired = "fires" if explanation.fired else "does not fire"
    axes.set_title(f"{explanation.rule} {fired} at {time_text(at)}")
    axes.set_xlabel("seconds from there")
    return axes


def _new_axes(rows: int) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'rexmq[plots]'") from error
    _, axes = plt.subplots(figsize=(9, 1.2 + 0.5 * rows), layout="constrained")
    return axes
