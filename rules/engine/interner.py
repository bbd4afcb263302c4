"""Strings as numbers, exactly: equal codes mean equal strings, and nothing is decided by a hash.

A code stands for a string as long as some stored event or rule uses it; ``forget`` gives the
codes of all others to new strings, and begins another list of ``texts``: whoever holds the old
one reads what codes meant until then. Kernels read the strings themselves (to order them, to find a
part) as UTF-8 in one array, whose byte order is that of code points (tesla.md S10).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from matcher.model import Int64s
from rules.engine.tables import grown

SWEEP_MIN = 65_536
"""Fewer strings than this are not worth a sweep,"""
SWEEP_BYTES_MIN = 1 << 24
"""nor are fewer bytes of them than this."""


class Interner:
    """The owner of a table of strings; ``extents`` and ``data`` are its view for kernels."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.texts: list[str | None] = []
        self._free: list[int] = []
        self._sweep_above = SWEEP_MIN
        self._sweep_bytes_above = SWEEP_BYTES_MIN
        self._top = 0
        self.extents: Int64s = np.zeros(32, np.int64)  # begin and end in data, by code
        self.data: npt.NDArray[np.uint8] = np.zeros(256, np.uint8)

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, text: str) -> int:
        """The code of a string; a new one when it has none."""
        code = self._codes.get(text)
        return self._add(text) if code is None else code

    def codes(self, texts: Sequence[str]) -> Int64s:
        """The codes of strings."""
        known = self._codes
        return np.fromiter(
            (known[text] if text in known else self._add(text) for text in texts),
            np.int64,
            len(texts),
        )

    def text(self, code: int) -> str:
        """The string that a code stands for."""
        text = self.texts[code]
        assert text is not None, "a code in use was forgotten"
        return text

    def kept(self) -> tuple[str | None, ...]:
        """The strings by their codes; None for a code that stands for none."""
        return tuple(self.texts)

    def resume(self, texts: Sequence[str | None]) -> None:
        """Give the codes to the strings that ``kept`` says, and to no others."""
        self.texts = list(texts)
        self._codes = {text: code for code, text in enumerate(texts) if text is not None}
        self._free = [code for code, text in enumerate(texts) if text is None]
        self._top = 0
        for text, code in self._codes.items():
            self._write(code, text)

    @property
    def wants_sweep(self) -> bool:
        """Whether there are so many strings that ``forget`` is due."""
        return len(self._codes) > self._sweep_above or self._top > self._sweep_bytes_above

    def forget(self, used: Iterable[int]) -> None:
        """Forget every string but those of the codes in use."""
        kept = set(used)
        self.texts = self.texts.copy()
        for text, code in list(self._codes.items()):
            if code not in kept:
                del self._codes[text]
                self.texts[code] = None
                self._free.append(code)
        self._sweep_above = max(SWEEP_MIN, 2 * len(self._codes))
        self._top = 0
        self.data = np.zeros(256, np.uint8)
        for text, code in self._codes.items():
            self._write(code, text)
        self._sweep_bytes_above = max(SWEEP_BYTES_MIN, 2 * self._top)

    def _add(self, text: str) -> int:
        if self._free:
            code = self._free.pop()
            self.texts[code] = text
        else:
            code = len(self.texts)
            self.texts.append(text)
        self._codes[text] = code
        self._write(code, text)
        return code

    def _write(self, code: int, text: str) -> None:
        encoded = text.encode()
        end = self._top + len(encoded)
        if end > len(self.data):
            self.data = grown(self.data, max(end, 2 * len(self.data)))
        if 2 * code + 1 >= len(self.extents):
            self.extents = grown(self.extents, 2 * max(code + 1, len(self.extents)))
        self.data[self._top : end] = np.frombuffer(encoded, np.uint8)
        self.extents[2 * code] = self._top
        self.extents[2 * code + 1] = end
        self._top = end
