"""CCM's table of constraints, arranged otherwise (thesis 4.4.3, 4.5): ordered, or each one once.

Either is made anew of all constraints whenever filters have changed, as the thesis's tables are.
What that costs is a part of what it compares: ordering "has a very negative impact on the cost of
deploying subscriptions".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matcher.gpu.kernels import OPERAND, SLOT, WORD
from matcher.kernels.layout import COUNT, ROOM, START, TERM_MASK
from matcher.model import Int64s

OPERATOR_SHIFT = 32
"""Above the term, a word says which operator it is, and of which kind its operand."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """``lists`` int64[names, 4] and ``rows`` int64[constraints, 3] as a matcher has them; where
    each constraint stands once, its third column is c, and its filters are
    ``members[owners[c] : owners[c + 1]]``.
    """

    lists: Int64s
    rows: Int64s
    owners: Int64s
    members: Int64s


def arranged(lists: Int64s, arena: Int64s, *, distinct: bool) -> Arrangement:
    """The constraints of all lists, in each by type, operator and value."""
    counts = lists[:, COUNT]
    ends = np.cumsum(counts)
    names = np.repeat(np.arange(len(lists)), counts)
    places = np.arange(len(names)) - np.repeat(ends - counts - lists[:, START], counts)
    rows = arena[places]
    word, operand = rows[:, WORD], rows[:, OPERAND]
    order = np.lexsort((operand, word >> OPERATOR_SHIFT, word & TERM_MASK, names))
    rows, names = rows[order], names[order]
    owners, members = np.zeros(1, np.int64), np.zeros(0, np.int64)
    if distinct:
        same = (np.diff(rows[:, : OPERAND + 1], axis=0) == 0).all(1) & (np.diff(names) == 0)
        firsts = np.flatnonzero(np.append(True, ~same)[: len(rows)])
        members, owners = rows[:, SLOT].copy(), np.append(firsts, len(rows))
        rows, names = rows[firsts], names[firsts]
        rows[:, SLOT] = np.arange(len(firsts))
    made = np.zeros_like(lists)
    made[:, COUNT] = made[:, ROOM] = np.bincount(names, minlength=len(lists))
    made[:, START] = np.cumsum(made[:, COUNT]) - made[:, COUNT]
    return Arrangement(made, rows, owners, members)
