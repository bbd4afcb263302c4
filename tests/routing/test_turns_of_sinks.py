"""Sinks of one user beside those of others: some are sent to, then others have their turn."""

import pytest

from matcher.model import EventType
from matcher.rows import batch_of
from matcher.single import single_at
from routing.config import NodeConfig
from routing.delivery.selection import Selection
from routing.delivery.sinks import TURN, Sinks
from routing.deployment import Deployments
from routing.messages import Rights, Subscribe
from rules.subscription import parse_subscription

TEMP = EventType.of("Temp", area="string", value="float")
SCHEMAS = {"Temp": TEMP}


@pytest.fixture
def sinks():
    config = NodeConfig()
    return Sinks(config, Deployments(config))


def subscribe(sinks, user, count):
    for number in range(count):
        peer = f"{user}{number}".encode()
        sinks.subscribe(peer, "", Subscribe(1, 1, "Temp"), SCHEMAS, Rights(user))


def event(value):
    rows = [{"area": "a1", "value": float(value)}]
    batch = batch_of(TEMP, rows, source="s", first_sequence=value + 1, times=[value])
    return single_at(batch, 0)


def test_sinks_of_a_user_beyond_its_turn_are_sent_to_when_others_have_been(sinks):
    subscribe(sinks, "bob", 2 * TURN + 1)
    subscribe(sinks, "alice", 2)
    sinks.offer((event(0),), None)
    assert {one.peer for one in sinks.due()} == {one.peer for one in sinks.due()}
    turns = []
    while sinks.touched:
        turns.append([one.peer for one in sinks.take_touched()])
        assert len(turns) < 10
    assert list(map(len, turns)) == [TURN + 2, TURN, 1]
    assert {b"alice0", b"alice1"} < set(turns[0])
    assert len({peer for turn in turns for peer in turn}) == 2 * TURN + 3


def test_the_sink_that_has_waited_longest_comes_first(sinks):
    subscribe(sinks, "bob", TURN + 1)
    sinks.offer((event(0),), None)
    last = {one.peer for one in sinks} - {one.peer for one in sinks.take_touched()}
    sinks.offer((event(1),), None)
    assert last < {one.peer for one in sinks.take_touched()}


def test_without_users_all_sinks_are_sent_to_at_once(sinks):
    subscribe(sinks, "", 3 * TURN)
    sinks.offer((event(0),), None)
    assert len(sinks.take_touched()) == 3 * TURN
    assert not sinks.touched


class Counted(int):
    """A number that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other):
        Counted.comparisons += 1
        return super().__lt__(other)


@pytest.mark.parametrize("text", ["Temp", "Temp(value > -{n})", 'Temp((value > 9 or area = "a1"))'])
def test_a_thousand_subscriptions_of_a_sink_are_put_together_once(text):
    selection, count = Selection(), 1_000
    for number in map(Counted, range(count)):
        selection.add("sink", number, parse_subscription(text.format(n=number + 1), SCHEMAS))
    Counted.comparisons = 0
    assert selection.match(event(0)) == [("sink", [(tuple(range(count)), None)])]
    assert Counted.comparisons < 20 * count
