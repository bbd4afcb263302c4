"""Composite events that come alone: what columns would refuse is refused, and bytes go on as is."""

import random

import pytest
from message_batches import batch

from matcher.model import EventBatch
from routing import wire
from routing.errors import WireError
from routing.messages import Delivery, Flow, Message
from routing.wire import composites
from routing.wire.composites import Encoded
from tests.routing.test_wire import flip, overwrite, rows


def composite(rng: random.Random) -> EventBatch:
    while (made := batch(rng, 1)).causes is None:
        pass
    return made


def taken(frames: list[bytes]) -> tuple[Message | None, object]:
    """The message and its events as rows; neither, if it is refused."""
    try:
        message = wire.decode(frames)
    except WireError:
        return None, None
    assert isinstance(message, Flow)
    return message, (rows(message.batches), message.order is None, message.marks)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_taken_in_as_columns_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    flow = Flow(tuple(composite(rng) for _ in range(rng.randint(1, 3))), marks=(("fire", 4),))
    cases = [[bytearray(frame) for frame in wire.encode(flow)] for _ in range(60)]
    for frames in cases[1:]:
        rng.choice([flip, overwrite])(rng, frames)
    found = [taken([bytes(frame) for frame in frames]) for frames in cases]
    assert found[0][0] is not None
    assert all(type(one) is Encoded for one in found[0][0].batches)  # type: ignore[union-attr]
    monkeypatch.setattr(composites, "CAUSES_MAX", 0)
    for frames, (_, expected) in zip(cases, found, strict=True):
        message, told = taken([bytes(frame) for frame in frames])
        assert repr(told) == repr(expected)
        assert message is None or not any(type(one) is Encoded for one in message.batches)  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(20))
def test_it_goes_on_as_the_bytes_that_it_came_in(seed: int) -> None:
    rng = random.Random(f"on {seed}")
    sent = wire.encode(Delivery(tuple(composite(rng) for _ in range(2)), ((1,), (2,))))
    came = wire.decode(sent)
    assert isinstance(came, Delivery)
    assert wire.encode(came) == sent
    (first, _) = came.batches
    assert (first.time.tolist(), first.ids.source.values) == (  # what is told without columns
        [first.at],  # type: ignore[attr-defined]
        (first.rule,),  # type: ignore[attr-defined]
    )
    assert wire.encode(came) == sent
