"""Messages as bytes: what goes in comes out, and nothing else comes out of anything."""

import pickle
import random
import struct

import msgspec
import numpy as np
import pytest
from message_batches import delivery
from plain_messages import PLAIN, TEMP

from matcher.model import (
    Event,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from routing import wire
from routing.errors import VersionMismatch, WireError
from routing.messages import (
    Acks,
    Advertise,
    Delivery,
    Flow,
    Forward,
    Heartbeat,
    Message,
    Packet,
    Part,
    Publish,
    RuleState,
    Shared,
)
from routing.order import greatest_time, least_time
from routing.wire.headers import CELLS_MAX, EVENTS_MAX


def rows(batches: tuple[EventBatch, ...]) -> list[tuple[EventType, Event, tuple[str, ...]]]:
    return [(one.type, event, event.cause_full) for one in batches for event in one.events()]


@pytest.mark.parametrize("message", PLAIN, ids=lambda message: type(message).__name__)
def test_plain_messages_cross_unchanged(message: Message) -> None:
    frames = wire.encode(message)
    assert len(frames) == 1 + isinstance(message, Packet)
    got = wire.decode(frames)
    assert facts(got) == facts(message)


def facts(message: Message) -> object:
    """What compares equal, of messages whose columns do not."""
    if isinstance(message, Flow):
        return (message.batches, message.order, message.marks)
    if isinstance(message, Shared):
        return (message.batches, message.parts)
    if isinstance(message, Forward):
        return (message.batches, message.marks, message.answers)
    if isinstance(message, RuleState):
        return (message.batches, message.rule, message.since, message.mark)
    return message


def test_every_kind_of_message_is_tried() -> None:
    assert {type(one) for one in PLAIN} | {Publish, Delivery} == {
        Packet,
        *(codec.message for codec in wire.CODECS),
    }


@pytest.mark.parametrize("seed", range(150))
def test_events_cross_unchanged(seed: int) -> None:
    rng = random.Random(seed)
    sent = delivery(rng)
    got = wire.decode(wire.encode(sent))
    assert isinstance(got, Delivery)
    assert rows(got.batches) == rows(sent.batches)
    assert (got.subscriptions, got.dropped) == (sent.subscriptions, sent.dropped)
    assert (got.order is None) == (sent.order is None)
    if sent.order is not None and got.order is not None:
        assert got.order.tolist() == sent.order.tolist()
    published = wire.decode(wire.encode(Publish(sent.batches, 5, Acks.NONE)))
    assert isinstance(published, Publish)
    assert (published.promise, published.acks) == (5, Acks.NONE)
    assert rows(published.batches) == rows(sent.batches)
    flow = wire.decode(wire.encode(Packet(1, 2, 3, Flow(sent.batches, sent.order, (("f", 4),)))))
    assert isinstance(flow, Packet)
    assert isinstance(flow.message, Flow)
    assert rows(flow.message.batches) == rows(sent.batches)
    assert flow.message.marks == (("f", 4),)
    forward = wire.decode(wire.encode(Packet(1, 2, 3, Forward(sent.batches, (("Temp", 4),)))))
    assert isinstance(forward, Packet)
    assert isinstance(forward.message, Forward)
    assert rows(forward.message.batches) == rows(sent.batches)
    numbers = [one.ids.sequence.tolist() for one in forward.message.batches]
    assert numbers == [one.ids.sequence.tolist() for one in sent.batches]
    assert forward.message.marks == (("Temp", 4),)
    came = np.arange(len(sent), dtype="<i8").tobytes() or None
    waited = wire.decode(wire.encode(Forward(sent.batches, came=came)))
    assert isinstance(waited, Forward)
    assert waited.came == came
    if came is not None:
        with pytest.raises(WireError, match="bytes of times"):
            wire.decode(wire.encode(Forward(sent.batches, came=came[1:])))
    part = Part("b1", tuple(range(len(sent.batches))))
    whole = Shared(sent.batches, (part,), ((0, (), came),))
    shared = wire.decode(wire.encode(Packet(1, 2, 3, whole)))
    assert isinstance(shared, Packet)
    assert isinstance(shared.message, Shared)
    assert rows(shared.message.batches) == rows(sent.batches)
    assert (shared.message.parts, shared.message.pulled) == (whole.parts, whole.pulled)
    # Frames that a host hands over as views of its own memory, wherever they lie.
    shifted = [memoryview(b"?" + frame)[1:] for frame in wire.encode(sent)]
    again = wire.decode(shifted)
    assert isinstance(again, Delivery)
    assert all(one.time.flags.aligned for one in again.batches)


@pytest.mark.parametrize("seed", range(50))
def test_what_came_goes_on_as_the_bytes_that_it_came_in(seed: int) -> None:
    sent = delivery(random.Random(seed))
    frames = wire.encode(sent)
    got = wire.decode(frames)
    assert isinstance(got, Delivery)
    assert wire.encode(got) == frames
    for came, own in zip(got.batches, sent.batches, strict=True):
        assert (least_time(came), greatest_time(came)) == (least_time(own), greatest_time(own))
        assert rows((pickle.loads(pickle.dumps(came)),)) == rows((own,))


def test_what_is_made_of_what_came_is_written_anew() -> None:
    numbers = np.arange(6)
    ids = EventIds(StringColumn.constant("s", 6), numbers)
    columns = (StringColumn.from_strings(list("abcabc")), numbers / 2)
    sent = EventBatch(EventType.of("Temp", area="string", value="float"), numbers, ids, columns)
    came = batch_of(wire.decode(wire.encode(Publish((sent,)))))
    other = EventIds(StringColumn.constant("other", 6), numbers + 7)
    for made, expected in (
        (came.take(slice(1, 4)), sent.take(slice(1, 4))),
        (came.with_ids(other), sent.with_ids(other)),
    ):
        assert rows((batch_of(wire.decode(wire.encode(Publish((made,))))),)) == rows((expected,))


def batch_of(message: Message) -> EventBatch:
    """The only batch of a Publish."""
    assert isinstance(message, Publish)
    (batch,) = message.batches
    return batch


def test_a_single_small_event_is_small() -> None:
    names = EventIds(StringColumn.constant("station-7", 1), np.array([17]))
    columns = (StringColumn.constant("a1", 1), np.array([46.5]))
    event = EventBatch(TEMP, np.array([1_357_017_420_000_000]), names, columns)
    frames = wire.encode(Publish((event,), 1_357_017_420_000_001))
    assert sum(map(len, frames)) < 150


@pytest.mark.parametrize("seed", range(60))
def test_mutated_frames_are_messages_or_wire_errors(seed: int) -> None:
    """Whatever happens to the bytes, nothing but WireError comes out, and soon."""
    rng = random.Random(f"mutate {seed}")
    valid = [wire.encode(message) for message in (*PLAIN, delivery(rng), delivery(rng))]
    for _ in range(120):
        frames = [bytearray(frame) for frame in rng.choice(valid)]
        for _ in range(rng.randint(1, 4)):
            MUTATIONS[rng.randrange(len(MUTATIONS))](rng, frames)
        try:
            message = wire.decode([bytes(frame) for frame in frames])
        except WireError:
            continue
        # What is accepted is a value like any other: it can be sent on and looked at.
        if isinstance(message, Delivery | Publish):
            rows(message.batches)
        wire.encode(message)


def flip(rng: random.Random, frames: list[bytearray]) -> None:
    frame = rng.choice(frames) if frames else bytearray()
    if frame:
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)


def overwrite(rng: random.Random, frames: list[bytearray]) -> None:
    frame = rng.choice(frames) if frames else bytearray()
    if frame:
        place = rng.randrange(len(frame))
        frame[place] = rng.choice([0x00, 0x7F, 0x80, 0x9F, 0xC0, 0xC1, 0xCF, 0xDD, 0xDF, 0xFF])


def truncate(rng: random.Random, frames: list[bytearray]) -> None:
    frame = rng.choice(frames) if frames else bytearray()
    del frame[rng.randint(0, len(frame)) :]


def extend(rng: random.Random, frames: list[bytearray]) -> None:
    if frames:
        rng.choice(frames).extend(rng.randbytes(rng.randint(1, 9)))


def reframe(rng: random.Random, frames: list[bytearray]) -> None:
    if rng.random() < 0.5 and frames:
        frames.pop()
    else:
        frames.append(bytearray(rng.randbytes(rng.randint(0, 40))))


MUTATIONS = (flip, flip, flip, overwrite, overwrite, truncate, extend, reframe)


def body_of(*parts: bytes) -> bytes:
    data = b"".join(parts)
    return data + bytes(-len(data) % 8)


def publish_of(header: list[object], body: bytes) -> list[bytes]:
    return [b"RX\x01\x04" + msgspec.msgpack.encode([[header], None, "broker"]), body]


ONE = ["Temp", "value", "float"]
WORDS = ["Word", "text", "string"]
FLAGS = ["Flag", "on", "bool"]
LONG = struct.Struct("<q").pack


@pytest.mark.parametrize(
    ("header", "body", "complaint"),
    [
        ([ONE, 1, ["p"], None, False, [], None], body_of(LONG(1), LONG(1)), "ends after 16"),
        (
            [ONE, 1, ["p"], None, False, [], None],
            body_of(LONG(1), LONG(1), struct.pack("<d", float("nan"))),
            "not finite",
        ),
        ([ONE, 1, ["p"], None, False, [["x"]], None], bytes(24), "1 dictionaries"),
        ([ONE, 0, ["p"], None, False, [], None], b"", "Expected `int` >= 1"),
        ([ONE, EVENTS_MAX + 1, ["p"], None, False, [], None], b"", "Expected `int` <= 65536"),
        ([ONE, 1, [], None, False, [], None], bytes(24), "dictionary of 0 strings"),
        ([ONE, 1, ["p", "q"], None, False, [], None], bytes(24), "dictionary of 2 strings"),
        ([ONE, 2, ["p", "p"], None, False, [], None], bytes(80), "or a repeat"),
        (
            [WORDS, 2, ["p"], None, False, [["x", "y"]], None],
            body_of(bytes(32), struct.pack("<ii", 0, 2)),
            "outside its dictionary",
        ),
        (
            [WORDS, 2, ["p"], None, False, [["x", "y"]], None],
            body_of(bytes(32), struct.pack("<ii", 0, -1)),
            "outside its dictionary",
        ),
        ([FLAGS, 1, ["p"], None, False, [], None], body_of(bytes(16), b"\2"), "neither 0 nor 1"),
        ([ONE, 1, ["p"], None, False, [], None], bytes(32), "a body of 32 bytes; expected 24"),
        ([["Temp", "value"], 1, ["p"], None, False, [], None], bytes(24), "schema of 2 strings"),
        ([["Temp", "value", "real"], 1, ["p"], None, False, [], None], bytes(24), "real"),
        ([["T", "a", "int", "a", "int"], 1, ["p"], None, False, [], None], bytes(99), "twice"),
        ([["", "a", "int"], 1, ["p"], None, False, [], None], bytes(24), "name of 0 characters"),
        (
            [ONE, 1, ["p"], None, False, [], [2, ["p"], None, False]],
            body_of(bytes(24), LONG(0), LONG(1), bytes(16)),
            "do not rise from 0 to 2",
        ),
    ],
)
def test_what_is_wrong_with_a_batch_is_said(
    header: list[object], body: bytes, complaint: str
) -> None:
    with pytest.raises(WireError, match=complaint):
        wire.decode(publish_of(header, body))


def test_a_small_frame_cannot_cost_much_memory() -> None:
    """Constant columns take no bytes, so their number is bounded for a whole message."""
    wide = ["Wide", *(part for n in range(255) for part in (f"a{n}", "string"))]
    header = [wide, EVENTS_MAX, ["p"], None, False, [["x"]] * 255, None]
    with pytest.raises(WireError, match=f"at most {CELLS_MAX}"):
        wire.decode(publish_of(header, bytes(16 * EVENTS_MAX)))


def test_an_order_is_a_permutation() -> None:
    names = EventIds(StringColumn.constant("p", 2), np.array([1, 2]))
    events = EventBatch(TEMP, np.array([1, 2]), names, (StringColumn.constant("a", 2), np.ones(2)))
    for order in ([0, 0], [0, 2], [-1, 0]):
        with pytest.raises(WireError, match="no permutation"):
            wire.decode(wire.encode(Delivery((events,), ((1,),), np.array(order))))


def test_another_version_is_named() -> None:
    frame = bytearray(wire.encode(Heartbeat())[0])
    frame[2] = 9
    with pytest.raises(VersionMismatch, match="version 9, but this side speaks version 1") as told:
        wire.decode([bytes(frame)])
    assert told.value.version == 9


@pytest.mark.parametrize(
    "frames", [[], [b""], [b"RX\x01"], [b"XR\x01\x21\x90"], [b"RX\x01\x21\x90", b"", b""]]
)
def test_what_is_no_message_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(WireError):
        wire.decode(frames)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(WireError):
        wire.decode([b"RX\x01\x11\x92\x01" + b"\x81\xa1a" * 100_000 + b"\xc0"])


def test_a_type_of_too_many_attributes_is_refused_with_their_number() -> None:
    wide = EventType.of("Wide", **{f"a{n}": "int?" for n in range(129)})
    with pytest.raises(WireError, match=r"258 attributes, optional ones counted twice; .* 256"):
        wire.decode(wire.encode(Advertise(1, (wide,))))


def test_an_advertise_of_too_many_names_and_kinds_is_refused_before_types_are_made() -> None:
    attributes = {f"a{place}": "int" for place in range(200)}
    types = tuple(EventType.of(f"T{number}", **attributes) for number in range(400))
    with pytest.raises(WireError, match="160400 names and kinds in a message; expected at most"):
        wire.decode(wire.encode(Advertise(1, types)))
    assert wire.decode(wire.encode(Advertise(1, types[:300]))) == Advertise(1, types[:300])


def test_equal_schemas_are_one_object() -> None:
    advertised = wire.decode(wire.encode(Advertise(1, (TEMP,))))
    again = wire.decode(
        wire.encode(Advertise(2, (EventType.of("Temp", area="string", value="float"),)))
    )
    assert isinstance(advertised, Advertise)
    assert isinstance(again, Advertise)
    assert advertised.types[0] is again.types[0]
