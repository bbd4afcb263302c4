"""A matcher on a device, until that fails; then ``auto`` on the processor over its filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from matcher.filters.encoded import EncodedEvents
from matcher.kernels.results import look_up
from matcher.methods.choose import AutoMatcher
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import Int64s

FAILED = "the device failed: matching on the processor from now on"


def guarded(
    make: Callable[[], TableMatcher], tell: Callable[[str, str], None]
) -> GuardedMatcher | AutoMatcher:
    """The matcher that ``make`` makes, guarded; where that fails one on the processor."""
    try:
        return GuardedMatcher(make(), tell)
    except Exception as error:  # of whichever library it is
        tell(FAILED, _told(error))
        return AutoMatcher()


class GuardedMatcher(TableMatcher):
    """``inner``, and its table, until it raises anything; ``tell`` is called once with the why. The
    table of filters is the host's, so nothing of them is lost with the device; the call that failed
    is done anew.
    """

    tells_identifiers = True

    def __init__(self, inner: TableMatcher, tell: Callable[[str, str], None]) -> None:
        super().__init__(inner.table)
        self._inner = inner
        self._tell = tell
        self._failure = ""
        self._lock = Lock()

    def _insert(self, slots: Int64s) -> None:
        inner = self._inner
        try:
            inner._insert(slots)
        except Exception as error:
            self._without(inner, error)  # which has all that are in the table

    def _delete(self, slot: int) -> None:
        inner = self._inner
        try:
            inner._delete(slot)
        except Exception as error:
            self._without(inner, error)._delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        inner = self._inner
        try:
            done, size = inner._run(events, begin, found)
        except Exception as error:
            inner = self._without(inner, error)
            found.bits[begin:] = 0
            done, size = inner._run(events, begin, found)
        if not inner.tells_identifiers:
            look_up(found.slots[:size], self.table.identifiers.rows)
        return done, size

    def _without(self, failed: TableMatcher, error: Exception) -> TableMatcher:
        """The matcher on the processor that takes the place of one that failed."""
        with self._lock:
            if self._inner is failed:  # else another thread has been here
                if self._failure:
                    raise error  # it is not the device's
                fresh = AutoMatcher(self.table)
                fresh._insert(self.table.slots)
                self._inner, self._failure = fresh, _told(error)
                self._tell(FAILED, self._failure)
        return self._inner

    def _bytes(self) -> int:
        return self._inner._bytes()

    @property
    def figures(self) -> Mapping[str, int | str]:
        """As of the matcher in use, and why it is not the first one."""
        figures = dict(self._inner.figures)
        return figures | {"device failed": self._failure} if self._failure else figures


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
