"""The main law: what a network detects is what a recording gives (ARCHITECTURE.md).

Random rules and events (tests/cases.py) are published by two sources, each in an order of its
own, with promises of their own, over links that break; a slow sink subscribes to everything. It
gets exactly the composite events that an engine finds in the whole input, in the same order.
"""

from collections.abc import Iterator
from random import Random

import pytest
import rule_texts
from cases import Deploy, Push, random_case
from conversation import Client, Conversation, events_of
from engines import NAMES
from pairs import seeds
from timeline import batches

import rules
import rules.engine
from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, Event
from routing.config import SessionConfig
from routing.messages import Delivery, Refused, Rejected

CASES = len(seeds(10, 150))


def recorded(engine: str, text: str, events: list[Event]) -> list[Event]:
    detector = rules.engine.make(engine)
    detector.deploy(rules.load(text, known=rule_texts.SCHEMAS))
    for batch in batches(events, rule_texts.SCHEMAS.values()):
        detector.push(batch)
    return list(detector.advance(TIME_MAX).events())


class Live:
    """The same input through a node."""

    def __init__(self, random: Random, engine: str, text: str, events: list[Event]) -> None:
        self.random = random
        self.network = Conversation(engine)
        # Little credit, so that everything waits for everybody now and then.
        self.network.node = self.network.new_node(
            publish_credit=random.choice([4, 16, 1_000]), delivery_events_max=random.choice([3, 99])
        )
        self.network.on_result = self.take
        self.got: list[Event] = []
        window = random.choice([2, 7, 1_000])
        self.sink = self.network.add("sink", SessionConfig("sink", delivery_credit=window))
        self.sink.consumes = False
        self.unread = 0
        manager = self.network.add("manager", SessionConfig("manager"))
        self.sources = {
            name: self.network.add(name, SessionConfig(name, instance=number))
            for number, name in enumerate("ab", start=1)
        }
        self.queues = {
            name: sorted((one for one in events if one.source == name), key=lambda e: e.sequence)
            for name in self.sources
        }
        self.network.settle()
        types = {event.type for event in events} | {
            name for name in rule_texts.SCHEMAS if f"define {name}(" not in text
        }
        for client in self.sources.values():
            client.session.advertise([rule_texts.SCHEMAS[name] for name in sorted(types)])
        self.settle()
        manager.session.deploy(text)
        for name in rule_texts.COMPOSITE:
            self.sink.session.subscribe(name)
        self.settle()

    def run(self) -> list[Event]:
        while waiting := [name for name, queue in self.queues.items() if queue]:
            self.publish(self.random.choice(waiting))
            if self.random.random() < 0.1:
                self.reconnect(self.sources[self.random.choice("ab")])
            if self.random.random() < 0.5:
                self.read()
        for client in self.sources.values():
            for _ in range(1_000):
                if not client.session.outgoing.unacknowledged:
                    break
                self.read()
            assert client.session.outgoing.unacknowledged == 0
            client.session.close(self.network.now)
            self.settle()
        while self.unread:
            self.read()
        return self.got

    def publish(self, name: str) -> None:
        """Some events in one message, and sometimes the best promise that can be given."""
        queue = self.queues[name]
        count = self.random.randint(1, 5)
        chunk, self.queues[name] = queue[:count], queue[count:]
        rest = [event.time for event in self.queues[name]]
        promise = min(rest, default=None) if self.random.random() < 0.6 else None
        self.sources[name].session.publish(
            batches(chunk, rule_texts.SCHEMAS.values()), self.network.now, promise, numbered=True
        )
        self.settle()

    def reconnect(self, client: Client) -> None:
        """The link breaks; what was under way back to the client is lost with it."""
        assert client.peer is not None
        peer, client.peer = client.peer, None
        client.session.lose(self.network.now)
        if self.random.random() < 0.5:
            self.network.node.lose(peer, self.network.now)
        self.network.link(client)
        self.settle()

    def read(self) -> None:
        self.sink.session.consume(self.unread)
        self.unread = 0
        self.settle()

    def settle(self) -> None:
        self.network.settle()

    def take(self, client: Client, result: object) -> None:
        assert not isinstance(result, Refused | Rejected), result
        if client is self.sink and isinstance(result, Delivery):
            self.unread += len(result)
            self.got += [
                event for event, _ in events_of(result) if event.source.startswith(RULE_SOURCE)
            ]


def cases() -> Iterator[tuple[int, str, list[Event]]]:
    """Cases without Timer, whose ticks end with the input in a recording only (S13)."""
    seed = found = 0
    while found < CASES:
        seed += 1
        case = random_case(seed)
        texts = [
            str(text) for step in case.steps if isinstance(step, Deploy) for text in step.rules
        ]
        if len(set(texts)) < len(texts) or any("Timer" in text for text in texts):
            continue
        events = {
            (event.source, event.sequence): event
            for step in case.steps
            if isinstance(step, Push)
            for event in step.events
        }
        found += 1
        yield seed, "\n\n".join(texts), list(events.values())


def facts(events: list[Event]) -> list[tuple[object, ...]]:
    return [(e.type, e.time, e.source, e.id, dict(e.data), e.cause_full) for e in events]


@pytest.mark.parametrize("engine", NAMES)
def test_a_live_run_equals_a_recorded_one(engine: str) -> None:
    detected = 0
    for seed, text, events in cases():
        expected = facts(recorded(engine, text, events))
        got = facts(Live(Random(seed), engine, text, events).run())
        assert got == expected, f"seed {seed}\n{text}\n{events}"
        detected += bool(expected)
    assert detected > CASES // 2, "too few cases detect anything"
