"""What stays is frozen while it is little, and rings among it go in the end."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from runtime.ageing import WALKS, Ageing


class Ring:
    """An object that only the collector can tell to be garbage."""

    def __init__(self) -> None:
        self.itself = self


class Told(Ageing):
    def __init__(self) -> None:
        self.told = 0
        super().__init__(self.tell)

    def tell(self) -> None:
        self.told += 1


@pytest.fixture
def begun() -> Iterator[Told]:
    one = Told()
    one.begin()
    yield one
    one.end()
    gc.unfreeze()
    gc.collect()


def outlive(walks: int) -> None:
    for _ in range(walks):
        gc.collect(1)


def is_frozen(thing: object) -> bool:
    # by the object: their number falls as well, where what others froze comes to an end
    return not any(one is thing for one in gc.get_objects())


def test_what_outlives_some_collections_is_frozen_when_asked(begun: Told):
    kept = [[number] for number in range(5_000)]
    outlive(WALKS - 1)
    begun.take()
    assert begun.told == 0
    assert not is_frozen(kept[0])
    outlive(1)
    assert begun.told == 1
    begun.take()
    assert is_frozen(kept[0])
    assert is_frozen(kept[-1])


def test_rings_that_nothing_refers_to_are_not_frozen(begun: Told):
    ring = Ring()
    seen = weakref.ref(ring)
    outlive(WALKS)
    del ring
    begun.take()
    assert seen() is None


def test_rings_that_were_frozen_go_once_as_much_is_frozen_again(
    begun: Told,
):
    ring = Ring()
    seen = weakref.ref(ring)
    outlive(WALKS)
    begun.take()
    del ring
    gc.collect()
    assert seen() is not None
    kept = [[number] for number in range(begun._first)]
    for _ in range(2):  # the first freezes what has come, the second finds that it is as much
        outlive(WALKS)
        begun.take()
    assert kept
    assert seen() is None


def test_nothing_is_told_when_it_has_ended():
    one = Told()
    one.begin()
    one.end()
    gc.unfreeze()
    outlive(2 * WALKS)
    assert one.told == 0
