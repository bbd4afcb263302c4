"""Events cross a link once, whatever trees they are for, and come to each tree as they left."""

import weakref
from random import Random

import numpy as np
import pytest
from conversation import batches_of, schema_of

import rules
import rules.engine
from matcher.model import EventBatch, Int64s
from matcher.single import Row, Single
from routing import wire
from routing.errors import ProtocolError
from routing.messages import Flow, Forward, Part, Shared
from routing.network.tables import sharing
from routing.network.tables.sharing import ForTree, Keeper, Sharer

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


def over(sharer: Sharer, keeper: Keeper, messages: list[ForTree]) -> tuple[list[ForTree], int]:
    """What comes of messages at the other end, and how many events have gone over."""
    found: list[ForTree] = []
    events = 0
    for shared in sharer.share(messages):
        got = wire.decode(wire.encode(shared))
        assert isinstance(got, Shared)
        events += sum(map(len, got.batches))
        found += keeper.take(got)
    return found, events


@pytest.mark.parametrize("remembered", [1, 20, sharing.REMEMBERED_MAX])
@pytest.mark.parametrize("seed", range(10))
def test_each_tree_gets_what_was_sent_to_it(
    seed: int, remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "REMEMBERED_MAX", remembered)
    random = Random(f"sharing {seed}")
    batches = stream(random, 40)
    sharer, keeper = Sharer(), Keeper()
    waiting = {root: list(batches) for root in ("b1", "b2", "b3")}
    bodies = 0
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
            messages.append((root, 7, Forward(own, marks, 0, answers, came)))
        found, events = over(sharer, keeper, messages)
        bodies += events
        assert [(root, mark, facts(one)) for root, mark, one in found] == [
            (root, mark, facts(one)) for root, mark, one in messages
        ], f"seed {seed}"
    if remembered == sharing.REMEMBERED_MAX and remembered > 1_000:
        assert bodies <= sum(map(len, batches)), f"seed {seed}: an event went over twice"


def test_what_was_detected_is_shared_with_its_order() -> None:
    found = composites()
    order = np.array([2, 0, 1])
    flow = Flow(found, order, (), (("x", 9),))
    messages: list[ForTree] = [("b1", 1, flow), ("b2", 2, flow)]
    got, events = over(Sharer(), Keeper(), messages)
    assert events == 3
    assert [facts(one) for _, _, one in got] == [facts(flow)] * 2


def test_a_later_selection_is_a_number() -> None:
    (batch,) = batches_of(" ".join(f"A@{n}({n})" for n in range(100)), SCHEMAS)
    sharer, keeper = Sharer(), Keeper()
    over(sharer, keeper, [("b1", 1, Forward((batch,)))])
    later = [("b2", 1, Forward((batch.take(np.arange(3, 90, 2)),)))]
    (shared,) = sharer.share(later)
    assert shared.batches == ()
    (frame,) = wire.encode(shared)
    assert len(frame) < 44 * 4 + BODY_BYTES
    ((_, _, message),) = keeper.take(shared)
    assert facts(message) == facts(later[0][2])


def test_who_has_lost_count_is_found_out() -> None:
    (batch,) = batches_of("A@1(1)", SCHEMAS)
    sharer = Sharer()
    list(sharer.share([("b1", 1, Forward((batch,)))]))
    (second,) = sharer.share([("b1", 1, Forward((batch,)))])
    with pytest.raises(ProtocolError, match="from number 1 on, not 0"):
        Keeper().take(second)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (Part("b1", 1, (1,)), "batch 1 of 1"),
        (Part("b1", 1, (np.array([-1], "<i4").tobytes(),)), "not remembered"),
        (Part("b1", 1, (np.array([1], "<i4").tobytes(),)), "have not come"),
        (Part("b1", 1, (0,), (), True, np.array([1], "<i4").tobytes()), "no permutation"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_numbers_that_make_no_sense_are_refused(part: Part, reason: str) -> None:
    (batch,) = batches_of("A@1(1)", SCHEMAS)
    with pytest.raises(ProtocolError, match=reason):
        Keeper().take(Shared(0, (batch,), (part,)))


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
    parts = Part("b1", 1, (0,)), Part("b2", 1, (), (), True)
    with pytest.raises(ProtocolError, match=reason):
        Keeper().take(Shared(0, (batch,), parts, (pulled,)))


def test_what_came_alone_is_picked_as_it_is() -> None:
    """Events that come alone are far sooner worked with than columns of one."""
    keeper = Keeper()
    schema = SCHEMAS["A"]
    rows = [Single(schema, Row(number, "s", number, None, (number,))) for number in range(3)]
    (shared,) = Sharer().share([("b1", 1, Forward(tuple(rows)))])
    keeper.take(shared)
    pick = np.array([2, 0, 1], "<i4").tobytes()
    ((_, _, message),) = keeper.take(Shared(3, (), (Part("b2", 1, (pick_below(pick, 3),)),)))
    assert [one.row.time for one in message.batches if isinstance(one, Single)] == [2, 0, 1]


def pick_below(pick: bytes, base: int) -> bytes:
    """Numbers as they are said where ``base`` events have gone before."""
    return (np.frombuffer(pick, "<i4") - base).astype("<i4").tobytes()


def test_forgotten_events_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "REMEMBERED_MAX", 10)
    monkeypatch.setattr(sharing, "GIVEN_BACK_AT_ONCE", 7)
    (batch,) = batches_of("A@1(1)", SCHEMAS)
    keeper, alive = Keeper(), list[weakref.ref[Int64s]]()
    for number in range(40):
        one = batch.take(np.array([0]))
        keeper.take(Shared(number, (one,), (Part("b1", 1, (0,)),)))
        alive.append(weakref.ref(one.time))
    del one
    assert sum(ref() is not None for ref in alive) <= 10 + 7
    with pytest.raises(ProtocolError, match="not remembered"):
        keeper.take(Shared(40, (), (Part("b2", 1, (np.array([-11], "<i4").tobytes(),)),)))
