"""Raw tables -> rows of events: the departures, arrivals and weather of 2013, one frame a source.

A row has the ``type`` of its event, ``time`` (UTC), ``id``, the attributes, and the ``line`` of the
table that it was made of; where it makes no event, ``reason`` says why. How the tables become
events is told in broker/demo/flights.py, which does the same without Spark.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, functions as f

FLIGHTS = """year int, month int, day int, dep_time long, sched_dep_time long, dep_delay long,
    arr_time long, sched_arr_time long, arr_delay long, carrier string, flight long,
    tailnum string, origin string, dest string, air_time long, distance long, hour long,
    minute long, time_hour timestamp"""
WEATHER = """origin string, year int, month int, day int, hour int, temp double, dewp double,
    humid double, wind_dir double, wind_speed double, wind_gust double, precip double,
    pressure double, visib double, time_hour timestamp"""
AIRPORTS = """faa string, name string, lat double, lon double, alt int, tz int, dst string,
    tzone string"""
FLIGHT = ("origin", "destination", "carrier", "flight")
ATTRIBUTES = {
    "Departure": (*FLIGHT, "aircraft", "delay"),
    "Cancellation": FLIGHT,
    "Arrival": (*FLIGHT, "aircraft", "delay"),
    "Weather": ("airport", "temperature", "wind", "precipitation", "visibility"),
}
"""The columns of each type."""
UNLISTED = "America/Puerto_Rico"
"""The time zone of the four destinations that the list of airports lacks."""
WIND_MPH_MAX = 200.0
METRES_A_MILE, MILLIMETRES_AN_INCH = 1609.344, 25.4
MINUTE_US = 60_000_000


def sources(session: SparkSession, raw: Path, out: Path) -> dict[str, DataFrame]:
    """The rows of each source; what had to be unpacked for it is in ``out``."""
    flights = _flights(session, _unpacked(raw, out) / "flights.csv")
    return {
        "departures": _departures(flights),
        "arrivals": _arrivals(session, flights, raw),
        "weather": weather(session, raw),
    }


# --- tables --------------------------------------------------------------------------------------


def _unpacked(raw: Path, out: Path) -> Path:
    """The folder with the flights as CSV, for Spark cannot read the zip that they come in."""
    plain = out / "raw"
    plain.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(raw / "flights.csv.zip") as archive:
        archive.extract("flights.csv", plain)
    return plain


def _table(session: SparkSession, path: Path, schema: str) -> DataFrame:
    """A raw table; of a line that cannot be read, ``corrupt`` holds the text.

    ``line`` is greater in later lines: Spark reads blocks of a file in any order and by any task,
    but each from its first line to its last.
    """
    reader = session.read.schema(f"{schema}, corrupt string").option("header", True)
    reader = reader.option("nullValue", "NA").option("columnNameOfCorruptRecord", "corrupt")
    block = f.col("_metadata.file_block_start")
    line = f.struct(block.alias("block"), f.monotonically_increasing_id().alias("row"))
    return reader.csv(str(path)).select("*", line.alias("line"))


def _aside(rows: DataFrame, reasons: Mapping[str, Column]) -> DataFrame:
    """The rows with the first of the reasons that holds for them, or null."""
    found = [f.when(condition, f.lit(reason)) for reason, condition in reasons.items()]
    return rows.withColumn("reason", f.coalesce(*found))


def _time(microseconds: Column) -> Column:
    return f.timestamp_micros(microseconds.cast("long")).alias("time")


# --- flights -------------------------------------------------------------------------------------


def _flights(session: SparkSession, path: Path) -> DataFrame:
    """The table of flights with the time that each was ``scheduled`` for, and its ``id``."""
    rows = _table(session, path, FLIGHTS)
    rows = rows.withColumn("scheduled", f.unix_micros("time_hour") + f.col("minute") * MINUTE_US)
    seconds = (f.col("scheduled") / 1_000_000).cast("long")
    return rows.withColumn("id", f.concat_ws("/", "carrier", "flight", "origin", seconds))


def _departures(flights: DataFrame) -> DataFrame:
    """Aircraft that left, and flights that never did."""
    sound = {
        "a line that cannot be read": f.col("corrupt").isNotNull(),
        "no scheduled time": f.col("scheduled").isNull(),
    }
    rows = _aside(flights, sound)
    stayed = f.col("dep_delay").isNull() & f.col("reason").isNull()
    delay = f.coalesce("dep_delay", f.lit(0))
    return rows.select(
        f.when(stayed, "Cancellation").otherwise("Departure").alias("type"),
        _time(f.col("scheduled") + delay * MINUTE_US),
        *_of_flight("dep_delay"),
        "reason",
    )


def _arrivals(session: SparkSession, flights: DataFrame, raw: Path) -> DataFrame:
    """Landings: the first moment after the time in the air at which the clocks there showed the
    time that the table gives.
    """
    left = flights.where("dep_delay is not null and scheduled is not null and corrupt is null")
    zones = _table(session, raw / "airports.csv", AIRPORTS)
    zones = zones.select(f.col("faa").alias("dest"), f.col("tzone"))
    known = left.join(f.broadcast(zones), "dest", "left")
    known = known.withColumn("tzone", f.coalesce("tzone", f.lit(UNLISTED)))
    earliest = f.col("scheduled") + (f.col("dep_delay") + f.col("air_time")) * MINUTE_US
    here = f.from_utc_timestamp(f.timestamp_micros(earliest), f.col("tzone"))
    shown = f.floor(f.col("arr_time") / 100) * 60 + f.col("arr_time") % 100
    taxiing = f.pmod(shown - (f.hour(here) * 60 + f.minute(here)), f.lit(24 * 60))
    return _aside(known, {"no landing is known": f.col("arr_delay").isNull()}).select(
        f.lit("Arrival").alias("type"),
        _time(earliest + taxiing * MINUTE_US),
        *_of_flight("arr_delay"),
        "reason",
    )


def _of_flight(delay: str) -> list[str | Column]:
    return [
        "line",
        "id",
        "origin",
        f.col("dest").alias("destination"),
        "carrier",
        "flight",
        f.col("tailnum").alias("aircraft"),
        f.col(delay).alias("delay"),
    ]


# --- weather -------------------------------------------------------------------------------------


def weather(session: SparkSession, raw: Path) -> DataFrame:
    """Readings in SI units."""
    reasons = {
        "a line that cannot be read": f.col("corrupt").isNotNull(),
        "no temperature": f.col("temp").isNull(),
        "no wind": f.col("wind_speed").isNull(),
        "a wind that no instrument can have shown": f.col("wind_speed") >= WIND_MPH_MAX,
    }
    return _aside(_table(session, raw / "weather.csv", WEATHER), reasons).select(
        f.lit("Weather").alias("type"),
        _time(f.unix_micros("time_hour")),
        "line",
        f.concat_ws("/", "origin", f.unix_seconds("time_hour")).alias("id"),
        f.col("origin").alias("airport"),
        f.round((f.col("temp") - 32.0) / 1.8, 1).alias("temperature"),
        f.round(f.col("wind_speed") * (METRES_A_MILE / 3600), 1).alias("wind"),
        f.round(f.col("precip") * MILLIMETRES_AN_INCH, 3).alias("precipitation"),
        f.round(f.col("visib") * (METRES_A_MILE / 1000), 2).alias("visibility"),
        "reason",
    )
