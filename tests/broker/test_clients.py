"""Publishers, subscribers and rule managers against a real broker, in both forms."""

import asyncio
import itertools
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from two_brokers import two_brokers

from broker import (
    AsyncPublisher,
    AsyncRuleManager,
    AsyncSubscriber,
    BrokerUnreachable,
    ClientClosed,
    LateEvents,
    PublishBlocked,
    Publisher,
    RefusedError,
    RuleManager,
    Subscriber,
)
from broker.client.rule_requests import deploying, removing
from broker.errors import ConfigurationError
from matcher.errors import BadEvent, SchemaError
from matcher.model import MICROSECONDS, Event, EventBatch, EventIds, EventType, StringColumn
from routing.messages import StatusRequest

SECOND = MICROSECONDS


def hot(temp, limit=45):
    """A rule ``Hot...`` over a test's own type, and its name."""
    name = f"Hot{temp.name}"
    text = f"define {name}(v: float) from {temp.name}(value > {limit}) as t where v = t.value"
    return name, text


def received(subscriber, count):
    return [subscriber.receive(timeout_s=10) for _ in range(count)]


def test_an_event_goes_from_a_publisher_to_a_subscriber(endpoint, temp):
    with (
        Publisher(endpoint, name="one", types=[temp]) as publisher,
        Subscriber(endpoint, f"{temp.name}(value > 20)") as subscriber,
    ):
        publisher.publish(temp.name, area="cold", value=1.0, at=SECOND)
        publisher.publish(temp.name, {"area": "hot", "value": 46.5}, at=2 * SECOND, id="a-17")
        event = subscriber.receive(timeout_s=10)
    assert event == Event(
        temp.name, 2 * SECOND, "one", "a-17", {"area": "hot", "value": 46.5}, event.sequence
    )


def test_nulls_go_from_publishers_through_rules_to_subscribers(endpoint, temp):
    name = temp.name
    leaky = EventType.of(f"{name}Leaky", area="string?", value="float?", n="int")
    text = f"""define {name}Lost(n: int) from {leaky.name}(value is null) as e where n = e.n
    define {name}Twice(twice: float?) from {leaky.name}() as e where twice = e.value * 2"""
    with (
        Publisher(endpoint, name="one", types=[leaky]) as publisher,
        RuleManager(endpoint) as manager,
    ):
        manager.add(text)
        with (
            Subscriber(endpoint, f"{leaky.name}(value > -1)") as there,
            Subscriber(endpoint, f"{leaky.name}(value is null and area is not null)") as lost,
            Subscriber(endpoint, f"{name}Lost") as found,
            Subscriber(endpoint, f"{name}Twice") as twice,
        ):
            publisher.publish(leaky.name, area="a", value=None, n=1, at=SECOND)
            publisher.publish(leaky.name, area="b", value=0.5, n=2, at=2 * SECOND)
            publisher.publish(leaky.name, n=3, at=3 * SECOND)
            rows = [{"time": 4 + n, "area": "c", "value": None, "n": n} for n in range(4, 24)]
            publisher.publish_batch(rows, type=leaky.name)
            with pytest.raises(BadEvent, match="attribute n: expected int, found null"):
                publisher.publish(leaky.name, n=None)
            publisher.promise(60 * SECOND)
            assert there.receive(timeout_s=10).data == {"area": "b", "value": 0.5, "n": 2}
            assert lost.receive(timeout_s=10).data == {"area": "a", "value": None, "n": 1}
            assert [one.data["n"] for one in received(found, 22)] == [1, 3, *range(4, 24)]
            assert [one.data["twice"] for one in received(twice, 3)] == [None, 1.0, None]
        manager.remove(f"{name}Lost")
        manager.remove(f"{name}Twice")


BAD_WHATEVER_THE_TYPE = [
    ("Unheard(value > $a)", ":1:17: a subscription has no parameters"),
    ("Unheard(value > Wind.speed)", ":1:17: a subscription knows one event"),
    ("Unheard(value > Count(Wind() within 5 min from Unheard))", "has no aggregates"),
    ("Unheard(value prefix 3)", ":1:9: prefix compares strings"),
]
"""Filters of a type that nobody knows, and what is wrong with them all the same."""


@pytest.mark.parametrize(("text", "message"), BAD_WHATEVER_THE_TYPE)
def test_a_filter_of_an_unknown_type_is_checked_when_it_is_made(endpoint, text, message):
    with pytest.raises(RefusedError, match=message) as caught:
        Subscriber(endpoint, "Unheard(value > 3)", text)
    assert caught.value.code == "bad-filter"

    async def subscribe():
        async with AsyncSubscriber(endpoint, "Unheard(value > 3)") as subscriber:
            await subscriber.subscribe(text)

    with pytest.raises(RefusedError, match=message):
        asyncio.run(subscribe())


def test_a_filter_of_an_unknown_type_that_waits_is_logged(endpoint, caplog):
    with Subscriber(endpoint, "Unheard(value > 3)"):
        pass
    assert [record.fields for record in caplog.records] == [{"filter": "Unheard(value > 3)"}]


def test_rows_of_the_event_model_can_be_published(endpoint, temp):
    row = Event(temp.name, 5, "ignored", "x-1", {"area": "a", "value": 1.5})
    with (
        Publisher(endpoint, name="rows", types=[temp]) as publisher,
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
    ):
        publisher.publish(row)
        event = subscriber.receive(timeout_s=10)
    assert (event.source, event.id, event.time, dict(event.data)) == ("rows", "x-1", 5, row.data)


def test_an_event_without_a_time_is_stamped_now_and_in_order(endpoint, temp):
    with (
        Publisher(endpoint, name="stamped", types=[temp], increasing=True) as publisher,
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
    ):
        before = time.time()
        for number in range(100):
            publisher.publish(temp.name, area="a", value=number)
        times = [event.time / MICROSECONDS for event in received(subscriber, 100)]
    assert before - 0.001 <= times[0] <= times[-1] <= time.time() + 0.001
    assert all(earlier < later for earlier, later in itertools.pairwise(times))


def batch_forms(temp):
    rows = [{"area": "a", "value": 1.5, "time": 1.5}, {"area": "b", "value": 2.5, "time": 2.5}]
    ids = EventIds(StringColumn.constant("x", 2), np.arange(2))
    columns = (StringColumn.from_strings(["a", "b"]), np.array([1.5, 2.5]))
    batch = EventBatch(temp, np.array([1_500_000, 2_500_000]), ids, columns)
    table = pa.Table.from_pylist(rows)
    return {"rows": rows, "batch": batch, "table": table, "record": table.to_batches()[0]}


@pytest.mark.parametrize("form", ["rows", "batch", "table", "record"])
def test_many_events_can_be_published_in_every_form(endpoint, temp, form):
    with (
        Publisher(endpoint, name=f"many {form}", types=[temp]) as publisher,
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
    ):
        publisher.publish_batch(
            batch_forms(temp)[form], type=None if form == "batch" else temp.name
        )
        events = received(subscriber, 2)
    assert [(e.time, dict(e.data)) for e in events] == [
        (1_500_000, {"area": "a", "value": 1.5}),
        (2_500_000, {"area": "b", "value": 2.5}),
    ]


def test_a_large_batch_arrives_whole_and_in_order(endpoint, temp):
    count = 50_000
    ids = EventIds(StringColumn.constant("", count), np.arange(count))
    columns = (StringColumn.constant("a", count), np.arange(count, dtype=np.float64))
    batch = EventBatch(temp, np.arange(count), ids, columns)
    with (
        Publisher(endpoint, name="large") as publisher,
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
    ):
        publisher.publish_batch(batch)
        values = []
        while len(values) < count:
            delivery = subscriber.receive_delivery(timeout_s=10)
            assert delivery.order is None
            for part in delivery.batches:
                values.extend(part.column("value").tolist())
    assert values == list(range(count))


def test_events_given_one_by_one_and_in_batches_keep_their_order(endpoint, temp):
    with (
        Publisher(endpoint, name="mixed", types=[temp], delay_s=10.0) as publisher,
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
    ):
        for start in range(0, 30, 3):
            publisher.publish(temp.name, area="a", value=start, at=start)
            rows = [{"area": "b", "value": start + n, "time": 0} for n in (1, 2)]
            publisher.publish_batch(rows)
        values = [event.data["value"] for event in received(subscriber, 30)]
    assert values == list(range(30))


def test_the_callers_mistakes_are_raised_at_once(endpoint, temp):
    with Publisher(endpoint, name="mistaken", types=[temp]) as publisher:
        with pytest.raises(BadEvent, match="attribute value: expected float, found string"):
            publisher.publish(temp.name, area="a", value="hot")
        with pytest.raises(SchemaError, match="event type Other was not advertised"):
            publisher.publish("Other", value=1)
        with pytest.raises(SchemaError, match="event type Other was not advertised"):
            publisher.publish_batch([{"value": 1}], type="Other")
        with pytest.raises(BadEvent, match="row 2"):
            publisher.publish_batch([{"area": "a", "value": 1}, {"area": "a"}])
    with pytest.raises(ClientClosed):
        publisher.publish(temp.name, area="a", value=1.0)


@pytest.mark.parametrize("increasing", [True, False])
def test_what_is_refused_as_ahead_of_the_clock_binds_nothing_that_follows(
    endpoint, temp, increasing
):
    """Events without times were stamped behind it, and so refused for ever; times that increase had
    to be beyond it.
    """
    with (
        Publisher(endpoint, name="hasty", types=[temp], increasing=increasing) as publisher,
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
    ):

        def publish(value):
            publisher.publish(temp.name, area="a", value=value)
            publisher.wait()

        publish(1.0)
        publisher.publish(temp.name, area="a", value=2.0, at=2_000_000_000 * SECOND)
        with pytest.raises(RefusedError, match="more than 300 s") as refused:
            publisher.wait()
        assert refused.value.code == "ahead"
        publisher.promise(2_000_000_000 * SECOND)
        with pytest.raises(RefusedError, match="a promise ahead of the clock"):
            publish(2.5)
        publish(3.0)
        values = [event.data["value"] for event in received(subscriber, 2)]
        assert (values[0], publisher.rejected) == (1.0, 1)
    with Publisher(endpoint, name="replay", types=[temp], replay=True) as publisher:
        publisher.publish(temp.name, area="a", value=4.0, at=2_000_000_000 * SECOND)
        publisher.promise(2_000_000_001 * SECOND)
        publisher.wait()


PROBE = EventType.of("Probe", n="int", at="float", id="string")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"at": 2.0, "id": "x"}, "attribute at is missing: at=... was taken for the event's time"),
        ({"id": "x"}, "attribute id is missing: id=... was taken for the event's id"),
        ({}, "attribute at is missing$"),
    ],
)
def test_attributes_called_as_arguments_are_given_in_a_dict(endpoint, given, reason):
    with Publisher(endpoint, name="probe", types=[PROBE]) as publisher:
        with pytest.raises(BadEvent, match=reason):
            publisher.publish("Probe", n=1, **given)
        publisher.publish("Probe", {"at": 2.0, "id": "x"}, n=1, at=7, id="seven")

    async def publish():
        async with AsyncPublisher(endpoint, name="probe", types=[PROBE]) as publisher:
            with pytest.raises(BadEvent, match=reason):
                await publisher.publish("Probe", n=1, **given)
            await publisher.publish("Probe", {"at": 2.0, "id": "x"}, n=1)

    asyncio.run(publish())


def test_a_time_that_is_a_float_is_refused(endpoint, temp):
    with (
        Publisher(endpoint, name="float", types=[temp]) as publisher,
        pytest.raises(BadEvent, match="at: expected microseconds as an int, or a datetime"),
    ):
        publisher.publish(temp.name, area="a", value=1.0, at=2.5)


def test_times_that_should_increase_and_do_not_are_refused(endpoint, temp):
    with Publisher(endpoint, name="increasing", types=[temp], increasing=True) as publisher:
        publisher.publish(temp.name, area="a", value=1.0, at=10)
        with pytest.raises(BadEvent, match="does not increase"):
            publisher.publish(temp.name, area="a", value=1.0, at=10)


def test_a_schema_that_disagrees_with_anothers_is_refused(endpoint, temp):
    other = EventType.of(temp.name, area="int")
    with Publisher(endpoint, name="first schema", types=[temp]):
        with pytest.raises(RefusedError, match=temp.name) as caught:
            Publisher(endpoint, name="second schema", types=[other])
        assert caught.value.code == "schema"


def test_a_second_live_client_of_a_name_is_refused(endpoint, temp):
    with Publisher(endpoint, name="the one", types=[temp]):
        with pytest.raises(RefusedError, match="the one") as caught:
            Publisher(endpoint, name="the one", types=[temp], connect_timeout_s=0.3)
        assert caught.value.code == "name-taken"


def test_late_events_are_refused_by_name(endpoint, temp):
    publisher = Publisher(endpoint, name="late", types=[temp])
    publisher.promise(10 * SECOND)
    publisher.publish(temp.name, area="a", value=1.0, at=9 * SECOND)
    with pytest.raises(LateEvents):
        publisher.wait()
    assert publisher.rejected == 1
    publisher.close()


def test_a_filter_that_is_refused_says_where_and_why(endpoint, temp):
    with pytest.raises(RefusedError) as caught:
        Subscriber(endpoint, f"{temp.name}(value >)")
    assert caught.value.code == "bad-filter"
    assert "^" in str(caught.value)


def test_rules_are_deployed_listed_shown_replaced_and_removed(endpoint, temp):
    name, text = hot(temp)
    with Publisher(endpoint, name="for rules", types=[temp]), RuleManager(endpoint) as manager:
        assert [rule["name"] for rule in manager.add(text)["rules"]] == [name]
        with pytest.raises(RefusedError, match=name):
            manager.add(text)
        manager.replace(hot(temp, 50)[1])
        assert "50" in manager.show(name)["text"]
        assert name in [rule["name"] for rule in manager.list()]
        manager.remove(name)
        assert name not in [rule["name"] for rule in manager.list()]
        with pytest.raises(RefusedError, match=name) as caught:
            manager.remove(name)
        assert caught.value.code == "unknown"


RULES = """event Spark(n: int)
rule lit{0}: define Lit{0}(n: int) from Spark(n > 1) as s where n = s.n
rule out{0}: define Out{0}(n: int) from Spark(n < 1) as s where n = s.n
"""
UNKNOWN = RefusedError("the network changed before the answer came", "silent")


def look(manager, steps):
    """Take the steps of a request whose first answer has been lost on its way."""
    request = steps.throw(UNKNOWN)
    try:
        while True:
            request = steps.send(manager._carry(request))
    except StopIteration as done:
        return done.value


def test_a_manager_looks_itself_whether_its_rules_run_when_the_answer_is_lost(endpoint):
    text = RULES.format(1)
    with RuleManager(endpoint) as manager:
        steps = deploying(manager._session, text, False, "f")
        manager._carry(next(steps))
        found = look(manager, steps)
        assert [(one["name"], one["state"]) for one in found["rules"]] == [
            ("lit1", "waiting"),
            ("out1", "waiting"),
        ]
        steps = removing(manager._session, "out1")
        manager._carry(next(steps))
        assert look(manager, steps)["name"] == "out1"
        # One of the two is gone, then another's, and nothing was done.
        for other in (text, text.replace("n > 1", "n > 2")):
            steps = deploying(manager._session, other, True, "f")
            next(steps)
            with pytest.raises(RefusedError, match="came; the list of rules does not have them"):
                look(manager, steps)
        steps = removing(manager._session, "lit1")
        next(steps)
        with pytest.raises(RefusedError, match="came; the list of rules has lit1 still"):
            look(manager, steps)
        manager.remove("lit1")


def test_a_rule_that_is_refused_points_at_its_text(endpoint):
    with RuleManager(endpoint) as manager, pytest.raises(RefusedError) as caught:
        manager.add("define Fire() from Smoke(area = ", file="fire.tesla")
    assert caught.value.code == "bad-rules"
    assert "fire.tesla:1:" in str(caught.value)


def test_a_rule_fires_at_once_for_a_source_whose_times_increase(endpoint, temp):
    name, rule = hot(temp)
    with (
        Publisher(endpoint, name="quick", types=[temp], increasing=True) as publisher,
        RuleManager(endpoint) as manager,
        Subscriber(endpoint, f"{name}()") as subscriber,
    ):
        manager.add(rule)
        publisher.publish(temp.name, area="a", value=46.0)
        event = subscriber.receive(timeout_s=10)
        assert event.data == {"v": 46.0}
        assert len(event.cause) == 1
        manager.remove(name)


def test_a_live_source_promises_by_its_clock_while_it_is_idle(endpoint, temp):
    name, rule = hot(temp)
    with (
        Publisher(
            endpoint, name="live", types=[temp], disorder=timedelta(seconds=0.1)
        ) as publisher,
        RuleManager(endpoint) as manager,
        Subscriber(endpoint, f"{name}()") as subscriber,
    ):
        manager.add(rule)
        publisher.publish(temp.name, area="a", value=46.0)
        assert subscriber.receive(timeout_s=10).data == {"v": 46.0}
        manager.remove(name)


def test_the_slowest_of_two_publishers_holds_a_rule_back(endpoint, temp):
    name, rule = hot(temp)
    with (
        Publisher(endpoint, name="ahead", types=[temp]) as ahead,
        Publisher(endpoint, name="an hour behind", types=[temp]) as behind,
        RuleManager(endpoint) as manager,
        Subscriber(endpoint, f"{name}()") as subscriber,
    ):
        manager.add(rule)
        ahead.publish(temp.name, area="a", value=50.0, at=7200 * SECOND)
        ahead.promise(7201 * SECOND)
        ahead.wait()
        behind.publish(temp.name, area="a", value=60.0, at=3600 * SECOND)
        behind.promise(3601 * SECOND)
        assert subscriber.receive(timeout_s=10).data == {"v": 60.0}
        with pytest.raises(TimeoutError):
            subscriber.receive(timeout_s=0.2)
        behind.promise(datetime.fromtimestamp(7201, UTC))
        assert subscriber.receive(timeout_s=10).data == {"v": 50.0}
        manager.remove(name)


def test_where_no_rule_looks_a_later_publisher_may_bring_earlier_events(endpoint, temp):
    with Publisher(endpoint, name=f"now {temp.name}", types=[temp]) as publisher:
        publisher.publish(temp.name, area="a1", value=1.0)
    with Publisher(endpoint, name=f"once {temp.name}", types=[temp]) as publisher:
        publisher.publish(temp.name, area="a1", value=2.0, at=0)
        publisher.wait()
        assert publisher.rejected == 0


def test_a_subscription_can_be_ended(endpoint, temp):
    with (
        Publisher(endpoint, name="ended", types=[temp]) as publisher,
        Subscriber(endpoint) as subscriber,
    ):
        hot = subscriber.subscribe(f"{temp.name}(value > 20)")
        subscriber.subscribe(f'{temp.name}(area = "end")')
        publisher.publish(temp.name, area="a", value=30.0)
        assert subscriber.receive(timeout_s=10).data["value"] == 30.0
        subscriber.unsubscribe(hot)
        publisher.publish(temp.name, area="a", value=40.0)
        publisher.publish(temp.name, area="end", value=0.0)
        assert subscriber.receive(timeout_s=10).data["area"] == "end"


def test_closing_a_subscriber_ends_its_iteration(endpoint, temp):
    with Publisher(endpoint, name="iterated", types=[temp]) as publisher:
        subscriber = Subscriber(endpoint, f"{temp.name}()")
        publisher.publish(temp.name, area="a", value=1.0)
        seen = []
        for event in subscriber:
            seen.append(event.data["value"])
            subscriber.close()
    assert seen == [1.0]


def test_publishing_without_acknowledgements(endpoint, temp):
    with (
        Subscriber(endpoint, f"{temp.name}()") as subscriber,
        Publisher(endpoint, name="careless", types=[temp], acks="none") as publisher,
    ):
        for number in range(10):
            publisher.publish(temp.name, area="a", value=number)
        publisher.flush()
        assert [event.data["value"] for event in received(subscriber, 10)] == list(range(10))


def test_up_to_where_events_are_acknowledged_can_be_waited_for_and_is_told(endpoint, temp):
    told = []
    with Publisher(endpoint, name="told", types=[temp], on_ack=told.append) as publisher:
        publisher.publish(temp.name, area="a", value=1.0)
        first = publisher.published
        publisher.wait(up_to=first)
        for value in range(2_000):
            publisher.publish(temp.name, area="a", value=float(value))
        assert publisher.published == first + 2_000
        publisher.wait(up_to=first + 1_000)
        assert publisher.unacknowledged <= 1_000
    assert told == sorted(told)
    assert told[-1] == first + 2_000


def test_the_same_with_asyncio(endpoint, temp):
    async def publish():
        told = []
        given = {"name": "told async", "types": [temp], "on_ack": told.append}
        async with AsyncPublisher(endpoint, **given) as publisher:
            await publisher.publish(temp.name, area="a", value=1.0)
            await publisher.wait(up_to=publisher.published)
            last = publisher.published
        return told[-1] == last

    assert asyncio.run(publish())


def test_a_port_beyond_the_range_is_refused_and_not_taken_modulo():
    with pytest.raises(ConfigurationError, match="at most 65535"):
        Publisher("tcp://127.0.0.1:99999", name="far out")


def test_a_name_with_a_line_end_is_refused(broker):
    with pytest.raises(RefusedError, match="cannot be printed"):
        Publisher(broker.endpoint, name="two\nlines")


def test_no_broker_is_a_clear_error():
    with pytest.raises(BrokerUnreachable, match="no broker answers at tcp"):
        Publisher("tcp://127.0.0.1:1", name="lonely", connect_timeout_s=0.3)


@pytest.mark.parametrize(
    "arguments",
    [{"acks": "all"}, {"batch_events": 0}, {"increasing": True, "disorder": timedelta(seconds=1)}],
)
def test_arguments_that_make_no_sense_are_refused(endpoint, arguments):
    with pytest.raises(ValueError, match=r"acks|batch_events|increasing"):
        Publisher(endpoint, name="nonsense", **arguments)


def test_the_asynchronous_clients_do_the_same(endpoint, temp):
    name, rule = hot(temp)

    async def story():
        async with (
            AsyncPublisher(endpoint, name="async", types=[temp], increasing=True) as publisher,
            AsyncRuleManager(endpoint) as manager,
            AsyncSubscriber(endpoint, f"{name}()", f"{temp.name}(value < 20)") as subscriber,
        ):
            await manager.add(rule)
            assert name in [one["name"] for one in await manager.list()]
            assert (await manager.status())["rules"]
            await publisher.publish(temp.name, area="a", value=1.0, at=SECOND)
            await publisher.publish_batch([{"area": "b", "value": 50.0, "time": 2}])
            await publisher.wait()
            seen = []
            async for event in subscriber:
                seen.append((event.type, event.time))
                if len(seen) == 2:
                    break
            with pytest.raises(TimeoutError):
                await subscriber.receive(timeout_s=0.05)
            number = await subscriber.subscribe(f"{temp.name}()")
            await subscriber.unsubscribe(number)
            await manager.remove(name)
            with pytest.raises(RefusedError, match=name):
                await manager.show(name)
            with pytest.raises(BadEvent):
                await publisher.publish(temp.name, area="a", value="x")
            return seen

    assert asyncio.run(story()) == [(temp.name, SECOND), (name, 2 * SECOND)]


def test_who_gives_up_asking_loses_nothing_that_comes_with_the_answer(endpoint, temp):
    """The answer found nobody, and what had come behind it was dropped."""

    async def story():
        async with AsyncSubscriber(endpoint, f"{temp.name}()") as subscriber:
            asking = asyncio.create_task(subscriber.subscribe(f"{temp.name}(value > 1)"))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.sleep(0)
            with Publisher(endpoint, name=f"by {temp.name}", types=[temp]) as publisher:
                publisher.publish(temp.name, area="a", value=5.0)
            time.sleep(0.2)  # the answer and the event wait in the socket
            return (await subscriber.receive(timeout_s=5)).data["value"]

    assert asyncio.run(story()) == 5.0


def test_times_increase_over_batches_too(endpoint, temp):
    """What was published next was gathered with a time that the session then refused, elsewhere."""
    with Publisher(endpoint, name=f"by {temp.name}", types=[temp], increasing=True) as publisher:
        publisher.publish_batch([{"area": "b", "value": 50.0, "time": 2}], type=temp.name)
        with pytest.raises(BadEvent, match="does not increase"):
            publisher.publish(temp.name, area="a", value=1.0, at=SECOND)


def test_who_was_refused_for_good_says_what_the_broker_may_not_have(endpoint, temp):
    publisher = Publisher(endpoint, name=f"by {temp.name}", types=[temp])
    with publisher._driver.lock:
        publisher._source.session.publish(  # behind the back of the client
            publisher._source.batches([{"area": "a", "value": 1.0, "time": 1}], temp.name),
            0.0,
            None,
            numbered=False,
        )
        publisher._source.session.effects.clear()  # it never leaves, so no answer comes
        publisher._source.connection.fail(RefusedError("refused", "protocol"))
    with pytest.raises(PublishBlocked, match="1 events are not acknowledged: refused"):
        publisher.close()


def test_who_closes_with_a_refusal_to_raise_leaves_nothing_behind(endpoint, temp):
    with Subscriber(endpoint, temp.name) as subscriber:
        publisher = Publisher(endpoint, name=f"closing {temp.name}", types=[temp], delay_s=5.0)
        publisher.promise(10)
        publisher.publish(temp.name, area="a", value=0.0, at=5)
        assert publisher._driver.ask(lambda: publisher._source.session.ask(StatusRequest), 5)
        with suppress(LateEvents):
            for value in (1.0, 2.0, 3.0):
                publisher.publish(temp.name, area="a", value=value, at=20)
        with suppress(LateEvents):
            publisher.close()
        assert publisher.unacknowledged == 0
        assert publisher.rejected == 1
        published = publisher.published - 1
        assert len(received(subscriber, published)) == published


def test_the_asynchronous_publisher_hears_of_late_events(endpoint, temp):
    async def story():
        async with AsyncPublisher(endpoint, name="async late", types=[temp]) as publisher:
            await publisher.promise(10)
            await publisher.publish(temp.name, area="a", value=1.0, at=9)
            with pytest.raises(LateEvents):
                await publisher.wait()
            await publisher.flush()

    asyncio.run(story())


def test_the_asynchronous_client_says_when_there_is_no_broker():
    async def story():
        async with AsyncSubscriber("tcp://127.0.0.1:1", "T()", connect_timeout_s=0.3):
            pass

    with pytest.raises(BrokerUnreachable):
        asyncio.run(story())


def test_a_publisher_that_pauses_keeps_its_promise_until_another_goes_on(endpoint, temp):
    name, text = hot(temp)
    with RuleManager(endpoint) as manager, Subscriber(endpoint, f"{name}()") as subscriber:
        other = Publisher(endpoint, name="other half", types=[temp])
        first = Publisher(endpoint, name="one half", types=[temp])
        manager.add(text)
        first.promise(10 * SECOND)
        first.pause()
        other.publish(temp.name, area="a", value=46.0, at=5 * SECOND)
        other.publish(temp.name, area="a", value=47.0, at=15 * SECOND)
        other.close()
        assert subscriber.receive(timeout_s=10).time == 5 * SECOND
        with pytest.raises(TimeoutError):
            subscriber.receive(timeout_s=0.3)
        with Publisher(endpoint, name="one half", types=[temp]) as second:
            second.publish(temp.name, area="a", value=48.0, at=12 * SECOND)
        times = [event.time // SECOND for event in received(subscriber, 2)]
    assert times == [12, 15]


# --- all types ---------------------------------------------------------------------------------


def check_all_types(near: str, far: str) -> None:
    """A sink of all types has those that are known, that come later, and that rules define, though
    each be published at the other broker, ``far``.
    """
    first, second = EventType.of("AllFirst", n="int"), EventType.of("All second", n="int")
    with Publisher(far, name="all/1", types=[first]) as one, Subscriber(near, "*") as subscriber:
        one.publish("AllFirst", n=1)
        assert subscriber.receive(timeout_s=20).type == "AllFirst"
        with (
            Publisher(far, name="all/2", types=[second], increasing=True) as other,
            RuleManager(far) as manager,
        ):
            other.wait()
            manager.add("rule all: define AllThird(n) from `All second`(n = $n) where n = $n")
            found: set[str] = set()
            for _ in range(200):  # a subscription takes a while to spread
                other.publish("All second", n=2)
                with suppress(TimeoutError):
                    found |= {subscriber.receive(timeout_s=0.1).type}
                if len(found) == 2:
                    break
            manager.remove("all")
        assert found == {"All second", "AllThird"}


def test_a_subscription_to_all_types_has_those_that_come_later_too(endpoint):
    check_all_types(endpoint, endpoint)


def test_a_subscription_to_all_types_reaches_through_a_network():
    with two_brokers() as (first, second):
        check_all_types(first.endpoint, second.endpoint)


def test_the_first_event_of_a_new_type_reaches_a_subscription_to_all_types(endpoint):
    with Subscriber(endpoint, "*") as subscriber:
        number = subscriber.subscribe("AllOnce(n > 1)")
        once = EventType.of("AllOnce", n="int")
        with Publisher(endpoint, name="all/once", types=[once]) as publisher:
            publisher.publish("AllOnce", n=1)
            publisher.publish("AllOnce", n=2)
            deliveries = [subscriber.receive_delivery(timeout_s=10)]
            while sum(map(len, deliveries)) < 2:
                deliveries.append(subscriber.receive_delivery(timeout_s=10))
        told = [numbers for one in deliveries for numbers in one.subscriptions]
        assert sorted(told) == [(number - 1,), (number - 1, number)]
        subscriber.unsubscribe(number - 1)
        with Publisher(endpoint, name="all/twice", types=[once]) as publisher:
            publisher.publish("AllOnce", n=3)
            delivery = subscriber.receive_delivery(timeout_s=10)
        assert list(delivery.subscriptions) == [(number,)]
