"""Copies on the device of tables that the host owns."""

from __future__ import annotations

import numpy.typing as npt

from matcher.gpu.device import Buffer, Device, Lane
from matcher.model import AnyArray

RUNS_MAX = 64
"""Runs kept apart; beyond them one run covers all, since each copy has a price of its own."""


class Mirror:
    """One table on the device, with room to grow like the host's."""

    def __init__(self, device: Device, dtype: npt.DTypeLike, *shape: int) -> None:
        self._device = device
        self._dtype, self._shape = dtype, shape
        self._runs: list[tuple[int, int]] = []
        self._size = 0
        self.buffer: Buffer = device.zeros((1, *shape), dtype)

    def mark(self, start: int, stop: int) -> None:
        """Rows that have changed; those behind the ones known so far are new by themselves."""
        self._runs.append((start, stop))
        if len(self._runs) > RUNS_MAX:
            starts, stops = zip(*self._runs, strict=True)
            self._runs = [(min(starts), max(stops))]

    def synchronise(self, rows: AnyArray, size: int, lane: Lane) -> Buffer:
        """The table, equal to ``rows[:size]``. A table that has outgrown its room is copied whole;
        work that still reads the old one keeps it. Only what changed since the last time is brought
        over: the runs of rows that ``mark`` was told of. Work that was launched before does not see
        it: both go through one lane.
        """
        if size > len(self.buffer):
            self.buffer = self._device.empty((max(len(rows), size), *self._shape), self._dtype)
            self._runs, self._size = [], 0
        if size > self._size:
            self.mark(self._size, size)
            self._size = size
        for start, stop in self._runs:
            if start < size:
                self._device.upload(self.buffer, start, rows[start : min(stop, size)], lane)
        self._runs.clear()
        return self.buffer


class TextMirror:
    """Copies of the arrays of texts (:data:`matcher.filters.encoded.Texts`), which only ever grow
    until the vocabulary begins anew with other arrays.
    """

    def __init__(self, device: Device) -> None:
        self._mirrors = tuple(Mirror(device, "int64") for _ in range(4))
        self._sizes = [0] * 4
        self._arrays: list[object] = [None] * 4

    def synchronise(self, texts: tuple[AnyArray, ...], lane: Lane) -> tuple[Buffer, ...]:
        """The four arrays as they were when some events were encoded, or with more behind."""
        return tuple(self._one(place, array, lane) for place, array in enumerate(texts))

    def _one(self, place: int, array: AnyArray, lane: Lane) -> Buffer:
        owner = array if array.base is None else array.base
        if owner is not self._arrays[place]:
            self._arrays[place], self._sizes[place] = owner, 0
        mirror, known = self._mirrors[place], self._sizes[place]
        if len(array) > known:
            mirror.mark(known, len(array))
            self._sizes[place] = len(array)
        return mirror.synchronise(array, len(array), lane)
