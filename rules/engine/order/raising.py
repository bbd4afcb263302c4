"""The marks of all groups of rules, raised at once: a kernel by itself.

It is none of those that work on columns: marks rise before these are called, and mostly instead.
So it is stamped alone, and takes all that it looks at as one array, since a call costs by its
arguments.
"""

from __future__ import annotations

from pathlib import Path

from matcher.model import TIME_MAX, Int64s
from runtime.compiling.cache import stamp_of
from runtime.compiling.compiled import compiled


def _raise_groups(words: Int64s, groups: int, types: int) -> int:
    """Raise each group's mark to the least of its types', if it is less; gives how many were.

    ``words`` int64 holds, one behind the other: for each group the mark that it had and the mark
    that it has (layout.GROUP), of which the first becomes the second; the mark of each type; where
    the members of each group begin, and those of the last end; the members, as numbers of types.
    """
    first_type = 2 * groups
    starts = first_type + types
    members = starts + groups + 1
    risen = 0
    for group in range(groups):
        least = TIME_MAX
        for place in range(words[starts + group], words[starts + group + 1]):
            least = min(least, words[first_type + words[members + place]])
        mark = words[2 * group + 1]
        words[2 * group] = mark
        if least > mark:
            words[2 * group + 1] = least
            risen += 1
    return risen


raise_groups = compiled(_raise_groups, stamp_of([Path(__file__)]), counting=False)
