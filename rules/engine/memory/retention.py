"""From when on an engine keeps what it has, and what goes then: its memory is bounded by this."""

from __future__ import annotations

from matcher.model import TIME_MAX, TIME_MIN, Kind
from rules.engine.intake.pending import Pending
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.memory import sweep
from rules.engine.linking.interner import Interner, Texts
from rules.engine.linking.linker import Linker
from rules.engine.memory.storage import codes_in

HORIZON_EVENTS = 1024
"""Horizons are computed anew once this many events have come since the last time, or as many as
rules look back in accesses."""


class Retention:
    """Owner of ``horizon``: no rule sees events earlier than this, in microseconds, any more.

    ``due`` is how many events will have entered when it is to be looked at again.

    What no rule can use any more goes away, with or without terminators: entries and rows older
    than a rule's mark less its reach, ids for the recognition of repeats, strings that nothing
    mentions. To find out costs a time in proportion to the rules, so it is done once as many events
    have come.
    """

    def __init__(self, linker: Linker, pending: Pending, strings: Interner, texts: Texts):
        self.horizon = TIME_MIN
        self.due = HORIZON_EVENTS
        self._linker = linker
        self._pending = pending
        self._strings = strings
        self._texts = texts

    def follow(self, arrays: Arrays) -> None:
        """Follow the marks, and what rules there are."""
        self.set_horizons(arrays, TIME_MAX)
        self._forget_strings(arrays)
        events = max(HORIZON_EVENTS, self._linker.looks)
        self.due = arrays.counters[layout.ENTERED] + events

    def set_horizons(self, arrays: Arrays, until: int) -> None:
        """Say, for every access and type, from when on events may still be of use.

        Instants from ``until`` on are still to be evaluated, whatever the marks say.
        """
        horizons = self._linker.horizons(until)
        accesses = self._linker.tables.accesses.array[: len(horizons.accesses)]
        if (horizons.accesses < accesses["horizon"]).any():
            # A rule that looks farther back must not find entries whose rows are gone already.
            sweep(arrays.state, arrays.counters[layout.LISTS_TOP])
        accesses["horizon"] = horizons.accesses
        self._linker.tables.types.array["horizon"][: len(horizons.types)] = horizons.types
        self.horizon = horizons.least
        self._pending.forget_before(horizons.least)

    def _forget_strings(self, arrays: Arrays) -> None:
        """Forget strings, and texts of ids, that neither rules nor events mention."""
        tables = self._linker.tables
        if self._strings.wants_sweep:
            mentioned = codes_in(arrays, tables, self._pending, Kind.STRING)
            self._strings.forget(mentioned | self._linker.constants())
        if self._texts.wants_sweep:
            self._texts.forget(codes_in(arrays, tables, self._pending, None))
