"""Strings as numbers, exactly: nothing is decided by a hash.

A code stands for a string as long as some stored event or rule uses it; ``forget`` gives the
codes of all others to new strings, and begins another list of ``texts``: whoever holds the old
one reads what codes meant until then.

Attributes have codes of an :class:`Interner`, which are equal where strings are. Ids are hardly
ever equal, come with every event, and are read again only of those that cause something; so they
have a code for each time that they come (:class:`Texts`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from matcher.model import Int64s, Kind
from rules.patience import PATIENCE, TooSlow
from rules.terms import TextFunction
from rules.texts import UNDEFINED, results_of
from runtime.memory import filled, first_length, grown, zeros

SWEEP_MIN = 65_536
"""Fewer strings than this are not worth a sweep,"""
SWEEP_LENGTH_MIN = 1 << 24
"""nor are fewer characters of them than this."""


class Texts:
    """The owner of a table of strings, of which some may be alike."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self._free: list[int] = []
        self._length = 0  # characters of what is there, and of what comes to an Interner
        self._sweep_above = SWEEP_MIN
        self._sweep_length_above = SWEEP_LENGTH_MIN

    def __len__(self) -> int:
        return len(self.texts) - len(self._free)

    def code(self, text: str) -> int:
        """A code of a string."""
        return self._add([text])[0]

    def codes(self, texts: Sequence[str]) -> Int64s:
        """Codes of strings."""
        return np.array(self._add(texts), np.int64)

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
        self._free = [code for code, text in enumerate(texts) if text is None]
        self._length = sum(map(len, filter(None, texts)))

    @property
    def wants_sweep(self) -> bool:
        """Whether there are so many strings that ``forget`` is due."""
        return len(self) > self._sweep_above or self._length > self._sweep_length_above

    def forget(self, used: Iterable[int]) -> None:
        """Forget every string but those of the codes in use; these may be more than there are."""
        kept: list[str | None] = [None] * len(self.texts)
        for code in used:
            if 0 <= code < len(kept):
                kept[code] = self.texts[code]
        self.resume(kept)
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))
        self._sweep_length_above = max(SWEEP_LENGTH_MIN, 2 * self._length)

    def _add(self, fresh: Sequence[str]) -> Sequence[int]:
        """Give codes to strings, free ones first; gives them."""
        left = max(0, len(self._free) - len(fresh))
        again, self._free = self._free[left:], self._free[:left]
        for code, text in zip(again, fresh, strict=False):
            self.texts[code] = text
        codes = [*again, *range(len(self.texts), len(self.texts) + len(fresh) - len(again))]
        self.texts += fresh[len(again) :]
        self._length += sum(map(len, fresh))
        return codes


class Interner(Texts):
    """Strings whose codes are equal where they are. Kernels read them themselves (to order them, to
    find a part): ``extents`` and ``data`` are their view, UTF-8 in one array, whose byte order is
    that of code points (tesla.md S10).
    """

    def __init__(self) -> None:
        super().__init__()
        self._codes: dict[str, int] = {}
        self._top = 0
        # Begin and end in data, by code.
        self.extents: Int64s = zeros((2 * first_length(16),), np.int64)
        self.data: npt.NDArray[np.uint8] = zeros((first_length(256),), np.uint8)
        self.results: Int64s = zeros((1,), np.int64)
        """Results of the functions in use over the strings, function by function, in the order of
        codes: a code, 0 or 1, or -1 where it is undefined.
        """
        self._table = zeros((0, first_length(16)), np.int64)  # the same, a row for each function
        self._functions: list[TextFunction | None] = []
        self._users: Counter[TextFunction] = Counter()
        self.payer: str | None = None
        """The user who pays for patterns that come to be used (rules.patience)."""
        self._payers: list[str | None] = []
        self.given_up: list[TextFunction] = []
        """Patterns that are undefined for strings of late: whoever pays has no time left."""
        self._unsure: set[TextFunction] = set()  # those that were given up at any time

    def use(self, function: TextFunction) -> int:
        """The number of a function, with one more user: it is worked out for every string."""
        self._users[function] += 1
        if function in self._functions and function not in self._unsure:
            return self._functions.index(function)
        place = function if function in self._functions else None
        self._unsure.discard(function)
        if place not in self._functions:
            self._functions.append(None)
            self._payers.append(None)
        number = self._functions.index(place)
        self._functions[number], self._payers[number] = function, self.payer
        self._lay_out()
        self._work_out([number], list(self._codes.values()), list(self._codes))
        return number

    def is_paid(self, function: TextFunction, payer: str | None) -> bool:
        """Work a function that was given up out again for every string, at the cost of this user
        from now on; whether that has time left for it.
        """
        number = self._functions.index(function)
        self._payers[number] = payer
        self._unsure.discard(function)
        self._work_out([number], list(self._codes.values()), list(self._codes))
        return function not in self._unsure

    def drop(self, number: int) -> None:
        """Take a user from a function; with the last, it is worked out no more."""
        function = self._functions[number]
        assert function is not None, "a function in use"
        self._users[function] -= 1
        if not self._users[function]:
            self._functions[number] = None
            self._unsure.discard(function)

    def code(self, text: str) -> int:
        """The code of a string; a new one when it has none."""
        code = self._codes.get(text)
        return super().code(text) if code is None else code

    def codes(self, texts: Sequence[str]) -> Int64s:
        """The codes of strings."""
        known = self._codes
        if fresh := [text for text in texts if text not in known]:
            self._add(list(dict.fromkeys(fresh)))
        return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))

    def resume(self, texts: Sequence[str | None]) -> None:
        """Give the codes to the strings that ``kept`` says, and to no others."""
        super().resume(texts)
        self._codes = {text: code for code, text in enumerate(texts) if text is not None}
        self._top, self.data = 0, zeros((first_length(256),), np.uint8)
        self._take_in(list(self._codes.values()), list(self._codes))

    def _add(self, fresh: Sequence[str]) -> Sequence[int]:
        codes = super()._add(fresh)
        self._codes.update(zip(fresh, codes, strict=True))
        self._take_in(codes, fresh)
        return codes

    def _take_in(self, codes: Sequence[int], texts: Sequence[str]) -> None:
        """Write strings that have come, and work out all functions in use for them."""
        self._write(codes, texts)
        numbers = [number for number, one in enumerate(self._functions) if one is not None]
        self._work_out(numbers, codes, texts)

    def _work_out(self, numbers: Sequence[int], codes: Sequence[int], texts: Sequence[str]) -> None:
        for number in numbers:
            function = self._functions[number]
            assert function is not None
            try:
                with PATIENCE.paying(self._payers[number]):
                    results = results_of(function, texts)
            except TooSlow:
                self.given_up.append(function)
                self._unsure.add(function)
                results = [None] * len(texts)
            if function.kind is Kind.STRING:  # the text in lower case may be a new string itself
                words = self.codes([str(result) for result in results])
            elif function.kind is Kind.FLOAT:
                known = np.array([one is not None for one in results], np.bool_)
                words = np.array([one or 0 for one in results], np.float64).view(np.int64)
                words = np.where(known, words, UNDEFINED)
            else:
                found = [UNDEFINED if one is None else int(one) for one in results]
                words = np.array(found, np.int64)
            self._table[number, codes] = words

    def _lay_out(self) -> None:
        """Give the results room for all functions and all codes."""
        old, shape = self._table, (len(self._functions), len(self.extents) // 2)
        table = filled(math.prod(shape), -1).reshape(shape)
        table[: old.shape[0], : old.shape[1]] = old
        self._table = table
        self.results = table.reshape(-1) if table.size else zeros((1,), np.int64)

    def _write(self, codes: Sequence[int], texts: Sequence[str]) -> None:
        """Write strings behind those that are there."""
        encoded = [text.encode() for text in texts]
        end, last = self._top + sum(map(len, encoded)), max(codes, default=0)
        if end > len(self.data):
            self.data = grown(self.data, max(end, 2 * len(self.data)))
        if 2 * last + 1 >= len(self.extents):
            self.extents = grown(self.extents, 2 * max(last + 1, len(self.extents)))
            self._lay_out()
        self.data[self._top : end] = np.frombuffer(b"".join(encoded), np.uint8)
        ends = [*accumulate(map(len, encoded), initial=self._top)]
        if len(codes) == 1:  # of one event, where arrays would take longer
            self.extents[2 * codes[0]], self.extents[2 * codes[0] + 1] = ends
        else:
            places = 2 * np.array(codes, np.int64)
            self.extents[places], self.extents[places + 1] = ends[:-1], ends[1:]
        self._top = end
