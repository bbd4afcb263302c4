"""Rows into columns: tesla.md E1 and E5, one value at a time and in bulk."""

import numpy as np
import pytest
from event_batches import batch_of_events

from matcher.errors import BadEvent
from matcher.model import Attribute, Event, EventType, Kind
from matcher.rows import batch_of, inferred_type, value_of, values_of

TEMP = EventType.of("Temp", area="string", value="float", count="int", alarm="bool")
ROW = {"area": "a1", "value": 46.5, "count": 3, "alarm": True}

MISFITS = [
    (Kind.INT, 1.0, "expected int, found float"),
    (Kind.INT, True, "expected int, found bool"),
    (Kind.INT, "1", "expected int, found string"),
    (Kind.INT, None, "expected int, found null"),
    (Kind.INT, 2**63, "64 bits"),
    (Kind.INT, -(2**63) - 1, "64 bits"),
    (Kind.FLOAT, float("nan"), "finite"),
    (Kind.FLOAT, float("-inf"), "finite"),
    (Kind.FLOAT, 10**400, "finite"),
    (Kind.FLOAT, False, "expected float, found bool"),
    (Kind.BOOL, 1, "expected bool, found int"),
    (Kind.STRING, 1, "expected string, found int"),
    (Kind.STRING, "\ud800", "UTF-8"),
    (Kind.STRING, {}, "expected string, found an object"),
    (Kind.STRING, b"a", "expected string, found bytes"),
]


@pytest.mark.parametrize(("kind", "value", "reason"), MISFITS)
def test_a_value_that_does_not_fit_is_refused_with_its_attribute(
    kind: Kind, value: object, reason: str
) -> None:
    with pytest.raises(BadEvent, match=f"attribute x: .*{reason}"):
        value_of(Attribute("x", kind), value)
    event_type = EventType("T", (Attribute("x", kind),))
    with pytest.raises(BadEvent, match=f"row 1: attribute x: .*{reason}"):
        batch_of(event_type, [{"x": value, "time": 1}], source="s")


def test_an_int_becomes_the_float_that_is_declared() -> None:
    batch = batch_of(TEMP, [ROW | {"value": 46, "time": 1}], source="s")
    assert batch.column("value").tolist() == [46.0]
    assert type(batch.event(0).data["value"]) is float


def test_numpy_scalars_are_values_too() -> None:
    row = {"area": "a", "value": np.float64(1.5), "count": np.int64(7), "alarm": np.bool_(True)}
    batch = batch_of(TEMP, [row | {"time": 1}], source="s")
    assert batch.event(0).data == {"area": "a", "value": 1.5, "count": 7, "alarm": True}


def test_the_row_that_does_not_fit_is_named() -> None:
    rows = [ROW | {"time": 1}, ROW | {"time": 2, "count": None}]
    with pytest.raises(BadEvent) as caught:
        batch_of(TEMP, rows, source="s")
    assert caught.value.place == "row 2"
    del rows[1]["count"]
    with pytest.raises(BadEvent, match="row 2: attribute count is missing"):
        batch_of(TEMP, rows, source="s")


def test_rows_bring_times_and_ids_or_get_them() -> None:
    rows = [ROW | {"time": "1970-01-01T00:00:01Z", "id": "a-1"}, ROW | {"time": 2.5, "id": "a-2"}]
    batch = batch_of(TEMP, rows, source="sensor/7", first_sequence=10)
    assert batch.time.tolist() == [1_000_000, 2_500_000]
    assert batch.ids.printed() == ["a-1", "a-2"]
    assert batch.ids.sequence.tolist() == [10, 11]
    assert batch.ids.source.tolist() == ["sensor/7"] * 2
    plain = batch_of(TEMP, [ROW, ROW], source="s", times=[5, 6], first_sequence=3)
    assert plain.time.tolist() == [5, 6]
    assert plain.ids.text is None
    assert plain.ids.printed() == ["3", "4"]


def test_a_row_without_a_time_is_refused() -> None:
    with pytest.raises(BadEvent, match="row 2: no time"):
        batch_of(TEMP, [ROW | {"time": 1}, ROW], source="s")


def test_no_rows_make_an_empty_batch() -> None:
    assert len(batch_of(TEMP, [], source="s")) == 0


def test_events_make_a_batch_and_the_batch_the_events() -> None:
    events = [
        Event("Temp", 1, "s", "1", dict(ROW), sequence=1),
        Event("Temp", -5, "t", "x", ROW | {"area": "é\0"}, sequence=4),
    ]
    assert list(batch_of_events(TEMP, events).events()) == events


def test_values_come_in_the_order_of_the_schema() -> None:
    assert values_of(TEMP, dict(reversed(ROW.items()))) == ("a1", 46.5, 3, True)
    with pytest.raises(BadEvent, match="expected an object, found a list"):
        values_of(TEMP, [])  # type: ignore[arg-type]


def test_a_schema_is_inferred_from_the_first_event() -> None:
    assert inferred_type("Temp", ROW) == TEMP
    with pytest.raises(BadEvent, match="attribute b: expected int, float, bool or string"):
        inferred_type("T", {"a": 1, "b": []})
    with pytest.raises(BadEvent, match="64 bits"):
        inferred_type("T", {"a": 2**70})
