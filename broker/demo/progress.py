"""The progress bar of the demo: where the year is, and how fast it goes by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from broker.demo.flights import NEW_YORK
from matcher.model import MICROSECONDS

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass(slots=True)
class ProgressBar:
    """Is told how far things are; shows it where it has a ``bar``."""

    bar: Progress | None = None
    _begun: float | None = None

    def watch(self, published: int, moment: int) -> None:
        """So many events are published; the slowest publisher is at ``moment`` (microseconds)."""
        if self.bar is None:
            return
        now = time.perf_counter()
        if self._begun is None:  # the broker's start before it is no publishing
            self._begun = now
        rate = published / (now - self._begun) if now > self._begun else 0.0
        day = datetime.fromtimestamp(moment / MICROSECONDS, NEW_YORK)
        (task,) = self.bar.task_ids
        self.bar.update(task, completed=published, day=f"{day:%d %b %Y}", rate=rate)


@contextmanager
def progress_bar(events: int, *, shown: bool) -> Iterator[ProgressBar]:
    """A bar for so many ``events``. ``shown``: standard output is a terminal.

    What is printed meanwhile appears above it, and it goes away at the end.
    """
    if not shown:
        yield ProgressBar()
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.fields[day]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rate]:>9,.0f} events/s"),
    )
    with Progress(*columns, transient=True) as bar:
        bar.add_task("", total=events, day="", rate=0.0)
        yield ProgressBar(bar)
