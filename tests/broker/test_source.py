"""The half of a publisher that never waits, on a link and a clock that the test keeps."""

import pyarrow as pa
import pytest

from broker.client.address import Address
from broker.client.source import NOTHING_GIVEN, Source
from matcher.errors import BadEvent, EventError, SchemaError
from matcher.model import MICROSECONDS, EventType
from matcher.rows import batch_of
from matcher.times import RFC_3339_MAX, RFC_3339_MIN
from routing import wire
from routing.config import SessionConfig
from routing.messages import VERSION, Confirmed, Publish, Welcome

TEMP = EventType.of("Temp", value="float")
HEARTBEAT_S = 1.0


class KeptClock:
    """Shows what the test says."""

    seconds = 1_000.0

    def now(self):
        return self.seconds


class KeptLink:
    """Keeps what is sent; nothing comes."""

    ended = False
    descriptors = ()

    def __init__(self):
        self.sent = []
        self.asked = 0

    def send(self, frames):
        self.sent.append(wire.decode(frames))
        return True

    @property
    def is_quiet(self):
        self.asked += 1
        return True


def add(source, value, at=None):
    """Add an event of this value; gives whether it was handed to the session."""
    given = NOTHING_GIVEN if at is None else (None, at, None)
    due = source.gathers("Temp", {"value": value}, given, None)
    if due is not None:
        source.hand_over(due)
    return due is not None


@pytest.fixture
def source():
    """A publisher whose events are never older than its clock, welcomed and advertised."""
    config = SessionConfig("sensor", heartbeat_s=HEARTBEAT_S, disorder_us=0)
    source = Source(
        Address("tcp://127.0.0.1:1"), config, batch_events=100, delay_s=10 * HEARTBEAT_S
    )
    connection = source.connection
    connection.clock = KeptClock()
    connection._link = KeptLink()
    source.session.connect(connection.clock.now())
    welcome = Welcome(VERSION, "broker", 0, 1_000, HEARTBEAT_S)
    source.session.receive(welcome, connection.clock.now())
    request = source.session.advertise([TEMP])
    source.session.receive(Confirmed(request), connection.clock.now())
    source.outbox.know(TEMP)
    connection.pump()
    connection._link.sent.clear()
    return source


def test_an_event_after_a_pause_leaves_at_once(source):
    assert add(source, 1.0)
    source.connection.pump()
    (published,) = source.connection._link.sent
    assert [len(batch) for batch in published.batches] == [1]


def test_letting_an_event_out_looks_for_nothing_that_has_come(source):
    connection = source.connection
    asked = connection._link.asked
    assert add(source, 1.0)
    assert source.sent_alone
    connection.let_out()
    assert len(connection._link.sent) == 1
    assert connection._link.asked == asked
    assert not connection.drained  # whoever waits next looks before it sleeps


def test_what_was_gathered_leaves_before_the_session_promises_that_nothing_earlier_follows(source):
    connection = source.connection
    source._due_at = connection.clock.seconds + 5 * HEARTBEAT_S  # a stream: events gather
    assert not add(source, 1.0)
    connection.pump()
    assert connection._link.sent == []
    connection.clock.seconds += HEARTBEAT_S
    connection.pump()
    first = connection._link.sent[0]
    assert isinstance(first, Publish), "a promise went ahead of the event"
    assert first.batches[0].row.time < first.promise == connection.clock.seconds * MICROSECONDS


def test_events_that_gather_leave_when_they_are_due(source):
    connection = source.connection
    due = source._due_at = connection.clock.seconds + HEARTBEAT_S / 4
    for value in (1.0, 2.0):
        assert not add(source, value)
    assert connection.deadline() == due
    connection.clock.seconds = due
    connection.pump()
    (published,) = connection._link.sent
    assert [len(batch) for batch in published.batches] == [2]
    assert connection.deadline() > due


@pytest.mark.parametrize("time", [RFC_3339_MIN - 1, RFC_3339_MAX + 1, 1_541_000_542_290_123_456])
def test_a_time_beyond_all_years_is_refused_on_the_spot(source, time):
    with pytest.raises(BadEvent, match="years 1 to 9999"):
        add(source, 1.0, at=time)
    with pytest.raises(BadEvent, match="beyond 1 to 9999"):
        source.batches(batch_of(TEMP, [{"value": 1.0}], source="s", times=[time]), None)
    assert source.outbox.count == 0


def test_what_is_no_type_is_not_advertised():
    config = SessionConfig("sensor")
    source = Source(Address("tcp://127.0.0.1:1"), config, batch_events=100, delay_s=1.0)
    with pytest.raises(SchemaError, match=r"made by EventType\.of.*, not 'Temp\(value: float\)'"):
        source.advertise(["Temp(value: float)"])


def test_times_of_rows_count_what_is_said():
    source = Source(Address("tcp://127.0.0.1:1"), SessionConfig("sensor"), 100, 1.0, time_unit="ms")
    source.outbox.know(TEMP)
    (batch,) = source.batches([{"time": 1_541_000_542_290, "value": 1.0}], "Temp")
    assert batch.time.tolist() == [1_541_000_542_290_000]
    (batch,) = source.batches(pa.table({"time": [1_541_000_542_290], "value": [1.0]}), "Temp")
    assert batch.time.tolist() == [1_541_000_542_290_000]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [{"time": 1, "id": "a", "value": 1.0}, {"time": 2, "colour": "red", "value": 1.0}],
            "event type Temp has no attribute colour; it has: value",
        ),
        (
            pa.table({"time": [1], "value": [1.0], "colour": ["red"]}),
            "its types do not have all attributes of the table: colour",
        ),
    ],
)
def test_an_attribute_that_a_type_does_not_have_is_refused_in_batches_too(source, events, message):
    with pytest.raises(BadEvent, match=message):
        source.batches(events, "Temp")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_batches(source, library):
    frame = pytest.importorskip(library).DataFrame({"time": [1, 2], "value": [1.5, 2.5]})
    (batch,) = source.batches(frame, "Temp")
    assert batch.column("value").tolist() == [1.5, 2.5]
    with pytest.raises(
        EventError, match=r"frame: expected a frame of pandas, .* found builtins.int"
    ):
        source.batches(7, "Temp")
