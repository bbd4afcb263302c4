"""The laws of the synchronous clients' driver, with real clients and a real broker."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from broker import ClientClosed, Publisher, Subscriber
from broker.client.bell import Bell
from broker.client.threaded import RESPITE_S, _poll

MANY = 50


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    ends_at = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends_at:
        time.sleep(0.005)
    return holds()


def in_thread(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_a_bell_rings_until_it_is_hushed() -> None:
    bell = Bell()
    poll = _poll(bell.descriptor)
    assert poll(0) == []
    bell.ring()
    bell.ring()
    assert poll(0) != []
    bell.hush()
    assert poll(0) == []
    bell.hush()  # a silent one may be hushed


def test_the_thread_receives_while_no_caller_waits(endpoint, temp) -> None:
    """Laws 2 and 3: after the last caller's respite, and again after later ones."""
    with (
        Publisher(endpoint, name=f"{temp.name}/thread", types=[temp]) as publisher,
        Subscriber(endpoint, temp.name) as subscriber,
    ):
        for number in range(3):
            publisher.publish(temp.name, area="a", value=float(number))
            assert eventually(lambda: len(subscriber._sink.deliveries) == 1)
            assert subscriber.receive(timeout_s=5).data["value"] == number
            time.sleep(2 * RESPITE_S)


def test_what_a_caller_leaves_unread_is_read_by_the_thread(endpoint, temp) -> None:
    """Law 3: a caller takes in no more than it asked for, and the rest does not wait for it."""
    with (
        Publisher(endpoint, name=f"{temp.name}/unread", types=[temp]) as publisher,
        Subscriber(endpoint, temp.name) as subscriber,
    ):
        for number in range(MANY):
            publisher.publish(temp.name, area="a", value=float(number))
            publisher.flush()
        first = len(subscriber.receive_delivery(timeout_s=5))
        deliveries = subscriber._sink.deliveries
        assert eventually(lambda: sum(map(len, deliveries)) == MANY - first)
        got = [subscriber.receive(timeout_s=5).data["value"] for _ in range(MANY - first)]
        assert got == list(range(first, MANY))


def test_what_is_acknowledged_is_read_though_no_caller_looks_for_it(endpoint, temp) -> None:
    """Law 3: an event that leaves alone takes in nothing; the thread does."""
    with Publisher(endpoint, name=f"{temp.name}/acknowledged", types=[temp]) as publisher:
        session = publisher._source.session
        for number in range(3):
            publisher.publish(temp.name, area="a", value=float(number))
            assert eventually(lambda: session.outgoing.unacknowledged == 0)


def test_waiting_callers_get_each_event_once(endpoint, temp) -> None:
    """Law 2: one of them watches, the others wait for it, whichever ends first."""
    got: list[float] = []
    with (
        Publisher(endpoint, name=f"{temp.name}/callers", types=[temp]) as publisher,
        Subscriber(endpoint, temp.name) as subscriber,
    ):

        def take() -> None:
            while len(got) < 3 * MANY:
                with suppress(TimeoutError):  # others may have taken the last
                    for batch in subscriber.receive_delivery(timeout_s=0.2).batches:
                        got.extend(event.data["value"] for event in batch.events())

        callers = [in_thread(take) for _ in range(3)]
        for number in range(3 * MANY):
            publisher.publish(temp.name, area="a", value=float(number))
            publisher.flush()
        for caller in callers:
            caller.join(20)
    assert sorted(got) == list(range(3 * MANY))


def test_gathered_events_leave_while_another_caller_waits(endpoint, temp) -> None:
    """Law 4: the one that waits is told of the new deadline."""
    with (
        Publisher(endpoint, name=f"{temp.name}/gathered", types=[temp], delay_s=0.1) as publisher,
        Subscriber(endpoint, temp.name) as subscriber,
    ):
        never = threading.Event()

        def wait() -> None:
            with publisher._driver.lock:
                publisher._driver.wait_until(never.is_set, 10)

        caller = in_thread(wait)
        assert eventually(lambda: publisher._driver._attended)
        for number in range(20):
            publisher.publish(temp.name, area="a", value=float(number))
        for number in range(20):
            assert subscriber.receive(timeout_s=5).data["value"] == number
        never.set()
        publisher.flush()
        publisher.publish(temp.name, area="a", value=20.0)
        assert subscriber.receive(timeout_s=5).data["value"] == 20
    caller.join(10)
    assert not caller.is_alive()


def test_closing_ends_the_wait_of_every_caller(endpoint, temp) -> None:
    subscriber = Subscriber(endpoint, temp.name)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            subscriber.receive()
        except ClientClosed as error:
            ended.append(error)

    callers = [in_thread(wait) for _ in range(3)]
    assert eventually(lambda: subscriber._driver._attended)
    subscriber.close()
    for caller in callers:
        caller.join(10)
    assert len(ended) == 3


def test_a_wait_ends_in_time(endpoint, temp) -> None:
    with Subscriber(endpoint, temp.name) as subscriber:
        started_at = time.monotonic()
        with pytest.raises(TimeoutError):
            subscriber.receive(timeout_s=0.1)
        assert time.monotonic() - started_at >= 0.1
