"""Readers of bytes from outside, one a target, for tests and for fuzzing (``make fuzz-inputs``).

Law: a reader takes any bytes, or raises the error that it documents. ``R X 1 3`` is no message, and
``wire.decode`` says so by WireError; a KeyError, a RecursionError or a crash is a fault of ours.

A target's inputs are plain bytes. Frames of a message are put together by :func:`joined`, so that a
change of a byte may move a frame's end, too.
"""

from __future__ import annotations

import functools
import os
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from event_batches import batch_of_events
from lone import fire, hear, lone
from message_batches import delivery, single
from msgspec.structs import replace
from plain_messages import PLAIN

from broker import configuration
from broker.errors import ConfigurationError
from broker.keys import BY_NAME
from broker.security.access import load_access
from broker.security.keys import create, load_pair, public_key
from matcher.errors import EventError
from matcher.formats.files import EventFile, output_to
from matcher.formats.intake import Intake
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.model import Event, EventType
from routing import wire
from routing.errors import WireError
from routing.messages import (
    VERSION,
    Advertise,
    Deploy,
    Flow,
    Forward,
    Hello,
    Packet,
    Part,
    Publish,
    Rights,
    Shared,
    Subscribe,
)
from rules.editing import meaning, remarks, suggestions
from rules.errors import RuleErrors
from rules.language import load
from rules.subscription import parse_subscription
from rules.syntax.parser import decode, parse
from rules.syntax.printer import print_file

EXAMPLES = Path(__file__).parents[1] / "examples"
TRACE = f"00-{'1' * 32}-{'2' * 16}-01"
MIXED = EventType.of("Mixed", i="int", f="float", b="bool", s="string")
EVENTS = [
    Event("Mixed", 0, "a", "1", {"i": 2**63 - 1, "f": 1e22, "b": True, "s": 'é,"\n'}, 1),
    Event("Mixed", 1_000_000, "a", "2", {"i": -7, "f": -0.5, "b": False, "s": ""}, 2),
    Event("Mixed", -1, "b", "x", {"i": 0, "f": 0.1, "b": True, "s": " true "}, 3),
]


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, the one error that it documents, and inputs that it takes."""

    name: str
    read: Callable[[bytes], object]
    error: type[Exception]
    seeds: Callable[[], Sequence[bytes]]

    def tries(self, data: bytes) -> bool:
        """Whether the bytes are taken; every error but the documented one comes out."""
        try:
            self.read(data)
        except self.error:
            return False
        return True


# --- frames ----------------------------------------------------------------------------------


def joined(frames: Sequence[bytes]) -> bytes:
    """Frames as one text: their number, the lengths of all but the last, and their bytes."""
    lengths = b"".join(len(frame).to_bytes(2, "big") for frame in frames[:-1])
    return bytes([len(frames)]) + lengths + b"".join(frames)


def frames_of(data: bytes) -> list[bytes]:
    """The frames that any bytes stand for, by :func:`joined`."""
    count = data[0] % 5 if data else 0
    start, frames = 1 + 2 * max(0, count - 1), []
    for place in range(count):
        length = int.from_bytes(data[1 + 2 * place : 3 + 2 * place], "big")
        end = len(data) if place == count - 1 else start + length
        frames.append(data[start:end])
        start = end
    return frames


def read_frames(data: bytes) -> None:
    """Decode frames; what is taken can be looked at, written, and is taken again."""
    frames = frames_of(data)
    if frames:  # as whatever comes over a socket has
        wire.is_gathered(frames)
    wire.looks_like(frames, Publish)
    message = wire.decode(frames)
    for batch in getattr(message, "batches", ()):
        batch.events()
    wire.decode(wire.encode(message))


def messages() -> Iterator[list[bytes]]:
    """Frames of each kind of message, with and without events."""
    yield from map(wire.encode, PLAIN)
    rng = random.Random("seeds")
    yield wire.encode(Publish((single(),), 5))
    for _ in range(8):
        made = delivery(rng)
        parts = (Part("b1", tuple(range(len(made.batches)))),)
        yield wire.encode(made)
        if len(made):
            yield wire.encode(replace(made, traces=((0, (TRACE,)),)))
            yield wire.encode(Publish(made.batches, 5, traces=((len(made) - 1, (TRACE, TRACE)),)))
        yield wire.encode(Publish(made.batches, 5))
        yield wire.encode(Packet(1, 2, 3, Flow(made.batches, made.order, (("s", 4),))))
        yield wire.encode(Packet(1, 2, 3, Forward(made.batches, (("Temp", 4),))))
        yield wire.encode(Packet(1, 2, 3, Shared(made.batches, parts)))


# --- files -----------------------------------------------------------------------------------


@functools.cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = tempfile.TemporaryDirectory(dir=place, prefix="rexmq-outside-")
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[object] = []
"""Folders that stay until the process ends."""


def in_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A reader of bytes that stand in a file of this name, which only its owner may read."""

    def read_it(data: bytes) -> object:
        path = folder() / name
        path.write_bytes(data)
        path.chmod(0o600)
        return read(path)

    return read_it


def read_events(path: Path) -> None:
    """A look at the times, then the events, bad ones skipped, and then with the first raised."""
    file = EventFile.of(path)
    list(file.scan(Intake(skip_bad=True)))
    for intake in (Intake(skip_bad=True), Intake({"Mixed": MIXED}, skip_bad=True), Intake()):
        for chunk in file.read(intake):
            for batch in chunk.batches:
                batch.events()


def log_in_sqlite() -> bytes:
    """A log of one event, OCEL 2.0."""
    with closing(sqlite3.connect(":memory:")) as log:
        log.executescript(
            """PRAGMA page_size = 512;
            CREATE TABLE object (ocel_id, ocel_type); INSERT INTO object VALUES ('o', 'Order');
            CREATE TABLE event (ocel_id, ocel_type); INSERT INTO event VALUES ('e', 'p');
            CREATE TABLE event_map_type (ocel_type, ocel_type_map);
            INSERT INTO event_map_type VALUES ('p', 'P');
            CREATE TABLE event_object (ocel_event_id, ocel_object_id, ocel_qualifier);
            INSERT INTO event_object VALUES ('e', 'o', 'q');
            CREATE TABLE event_P (ocel_id TEXT, ocel_time TIMESTAMP, n INTEGER, ok BOOLEAN);
            INSERT INTO event_P VALUES ('e', '2026-01-01 00:00:00Z', 1, 1);"""
        )
        return log.serialize()


LAYOUTS = {
    ".json": Layout(columns=(("x", ".data.y"), ("z", ".a.b")), records="r.items"),
    ".jsonl": Layout(flat=True, columns=(("x", ".data.y"),)),
    ".csv": Layout(
        date="x",
        delimiter=";",
        decimal=",",
        skip_lines=1,
        comment="#",
        nulls=("-",),
        times=TimeForm(zone="UTC"),
    ),
    ".xes": Layout(),
    ".jsonocel": Layout(),
    ".xmlocel": Layout(),
    ".sqlite": Layout(),
}
LAID_OUT = {
    ".json": b'{"r": {"items": [{"time": 2, "a": {"b": "c"}, "data": {"y": 5, "u": 1}}]}}',
    ".jsonl": b'{"time": 1, "data": {"y": 7}, "v": 2.5}\n{"time": 2, "data": {"y": 8}, "v": 1}\n',
    ".csv": b"head\n# no\ntime;x;y\n10:00;2026-01-01;1,5\n#\n10:01;2026-01-01;-\n",
    ".xes": b'<log><trace><string key="concept:name" value="c"/><event><date key="time:timestamp" '
    b'value="2026-01-01T00:00:00Z"/><int key="n" value="1"/></event></trace></log>',
    ".jsonocel": b'{"objects": [{"id": "o", "type": "Order"}], "events": [{"id": "e", "type": "p",'
    b'"time": "2026-01-01T00:00:00Z", "relationships": [{"objectId": "o", "qualifier": "q"}]}]}',
    ".xmlocel": b'<log><objects><object id="o" type="Order"/></objects><events><event id="e" '
    b'type="p" time="2026-01-01T00:00:00Z"><attributes><attribute name="n">1</attribute>'
    b'</attributes><objects><relationship object-id="o" qualifier="q"/></objects></event></events>'
    b"</log>",
    ".sqlite": log_in_sqlite(),
}
"""A file for each layout, in which its options say something."""


def read_laid_out(path: Path) -> None:
    """The events of a file as its layout says, and in a folder with columns in its name."""
    columns = (("day", "7"), ("room", None))
    file = EventFile.of(path, "T", layout=LAYOUTS[path.suffix], columns=columns)
    for intake in (Intake(skip_bad=True), Intake()):
        for chunk in file.read(intake):
            for batch in chunk.batches:
                batch.events()


def recorded(ending: str) -> Sequence[bytes]:
    """Files of events with this ending, as they are written."""
    path = folder() / f"seed{ending}"
    with output_to(path, [MIXED], composite=False) as output:
        output.write([batch_of_events(MIXED, EVENTS)])
    return (path.read_bytes(), *(HAND_WRITTEN.get(ending, ())))


HAND_WRITTEN = {
    ".jsonl": (
        b'{"specversion":"1.0","type":"A","time":"2026-01-01T00:00:00Z","data":{"x":1,"y":null}}\n',
        b'{"type":"A","time":5,"id":7,"sequence":3,"source":"s","data":{"x":[1]}}\n\n{}\n',
    ),
    ".csv": (
        b'type,time,x,y\nA,2026-01-01 00:00:00+01:00,1,"a ""b"", c"\nA,1.5,-2e3,\n',
        b"\xef\xbb\xbftime,id,source,type,sequence,x\r\n1,a,b,c,4,true\r\n",
    ),
}


# --- rules -----------------------------------------------------------------------------------

RULES = (
    b"event Smoke(area: string) event Temp(area: string, value: float) rule fire:\n"
    b"define Fire(area: string, t: float) from Smoke(area = $a) as S and last Temp(area = $a and "
    b"value > 45) as T within 5 min from S where area = $a, t = T.value consuming T",
    b"event A(x: int, y: float?) define B(n, m) from A((x % 2 = 0 or not (x in (1, 2)))) and "
    b"not A(x > 7) within 3 s from A and each A(y is not null and x > Avg(A().x within 2 s from A)"
    b") as C within 5 s from A where n = A.x * 2 - C.x, m = Count(A() within 9 s from A)",
    b'define T(s) from Timer(M % 5 = 0, zone = "Europe/Rome") where s = Timer.M; # more',
    b'event D(r: string) define O(r) from D(r prefix "Lab", lower(r) matches "^l(a|b)?[0-9]+$") '
    b"where r = D.r",
)
KNOWN = {kind.name: kind for kind in (MIXED, EventType.of("Temp", area="string", value="float"))}


def read_rules(data: bytes) -> None:
    """Rules, and where they are well-formed, the same text again as it is printed."""
    text = decode(data)
    try:
        file = parse(text)
    finally:
        load(text)
    printed = print_file(file)
    assert print_file(parse(printed)) == printed


def read_while_written(data: bytes) -> None:
    """What an editor is told of rules at each of some places."""
    text = decode(data)
    remarks(text)
    for offset in range(0, len(text), 1 + len(text) // 4):
        meaning(text, offset)
        suggestions(text, offset)


def rule_texts() -> Sequence[bytes]:
    """Rules by hand, and those of the examples."""
    return (*RULES, *(path.read_bytes() for path in EXAMPLES.rglob("*.tesla")))


def read_filter(data: bytes) -> None:
    """A filter of a subscription, to types that are known."""
    parse_subscription(data.decode("utf-8", "replace"), KNOWN)


# --- configuration ---------------------------------------------------------------------------

CONFIGURED = (
    b'[broker]\nname = "b1"\nlisten = ["tcp://127.0.0.1:7461"]\nhttp = "[::1]:9464"\n'
    b'[links]\nheartbeat_s = 1.5\n[promises]\nsource_silence_max_s = "never"\nlate = "refuse"\n'
    b'[network]\nlink = "tcp://a:1,ipc:///b"\nstrategy = "adaptive"\n[limits]\nclients_max = 7\n'
    b'[security]\ninsecure = true\nsecret_key = "none"\n'
)
KEY = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"


def read_settings(data: bytes) -> None:
    """A line of the environment: a key's name, an equals sign, and its value."""
    name, _, value = data.decode("utf-8", "replace").partition("=")
    key = BY_NAME.get(name)
    if key is not None:
        configuration.load(None, {key.variable: value}, {})


def settings() -> Sequence[bytes]:
    """Each key with a value of some kind."""
    values = ("7", "1e3", "never", "true", "a,b", "[::1]:80", "tcp://a:1", "adaptive")
    return [f"{name}={value}".encode() for name in BY_NAME for value in values]


def key_files() -> Sequence[bytes]:
    """A file of a secret key, as ``rexmq keys new`` writes it."""
    (folder() / "keys").mkdir(exist_ok=True)
    name = f"k{len(list((folder() / 'keys').iterdir()))}"
    return (create(name, folder() / "keys").read_bytes(),)


def access_files() -> Sequence[bytes]:
    """Access files of every kind of entry."""
    entry = f'key = "{KEY}"\n'.encode()
    return (
        b"[user.alice]\n" + entry,
        b'[broker.b2]\nendpoint = "tcp://a:1"\n' + entry,
        b'[user.bob]\nkey = ["' + KEY.encode() + b'"]\n',
        b'[user.p]\ngroups = ["all"]\nsources = ["p", "q-*"]\npublish = ["Mixed", "Mixed(i > 2)"]\n'
        b"subscribe = ['Mixed(s = \"x\")', '*']\nconnections_max = 7\n"
        + entry
        + b'[group.all]\ndefine = ["*"]\ndeploy = ["r*"]\ncommands = ["*"]\nrules_max = 3\n',
    )


def public_key_files() -> Sequence[bytes]:
    """A public key, as ``rexmq keys new`` writes it, and as it may stand in an access file."""
    return f'metadata\ncurve\n    public-key = "{KEY}"\n'.encode(), f'public-key = "{KEY}"'.encode()


def read_at_sighup(path: Path) -> None:
    """Read an access file, and let its rights hold for clients that are connected under others."""
    rights = load_access(path).rights
    broker = lone()
    broker.node.rights_of = lambda peer: Rights("p")
    for peer, name in ((b"source", "p"), (b"sink", "")):
        hear(broker, peer, Hello(VERSION, name, 60.0))
    hear(broker, b"source", Advertise(1, (MIXED,)))
    hear(broker, b"sink", Subscribe(1, 1, "Mixed(i > 3)"))
    hear(broker, b"sink", Subscribe(2, 2, "*"))
    hear(broker, b"sink", Deploy(3, "rule r: define R(i: int) from Mixed() as m where i = m.i"))
    broker.service.change_rights(rights, 1.0)
    fire(broker, 1.0)


TARGETS: tuple[Target, ...] = (
    Target("wire", read_frames, WireError, lambda: [joined(frames) for frames in messages()]),
    *(
        Target(
            f"file{ending}",
            in_file(f"events{ending}", read_events),
            EventError,
            functools.partial(recorded, ending),
        )
        for ending in (".jsonl", ".csv", ".tsv", ".arrow", ".parquet", ".jsonl.gz")
    ),
    *(
        Target(
            f"layout{ending}",
            in_file(f"events{ending}", read_laid_out),
            EventError,
            functools.partial(lambda seed: [seed], seed),
        )
        for ending, seed in LAID_OUT.items()
    ),
    Target("editing", read_while_written, RuleErrors, rule_texts),
    Target("rules", read_rules, RuleErrors, rule_texts),
    Target(
        "filter",
        read_filter,
        RuleErrors,
        lambda: (
            b'Temp(value > 20 and area = "a1")',
            b"Mixed(i + 1 > f * 2 or not b)",
            rb'Mixed(s = "it\'s")',
            b"Temp",
        ),
    ),
    Target(
        "configuration",
        in_file("broker.toml", lambda path: configuration.load(path, {}, {})),
        ConfigurationError,
        lambda: (CONFIGURED, configuration.load(None, {}, {}).toml().encode()),
    ),
    Target("setting", read_settings, ConfigurationError, settings),
    Target("access", in_file("access.toml", load_access), ConfigurationError, access_files),
    Target("sighup", in_file("access.toml", read_at_sighup), ConfigurationError, access_files),
    Target(
        "public key",
        in_file("own.key", lambda path: public_key(str(path), "key")),
        ConfigurationError,
        public_key_files,
    ),
    Target("key", in_file("own.key_secret", load_pair), ConfigurationError, key_files),
)
BY_TARGET = {target.name: target for target in TARGETS}


__all__ = ["BY_TARGET", "TARGETS", "Target", "frames_of", "joined"]
