"""A broker that is alone, with a store, at which durable sinks come and go, turn by turn."""

import pytest
from alone import SYNC_S, TEMP, Alone, hello, values, with_source
from event_batches import batch_of_events

from matcher.model import Event, EventType
from routing.delivery.durable import WINDOW
from routing.effects import Store
from routing.messages import (
    Acknowledged,
    Advertise,
    Code,
    Confirmed,
    Credit,
    DealtWith,
    Delivery,
    Deploy,
    Goodbye,
    ListRules,
    LogPart,
    LogReceived,
    Promise,
    Publish,
    ReadLog,
    Refused,
    Remove,
    RemoveDurable,
    Rights,
    ShowQueue,
    ShowTrace,
    StatusRequest,
    Subscribe,
    Unsubscribe,
    WhenFull,
)
from routing.network.brokers import log_reader
from routing.serving import advertisements
from routing.storage import LogExtract

HOT = "rule hot: define Hot(n: int) from Temp(n > 0) where n = Temp.n"


def test_a_rule_whose_sources_had_all_closed_before_a_restart_goes_on_when_others_come() -> None:
    alone = Alone()
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.turn((b"m", hello()), (b"m", Deploy(1, HOT)))
    attached = Subscribe(1, 1, "Hot()", durable="billing"), Credit(100)
    alone.turn((b"k", hello()), *((b"k", one) for one in attached))
    alone.publish(b"s", 3)
    alone.turn((b"s", Promise(3_500)), (b"s", Goodbye()))
    assert values(alone.take(b"k", Delivery)) == [1, 2, 3]
    alone.turn((b"k", DealtWith(1, 3)), (b"k", Goodbye()))
    alone.fail()
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.turn((b"k", hello()), *((b"k", one) for one in attached))
    alone.publish(b"s", 3)
    alone.turn((b"s", Promise(20_000)))
    assert values(alone.take(b"k", Delivery)) == [4, 5, 6]


def test_a_sink_that_is_removed_and_made_again_in_one_turn_keeps_nothing_of_the_old_one() -> None:
    alone = with_source()
    alone.publish(b"s", 3)
    alone.publish(b"s", 4)
    assert alone.records() == {"durable": 1, "queue/billing": 2}
    alone.turn((b"m", hello()), (b"k", hello()))
    alone.turn(
        (b"m", RemoveDurable(1, "billing")),
        (b"k", Subscribe(1, 1, "Temp(n > 0)", durable="billing")),
        (b"k", Credit(100)),
    )
    assert alone.records().get("queue/billing", 0) == 0
    alone.publish(b"s", 2)
    alone.fail()
    alone.turn((b"l", hello()), (b"l", Subscribe(1, 1, "Temp(n > 0)", durable="billing")))
    alone.turn((b"l", Credit(100)))
    deliveries = alone.take(b"l", Delivery)
    assert (values(deliveries), deliveries[-1].number) == ([8, 9], 2)
    alone.turn((b"l", DealtWith(1, 2)))
    assert alone.records() == {"durable": 1, "queue/billing": 0}


def test_a_sink_that_is_made_and_removed_in_one_turn_leaves_nothing() -> None:
    alone = with_source()
    alone.turn((b"m", hello()), (b"k", hello()))
    alone.turn(
        (b"k", Subscribe(1, 1, "Temp()", durable="other")),
        (b"k", Goodbye()),
        (b"m", RemoveDurable(1, "other")),
    )
    alone.publish(b"s", 2)
    assert alone.records() == {"durable": 1, "queue/billing": 1}


def test_a_queue_that_is_longer_than_the_window_comes_whole_after_a_restart() -> None:
    alone, count = with_source(), 3 * WINDOW
    for _ in range(3 * 8):
        alone.publish(b"s", WINDOW // 8)
    (status,) = alone.broker.status(0.0)["durable"]
    assert (status["queued"], status["last"]) == (count, count)
    alone.fail()
    (again,) = alone.broker.status(0.0)["durable"]
    assert again == status
    came: list[int] = []
    alone.turn((b"k", hello()), (b"k", Subscribe(1, 1, "Temp()", durable="billing")))
    while len(came) < count:
        alone.turn((b"k", Credit(5_000)))
        deliveries = alone.take(b"k", Delivery)
        assert all(one.again for one in deliveries)
        came += values(deliveries)
        alone.turn((b"k", DealtWith(1, deliveries[-1].number)))
    assert came == list(range(1, count + 1))
    assert alone.records() == {"durable": 1, "queue/billing": 0}


def test_a_text_that_many_events_bear_is_not_shown_with_each() -> None:
    note, alone = EventType.of("Note", text="string"), Alone()
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (note,))))
    alone.turn((b"k", hello()), (b"k", Subscribe(1, 1, "Note()", durable="billing")))
    long = "x" * 600_000
    events = [Event("Note", n, "s", str(n), {"text": long}, n) for n in range(1, 101)]
    alone.turn((b"s", Publish((batch_of_events(note, events),))))
    alone.turn((b"k", ShowQueue(2, "billing")))
    detail = alone.take(b"k", Confirmed)[-1].detail
    assert [one["number"] for one in detail["events"]] == [1, 2]
    assert (detail["hidden"], detail["queued"]) == (48, 100)


class EmptyLog:
    """A log with nothing in it."""

    def read(self, request: ReadLog, *, cut: bool) -> LogExtract:
        return (), 0, 0


def test_one_user_leaves_turns_at_a_log_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "PARTS_AT_ONCE", 2)
    alone = with_source()
    alone.broker._parts.log_reader.log = EmptyLog()
    alone.broker.node.rights_of = lambda peer: Rights(peer.decode()[:-1])
    for peer in (b"bob1", b"bob2", b"bob3"):
        alone.turn((peer, hello()), (peer, ReadLog(7)))
    assert [len(alone.take(peer, LogPart)) for peer in (b"bob1", b"bob2", b"bob3")] == [1, 0, 0]
    alone.turn((b"alice1", hello()), (b"alice1", ReadLog(7)))
    alone.pass_time(1.0)
    assert alone.take(b"alice1", LogPart), "though two wait before it"
    assert not alone.take(b"bob2", LogPart)
    alone.turn((b"bob1", LogReceived(7)))
    alone.pass_time(1.0)
    assert [len(alone.take(peer, LogPart)) for peer in (b"bob2", b"bob3")] == [1, 0]


def test_bounds_by_bytes_and_age_hold_over_a_restart_and_what_they_cost_is_told() -> None:
    alone = with_source()
    sink = {"durable": "short", "when_full": WhenFull.DROP_OLDEST}
    asked = Subscribe(1, 1, "Temp()", limit_bytes=1_000, limit_age_s=60.0, **sink)
    alone.turn((b"k", hello()), (b"k", asked), (b"k", Goodbye()))
    for _ in range(20):
        alone.publish(b"s", 10)
    status = alone.broker.status(0.0)["durable"][1]
    assert status["dropped"] > 0
    assert status["dropped"] + status["queued"] == 200
    assert 500 < status["bytes"] <= 1_000
    alone.fail()
    alone.turn((b"k", hello()), (b"k", Subscribe(1, 1, "Temp()", **sink)), (b"k", Credit(1_000)))
    last = 200 - status["queued"]
    told = alone.take(b"k", Delivery)
    assert values(told) == list(range(last + 1, 201))
    assert [one.dropped for one in told] == [status["dropped"], *[0] * (len(told) - 1)]
    alone.fail()
    assert alone.broker.status(0.0)["durable"][1]["dropped"] == status["dropped"]
    alone.turn((b"k", hello()), (b"k", Subscribe(1, 1, "Temp()", **sink)), (b"k", Credit(1_000)))
    assert not any(one.dropped for one in alone.take(b"k", Delivery)), "it was told"
    alone.turn((b"k", Goodbye()))
    alone.pass_time(61.0)
    alone.turn((b"k", hello()), (b"k", Subscribe(1, 1, "Temp()", **sink)), (b"k", Credit(1_000)))
    assert alone.take(b"k", Delivery) == []
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.publish(b"s", 1)
    (delivery,) = alone.take(b"k", Delivery)
    assert (values([delivery]), delivery.dropped) == ([201], status["queued"])
    assert alone.records() == {"durable": 2, "queue/billing": 21, "queue/short": 1}


def test_a_store_without_room_stops_publishing_by_name_and_goes_on_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone, waiting = with_source(publish_credit=10), list[Store]()
    alone.take(b"s", Acknowledged)
    with monkeypatch.context() as disk:
        disk.setattr(alone.store, "ask", waiting.append)
        alone.broker.note_store("no space left on the disk", alone.simulation.now)
        alone.publish(b"s", 10)
        alone.turn((b"t", hello("t")), (b"t", Advertise(1, (TEMP,))))
    assert alone.take(b"s", Acknowledged) == alone.take(b"s", Credit) == []
    (refused,) = alone.take(b"t", Refused)
    assert refused.code is Code.STORE_FULL
    assert "no space left on the disk" in refused.reason
    room(alone, waiting)
    assert [one.sequence for one in alone.take(b"s", Acknowledged)] == [10]
    assert sum(one.events for one in alone.take(b"s", Credit)) == 10
    alone.turn((b"t", Advertise(2, (TEMP,))))
    alone.pass_time(1.0)
    assert alone.take(b"t", Confirmed)


def full(alone: Alone) -> list[Store]:
    """Have the disk be full from here on, with something that waits; gives what waits."""
    waiting: list[Store] = []
    alone.store.ask = waiting.append  # type: ignore[method-assign]
    alone.broker.note_store("no space left on the disk", alone.simulation.now)
    alone.publish(b"s", 1)
    assert waiting
    return waiting


def room(alone: Alone, waiting: list[Store]) -> None:
    """Have it take what waits, and all else again."""
    vars(alone.store).pop("ask", None)
    alone.broker.note_store(None, alone.simulation.now)
    for asked in waiting:
        alone.store.ask(asked)
    alone.pass_time(2 * SYNC_S)


def test_what_needs_nothing_of_a_full_disk_is_answered_at_once() -> None:
    alone = with_source()
    full(alone)
    looks = (
        StatusRequest(1),
        ListRules(2),
        Subscribe(3, 1, "Temp()"),
        Unsubscribe(4, 1),
        ShowTrace(5, "s#1"),
    )
    alone.turn((b"l", hello()), *((b"l", look) for look in looks))
    answers = {one.request: one.detail for one in alone.take(b"l", Confirmed)}
    assert answers.keys() == {1, 2, 3, 4, 5}
    assert answers[1]["store_problem"] == "no space left on the disk"
    assert answers[1]["store_behind_bytes"] > 0
    alone.turn((b"l", Goodbye("bye", Code.CLOSING)))
    assert alone.take(b"l", Goodbye)


def test_what_a_full_disk_cannot_keep_is_refused_by_name() -> None:
    alone = with_source()
    waiting = full(alone)
    asked = (
        Deploy(1, HOT),
        Remove(2, "hot"),
        Subscribe(3, 1, "Temp()", durable="billing"),
        RemoveDurable(4, "billing"),
        ReadLog(5),
    )
    alone.turn((b"l", hello()), *((b"l", request) for request in asked))
    refused = {one.request: one.code for one in alone.take(b"l", Refused)}
    assert refused == dict.fromkeys((1, 2, 3, 4, 5), Code.STORE_FULL)
    room(alone, waiting)
    alone.turn((b"l", Deploy(6, HOT)))
    alone.pass_time(1.0)
    assert [one.request for one in alone.take(b"l", Confirmed)] == [6]


def test_a_source_that_is_back_on_a_full_disk_waits_and_goes_on() -> None:
    alone = with_source()
    waiting = full(alone)
    alone.broker.lose(b"s", alone.simulation.now)
    alone.turn((b"s2", hello("s")), (b"s2", Advertise(1, (TEMP,))))
    alone.pass_time(1.0)
    assert alone.take(b"s2", Refused) == alone.take(b"s2", Confirmed) == []
    room(alone, waiting)
    assert [one.request for one in alone.take(b"s2", Confirmed)] == [1]


def test_long_filters_leave_the_status_short() -> None:
    """Health is told by the status: who may subscribe could make it longer than messages may be."""
    alone = with_source()
    spaces = " " * 60_000
    for peer, durable in ((b"k", ""), (b"d", "billing")):
        alone.turn((peer, hello()))
        for number in range(2, 12):
            text = f"Temp(n > {number}{spaces})"
            alone.turn((peer, Subscribe(number, number, text, durable=durable)))
        assert len(alone.take(peer, Confirmed)) == 10
    assert len(str(alone.broker.status(alone.simulation.now))) < 60_000


def test_types_with_long_names_leave_a_status_that_can_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advertisements, "NAMES_BYTES_MAX", 1 << 30)
    alone = with_source()
    wide = [
        EventType.of(f"Wide{number}", **{f"{place:03}{'n' * 240}": "int" for place in range(250)})
        for number in range(300)
    ]
    alone.turn((b"m", hello("m")), (b"m", Advertise(1, tuple(wide))))
    alone.pass_time(1.0)
    assert len(alone.take(b"m", Confirmed)) == 1
    status = alone.broker.status(alone.simulation.now)
    assert len(str(status)) < 2**24 + 2**20
    names = [one["name"] for one in status["types"]]
    assert "Temp" in names, "the longest are left out"
    assert status["left_out"] == {"types": 301 - len(names)}
