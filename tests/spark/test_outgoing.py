"""Ids that follow from what rows hold: equal for equal rows, whatever stands beside them."""

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from broker.pace import Pace
from broker.spark.options import ReadOptions, WriteOptions
from broker.spark.outgoing import PlainRows, content_ids
from broker.spark.source import RexmqDataSource
from broker.spark.writers import _write
from matcher.errors import BadEvent
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")


def random_rows(random, count):
    return [
        (
            random.choice(["", "a", "b", None, "a\0", "é"]),
            random.choice([0, 1, -1, 2**62, None]),
            random.choice([0.0, 1.0, 0.5, None]),
            random.choice([True, False, None]),
        )
        for _ in range(count)
    ]


def ids_of(rows):
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.bool_())
    return content_ids(
        [pa.array(list(c), k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
    )


def test_rows_have_one_id_exactly_when_they_hold_the_same():
    for seed in range(20):
        random = Random(seed)
        rows = random_rows(random, 200)
        of_row = dict(zip(rows, ids_of(rows), strict=True))
        assert len(set(of_row.values())) == len(of_row), f"seed {seed}"
        random.shuffle(rows)
        some = rows[: random.randint(1, 50)]
        assert ids_of(some) == [of_row[row] for row in some], f"seed {seed}"


def test_rows_without_an_id_are_named_by_all_that_they_hold():
    """A null names nothing; and rows of two types that hold the same are two events."""
    values = {"time": [1.0, 2.0, 3.0], "area": ["a", None, None], "value": [1.0, 2.0, 3.0]}
    batch = pa.record_batch({**values, "key": ["x", None, ""], "more": [None, None, 1]})
    whole = content_ids(batch.columns, "Temp")
    assert len({*whole, *content_ids(batch.columns, "Other")}) == 6
    loose = EventType.of("Temp", value="float")
    (events,) = PlainRows(loose, "time", ("key",), skip_bad=False).read(batch)
    assert events.ids.printed() == ["x", *whole[1:]]
    (events,) = PlainRows(loose, "time", ("area", "more"), skip_bad=False).read(batch)
    printed = events.ids.printed()
    assert printed[1] == whole[1]
    assert len(set(printed)) == 3


def test_columns_and_times_are_read_as_the_options_say():
    """An attribute may be called like what the events bear, and its column otherwise."""
    said = {"type": "T", "time": "at", "timeFormat": "%d.%m.%Y", "timeZone": "Europe/Rome"}
    options = WriteOptions.of({**said, "columns": "time=hour,source=from", "timeCut": "TRUE"})
    kind = EventType.of("T", time="int", source="string", id="int", sequence="int")
    values = {"at": ["01.02.2000"], "hour": [7], "from": ["coal"], "id": [1], "sequence": [5]}
    rows = PlainRows(kind, options.time, ("id",), skip_bad=False, layout=options.layout)
    (events,) = rows.read(pa.record_batch(values))
    expected = {"time": 7, "source": "coal", "id": 1, "sequence": 5}
    assert (events.time.tolist(), events.event(0).data) == ([949_359_600_000_000], expected)
    with pytest.raises(ValueError, match="no time zone is called 'Mars'"):
        WriteOptions.of({"type": "T", "timeZone": "Mars"})
    with pytest.raises(ValueError, match="expected ATTRIBUTE=COLUMN"):
        WriteOptions.of({"type": "T", "columns": "a"})


def test_default_sources_are_of_their_types():
    source = WriteOptions.of({"type": "B, A", "typeColumn": "kind"}).source
    assert source == "spark/B+A"
    many = ", ".join(f"Type{number}" for number in range(60))
    assert len(WriteOptions.of({"type": many, "typeColumn": "kind"}).source) < 50


def test_ids_stay_with_their_rows_when_others_are_left_out():
    batch = pa.record_batch(
        {"time": [1.0, None, 3.0], "area": ["a", "b", "c"], "value": [1.0, 2.0, 3.0]}
    )
    whole = content_ids(batch.columns, "Temp")
    (events,) = PlainRows(TEMP, "time", (), skip_bad=True).read(batch)
    assert events.ids.printed() == [whole[0], whole[2]]
    (events,) = PlainRows(TEMP, "time", ("area",), skip_bad=True).read(batch)
    assert events.ids.printed() == ["a", "c"]
    with pytest.raises(BadEvent, match="row 2: no time"):
        PlainRows(TEMP, "time", (), skip_bad=False).read(batch)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option type is missing"),
        ({"type": "A", "order": "size"}, "option order is held or time or none, not 'size'"),
        ({"type": "A", "batch": "0"}, "option batch is a number of events"),
        ({"type": "A", "timeout": "soon"}, "option timeout is a duration such as 30 s"),
        ({"type": "A", "tpye": "B"}, "no option is called 'tpye'; did you mean type?"),
        ({"type": "A, B"}, "option typeColumn says which column tells them apart"),
        ({"type": "A", "speed": "fast", "order": "time"}, "option speed is a positive number"),
        ({"type": "A", "speed": "60"}, "option speed needs option order 'time'"),
        ({"type": "A", "writer": "csv"}, "option writer is arrow or rows, not 'csv'"),
        ({"type": "A", "replay": "2030"}, "option replay is true or false, not '2030'"),
        ({"type": "A", "credentials": "me:secret"}, "no option is called 'credentials'"),
        (
            {"type": "A", "broker": "tcp://a:1,tcp://b:1", "serverKey": "x"},
            "option serverKey has 1 keys, for 2 brokers; expected one of each",
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options, said):
    with pytest.raises(ValueError, match=said):
        WriteOptions.of(options)


def test_rows_are_recorded_where_that_is_said():
    assert not WriteOptions.of({"type": "A"}).replay
    assert WriteOptions.of({"type": "A", "replay": "True"}).replay


class Clock:
    """A clock that only sleeping moves, and what it showed at each delivery."""

    def __init__(self):
        self.now, self.sent = 100.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def send(self, batches, promise):
        times = [time for batch in batches for time in batch.time.tolist()]
        self.sent.append((round(self.now, 6), times, promise))

    resent = 0


@pytest.mark.parametrize(("origin", "begun"), [(None, 100.0), ((-2_000_000, 101.0), 102.0)])
def test_events_leave_when_they_are_due(origin, begun):
    """At twice the speed, those of one instant together, whatever record batches they come in."""
    times = [0.0, 0.0, 1.0, 1.0, 4.0, 4.004, 10.0]
    batches = [
        pa.record_batch({"time": some, "area": ["a"] * len(some), "value": [1.0] * len(some)})
        for some in (times[:3], times[3:])
    ]
    clock = Clock()
    rows = PlainRows(TEMP, "time", (), skip_bad=False)
    written = _write(batches, rows, clock, Pace(2.0, origin, clock, clock.sleep), in_order=True)
    sent = [(due, [time / 1e6 for time in some]) for due, some, _ in clock.sent]
    assert sent == [
        (begun, [0.0, 0.0]),
        (begun + 0.5, [1.0]),
        (begun + 0.5, [1.0]),
        (begun + 2.0, [4.0, 4.004]),
        (begun + 5.0, [10.0]),
    ]
    assert [promise for *_, promise in clock.sent] == [max(some) for _, some, _ in clock.sent]
    assert (written.rows, written.latest) == (7, 10_000_000)


def test_what_a_stream_and_a_writer_cannot_do_is_told():
    source = RexmqDataSource({"subscribe": "Fire()", "for": "1 s"})
    with pytest.raises(ValueError, match=r"option for belongs to spark\.read"):
        source.streamReader(StructType())
    with pytest.raises(ValueError, match="events cannot be overwritten"):
        RexmqDataSource({"type": "Fire"}).writer(StructType(), overwrite=True)


def test_options_are_read_whatever_their_case():
    read = ReadOptions.of({"Subscribe": "Fire(value > 45)", "FOR": "1.5 min", "broker": "a, b"})
    assert (read.types, read.duration_s, read.brokers) == (("Fire",), 90.0, ("a", "b"))


@pytest.mark.parametrize(
    ("given", "filters", "types"),
    [
        ("Fire()", ("Fire()",), ("Fire",)),
        ("Fire(value > 45); Smoke;", ("Fire(value > 45)", "Smoke"), ("Fire", "Smoke")),
        ('A(x = "1; 2"); A(y = 3)', ('A(x = "1; 2")', "A(y = 3)"), ("A",)),
        (r'A(x = "\";"); B', (r'A(x = "\";")', "B"), ("A", "B")),
        ('A(x = "open; B', ('A(x = "open; B',), ("A",)),
    ],
)
def test_filters_are_told_apart(given, filters, types):
    read = ReadOptions.of({"subscribe": given, "for": "1 s"})
    assert (read.filters, read.types) == (filters, types)


@pytest.mark.parametrize("given", [{"for": "1 s"}, {"subscribe": " ; ", "for": "1 s"}])
def test_something_must_be_subscribed_to(given):
    with pytest.raises(ValueError, match="option subscribe is missing"):
        ReadOptions.of(given)
