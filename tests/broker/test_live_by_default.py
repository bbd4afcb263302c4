"""A publisher of which nothing is said is live: its rules fire, absences too."""

import asyncio
import time

import pytest

from broker import AsyncPublisher, LateEvents, Publisher, RuleManager, Subscriber
from broker.client import source as sources
from matcher.model import EventType

WAIT_S = 10.0
SOON_S = 2.0
"""Longer than the clock's promises are apart, and shorter than SILENT_S."""


def types(name: str) -> tuple[EventType, EventType]:
    """A reading and a door, of names that no other test uses."""
    return EventType.of(f"Temp{name}", n="int"), EventType.of(f"Door{name}", n="int")


def watch(endpoint: str, name: str) -> Subscriber:
    """A subscriber to readings that no door has followed for a second."""
    temp, door = types(name)
    with RuleManager(endpoint) as manager:
        manager.add(f"""
            event {temp.name}(n: int)
            event {door.name}(n: int)
            rule shut{name}: define Shut{name}(n: int)
            from Timer() as now and each {temp.name}() as seen within 5 s from now
                 and now.time - seen.time >= 1 s and now.time - seen.time < 2 s
                 and not {door.name}() between seen and now
            where n = seen.n
        """)
    return Subscriber(endpoint, f"Shut{name}()")


def test_a_rule_over_one_source_fires_at_once(endpoint: str) -> None:
    temp, _ = types("Once")
    with RuleManager(endpoint) as manager:
        manager.add(
            "event TempOnce(n: int) rule once: define Once(n: int) from TempOnce() as t "
            "where n = t.n"
        )
    with (
        Subscriber(endpoint, "Once()") as subscriber,
        Publisher(endpoint, name="once", types=[temp]) as publisher,
    ):
        for n in range(20):
            begun = time.monotonic()
            publisher.publish("TempOnce", n=n)
            assert subscriber.receive(WAIT_S).data["n"] == n
            took_s = time.monotonic() - begun
        assert took_s < sources.SILENT_S


def test_an_absence_is_found_while_nobody_publishes(endpoint: str) -> None:
    temp, door = types("Idle")
    with (
        watch(endpoint, "Idle") as shut,
        Publisher(endpoint, name="temps", types=[temp]) as temps,
        Publisher(endpoint, name="doors", types=[door]) as doors,
    ):
        doors.publish("DoorIdle", n=0)
        temps.publish("TempIdle", n=7)
        assert shut.receive(WAIT_S).data["n"] == 7


def test_so_it_is_with_asyncio_and_of_a_source_that_never_published(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SILENT_S", 0.5)
    temp, door = types("Never")

    async def publish() -> None:
        async with (
            AsyncPublisher(endpoint, name="never temps", types=[temp]) as temps,
            AsyncPublisher(endpoint, name="never doors", types=[door]),
        ):
            ends_at = time.monotonic() + sources.SILENT_S + 2 * SOON_S
            while time.monotonic() < ends_at:
                await temps.publish("TempNever", n=7)
                await asyncio.sleep(0.2)

    with watch(endpoint, "Never") as shut:
        asyncio.run(publish())
        assert shut.receive(WAIT_S).data["n"] == 7


@pytest.mark.parametrize("name", ["Time", "At", "Rows"])
def test_explicit_times_wait_and_the_log_says_what_to_say(
    endpoint: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    temp = EventType.of(f"Temp{name}", n="int")
    with RuleManager(endpoint) as manager:
        manager.add(
            f"event Temp{name}(n: int) rule all{name}: define All{name}(n: int) "
            f"from Temp{name}() as t where n = t.n"
        )
    now = time.time()
    with Subscriber(endpoint, f"All{name}()") as subscriber:
        with Publisher(endpoint, name=name, types=[temp]) as publisher:
            for late in range(2):  # the second is earlier than the first
                match name:
                    case "Time":
                        publisher.publish(temp.name, n=late, time=now - late)
                    case "At":
                        publisher.publish(temp.name, n=late, at=int((now - late) * 1e6))
                    case _:
                        rows = [{"n": late, "time": now - late}]
                        publisher.publish_batch(rows, type=temp.name)
            publisher.wait()
            with pytest.raises(TimeoutError):
                subscriber.receive(SOON_S)
        assert [subscriber.receive(WAIT_S).data["n"] for _ in range(2)] == [1, 0]
    said = [one for one in caplog.records if "explicit times promise nothing" in one.message]
    assert len(said) == 1
    assert "increasing=True" in said[0].fields["say"]


def test_an_explicit_time_behind_the_clock_s_promise_is_late_and_says_why(endpoint: str) -> None:
    temp = EventType.of("TempMixed", n="int")
    with Publisher(endpoint, name="mixed", types=[temp]) as publisher:
        publisher.publish("TempMixed", n=1).wait()
        with pytest.raises(LateEvents, match=r"promised by its clock: say increasing=True"):
            publisher.publish("TempMixed", n=2, time=time.time() - 60).wait()


def test_who_promises_by_hand_or_nothing_is_not_live(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sources, "SILENT_S", 0.0)
    temp = EventType.of("TempHand", n="int")
    for own in ({"live": False}, {"replay": True}, {"increasing": True}):
        with Publisher(endpoint, name=f"hand {own}", types=[temp], **own) as publisher:
            time.sleep(0.6)  # some promises by the clock
            publisher.publish("TempHand", n=1, time=1.5).wait()
    with Publisher(endpoint, name="by hand", types=[temp]) as publisher:
        publisher.promise(0)
        time.sleep(0.6)  # some promises by the clock
        publisher.publish("TempHand", n=1, time=1.5).wait()
    assert not caplog.records
