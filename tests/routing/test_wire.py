"""Messages as bytes: what goes in comes out, and nothing else comes out of anything."""

import random
import struct

import msgspec
import numpy as np
import pytest

from matcher.model import (
    Attribute,
    Causes,
    Event,
    EventBatch,
    EventIds,
    EventType,
    Kind,
    StringColumn,
)
from routing import wire
from routing.errors import VersionMismatch, WireError
from routing.messages import (
    VERSION,
    Acknowledged,
    Acks,
    Act,
    Advertise,
    Answered,
    Asked,
    Awaited,
    Awakening,
    Catalog,
    CatalogDelta,
    Code,
    Committed,
    Confirmed,
    Credit,
    Delivery,
    Deploy,
    Flow,
    Forward,
    Goodbye,
    Heartbeat,
    Hello,
    Hold,
    LinkAck,
    LinkHello,
    LinkState,
    LinkStates,
    ListRules,
    Message,
    NameContested,
    Need,
    Needed,
    Opened,
    Packet,
    Part,
    Pause,
    Permit,
    Plan,
    Promise,
    Publish,
    Refused,
    Rejected,
    Remove,
    RemoveDurable,
    Report,
    Rights,
    RuleFacts,
    Shared,
    ShowRule,
    SinkTree,
    StatusRequest,
    Subscribe,
    SubscriptionAck,
    SubscriptionPaused,
    SubscriptionUpdate,
    Survey,
    Unadvertise,
    Unsubscribe,
    Welcome,
    WhenFull,
)
from routing.wire.headers import CELLS_MAX, EVENTS_MAX

TEMP = EventType.of("Temp", area="string", value="float")
EVERYTHING = EventType.of("All", s="string", b="bool", i="int", f="float", t="string", c="bool")
RIGHTS = Rights(
    "alice",
    (Permit(Act.PUBLISH, "T*", 3), Permit(Act.SUBSCRIBE, "Temp", 4, "Temp(value > 3)")),
    "access.toml",
    ("[user.alice] (line 1)",),
)
TEXTS = ["", "a", "Zürich", "日本", "\0", "x" * 300, "a1", "#", '"']

PLAIN: tuple[Message, ...] = (
    Hello(VERSION, "sensor/7", 1.0, 2**62),
    Advertise(1, (TEMP, EVERYTHING, EventType("Empty"))),
    Unadvertise(2, ("Temp", "All")),
    Promise(-(2**63)),
    Promise(2**63 - 1),
    Subscribe(3, 9, "Temp(value > 20)", WhenFull.DROP_OLDEST, 17),
    Subscribe(3, 9, "Temp()", again=True),
    Unsubscribe(4, 9),
    Deploy(5, "define ...", True, "fire.tesla"),
    Remove(6, "fire"),
    RemoveDurable(6, "billing"),
    ListRules(7),
    ShowRule(8, "fire"),
    StatusRequest(9),
    Welcome(VERSION, "b1", 12, 16_384, 1.0, True),
    Confirmed(5, {"rules": [{"name": "fire", "since": None, "deep": {"a": [1, 2.5, "x"]}}]}),
    Refused(None, Code.VERSION, "no"),
    Refused(5, Code.BAD_RULES, "no\nno"),
    Acknowledged(2**63 - 1),
    Rejected(Code.LATE, ((1, 3), (7, 7)), "late"),
    SubscriptionPaused(9, "an int against a string"),
    SubscriptionPaused(9, None),
    Credit(500),
    Heartbeat(),
    Goodbye("bye", Code.SILENT),
    LinkHello(VERSION, "b1", 2**62, 0, 7, 3, 1.0),
    LinkHello(VERSION, "b1", 1, 0, 0, 0, 1.0, "terms", 4),
    LinkAck(2**32 - 1, 2**63 - 1),
    LinkStates((LinkState("b1", 3, (("b2", 5_000), ("b3", 0)), 4, (("b2", 9),), (("b2", "b1"),)),)),
    Catalog((TEMP, EVERYTHING), (RuleFacts("fire", "define ...", None, 0, None, "alice"),)),
    Catalog((TEMP,), (), (("gone", 3),), (("b1", ("Temp",)), ("b2", ())), ("b3",)),
    CatalogDelta(((), ()), ((0, 4), ()), ((), ()), ((), ()), ((0,), ((7, "b7"),))),
    CatalogDelta(
        *(((2,), ((0, ("Temp", "value", "float")),)),),
        *(((), ((0, RuleFacts("fire", "define ...", None, 0)),)), ((), ((1, ("gone", 3)),))),
        *(((9,), ((3, ("b1", ("Temp",))),)), ((), ())),
    ),
    SubscriptionUpdate(("Temp(value > 20)", "Smoke")),
    SubscriptionUpdate(("Temp",), 7, ("Smoke", "Temp(value > 20)"), 5),
    SubscriptionAck(3),
    Awaited((("Temp", -5), ("Smoke", 2**62))),
    Hold((("", -(2**63)), ("Temp", 7))),
    NameContested("t", "b1"),
    Flow((), None, (("sensor/7", 2**63 - 1),), (("fire", -5),)),
    Asked(("b1", "b2"), 9, "sensor/7", Advertise(1, (TEMP,))),
    Asked(("b1",), 9, "", Deploy(5, "define ...")),
    Asked(("b1",), 9, "", Remove(5, "fire"), Rights("alice", ())),
    Asked(("b1",), 9, "", Remove(5, "fire"), RIGHTS),
    Answered((), 9, Confirmed(1, {"from": {"Temp": None}})),
    Answered(("b1",), 9, Refused(1, Code.SCHEMA, "no")),
    Pause("b1", 7, 3, "0f", True),
    Report("b1", 7, 3, (("b3", "b2", ("Temp",)),), (("Temp", -5),), (("Temp", 2**63 - 1),)),
    Report("b1", 7, 3, (), (), (), (("fire", 7),), (("fire", 6),), (("s", "b3", ("Temp",)),)),
    Report("b1", 7, 3, (), known=(Catalog((TEMP,), ()), Catalog((), (), (("gone", 3),)))),
    Report("b1", 7, 3, (), promises=(("Temp", 9),), committed=(("fire", 4),)),
    Plan("b1", 7, 3, (("b1", "", ("Temp",)), ("b2", "b1", ()))),
    Plan("b1", 7, 3, (("b1", "", ()),), candidate="distributed-mt"),
    Plan("b1", 7, 3, (("b1", "", ()),), (("b9", ("Temp",)),), True, (("fire", -9),)),
    Plan(
        *("b1", 7, 3, (("b1", "", ()),)),
        trees=(SinkTree("b1", 2, ("Fire()",)),),
        links=(("b1", "b2", 5_000),),
    ),
    Need(Needed.RELEASE, ("Temp",)),
    Need(Needed.TREES, ("b1", "b2")),
    Opened("b1", 7, (("b2", 3), ("b3", 4)), 5),
    Shared((), (Part("b2", 5, (), (("Temp", 9),)),), ((0, (("fire", 2, 9),), None),)),
    Shared((), (Part("b2", 5, (b"12345678",), (), True, b"1234"), Part("b3", 4, (0,)))),
    Survey(9),
    Report("b1", 7, 9, due=(("fire", 5),)),
    Report(
        "b1",
        7,
        9,
        wants=(("b1", ("Fire()",)),),
        promises=(("Temp", 4),),
        counts=(("Temp", 3, 5),),
        found=(("rexmq/rule/fire", 200, 2),),
    ),
    Committed(9, (("fire", 5),)),
    Forward((), (("Temp", 9),), 0, (("fire", 2**40, -7),)),
    Awakening((("fire", ((5, 7, ()), (-(2**63), 2**63 - 1, (1, 0.5, "é", True))), 3),)),
    Awakening((("smoke", (), 4),), (("b2", 5, (("fire", ((5, 7, ("a",)),), 3),)),)),
    Packet(7, 2**40, 0, LinkStates((LinkState("b1", 1),))),
    Packet(7, 1, 2**63 - 1, SubscriptionAck(1)),
)


def strings(rng: random.Random, count: int) -> StringColumn:
    column = StringColumn.from_strings([rng.choice(TEXTS) for _ in range(count)])
    # A slice of something longer keeps a dictionary that is too large for it.
    longer = StringColumn.concatenate([StringColumn.from_strings(TEXTS), column])
    return rng.choice([column, longer.take(slice(len(TEXTS), None))])


def column(rng: random.Random, kind: Kind, count: int) -> object:
    match kind:
        case Kind.STRING:
            return strings(rng, count)
        case Kind.BOOL:
            return np.array([rng.random() < 0.5 for _ in range(count)], np.bool_)
        case Kind.INT:
            return np.array([rng.randint(-(2**63), 2**63 - 1) for _ in range(count)], np.int64)
        case Kind.FLOAT:
            return np.array([rng.choice([0.0, -1.5, 1e308, 5e-324]) for _ in range(count)])


def ids(rng: random.Random, count: int) -> EventIds:
    digest = np.array([[rng.getrandbits(64) for _ in range(2)] for _ in range(count)], np.uint64)
    return EventIds(
        strings(rng, count),
        np.array([rng.randint(0, 2**62) for _ in range(count)], np.int64),
        rng.choice([None, strings(rng, count)]),
        rng.choice([None, digest]),
    )


def causes(rng: random.Random, count: int) -> Causes:
    lengths = [rng.randint(1, 3) for _ in range(count)]
    total = sum(lengths)
    named = ids(rng, total)
    flags = np.array([rng.random() < 0.5 for _ in range(total)])
    nothing = np.zeros(total, np.bool_)
    return Causes(
        np.cumsum([0, *lengths]),
        named,
        nothing if named.digest is None else flags,
        nothing if named.text is None else flags,
    )


def batch(rng: random.Random, count: int) -> EventBatch:
    kinds = [rng.choice(list(Kind)) for _ in range(rng.randint(0, 6))]
    schema = EventType(
        rng.choice("TUV"), tuple(Attribute(f"a{n}", kind) for n, kind in enumerate(kinds))
    )
    return EventBatch(
        schema,
        np.array([rng.randint(-(2**63), 2**63 - 1) for _ in range(count)], np.int64),
        ids(rng, count),
        tuple(column(rng, kind, count) for kind in kinds),
        rng.choice([None, causes(rng, count)]),
    )


def delivery(rng: random.Random) -> Delivery:
    batches = tuple(batch(rng, rng.randint(1, 5)) for _ in range(rng.randint(0, 3)))
    total = sum(map(len, batches))
    order = np.array(rng.sample(range(total), total), np.int64)
    numbers = tuple(tuple(range(rng.randint(1, 3))) for _ in batches)
    return Delivery(batches, numbers, rng.choice([None, order]), rng.randint(0, 9), False)


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
        return (message.batches, message.order, message.closed, message.marks)
    if isinstance(message, Shared):
        return (message.batches, message.parts)
    if isinstance(message, Forward):
        return (message.batches, message.marks, message.answers)
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
    flow = wire.decode(wire.encode(Packet(1, 2, 3, Flow(sent.batches, sent.order, (("s", 4),)))))
    assert isinstance(flow, Packet)
    assert isinstance(flow.message, Flow)
    assert rows(flow.message.batches) == rows(sent.batches)
    assert flow.message.closed == (("s", 4),)
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
    part = Part("b1", 2, tuple(range(len(sent.batches))))
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


def test_equal_schemas_are_one_object() -> None:
    advertised = wire.decode(wire.encode(Advertise(1, (TEMP,))))
    again = wire.decode(
        wire.encode(Advertise(2, (EventType.of("Temp", area="string", value="float"),)))
    )
    assert isinstance(advertised, Advertise)
    assert isinstance(again, Advertise)
    assert advertised.types[0] is again.types[0]
