"""Arrays as kernels see them: what numpy would get and set, from the first place on."""

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.compiled import kernel
from runtime.memory import sheltered


@kernel
def reverse(state: int) -> int:
    """Turn the words of ``matched`` and the lengths of lists round; gives the sum of both."""
    words, lists, total = arrays.matched(state), arrays.lists(state), 0
    for place in range(len(words) // 2):
        other = len(words) - 1 - place
        words[place], words[other] = words[other], words[place]
        lists[place].length, lists[other].length = lists[other].length, lists[place].length
    for place in range(len(words)):
        total += words[place] + lists[place].length
    return total


def test_items_and_fields_are_those_of_the_array():
    held = Arrays()
    held["matched"] = sheltered(np.arange(64, dtype=np.int64))
    held.grow("lists", 64)
    held["lists"]["length"] = 1000 * np.arange(64)
    assert reverse(held.state) == 1001 * 63 * 32
    assert held["matched"].tolist() == list(range(64))[::-1]
    assert held["lists"]["length"].tolist() == [1000 * place for place in range(64)][::-1]
