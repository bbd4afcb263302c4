"""Positions that workers have dealt with, as they are told."""

import asyncio
import threading

import pytest

from broker.client.hands import Hands, Worker, this_task


class Workers:
    """Hands, and workers that take turns."""

    def __init__(self) -> None:
        self.now: Worker = threading.current_thread()
        self.hands = Hands(lambda: self.now, is_auto=True)
        self.lots = {}

    def come(self, *positions: int) -> None:
        for position in positions:
            self.lots[position] = self.hands.take_in((position,))

    def ask(self, worker: Worker, position: int | None = None) -> None:
        """A worker asks, and is given an event if one is named."""
        self.now = worker
        self.hands.ask()
        if position is not None:
            self.hands.give(self.lots[position])

    def told(self) -> list[tuple[int, bool]]:
        return list(map(tuple, self.hands.take_told()))


class Alive(threading.Thread):
    """A worker that the test keeps."""

    ended = False

    def is_alive(self) -> bool:
        return not self.ended


def test_an_event_is_dealt_with_when_its_worker_asks_again() -> None:
    workers, one, two = Workers(), Alive(), Alive()
    workers.come(7, 8, 9)
    workers.ask(one, 7)
    workers.ask(two, 8)
    assert workers.hands.position == 8
    assert workers.told() == []
    workers.ask(two, 9)
    assert workers.told() == [(8, False)]
    workers.ask(one)
    assert workers.told() == [(7, True)]
    workers.ask(two)
    assert workers.told() == [(9, True)]


def test_a_thread_that_has_ended_leaves_its_event_until_the_end() -> None:
    workers, one, two = Workers(), Alive(), Alive()
    workers.come(1, 2, 3)
    workers.ask(one, 1)
    one.ended = True
    workers.ask(two, 2)
    workers.ask(two, 3)
    assert workers.told() == [(2, False)]
    workers.hands.close()
    assert workers.told() == [(3, True)]


@pytest.mark.parametrize(
    ("end", "told"), [("well", [(2, True)]), ("badly", [(2, False)]), ("cancelled", [(2, False)])]
)
def test_a_task_that_has_ended_well_has_dealt_with_its_event(
    end: str, told: list[tuple[int, bool]]
) -> None:
    hands = Hands(this_task, is_auto=True)
    first, second = hands.take_in((1,)), hands.take_in((2,))

    async def work() -> None:
        hands.ask()
        hands.give(first)
        if end == "badly":
            raise ValueError
        if end == "cancelled":
            await asyncio.sleep(60)

    async def story() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        hands.ask()
        hands.give(second)
        hands.ask()

    asyncio.run(story())
    assert list(map(tuple, hands.take_told())) == told
    hands.close()
    assert list(hands.take_told()) == []


def test_a_delivery_is_dealt_with_as_a_whole() -> None:
    workers, one, two = Workers(), Alive(), Alive()
    workers.lots["first"], workers.lots["second"] = (
        workers.hands.take_in((4, 6)),
        workers.hands.take_in((7, 8)),
    )
    workers.ask(one, "first")
    workers.ask(two, "second")
    workers.ask(two)
    assert workers.told() == [(7, False), (8, False)]
    workers.ask(one)
    assert workers.told() == [(6, True)]
