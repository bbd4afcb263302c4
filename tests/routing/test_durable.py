"""Durable sinks: numbers, acknowledgements, what comes again, clients that share one, a restart."""

from random import Random

import numpy as np
import pytest
from event_batches import batch_of_events

from matcher.model import Event, EventType
from routing.config import NodeConfig
from routing.delivery.durable import Durables, DurableSink, Numbered
from routing.delivery.parcel import Parcel
from routing.delivery.sinks import Sinks
from routing.errors import Refusal
from routing.given import Given
from routing.messages import Act, Delivery, Permit, Rights, Subscribe, WhenFull
from routing.serving.deployment import Deployments

TEMP = EventType.of("Temp", n="int")
MOST = 2**31 - 1


def parcel(*values: int) -> Parcel:
    """Temps of these values, which are their times, too; subscription 1 wants them."""
    events = [Event("Temp", one, "s", str(one), {"n": one}, one) for one in values]
    return Parcel.of((batch_of_events(TEMP, events),), ((1,),))


def sink(limit: int = 100, when_full: WhenFull = WhenFull.BLOCK) -> DurableSink:
    """A sink of which all is kept at once."""
    return DurableSink("billing", when_full, limit, keep)


def keep(changed: DurableSink) -> None:
    changed.kept = changed.last


def attach(to: DurableSink, peer: bytes, credit: int = 100) -> None:
    to.attach(peer).numbers[7] = 1
    to.grant(peer, credit, MOST)


def values(delivery: Delivery | None) -> list[int]:
    assert delivery is not None
    return [n for batch in delivery.batches for n in batch.columns[0].tolist()]


def test_events_are_numbered_and_come_again_from_the_first_that_was_not_acknowledged() -> None:
    billing = sink()
    attach(billing, b"one")
    for n in range(1, 6):
        billing.offer(parcel(n))
    delivery = billing.take(100)
    assert delivery is not None
    assert (values(delivery), delivery.number, delivery.again) == ([1, 2, 3, 4, 5], 5, False)
    assert delivery.subscriptions == ((7,),) * 5, "the client's own number"
    assert billing.acknowledge(b"one", 3) == 3
    assert billing.acknowledged == 3
    billing.detach(b"one")
    billing.offer(parcel(6))
    attach(billing, b"two")
    again, new = billing.take(100), billing.take(100)
    assert again is not None
    assert new is not None
    assert (values(again), again.number, again.again) == ([4, 5], 5, True)
    assert (values(new), new.number, new.again) == ([6], 6, False)
    assert billing.to == b"two"


def test_what_is_not_kept_yet_does_not_leave() -> None:
    billing = DurableSink("billing", WhenFull.BLOCK, 100, lambda changed: None)
    attach(billing, b"one")
    billing.offer(parcel(1, 2))
    billing.offer(parcel(3))
    assert billing.take(100) is None
    billing.kept = 2
    assert values(billing.take(100)) == [1, 2]
    assert billing.take(100) is None
    billing.kept = 3
    assert values(billing.take(100)) == [3]


def test_part_of_a_batch_can_be_acknowledged() -> None:
    billing = sink()
    attach(billing, b"one")
    billing.offer(parcel(1, 2, 3, 4))
    billing.take(100)
    assert [billing.acknowledge(b"one", number) for number in (2, 2, 3, 9)] == [2, 0, 1, 1]
    assert billing.acknowledged == 4


def test_clients_of_one_name_share_its_events() -> None:
    billing = sink()
    attach(billing, b"one", credit=2)
    attach(billing, b"two")
    billing.offer(parcel(*range(1, 8)))
    given = {b"one": list[int](), b"two": list[int]()}
    while (delivery := billing.take(3)) is not None:
        given[billing.to] += values(delivery)
    assert given == {b"one": [1, 2], b"two": [3, 4, 5, 6, 7]}
    billing.acknowledge(b"two", 7)
    assert billing.acknowledged == 0, "one has not said that it has dealt with its own"
    billing.detach(b"one")
    billing.grant(b"two", 10, MOST)
    assert values(billing.take(100)) == [1, 2]


def test_what_exceeds_the_queue_is_dropped_and_told_with_what_comes_next() -> None:
    billing = sink(limit=3, when_full=WhenFull.DROP_OLDEST)
    for n in range(1, 6):
        billing.offer(parcel(n))
    assert billing.excess == 2
    assert billing.drop_oldest() == 2
    assert billing.acknowledged == 2, "what was dropped does not come again"
    attach(billing, b"one")
    delivery = billing.take(100)
    assert delivery is not None
    assert (values(delivery), delivery.dropped, delivery.number) == ([3, 4, 5], 2, 5)


def test_a_restart_leaves_out_what_was_acknowledged_and_what_was_queued_before() -> None:
    billing = sink()
    kept = [Numbered.from_(parcel(11, 12, 13), 1), Numbered.from_(parcel(14), 4)]
    billing.recall(kept, last=4, acknowledged=2, floor=15)
    billing.offer_found(parcel(14, 15))
    attach(billing, b"one")
    first, second = billing.take(100), billing.take(100)
    assert first is not None
    assert second is not None
    assert (values(first), first.again) == ([13, 14], True)
    assert (values(second), second.number, second.again) == ([15], 5, False)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_every_event_is_acknowledged_once_and_in_order(seed: int) -> None:
    """One client at a time, which goes at any moment; a session leaves out what it has had."""
    print(f"seed {seed}")
    random, billing, given = Random(seed), sink(), Given()
    came: list[int] = []
    offered = acknowledged = peer = 0
    while acknowledged < 200:
        does = random.random()
        if does < 0.4 and offered < 200:
            count = random.randint(1, min(5, 200 - offered))
            billing.offer(parcel(*range(offered + 1, offered + count + 1)))
            offered += count
        elif does < 0.5 and billing.attached:
            billing.detach(str(peer).encode())
        elif not billing.attached:
            peer += 1
            attach(billing, str(peer).encode(), credit=0)
        else:
            billing.grant(str(peer).encode(), random.randint(1, 4), MOST)
            delivery = billing.take(random.randint(1, 6))
            if delivery is not None:
                numbers = np.arange(delivery.number - len(delivery) + 1, delivery.number + 1)
                new = given.new(numbers) if delivery.again else np.ones(len(delivery), np.bool_)
                came += np.array(values(delivery))[new].tolist()
                given.add(int(numbers[0]), delivery.number)
                if random.random() < 0.6:
                    acknowledged = random.randint(int(numbers[0]), delivery.number)
                    billing.acknowledge(str(peer).encode(), acknowledged)
    assert came == list(range(1, 201))


def test_a_durable_sink_belongs_to_the_user_that_made_it() -> None:
    config = NodeConfig()
    sinks = Sinks(config, Deployments(config))
    durables = Durables(sinks, lambda changed: None)
    alice, bob = Rights("alice"), Rights("bob")
    asked = Subscribe(1, 1, "Temp(n > 2)", durable="billing")
    durables.subscribe(b"a", asked, {"Temp": TEMP}, alice)
    with pytest.raises(Refusal, match="another user's than 'bob'"):
        durables.subscribe(b"b", asked, {"Temp": TEMP}, bob)
    durables.detach(b"a")
    with pytest.raises(Refusal, match="another user's than 'bob'"):
        durables.remove("billing", bob)
    narrow = Rights("alice", (Permit(Act.SUBSCRIBE, "Temp", 3, "Temp(n < 9)"),))
    durables.subscribe(b"a", asked, {"Temp": TEMP}, narrow)
    (billing,) = durables
    sinks.offer((parcel(1, 5, 10).batches[0],), None)
    assert billing.queued == 1, "what the rights leave"
    durables.detach(b"a")
    assert durables.remove("billing", alice) is billing
