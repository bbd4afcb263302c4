"""Groups of clients that share a subscription (routing.delivery.group)."""

import itertools
import random
from collections import defaultdict

import numpy as np
import pytest
from event_batches import batch_of_events

from matcher.model import Event, EventType
from routing.config import NodeConfig
from routing.delivery import group as group_module
from routing.delivery.delivery_batch import DeliveryBatch
from routing.delivery.group import ClientGroup, group_key
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.errors import Refusal
from routing.messages import Delivery, Subscribe, WhenFull

TEMP = EventType.of("Temp", area="string", n="int", x="float?")
SCHEMAS = {"Temp": TEMP}
MOST = 1_000_000


def asked(number: int = 7, by: str = "", **options: object) -> Subscribe:
    return Subscribe(1, number, "Temp()", group="workers", by=by, **options)  # type: ignore[arg-type]


def temps(*rows: tuple[str, int]) -> DeliveryBatch:
    """Temps of areas and numbers, for the group's subscription."""
    data = [{"area": area, "n": n, "x": None} for area, n in rows]
    events = [Event("Temp", n, "s", str(n), one, n) for (_, n), one in zip(rows, data, strict=True)]
    return DeliveryBatch.of((batch_of_events(TEMP, events),), ((1,),))


def group_of(*peers: bytes, credit: int = 100, **options: object) -> ClientGroup:
    message = asked(**options)  # type: ignore[arg-type]
    made = ClientGroup(group_key(message, ""), message)
    for number, peer in enumerate(peers):
        made.attach(peer, number)
        made.grant(peer, credit, MOST)
    return made


def taken(group: ClientGroup) -> dict[bytes, list[Delivery]]:
    """All that the group gives at present, by client."""
    found = defaultdict(list)
    while (delivery := group.take(10_000)) is not None:
        found[group.to].append(delivery)
    return found


def numbers(deliveries: list[Delivery]) -> list[int]:
    return [n for one in deliveries for batch in one.batches for n in batch.column("n").tolist()]


def test_clients_with_credit_get_the_same_share_and_what_is_left_in_the_next_round() -> None:
    group = group_of(b"a", b"b", b"c", credit=500)
    group.attached[b"a"].credit = 100
    group.offer(temps(*(("a1", n) for n in range(1_000))))
    given = taken(group)
    counts = {peer: len(numbers(one)) for peer, one in given.items()}
    assert counts == {b"a": 100, b"b": 450, b"c": 450}
    assert sorted(itertools.chain.from_iterable(map(numbers, given.values()))) == list(range(1_000))
    assert [len(one) for one in given[b"b"]] == [334, 116]


def test_single_events_go_round() -> None:
    group, to = group_of(b"a", b"b", b"c"), []
    for n in range(6):
        group.offer(temps(("a1", n)))
        delivery = group.take(10)
        assert delivery is not None
        to.append((group.to, delivery.subscriptions))
    assert to == [(b"a", ((0,),)), (b"b", ((1,),)), (b"c", ((2,),))] * 2, "by their own numbers"


def test_what_a_client_was_not_given_goes_to_the_others() -> None:
    group = group_of(b"a", b"b", credit=2)
    group.offer(temps(*(("a1", n) for n in range(10))))
    given = taken(group)
    assert [len(numbers(given[peer])) for peer in (b"a", b"b")] == [2, 2]
    group.detach(b"a")
    group.grant(b"b", 100, MOST)
    assert numbers(taken(group)[b"b"]) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("attribute", ["area", "n", "x"])
def test_equal_values_go_to_one_client(attribute: str) -> None:
    chance = random.Random(attribute)
    rows = [{"area": f"a{chance.randrange(20)}", "n": chance.randrange(20)} for _ in range(400)]
    data = [{**one, "x": chance.choice([None, 0.0, -0.0, 1.5, 2.5])} for one in rows]
    events = [Event("Temp", n, "s", str(n), one, n) for n, one in enumerate(data)]
    batches = [batch_of_events(TEMP, events[n : n + 50]) for n in range(0, 400, 50)]
    group = group_of(b"a", b"b", b"c", credit=1_000, by=attribute)
    for batch in batches:
        group.offer(DeliveryBatch.of((batch,), ((1,),)))
    homes = defaultdict(set)
    for peer, deliveries in taken(group).items():
        for batch in (batch for one in deliveries for batch in one.batches):
            for event in batch.events():
                homes[event.data[attribute]].add(peer)
    assert all(len(peers) == 1 for peers in homes.values())
    assert len(set().union(*homes.values())) == (3 if attribute != "x" else 2)
    assert homes.keys() == {one[attribute] for one in data}


@pytest.mark.parametrize("seed", range(20))
def test_whoever_comes_and_goes_each_event_is_given_once_and_a_value_in_order(seed: int) -> None:
    chance, by = random.Random(seed), "area" if seed % 2 else ""
    group, peers, last, given = group_of(b"0", by=by, credit=0), [b"0"], 0, []
    for step in range(200):
        does = chance.random()
        if does < 0.4:
            rows = [(f"a{chance.randrange(8)}", last + n) for n in range(chance.randrange(1, 9))]
            last += len(rows)
            group.offer(temps(*rows))
        elif does < 0.7:
            group.grant(chance.choice(peers), chance.randrange(1, 12), 20)
        elif does < 0.8:
            peers.append(str(step + 1).encode())
            group.attach(peers[-1], step)
        elif does < 0.9 and len(peers) > 1:
            group.detach(peers.pop(chance.randrange(len(peers))))
        while (delivery := group.take(chance.randrange(1, 10))) is not None:
            given += [event for batch in delivery.batches for event in batch.events()]
        assert group.queued == last - len(given)
    for peer in peers:
        group.grant(peer, MOST, MOST)
    for deliveries in taken(group).values():
        given += [event for one in deliveries for batch in one.batches for event in batch.events()]
    assert sorted(event.data["n"] for event in given) == list(range(last))
    by_area = defaultdict(list)
    for event in given:
        by_area[event.data["area"]].append(event.data["n"])
    assert all(own == sorted(own) for own in by_area.values())


def test_when_a_client_comes_few_values_go_elsewhere_and_none_between_others() -> None:
    rows = [(f"a{n}", n) for n in range(300)]
    homes = []
    for peers in ([b"a", b"b", b"c"], [b"a", b"b", b"c", b"d"]):
        group = group_of(*peers, credit=1_000, by="area")
        group.offer(temps(*rows))
        homes.append({n: peer for peer, one in taken(group).items() for n in numbers(one)})
    moved = {n: homes[1][n] for n in range(300) if homes[0][n] != homes[1][n]}
    assert set(moved.values()) == {b"d"}
    assert 40 < len(moved) < 110


@pytest.mark.parametrize("by", ["", "area"])
def test_the_oldest_are_dropped_and_counted(by: str) -> None:
    group = group_of(b"a", b"b", by=by, credit=0, when_full=WhenFull.DROP_OLDEST, limit=5)
    group.offer(temps(*((f"a{n}", n) for n in range(30))))
    assert group.is_over
    group.drop_oldest()
    assert (group.queued, group.dropped, group.is_over) == (5, 25, False)
    for peer in (b"a", b"b"):
        group.grant(peer, 100, MOST)
    given = [one for deliveries in taken(group).values() for one in deliveries]
    assert len(numbers(given)) == 5
    assert sum(one.dropped for one in given) == 25


def test_a_group_is_of_one_user_and_filter_and_its_clients_agree() -> None:
    config = NodeConfig(name="b1")
    sinks = Sinks(config, Deployments(config))
    sinks.subscribe(b"a", "", asked(), SCHEMAS)
    with pytest.raises(Refusal, match="already block with 65536 events"):
        sinks.subscribe(b"b", "", asked(limit=5), SCHEMAS)
    with pytest.raises(Refusal, match="already block"):
        sinks.subscribe(b"b", "", asked(by="area"), SCHEMAS)
    with pytest.raises(Refusal, match="no link to end"):
        sinks.subscribe(b"b", "", asked(when_full=WhenFull.DISCONNECT), SCHEMAS)
    with pytest.raises(Refusal, match="no other subscription"):
        sinks.subscribe(b"a", "", asked(8), SCHEMAS)
    with pytest.raises(Refusal, match="no other subscription"):
        sinks.subscribe(b"a", "", Subscribe(1, 8, "Temp()"), SCHEMAS)
    with pytest.raises(Refusal, match="no attribute 'aera'"):
        sinks.subscribe(b"c", "", Subscribe(1, 7, "Temp(n > 1)", group="w", by="aera"), SCHEMAS)
    assert sinks.find(b"b") is sinks.find(b"c") is None
    assert len(list(sinks)) == 1
    sinks.subscribe(b"b", "", asked(3), SCHEMAS)
    assert sinks.find(b"a") is sinks.find(b"b")
    with pytest.raises(Refusal, match="no subscription 7"):
        sinks.unsubscribe(b"b", 7)
    sinks.unsubscribe(b"a", 7)
    assert sinks.find(b"a") is None
    sinks.offer(temps(("a1", 1)).batches, None)
    group = sinks.find(b"b")
    assert isinstance(group, ClientGroup)
    assert group.queued == 1
    sinks.remove(b"b")
    assert not list(sinks)
    sinks.offer(temps(("a1", 1)).batches, np.arange(1))
    assert not sinks.take_touched() or group.queued == 0


def test_who_comes_has_no_waiting_event_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    group, looked = group_of(b"a", credit=0, by="area"), []
    for n in range(50):
        group.offer(temps((f"a{n % 10}", n)))
    monkeypatch.setattr(group_module, "_numbers", lambda *asked: looked.append(asked))
    group.attach(b"b", 1)
    group.attach(b"c", 2)
    group.detach(b"a")
    assert not looked
    assert group.queued == 50
    for peer in (b"b", b"c"):
        group.grant(peer, 100, MOST)
    given = taken(group)
    assert sorted(itertools.chain.from_iterable(map(numbers, given.values()))) == list(range(50))
    assert all(map(numbers, given.values())), "both get some"
