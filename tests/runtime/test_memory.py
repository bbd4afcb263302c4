"""Memory of arrays that grow."""

import mmap

import numpy as np
import pytest

from rules.engine.kernels.arrays import Arrays
from runtime.memory import MAPPED_MIN, grown, guarding, zeros

WORDS = MAPPED_MIN // 8


@pytest.fixture(autouse=True)
def without_guards():
    with guarding(None):
        yield


def test_growing_keeps_what_is_there_and_adds_zeros():
    assert grown(np.array([1, 2]), 4).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("shape", [(WORDS,), (WORDS, 2)])
def test_what_is_large_begins_as_zero_and_keeps_what_is_there_when_it_grows(shape: tuple[int, ...]):
    array = zeros(shape, np.int64)
    assert not array.any()
    array[:] = 7
    larger = grown(array, 3 * WORDS)
    assert larger.shape == (3 * WORDS, *shape[1:])
    assert (larger[:WORDS] == 7).all()
    assert not larger[WORDS:].any()
    assert (array == 7).all()


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="only Linux maps more behind")
def test_a_large_array_of_kernels_grows_where_it_is_unless_somebody_looks_at_it():
    arrays = Arrays()
    arrays.grow("heap", WORDS)
    arrays["heap"][:] = 7
    memory = arrays["heap"].base.obj
    arrays.grow("heap", 4 * WORDS)
    assert arrays["heap"].base.obj is memory
    assert (arrays["heap"][:WORDS] == 7).all()
    seen = arrays["heap"][:WORDS]
    arrays.grow("heap", 8 * WORDS)
    assert arrays["heap"].base.obj is not memory
    seen[:] = 8  # it is another's by now
    assert (arrays["heap"][:WORDS] == 7).all()
    assert len(arrays["heap"]) == 8 * WORDS
