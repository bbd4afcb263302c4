"""The heap's memory: a range of addresses, behind which memory is put as it is needed.

What stands at an address stays there, however much memory is put behind others. Memory stands
behind the words from ``begin`` to ``end``, whole pages; it comes with any content. The range has
two halves, of which one is in use, so that what is of use in the one can be laid out anew in the
other (as a copying collector does); then the memory of the former goes back.

Example: a half has room for 2^34 words, a page for 2^18. For 300,000 words there are two pages, for
one word more than 2^19 a third. When half of 3,000,000 words is of no use any more, six pages of
the other half get the rest, and the twelve before go back to the device.
"""

from __future__ import annotations

from contextlib import suppress
from weakref import finalize

from matcher.gpu.device import WORD, Buffer, Device, Lane


class Heap:
    """Owner of a range of addresses of a device, and of the memory behind it.

    Whatever reads or writes the ``words`` does so on the lane.
    """

    def __init__(self, device: Device, lane: Lane) -> None:
        self._device, self._lane = device, lane
        self._half = device.room
        self.words: Buffer = device.reserve(2 * self._half)
        self.begin = self.end = 0
        self._mapped: list[tuple[int, int]] = []
        """First words, and ends, of what memory was put behind together."""
        end = finalize(self, _free, device, lane, self.words, self._mapped)
        end.atexit = False  # a process that ends gives all back

    @property
    def bytes(self) -> int:
        """Bytes of the memory that is there."""
        return sum(WORD * (end - first) for first, end in self._mapped)

    def extend(self, stop: int) -> None:
        """Have memory behind the words before ``stop``, of the half in use; MemoryError where
        there is none.
        """
        if stop <= self.end:
            return
        page = self._device.page
        end = self.end + -(-(stop - self.end) // page) * page
        if end > self.begin + self._half:
            raise MemoryError(self._too_many(stop - self.begin))
        self._device.map(self.words, self.end, end)
        self._mapped.append((self.end, end))
        self.end = end

    def _too_many(self, words: int) -> str:
        why = self._device.without_pages
        said = f"no room for {WORD * words} bytes of columns and rules"
        return f"{said}, for the device has no pages ({why})" if why else said

    def turn(self) -> None:
        """Go on with the other half, in which there is no memory yet."""
        self.begin = self.end = self._half - self.begin

    def give_back(self) -> None:
        """Give back the memory of the half that is not in use, once the lane is done."""
        left = [one for one in self._mapped if not self.begin <= one[0] < self.begin + self._half]
        if left:
            self._lane.wait()
        for first, end in left:
            self._device.unmap(self.words, first, end)
            self._mapped.remove((first, end))


def _free(device: Device, lane: Lane, words: Buffer, mapped: list[tuple[int, int]]) -> None:
    """Give back all of a range. A device that has failed tells that to its users; here nobody
    would hear it.
    """
    with suppress(Exception):
        lane.wait()
    with suppress(Exception):
        for first, end in mapped:
            device.unmap(words, first, end)
        device.free(words)
