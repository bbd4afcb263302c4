"""Events in a vocabulary's numbers (:mod:`matcher.filters.vocabulary`)."""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, making
from matcher.kernels.layout import FLOAT_FLAG, TERM_MASK


@making
def encode(offsets, names, kinds, values, terms, texts, types, ranks, rows):
    """Events in a vocabulary's numbers, in the order ``rows``, cells in the order of ranks."""
    count = len(offsets) - 1
    floats = values.view(np.float64)
    encoded = np.empty((len(names) + count, 2), np.int64)
    encoded_offsets = np.zeros(count + 1, np.int64)
    end = 0
    for place in range(count):
        event, first = rows[place], end
        if types[event] >= 0:
            end = placed(encoded, first, end, types[event], 0, ranks)
        for cell in range(offsets[event], offsets[event + 1]):
            kind = kinds[cell]
            term = terms[names[cell], 1 if kind == 3 else 2 if kind == 2 else 0]
            if term < 0:
                continue
            value = values[cell]
            if kind == 3:
                value = texts[value]
            elif kind == 1:
                number = floats[cell]
                if -9223372036854775808.0 <= number < 9223372036854775808.0:
                    whole = np.int64(number)
                    if np.float64(whole) == number:
                        value = whole
                    else:
                        term |= FLOAT_FLAG
                else:
                    term |= FLOAT_FLAG
            end = placed(encoded, first, end, term, value, ranks)
        encoded_offsets[place + 1] = end
    return encoded_offsets, encoded[:end].copy()


@inlined
def placed(encoded, first, end, term, value, ranks):
    """Insert a cell at its rank among those of its event."""
    rank = ranks[term & TERM_MASK]
    place = end
    while place > first and ranks[encoded[place - 1, 0] & TERM_MASK] > rank:
        encoded[place, 0] = encoded[place - 1, 0]
        encoded[place, 1] = encoded[place - 1, 1]
        place -= 1
    encoded[place, 0] = term
    encoded[place, 1] = value
    return end + 1
