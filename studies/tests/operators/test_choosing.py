"""``auto``: an operator goes where batches take less time, and gives the same wherever it is."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from matcher.trials import BEGIN_S, TRIAL_BATCHES, Choice
from studies.operators import Filter, Join, Length, Stream, Window
from studies.operators.operator import Operator
from studies.operators.places import HOST, Place

TEMP, SMOKE = (EventType.of(name, v="int") for name in ("Temp", "Smoke"))


class Pretended(Place):
    """The processor in disguise."""

    name = "a pretended device"
    is_device = True


DEVICE = Pretended()


def places_of(
    choice: Choice[Place], costs: dict[str, float], batches: int, events: int
) -> Iterator[str]:
    """The place of each batch, of which each event takes so many seconds in either place."""
    for _ in range(batches):
        name = choice.place.name
        yield name
        if choice.note(events, costs[name] * events):
            choice.moved(0.1)


def runs(names: Iterator[str]) -> list[tuple[str, int]]:
    """Names that follow one another, each with how often."""
    found: list[tuple[str, int]] = []
    for name in names:
        if found and found[-1][0] == name:
            found[-1] = name, found[-1][1] + 1
        else:
            found.append((name, 1))
    return found


def test_a_device_is_tried_once_compiling_is_paid_for_and_left_where_it_is_slower() -> None:
    costs = {HOST.name: 1e-3, DEVICE.name: 1e-2}
    found = runs(places_of(Choice(HOST, lambda: DEVICE), costs, 400, 100))
    (before, paid), trial, (after, _) = found  # nothing has changed since
    assert (before, trial, after) == (HOST.name, (DEVICE.name, TRIAL_BATCHES), HOST.name)
    assert paid == pytest.approx(BEGIN_S / 0.1, abs=1)


def test_it_stays_where_it_is_faster_until_batches_are_others() -> None:
    costs = {HOST.name: 1e-3, DEVICE.name: 1e-5}
    choice: Choice[Place] = Choice(HOST, lambda: DEVICE)
    assert runs(places_of(choice, costs, 500, 100))[-1][0] == DEVICE.name
    few = {HOST.name: 1e-3, DEVICE.name: 1e-1}  # a call takes what it takes
    assert runs(places_of(choice, few, 4_000, 1))[-1][0] == HOST.name


def test_a_little_faster_is_not_enough() -> None:
    costs = {HOST.name: 1e-3, DEVICE.name: 9e-4}
    assert runs(places_of(Choice(HOST, lambda: DEVICE), costs, 300, 100))[-1][0] == HOST.name


def test_without_a_device_nothing_is_chosen() -> None:
    costs = {HOST.name: 1e-1}
    assert runs(places_of(Choice(HOST, lambda: None), costs, 300, 100)) == [(HOST.name, 300)]


def batch(type_: EventType, rng: np.random.Generator, begin: int, count: int) -> EventBatch:
    numbers = np.arange(begin, begin + count)
    ids = EventIds(StringColumn.constant(type_.name, count), numbers)
    return EventBatch(type_, numbers * 10, ids, (rng.integers(0, 9, count),))


def pairs() -> list[tuple[EventBatch, EventBatch]]:
    rng = np.random.default_rng(5)
    return [(batch(TEMP, rng, at, 7), batch(SMOKE, rng, at, 5)) for at in range(0, 400, 10)]


def join(device: str | Place) -> Join:
    streams = Stream(TEMP, "t", Length(20)), Stream(SMOKE, "s", Length(20))
    return Join(*streams, "t.v = s.v", {"v": "t.v", "w": "s.v"}, device=device)


class Restless(Choice[Place]):
    """Goes to and fro after every third batch."""

    def __init__(self) -> None:
        super().__init__(HOST, lambda: DEVICE)
        self.moves = self._noted = 0

    def note(self, events: int, seconds: float) -> bool:
        self._noted += 1
        if self._noted % 3:
            return False
        self.moves += 1
        self.place = HOST if self.place.is_device else DEVICE
        return True


def restless(operator: Operator[Any, Any]) -> Restless:
    choice = operator._choice = Restless()
    operator._keeps = True
    return choice


def told(made: Any) -> list[Any]:
    if isinstance(made, EventBatch):
        return [(event.time, event.id, event.data) for event in made.events()]
    return [*told(made.events), made.expired.tolist()]


@pytest.mark.parametrize("streams", [False, True])
def test_moves_change_no_output(streams: bool) -> None:
    whole, moving = join("cpu"), join("auto")
    choice = restless(moving)
    expected = [told(whole.push(one)) for one in pairs()]
    found = moving.stream(pairs()) if streams else map(moving.push, pairs())
    assert [told(one) for one in found] == expected
    assert choice.moves > 9
    assert sum(map(len, expected)) > 100


def test_nor_do_those_of_filters_and_windows() -> None:
    for make in (
        lambda device: Filter(TEMP, "v > 4", device=device),
        lambda device: Window(TEMP, Length(11), where="v > 2", device=device),
    ):
        whole, moving = make("cpu"), make("auto")
        choice = restless(moving)
        for one, _ in pairs():
            assert told(moving.push(one)) == told(whole.push(one))
        assert choice.moves > 9


def test_a_place_that_cannot_be_had_is_done_without() -> None:
    moving = join("auto")
    choice = restless(moving)

    def refuse(place: Place) -> Join:
        raise MemoryError("8 bytes more than it has")

    moving._again = refuse
    whole = join("cpu")
    for one in pairs():
        assert told(moving.push(one)) == told(whole.push(one))
    assert (choice.moves, moving.device) == (13, "cpu")
