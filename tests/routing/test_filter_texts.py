"""The filters of all sinks, kept as subscriptions come and go (routing.delivery.subscriptions)."""

import random

import pytest

from matcher.model import EventType
from routing.config import NodeConfig
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.messages import Act, Permit, Rights, Subscribe
from routing.network.tables.filters import by_type

TYPES = {name: EventType.of(name, v="int") for name in ("A", "B", "C")}
TEXTS = ["*", "A()", "A(v > 1)", "A(v > 2)", "B()", "B(v = 3)", "C(v < 9)"]


@pytest.mark.parametrize("seed", range(20))
def test_they_are_those_of_the_subscriptions_that_are_there(seed: int) -> None:
    print("seed", seed)
    chance, config = random.Random(seed), NodeConfig(name="b")
    sinks, schemas = Sinks(config, Deployments(config)), dict[str, EventType]()
    permits = Permit(Act.SUBSCRIBE, "A", 1, "A(v < 5)"), Permit(Act.SUBSCRIBE, "B", 2)
    narrow = Rights("u", permits)
    for number in range(1, 121):
        peer, does = b"p%d" % chance.randrange(5), chance.random()
        sink = sinks.find(peer)
        if does < 0.55:
            sinks.subscribe(peer, "", Subscribe(number, number, chance.choice(TEXTS)), schemas)
        elif sink is not None and does < 0.75:
            sinks.unsubscribe(peer, chance.choice(sink.interests.numbers))
            if not sink.interests:
                sinks.remove(peer)
        elif does < 0.8:
            sinks.remove(peer)
        elif sink is not None and does < 0.85:
            sinks.change_rights(peer, narrow, schemas)
        else:
            name = chance.choice("ABC")
            schemas = {**schemas, name: TYPES[name]}
            sinks.check(schemas)
        texts = [one.text for sink in sinks for one in sink.interests]
        assert sinks.filters.by_type == by_type(texts)
