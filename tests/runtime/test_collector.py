"""The collector is off inside, or rarer, and afterwards as it was."""

import gc
from collections.abc import Iterator

import pytest

import rules
from runtime.collector import MANY, PATIENT, collector_patient, collector_paused


def test_it_is_paused_inside_and_goes_on_afterwards() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_inside_sets_it_going_too() -> None:
    with pytest.raises(rules.RuleErrors):
        rules.load("nonsense")
    assert gc.isenabled()


def test_who_had_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        rules.load("event A()")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_patient_one_goes_on_more_rarely_and_is_as_it_was_afterwards() -> None:
    before = gc.get_threshold()
    inside: list[tuple[int, int, int]] = []

    @collector_patient()
    def fail() -> None:
        assert gc.isenabled()
        inside.append(gc.get_threshold())
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert inside[0] == PATIENT > before
    assert gc.get_threshold() == before


def made(count: int) -> list[list[int]]:
    """So many new objects, made while the collector is paused."""
    with collector_paused():
        return [[number] for number in range(count)]


@pytest.fixture
def young() -> Iterator[None]:
    """A collector that has nothing to do at first, and nothing frozen."""
    gc.unfreeze()
    gc.collect()
    yield
    gc.collect()


@pytest.mark.usefixtures("young")
def test_many_new_objects_are_not_looked_through() -> None:
    collections = gc.get_stats()
    objects = made(2 * MANY)
    assert gc.get_count()[0] < MANY
    assert gc.get_stats()[0]["collections"] - collections[0]["collections"] <= 1
    last = objects[-1]
    assert any(one is last for one in gc.get_objects(generation=2))


@pytest.mark.usefixtures("young")
def test_what_was_frozen_stays_so() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        objects = made(2 * MANY)
        assert len(objects) == 2 * MANY
        assert 0.5 * frozen < gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()
