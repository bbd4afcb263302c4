"""A bar that shows how far a long detection is, for people who wait before a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

PATIENCE_S = 1.0
"""A detection that takes no longer shows no bar."""


@contextmanager
def bar(total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """A function that is told the number of events done since its last call.

    The bar is on standard error; with ``wanted`` None it is shown in terminals and notebooks alone.
    """
    if wanted is False:  # rich takes a while to import
        yield lambda events: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, force_terminal=wanted)
    is_shown = wanted if wanted is not None else console.is_terminal or console.is_jupyter
    if not is_shown:
        yield lambda events: None
        return
    begun = perf_counter()
    progress = Progress(console=console, transient=True)
    task = progress.add_task("events", total=total)

    def tell(events: int) -> None:
        progress.update(task, advance=events)
        if not progress.live.is_started and perf_counter() - begun > PATIENCE_S:
            progress.start()

    try:
        yield tell
    finally:
        if progress.live.is_started:
            progress.stop()
