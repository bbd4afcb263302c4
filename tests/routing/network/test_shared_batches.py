"""Batches cross a link once, whatever trees they are for, and come to each tree as they left."""

from random import Random

import numpy as np
import pytest
from conversation import batches_of, schema_of

import rules
import rules.engine
from matcher.model import EventBatch
from routing import wire
from routing.errors import ProtocolError
from routing.messages import Flow, Forward, Part, Shared
from routing.network.tables.shared_batches import ForTree, key_of, messages_of, share

SCHEMAS = {name: schema_of(f"{name}(p: int)") for name in "AB"}
BODY_BYTES = 40


def stream(random: Random, count: int) -> list[EventBatch]:
    """Batches of two types, some of single events; every event is another."""
    found, number = [], 0
    for _ in range(count):
        name, size = random.choice("AB"), random.choice((1, 1, 4, 9))
        text = " ".join(f"{name}@{number + place}({place})" for place in range(size))
        (batch,) = batches_of(text, SCHEMAS)
        ids = batch.ids
        source = ids.source
        sequence = np.arange(number, number + size)
        found.append(EventBatch(batch.type, batch.time, type(ids)(source, sequence), batch.columns))
        number += size
    return found


def composites() -> tuple[EventBatch, ...]:
    engine = rules.engine.make("naive")
    text = "event A(p: int)\nrule x: define X(p: int) from A() as a where p = a.p"
    engine.deploy(rules.load(text))
    for batch in batches_of("A@1(1) A@2(2) A@3(3)", SCHEMAS):
        engine.push(batch)
    return engine.advance(10_000_000).batches


def facts(message: Forward | Flow) -> tuple[object, ...]:
    """A message, whatever batches its events are in."""
    rows = [
        (batch.type.name, event, event.cause_full)
        for batch in message.batches
        for event in batch.events()
    ]
    order = message.order.tolist() if isinstance(message, Flow) and message.order is not None else 0
    said = (message.answers, message.came) if isinstance(message, Forward) else ()
    return type(message), rows, message.marks, order, said


def over(messages: list[ForTree]) -> tuple[list[ForTree], int]:
    """What comes of messages at the other end, and how many events have gone over."""
    found: list[ForTree] = []
    events = 0
    for shared in share(messages):
        got = wire.decode(wire.encode(shared))
        assert isinstance(got, Shared)
        events += sum(map(len, got.batches))
        found += messages_of(got)
    return found, events


@pytest.mark.parametrize("seed", range(10))
def test_each_tree_gets_what_was_sent_to_it(seed: int) -> None:
    random = Random(f"sharing {seed}")
    batches = stream(random, 40)
    waiting = {root: list(batches) for root in ("b1", "b2", "b3")}
    while any(waiting.values()):
        messages: list[ForTree] = []
        for root, left in waiting.items():
            chosen = [left.pop(0) for _ in range(min(len(left), random.randint(0, 4)))]
            random.shuffle(chosen)  # what is selected later may be older
            parts = tuple(
                batch.take(
                    np.flatnonzero(np.array([random.random() < 0.7 for _ in range(len(batch))]))
                )
                for batch in chosen
            )
            marks = (("A", random.randint(0, 9)),)
            answers = (("r", random.randint(1, 9), 5),) if random.random() < 0.5 else ()
            came = random.randbytes(8 * sum(map(len, parts))) if random.random() < 0.3 else None
            own = tuple(one for one in parts if len(one))
            messages.append((root, Forward(own, marks, 0, answers, came)))
        found, events = over(messages)
        sent = {key_of(batch): len(batch) for _, one in messages for batch in one.batches}
        assert events == sum(sent.values()), f"seed {seed}: a batch went over twice in one message"
        assert [(root, facts(one)) for root, one in found] == [
            (root, facts(one)) for root, one in messages
        ], f"seed {seed}"


def test_what_was_detected_is_shared_with_its_order() -> None:
    found = composites()
    order = np.array([2, 0, 1])
    flow = Flow(found, order, (("x", 9),))
    messages: list[ForTree] = [("b1", flow), ("b2", flow)]
    got, events = over(messages)
    assert events == 3
    assert [facts(one) for _, one in got] == [facts(flow)] * 2


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (Part("b1", (1,)), "batch 1 of 1"),
        (Part("b1", (0,), (), True, np.array([1], "<i4").tobytes()), "no permutation"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_numbers_that_make_no_sense_are_refused(part: Part, reason: str) -> None:
    (batch,) = batches_of("A@1(1)", SCHEMAS)
    with pytest.raises(ProtocolError, match=reason):
        messages_of(Shared((batch,), (part,)))


@pytest.mark.parametrize(
    ("pulled", "reason"),
    [
        ((0, (), b"1234"), "other events than times"),
        ((1, (), None), "no question, at part 1"),
        ((2, (), None), "no question, at part 2"),
    ],
)
def test_what_is_said_of_no_forward_is_refused(
    pulled: tuple[int, tuple[()], bytes | None], reason: str
) -> None:
    (batch,) = batches_of("A@1(1)", SCHEMAS)
    parts = Part("b1", (0,)), Part("b2", (), (), True)
    with pytest.raises(ProtocolError, match=reason):
        messages_of(Shared((batch,), parts, (pulled,)))
