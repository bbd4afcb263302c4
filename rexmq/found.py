"""The result of a detection: tables by type, and explanations of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from matcher.errors import EventError
from matcher.formats.tables import Table, Tables
from matcher.identity import RULE_SOURCE
from rexmq.timeline import draw
from rules.explaining.explainer import explained
from rules.explaining.explanation import Explanation
from rules.explaining.recording import Recording
from rules.explaining.telling import told

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the events that were read: all of them, the bad ones that were skipped, by reason,
    and the duplicates that were dropped.
    """

    events: int
    bad: Mapping[str, int]
    duplicates: int


@dataclass(frozen=True, slots=True, repr=False)
class Reason:
    """Why a rule fired at an event, or did not; printed, it is the text of ``rexmq explain``, and
    ``plot`` draws it.
    """

    explanation: Explanation

    def __str__(self) -> str:
        return told(self.explanation)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def plot(self, axes: Axes | None = None) -> Axes:
        """A timeline: a row for each clause, with its window, the events that it looked at in grey,
        those that it chose in green or counted in blue, and a cross for one that it forbids.

        It is drawn on ``axes`` of matplotlib (the extra ``plots``), which are returned, or on those
        of a new figure. Where ``each`` chose several events, one match is drawn.
        """
        return draw(self.explanation, axes)


class Found(Tables):
    """Composite events by type, as :func:`rexmq.detect` finds them.

    ``counts`` tells of the events that were read. ``recording`` makes the ground on which
    ``explain`` stands, when it is first asked for.
    """

    def __init__(
        self, tables: Iterable[Table], counts: Counts, recording: Callable[[], Recording]
    ) -> None:
        super().__init__(tables)
        self.counts = counts
        self._make_recording = recording

    @cached_property
    def _recording(self) -> Recording:
        return self._make_recording()

    def explain(self, name: str, row: int | None = None, *, event: str | None = None) -> Reason:
        """Why a rule fired, or did not: at a ``row`` (from 0) of the table ``name``, or, of the
        rule ``name``, at an ``event``, its id or ``source#id``.

        Raises EventError and RuleErrors for what does not exist.
        """
        if (row is None) == (event is None):
            raise EventError("explain: give the row of a table, or a rule and event=ID")
        if row is not None:
            composite = self[name].event(row)
            name, event = composite.source.removeprefix(RULE_SOURCE), composite.cause_full[0]
        assert event is not None
        return Reason(explained(self._recording, name, event))

    def to_arrow(self) -> Any:
        """The table of Arrow, if the rules define one type alone; EventError otherwise."""
        return self._only.to_arrow()

    def to_pandas(self) -> Any:
        """The DataFrame of pandas, if the rules define one type alone; EventError otherwise."""
        return self._only.to_pandas()

    def to_polars(self) -> Any:
        """The DataFrame of polars, if the rules define one type alone; EventError otherwise."""
        return self._only.to_polars()

    @property
    def _only(self) -> Table:
        if len(self) == 1:
            return next(iter(self.values()))
        example = next(iter(self), "Fire")
        names = ", ".join(self) or "none"
        raise EventError(f"which table? found[{example!r}], say; the rules define {names}")
