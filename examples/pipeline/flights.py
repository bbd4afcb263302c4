"""The flights year as a pipeline: raw tables -> events -> composite events -> a report.

    python examples/pipeline/flights.py events  OUT [--since TIME]
    python examples/pipeline/flights.py detect  OUT
    python examples/pipeline/flights.py publish OUT [--broker ENDPOINT] [--speed 200000]
    python examples/pipeline/flights.py collect OUT [--broker ENDPOINT] [--for "5 min"]
    python examples/pipeline/flights.py report  OUT

README.md, beside this file, goes through it. Each step reads what others have written and replaces
what it wrote itself, so any of them can be run again.

Law: events bear the numbers that a recording of their sources would have (tesla.md E4): in order of
time, and of the raw table where times are the same. So neither the cores, nor how Spark has cut the
tables, nor what is late changes an event.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window, functions as f
from report import make_report
from tables import ATTRIBUTES, sources

from broker.detection import defined_types
from broker.spark import detect, local_session, publish, register, write_by_type
from rules import load

RULES = Path(__file__).parents[1] / "flights.tesla"
TYPES = {
    "Departure": "departures",
    "Cancellation": "departures",
    "Arrival": "arrivals",
    "Weather": "weather",
}
"""The event types and the sources that publish them."""
PERIODS = {"date": "yyyy-MM-dd", "month": "yyyy-MM"}
"""By what the events of a type are divided into folders, and how the folders are called."""
LATE = "late: events up to a later time were published before"
NEEDED = {
    "detect": ("events", "events"),
    "publish": ("events", "events"),
    "report": ("detect", "composites"),
}
"""The step that a step needs, and the folder that it reads."""


# --- events --------------------------------------------------------------------------------------


def numbered(events: DataFrame, by: str = "date") -> DataFrame:
    """The events of a source with the ``date`` or ``month`` (UTC) that each is of, and with their
    ``sequence``, in order of both.

    Dates are numbered side by side, each from where those before it end.
    """
    dated = events.withColumn(by, f.date_format("time", PERIODS[by]))
    counts = sorted((row[by], row["count"]) for row in dated.groupBy(by).count().collect())
    ends = itertools.accumulate((count for _, count in counts), initial=0)
    begins = [(period, before) for (period, _), before in zip(counts, ends, strict=False)]
    starts = events.sparkSession.createDataFrame(begins, f"{by} string, before long")
    place = f.row_number().over(Window.partitionBy(by).orderBy("time", "line"))
    placed = dated.join(f.broadcast(starts), by).withColumn("sequence", f.col("before") + place)
    return placed.drop("before", "line")


def make_events(
    session: SparkSession, raw: Path, out: Path, since: str | None = None, by: str = "date"
) -> dict[str, object]:
    """Write events by type and date (``by``: folders of a date or month each), rows that are none
    by type, and a report on the quality.

    ``since``: rows earlier than this time (RFC 3339) come too late to be events.
    """
    quality: dict[str, object] = {}
    for source, rows in sources(session, raw, out).items():
        rows = judged(rows, source, since, by).cache()
        for name in (one for one, its_source in TYPES.items() if its_source == source):
            quality[name] = write(rows.where(f.col("type") == name), name, out, by)
        rows.unpersist()
    (out / "quality.json").write_text(json.dumps(quality, indent=2, sort_keys=True) + "\n")
    return quality


def judged(rows: DataFrame, source: str, since: str | None, by: str) -> DataFrame:
    """The rows of a source, those that make events numbered, late ones among them."""
    sound = numbered(rows.where("reason is null").drop("reason"), by)
    is_late = f.lit(False) if since is None else f.col("time") < f.lit(since).cast("timestamp")
    sound = sound.withColumn("reason", f.when(is_late, LATE))
    others = rows.where("reason is not null").drop("line")
    return sound.unionByName(others, allowMissingColumns=True).withColumn("source", f.lit(source))


def write(rows: DataFrame, name: str, out: Path, by: str) -> dict[str, object]:
    """Write the events of a type, and the rows that are none; gives how many there are."""
    events = rows.where("reason is null").sortWithinPartitions(by, "time", "sequence")
    files = events.select(by, *columns(name)).write.partitionBy(by).mode("overwrite")
    files.parquet(str(out / "events" / name))
    aside = rows.where("reason is not null").drop("type", by).coalesce(1)
    aside.write.mode("overwrite").json(str(out / "rejected" / name))
    counts = {row["reason"]: row["count"] for row in rows.groupBy("reason").count().collect()}
    return {"events": counts.pop(None, 0), "rejected": counts}


def read_events(session: SparkSession, out: Path) -> dict[str, DataFrame]:
    """The events by type."""
    events = session.read.parquet
    return {name: events(str(out / "events" / name)).select(*columns(name)) for name in TYPES}


def columns(name: str) -> tuple[str, ...]:
    """The columns of the events of a type."""
    return ("time", "source", "sequence", "id", *ATTRIBUTES[name])


# --- composite events ----------------------------------------------------------------------------


def make_composites(session: SparkSession, out: Path) -> dict[str, int]:
    """Run the rules over the events; write what they find by type, and tell how much it is."""
    return write_by_type(detect(read_events(session, out), RULES), out / "composites")


def collect(session: SparkSession, out: Path, broker: str, duration: str) -> dict[str, int]:
    """The same of what a running broker gives out in so long, by one subscriber."""
    register(session)
    defined = defined_types(load(RULES.read_text(encoding="utf-8")))
    filters = "; ".join(f"{one.name}()" for one in defined)
    reader = session.read.format("rexmq").option("broker", broker).option("for", duration)
    found = reader.option("subscribe", filters).load()
    return write_by_type(found, out / "collected")


# --- the command ---------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("events", "detect", "publish", "collect", "report"))
    parser.add_argument("out", type=Path, help="the folder of all that is written")
    parser.add_argument("--raw", type=Path, help="with events: the folder of the raw tables")
    parser.add_argument("--since", help="with events: rows before this time (RFC 3339) are late")
    parser.add_argument("--by", choices=[*PERIODS], default="date", help="with events: folders")
    parser.add_argument("--broker", default="", help="with publish and collect: its endpoint")
    parser.add_argument("--speed", type=float, help="with publish: seconds of flight a second")
    parser.add_argument("--for", dest="duration", default="5 min", help="with collect: how long")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    step, needed = NEEDED.get(given.step, ("", ""))
    if needed and not (given.out / needed).is_dir():
        parser.error(f"there is no folder {given.out / needed}: run the step {step} before")
    if given.step == "report":
        print(make_report(given.out))
        return
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    session = local_session(given.cores)
    session.sparkContext.setLogLevel("ERROR")
    if given.step == "events":
        from broker.demo.flights import data_folder

        made = make_events(session, given.raw or data_folder(), given.out, given.since, given.by)
        print(json.dumps(made, indent=2, sort_keys=True))
    elif given.step == "publish":
        events = read_events(session, given.out)
        report = publish(events, given.broker, source="flights", speed=given.speed)
        print(f"{report.events} events in {report.parts} ranges")
    else:
        if given.step == "detect":
            found = make_composites(session, given.out)
        else:
            found = collect(session, given.out, given.broker, given.duration)
        for name, count in sorted(found.items()):
            print(f"{count:>8}  {name}")


if __name__ == "__main__":
    main()
