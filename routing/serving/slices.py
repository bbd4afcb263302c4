"""Work that takes long for each rule, a slice at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Protocol

from routing.serving.moment import Moment
from runtime.collector import collector_paused

RULES = 16
"""Rules of a slice: one takes about a millisecond to be loaded, and half of one to be installed."""
SLICED_FROM = 100
"""Rules: so many or more take some milliseconds to be looked through."""


def rest_of_slice(rules: int) -> Iterator[None]:
    """Yield as often as ends a slice, where what comes next looks through so many rules."""
    return repeat(None, RULES if rules >= SLICED_FROM else 0)


class Timed(Protocol):
    """A part of a broker that does something at a time of its own."""

    @property
    def due_at(self) -> float | None:
        """The time; None where there is nothing to do."""
        ...

    def handle_timer(self) -> None:
        """Do what is due."""
        ...


class Slices:
    """Does the next slice when it is time to; ``settle`` does what follows for others."""

    def __init__(self, moment: Moment, settle: Callable[[], None]) -> None:
        self._moment = moment
        self._settle = settle
        self._prepared: Iterator[None] = iter(())
        self._then: Callable[[], None] | None = None
        """Work that waits for what is prepared."""
        self.is_preparing = False
        """Whether something is prepared, and what neighbours say waits behind it. An
        attribute, for it is asked with each message.
        """
        self._is_unsettled = False
        """Whether something was done that others have yet to follow, which takes a slice, too."""
        self._ahead: deque[tuple[Iterator[None], Callable[[], None]]] = deque()
        """Work that is read ahead, and what follows when it has been."""

    def prepare(self, work: Iterator[None], then: Callable[[], None]) -> None:
        """Prepare by work that yields behind each rule; ``then`` is called when it is done, before
        this returns if that takes one slice.

        Preparing changes nothing that anybody sees; the work is done at one moment, as a whole.
        Until then all that neighbours say waits behind it, in its order; clients are served.
        """
        self.finish()
        self._prepared, self._then, self.is_preparing = work, then, True
        self._go_on()

    def finish(self) -> None:
        """Prepare the rest at once, and do what has waited for it."""
        while self.is_preparing:
            self._go_on()

    def read_ahead(self, work: Iterator[None], then: Callable[[], None]) -> None:
        """Read ahead, which holds up nobody, as ``prepare``, behind what is read ahead already."""
        self._ahead.append((work, then))
        if len(self._ahead) == 1:
            self._go_on_ahead()

    def _go_on(self) -> None:
        if _is_over(self._prepared) and self._then is not None:
            then, self._then, self.is_preparing = self._then, None, False
            then()

    def _go_on_ahead(self) -> None:
        work, then = self._ahead[0]
        if _is_over(work):
            self._ahead.popleft()
            then()

    @property
    def due_at(self) -> float | None:
        """Now, if there is a slice to be done."""
        is_due = self.is_preparing or self._is_unsettled or self._ahead
        return self._moment.now if is_due else None

    def handle_timer(self) -> None:
        """Do a slice of what is prepared, what follows then, or a slice of what is read ahead."""
        if self.is_preparing:
            self._go_on()
            self._is_unsettled = not self.is_preparing
        elif self._is_unsettled:
            self._is_unsettled = False
            self._settle()
        else:
            self._go_on_ahead()
            self._settle()


@collector_paused()
def _is_over(work: Iterator[None]) -> bool:
    """Whether a slice of it was the last."""
    return sum(1 for _ in islice(work, RULES)) < RULES
