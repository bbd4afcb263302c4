"""CloudEvents JSON lines: tesla.md E3 and E5, read in bulk and, where need be, line by line."""

import io
import itertools
import random

import numpy as np
import pytest

from matcher.errors import BadEvent
from matcher.formats import jsonlines
from matcher.formats.intake import Intake, Place
from matcher.formats.printing import json_lines, pieces
from matcher.model import EventBatch, EventType

TEMP = EventType.of("Temp", area="string", value="float")
GOOD = '{"type": "Temp", "time": 1, "data": {"area": "a1", "value": 1.5}}\n'

BAD = [
    ('{"type": "Temp"', "not an event"),
    ("[]", "not an event"),
    ("{} {}", "not an event"),
    ("[" * 100_000, "not an event"),
    ('{"type": "Temp", "data": {"area": "a", "value": 1.0}}', "no time"),
    ('{"type": "Temp", "time": null}', "no time"),
    ('{"type": "Temp", "time": true}', "no time"),
    ('{"type": "Temp", "time": 1e400}', "none of the years 1 to 9999"),
    ('{"type": "Temp", "time": 1e99999999999999999999}', "none of the years 1 to 9999"),
    ('{"type": "Temp", "time": "1e99999999999999999999"}', "none of the years 1 to 9999"),
    ('{"type": "Temp", "time": "1e-99999999999999999999"}', "finer than a microsecond"),
    ('{"type": "Temp", "time": "1356998400.1234561"}', "finer than a microsecond"),
    ('{"type": "Temp", "time": "yesterday"}', "neither RFC 3339"),
    ('{"time": 1}', "type"),
    ('{"type": "", "time": 1}', "type"),
    ('{"type": 7, "time": 1}', "type"),
    ('{"type": "Temp", "time": 1, "source": 7}', "source"),
    ('{"type": "Temp", "time": 1, "id": ""}', "id"),
    ('{"type": "Temp", "time": 1, "sequence": "1"}', "sequence"),
    ('{"type": "Temp", "time": 1, "sequence": 9223372036854775808}', "sequence"),
    ('{"type": "Temp", "time": 1}', "attribute area is missing"),
    ('{"type": "Temp", "time": 1, "data": null}', "expected an object, found null"),
    ('{"type": "Temp", "time": 1, "data": {"area": "a", "value": null}}', "float, found null"),
    ('{"type": "Temp", "time": 1, "data": {"area": "a", "value": "one"}}', "float, found string"),
    ('{"type": "Temp", "time": 1, "data": {"area": "a", "value": true}}', "float, found bool"),
    ('{"type": "Temp", "time": 1, "data": {"area": "a", "value": 1e400}}', "out of range"),
    ('{"type": "Temp", "time": 1, "data": {"area": 1, "value": 1}}', "string, found int"),
    ('{"type": "Temp", "time": 1, "data": {"area": [1], "value": 1}}', "string, found a list"),
    ('{"type": "Temp", "time": 1, "data": {"area": "\\ud800", "value": 1}}', "not an event|data"),
]


@pytest.mark.parametrize(("line", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_bad_event_is_raised_with_its_place_or_skipped_and_counted(
    line: str, reason: str
) -> None:
    text = GOOD + "\n" + GOOD + line + "\n" + GOOD
    with pytest.raises(BadEvent, match=reason) as caught:
        jsonlines.read_text(text, "temps.jsonl", Intake({"Temp": TEMP}))
    assert caught.value.place == "temps.jsonl:4"

    intake = Intake({"Temp": TEMP}, skip_bad=True)
    batches = jsonlines.read_text(text, "temps.jsonl", intake)
    assert [batch.ids.printed() for batch in batches] == [["1", "3", "5"]]
    assert intake.events == 3
    assert intake.bad.total() == 1


def test_the_first_bad_event_of_the_file_is_the_one_that_is_raised() -> None:
    """Whichever step of the reading finds it: here attributes, a type, and no JSON at all."""
    wrong = ['{"type": "B", "time": 1, "data": {"x": []}}\n', GOOD.replace("1.5", "true"), "{\n"]
    for first, second in itertools.permutations(wrong, 2):
        with pytest.raises(BadEvent) as caught:
            jsonlines.read_text(GOOD + first + GOOD + second, "f")
        assert caught.value.place == "f:2"


ROUNDED = {
    "1.00000000000000001": 1_000_000,
    "0.10000000000000000555": 100_000,
    "4294967295.0000001": 4_294_967_295_000_000,
    "4294967296.0000006": 4_294_967_296_000_001,
    "-1356998400.12345601": -1_356_998_400_123_456,
    "1356998400.1234567": 1_356_998_400_123_457,
    "1e-400": 0,
    "-1E-99999999999999999999": 0,
    "0." + "0" * 5000 + "1": 0,
    "100000000000000001e-17": 1_000_000,
}
"""Numbers with fractions, as floats, and the microseconds next to them."""


@pytest.mark.parametrize("time", ROUNDED, ids=[time[:24] for time in ROUNDED])
def test_numbers_with_fractions_are_rounded_whatever_the_other_lines(time: str) -> None:
    line = GOOD.replace('"time": 1', f'"time": {time}')
    for others in ("", GOOD, GOOD.replace('"time": 1', '"time": "1970-01-01T00:00:00Z"')):
        for name in ('"time"', r'"t\u0069me"'):
            [batch] = jsonlines.read_text(others + line.replace('"time"', name), "f")
            assert batch.time.tolist()[-1] == ROUNDED[time]


def test_digits_that_are_zeros_are_not_finer() -> None:
    for time in ("1.00000000000000000000", "0.0e-99999999999999999999", "10000000000000000000e-19"):
        text = GOOD + GOOD.replace('"time": 1', f'"time": {time}')
        [batch] = jsonlines.read_text(text, "f")
        assert batch.time.tolist() == [1_000_000, 0 if time.startswith("0") else 1_000_000]


@pytest.mark.parametrize("seed", range(5))
def test_times_near_a_microsecond_are_read_in_bulk_as_line_by_line(seed: int) -> None:
    """Any digits, in any form: one more line, of no event, makes every line be read by itself."""
    chance = random.Random(seed)
    for _ in range(300):
        whole = chance.choice(
            ["0", "1", "-7", str(chance.randrange(10 ** chance.randrange(1, 11)))]
        )
        zeros, ones = (
            "0" * chance.randrange(20),
            str(chance.randrange(10 ** chance.randrange(1, 9))),
        )
        time = f"{whole}.{chance.choice([ones, zeros, zeros + ones, ones + zeros + ones])}0"
        time = chance.choice([time, time + f"e{chance.randrange(-330, 8)}", whole])
        line = GOOD.replace('"time": 1', f'"time": {time}')
        found = []
        for text in (line, line + "x"):
            intake = Intake(skip_bad=True)
            batches = jsonlines.read_text(text, intake=intake)
            del intake.bad["not an event: JSON is malformed: invalid character (byte 0)"]
            found.append(([batch.time.tolist() for batch in batches], intake.bad))
        assert found[0] == found[1], time


def test_bytes_that_are_not_utf8_are_bad() -> None:
    text = GOOD.encode() + GOOD.replace("a1", "\xff").encode("latin-1")
    with pytest.raises(BadEvent, match="x:2: "):
        jsonlines.read_text(text, "x")


def test_what_an_event_leaves_out_follows_from_its_line() -> None:
    [batch] = jsonlines.read_text(GOOD + "\n \r\n" + GOOD, "temps.jsonl")
    assert batch.ids.sequence.tolist() == [1, 4]
    assert batch.ids.text is None
    assert batch.ids.source.tolist() == ["temps.jsonl"] * 2


def test_given_identities_are_kept() -> None:
    lines = [
        '{"type": "Tick", "time": 1, "source": "s/1", "id": "a"}',
        '{"type": "Tick", "time": 2, "id": 7}',
        '{"type": "Tick", "time": 3, "id": "3", "sequence": 30}',
        '{"type": "Tick", "time": 4, "sequence": -5}',
    ]
    [batch] = jsonlines.read_text("\n".join(lines), "f")
    assert batch.ids.printed() == ["a", "7", "3", "-5"]
    assert batch.ids.sequence.tolist() == [1, 2, 30, -5]
    assert batch.ids.source.tolist() == ["s/1", "f", "f", "f"]


def test_ids_that_are_their_sequence_numbers_need_no_text() -> None:
    lines = [f'{{"type": "T", "time": 1, "id": "{n}"}}' for n in (1, 2, 3)]
    assert jsonlines.read_text("\n".join(lines))[0].ids.text is None
    assert jsonlines.read_text("\n".join(reversed(lines)))[0].ids.text is not None


def test_types_are_kept_apart_and_in_order() -> None:
    lines = [f'{{"type": "{name}", "time": {n}}}' for n, name in enumerate("ABABB", 1)]
    first, second = jsonlines.read_text("\n".join(lines))
    assert (first.type.name, first.time.tolist()) == ("A", [1_000_000, 3_000_000])
    assert (second.type.name, second.time.tolist()) == ("B", [2_000_000, 4_000_000, 5_000_000])


def test_a_declared_schema_goes_before_the_first_event() -> None:
    line = '{"type": "Temp", "time": 1, "data": {"value": 46, "more": [1], "area": "a"}}\n'
    intake = Intake({"Temp": TEMP})
    [batch] = jsonlines.read_text(line * 2, intake=intake)
    assert batch.type is TEMP
    assert batch.column("value").tolist() == [46.0, 46.0]
    assert intake.surplus == 2


def test_surplus_attributes_are_counted_event_by_event_too() -> None:
    intake = Intake({"Temp": TEMP}, skip_bad=True)
    surplus = '{"type": "Temp", "time": 1, "data": {"value": 4, "x": 1, "y": 2, "area": "a"}}\n'
    jsonlines.read_text(surplus + GOOD.replace("1.5", "null") + surplus, intake=intake)
    assert (intake.surplus, intake.events) == (4, 2)


def test_the_schema_of_the_first_good_event_is_inferred() -> None:
    intake = Intake(skip_bad=True)
    bad = GOOD.replace("1.5", "[]")
    [batch] = jsonlines.read_text(bad + GOOD + bad, intake=intake)
    assert intake.schemas == {"Temp": TEMP}
    assert batch.ids.printed() == ["2"]
    assert intake.bad.total() == 2
    with pytest.raises(BadEvent, match=r"expected int, found float \(inferred .* T\(x: int\)\)"):
        jsonlines.read_text(
            '{"type":"T","time":1,"data":{"x":1}}\n{"type":"T","time":1,"data":{"x":1.0}}'
        )


def test_attribute_names_may_be_any_text() -> None:
    lines = '{"type": "T", "time": 1, "data": {"a\\"b": 1, "é ": "x", "": true}}\n' * 2
    [batch] = jsonlines.read_text(lines)
    assert batch.event(1).data == {'a"b': 1, "é ": "x", "": True}
    assert list(jsonlines.read_text(json_lines([batch]), "<text>")[0].events()) == list(
        batch.events()
    )


def test_the_decoders_leniency_about_line_ends_does_not_shift_numbers() -> None:
    """Two objects on a line, made up for by an empty line, are still a bad line."""
    text = GOOD + GOOD.strip() + GOOD.strip() + "\n\n" + GOOD
    with pytest.raises(BadEvent, match="f:2: not an event"):
        jsonlines.read_text(text, "f")
    with pytest.raises(BadEvent, match="f:1: not an event"):
        jsonlines.read_text(GOOD.replace(", ", ",\n") + GOOD + GOOD.strip() + GOOD, "f")


def test_a_byte_order_mark_and_line_ends_of_other_systems_are_read() -> None:
    text = "\ufeff" + GOOD.replace("\n", "\r\n") * 3
    [batch] = jsonlines.read_text(text.encode())
    assert batch.ids.printed() == ["1", "2", "3"]


@pytest.mark.parametrize("size", [1, 7, 64, 100, 1000])
def test_chunks_change_nothing_but_the_cuts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(GOOD.replace("1.5", f"{n}.5") + "\n" * (n % 3) for n in range(20))
    expected = [event for batch in jsonlines.read_text(text) for event in batch.events()]
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", size)
    found = [event for batch in jsonlines.read_text(text) for event in batch.events()]
    assert found == expected
    stream = io.BytesIO(text.rstrip().encode())
    intake = Intake()
    times = np.concatenate(
        [glance.times for glance in jsonlines.scan(stream, Place("f", "f"), intake)]
    )
    assert times.tolist() == [event.time for event in expected]
    assert intake.schemas == {"Temp": TEMP}


def test_a_scan_cuts_the_chunks_that_a_reading_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", 500)
    names = itertools.cycle("ABC")
    lines = [f'{{"type": "{next(names)}", "time": {n}.5}}\n' for n in range(200)]
    lines[50] = "nonsense\n"
    text = "".join(lines).encode()
    scanned = list(jsonlines.scan(io.BytesIO(text), Place("f", "f"), Intake()))
    intake = Intake(skip_bad=True)
    read = list(jsonlines.read(io.BytesIO(text), Place("f", "f"), intake))
    assert [(glance.end, sorted(glance.times.tolist())) for glance in scanned] == [
        (chunk.end, sorted(time for batch in chunk.batches for time in batch.time.tolist()))
        for chunk in read
    ]
    assert read[-1].end == 200


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", 100)
    monkeypatch.setattr(jsonlines, "LINE_BYTES_MAX", 1000)
    with pytest.raises(BadEvent, match="f:2: a line of more than 1000 bytes"):
        jsonlines.read_text(GOOD + "x" * 2000, "f")


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_are_read_in_bulk_as_line_by_line(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random bytes changed, doubled and dropped: what is good, and why the rest is bad, is told
    alike by the steps that take a whole chunk and by those that take a line."""
    chance = random.Random(seed)
    text = bytearray((GOOD + GOOD.replace("1.5", "2").replace("Temp", "Other")).encode() * 10)
    for _ in range(chance.randrange(6)):
        place = chance.randrange(len(text))
        damage = chance.choice(
            [b"", b"\n", b"}", b"{", b" ", b'"', b"0", b"\xff", b"}\n{", b"null"]
        )
        text[place : place + chance.randrange(2)] = damage
    declared = {"Temp": TEMP, "Other": EventType("Other", TEMP.attributes)}
    found = []
    for size in (2**20, 1):
        monkeypatch.setattr(jsonlines, "CHUNK_BYTES", size)
        intake = Intake(declared, skip_bad=True)
        events = rows(jsonlines.read_text(bytes(text), intake=intake))
        found.append((sorted(map(str, events)), intake.bad, intake.surplus, intake.events))
    assert found[0] == found[1]


def test_no_events_are_no_batches() -> None:
    assert jsonlines.read_text("") == []
    assert jsonlines.read_text("\n\n") == []


def rows(batches: list[EventBatch]) -> list[object]:
    return [event for batch in batches for event in batch.events()]


def test_what_is_printed_is_read_back() -> None:
    event_type = EventType.of("T", i="int", f="float", b="bool", s="string")
    values = [
        '{"i": 9223372036854775807, "f": 1e22, "b": true, "s": ""}',
        '{"i": -9223372036854775808, "f": -0.0, "b": false, "s": "\\u0000\\u2028\\ud83d\\ude00"}',
        '{"i": 0, "f": 5e-324, "b": true, "s": "é"}',
        '{"i": 1, "f": 1.7976931348623157e308, "b": true, "s": "null"}',
        '{"i": 2, "f": 0.1, "b": true, "s": "' + "x" * 10_000 + '"}',
    ]
    times = ['"2013-02-08T17:20:00Z"', "12.5", '"1960-01-01T00:00:00.000001Z"', "-1e-6", "9e9"]
    text = "\n".join(
        f'{{"type": "T", "time": {time}, "source": "s{n % 2}", "id": "x{n}", "data": {data}}}'
        for n, (time, data) in enumerate(zip(times, values, strict=True))
    )
    batches = jsonlines.read_text(text, intake=Intake({"T": event_type}))
    assert len(rows(batches)) == 5
    for seconds in (False, True):
        printed = json_lines(batches, seconds=seconds)
        again = jsonlines.read_text(printed, "other", Intake({"T": event_type}))
        assert rows(again) == rows(batches)
        assert json_lines(again, seconds=seconds) == printed


@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_lines_are_the_lines_of_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    batches = [
        jsonlines.read_text(
            "\n".join(f'{{"type": "{name}", "time": {n}, "id": "{n}"}}' for n in range(count)),
            intake=Intake({name: EventType.of(name)}),
        )[0]
        for name, count in (("A", rng.randint(1, 9)), ("B", 3), ("C", rng.randint(1, 30)))
    ]
    order = np.arange(sum(map(len, batches)))
    rng.shuffle(order)
    for places in (order, None):
        cut = list(pieces(batches, places, 4))
        assert max(len(some) for _, some in cut) == 4
        assert b"".join(json_lines(*piece) for piece in cut) == json_lines(batches, places)
