"""A pipeline of days: raw files -> readings -> what rules find -> a table and a broker.

    python examples/pipeline/daily.py OUT [--days 4] [--stations 8] [--rows 20000] [--cores 2]

makes raw files of some days and takes each day in; then a day comes once more, mended, and a rule
changes for the last days. README.md, beside this file, goes through it.

Law: each step replaces what it wrote before, in one commit (``ledger``), and publishes under ids
that follow from the events. So any step can die and be run again, and nothing is there twice.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ledger import Ledger
from messy import make_day
from pyspark.sql import DataFrame, SparkSession, Window, functions as f
from report import has_matplotlib

from broker import Subscriber
from broker.process import BrokerProcess
from broker.spark import detect, local_session, of_type, register

RULES = Path(__file__).with_name("heat.tesla")
FIRST_DAY = "2026-07-01"
REACH_DAYS = 1
"""So many days before a day its rules may look back: an hour."""
SENSIBLE = (-60.0, 60.0)


@dataclass(frozen=True)
class Pipeline:
    """The folders of a pipeline and the broker that hears of what is found. ``text``: the rules."""

    session: SparkSession
    out: Path
    broker: str
    text: str

    def table(self, name: str) -> Ledger:
        """``readings``, ``rejected`` or ``heat``."""
        return Ledger(self.out / name)

    # --- steps ---

    def take_in(self, day: str) -> dict[str, int]:
        """Readings of the raw files of a day, and the rows that make none, with reasons."""
        rows = judged(raw_rows(self.session, self.out / "raw" / day), day).cache()
        sound = rows.where("reason is null").select("day", *READING)
        sound = sound.repartition(1).sortWithinPartitions("time", "source", "sequence")
        self.table("readings").replace(sound, [day])
        self.table("rejected").replace(rows.where("reason is not null").coalesce(1), [day])
        counts = {row["reason"]: row["count"] for row in rows.groupBy("reason").count().collect()}
        rows.unpersist()
        return {str(reason or "readings"): count for reason, count in counts.items()}

    def evaluate(self, days: Sequence[str]) -> int:
        """What the rules find in these days, in one commit; gives how much."""
        before = [shifted(days[0], -number) for number in range(REACH_DAYS, 0, -1)]
        events = self.table("readings").read(self.session, [*before, *days])
        assert events is not None, f"take {days[0]} in before"
        heat = of_type(detect({"Reading": events}, self.text), "Heat")
        heat = heat.withColumn("day", f.date_format("time", "yyyy-MM-dd"))
        self.table("heat").replace(heat.where(f.col("day").isin(*days)).coalesce(1), days)
        return self._found(days).count()

    def publish(self, days: Sequence[str]) -> None:
        """Tell the broker. Events are named after all that they hold: what the broker has, it takes
        for repeats, and what a mended reading has changed is another event.
        """
        options = {"broker": self.broker, "type": "Heat", "source": "daily", "order": "none"}
        found = self._found(days).drop("source", "cause").coalesce(1)
        found.write.format("rexmq").options(**options).mode("append").save()

    def heat_by_day(self) -> dict[str, int]:
        """How many composite events the table has of each day."""
        days, day = self.table("heat").days, f.date_format("time", "yyyy-MM-dd").alias("day")
        rows = self._found(days).groupBy(day).count().collect()
        return dict.fromkeys(days, 0) | {row["day"]: row["count"] for row in rows}

    def _found(self, days: Sequence[str]) -> DataFrame:
        heat = self.table("heat").read(self.session, days)
        return heat if heat is not None else self.session.createDataFrame([], HEAT)

    def day(self, day: str) -> dict[str, int]:
        """All steps for a day; if it comes again, the next day too, whose rules look back to it."""
        counts = self.take_in(day)
        days = [day, *(one for one in [shifted(day, 1)] if one in self.table("readings").days)]
        counts["Heat"] = self.evaluate(days)
        self.publish(days)
        return counts


READING = ("time", "source", "sequence", "station", "celsius")
HEAT = "time timestamp, station string, celsius double, mean double, source string, id string"


def shifted(day: str, days: int) -> str:
    """A day so many days later."""
    return (dt.date.fromisoformat(day) + dt.timedelta(days)).isoformat()


def raw_rows(session: SparkSession, folder: Path) -> DataFrame:
    """The rows of all files of a day, in one form: texts of CSV are numbers and times, or null."""
    texts = session.read.option("header", True).option("sep", ";").csv(f"{folder}/*.csv")
    texts = texts.select(
        f.col("No").try_cast("long").alias("sequence"),
        f.col("Date and time").try_cast("timestamp").alias("time"),
        f.regexp_replace("Temp (C)", ",", ".").try_cast("double").alias("celsius"),
        f.col("_metadata.file_name").alias("file"),
    )
    tables = session.read.parquet(f"{folder}/*.parquet")
    tables = tables.select(
        f.col("n").alias("sequence"),
        f.col("at").alias("time"),
        "celsius",
        f.col("_metadata.file_name").alias("file"),
    )
    station = f.regexp_extract("file", r"^([^.]+)", 1)
    rows = texts.unionByName(tables).withColumn("station", station)
    return rows.withColumn("source", f.col("station"))


def judged(rows: DataFrame, day: str) -> DataFrame:
    """The rows with the ``reason`` for which each makes no reading, if any."""
    low, high = SENSIBLE
    first = f.col("sequence").isNotNull() & (f.col("copy") == 1)
    reasons = {
        "no time": f.col("time").isNull(),
        "a time of another day": f.date_format("time", "yyyy-MM-dd") != day,
        "no temperature": f.col("celsius").isNull(),
        "a temperature that cannot be": ~f.col("celsius").between(low, high),
        "a row that was there before": ~first,
    }
    copies = Window.partitionBy("source", "sequence").orderBy("time", "celsius")
    numbered = rows.withColumn("copy", f.row_number().over(copies)).withColumn("day", f.lit(day))
    found = [f.when(condition, f.lit(reason)) for reason, condition in reasons.items()]
    return numbered.withColumn("reason", f.coalesce(*found)).drop("copy")


# --- the command ---------------------------------------------------------------------------------


def run(pipeline: Pipeline, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All steps; what each has done, the seconds that it took, and what the table holds then."""
    days = [shifted(FIRST_DAY, number) for number in range(given.days)]
    raw, size = pipeline.out / "raw", (given.stations, given.rows, given.seed)
    changed = replace(pipeline, text=pipeline.text.replace("35.0", "33.0"))

    def step(name: str, work: Callable[[], object]) -> dict[str, Any]:
        begun = time.monotonic()
        told = work()
        seconds = round(time.monotonic() - begun, 1)
        return {"step": name, "found": told, "seconds": seconds, "heat": pipeline.heat_by_day()}

    def anew() -> int:
        found = changed.evaluate(days[-2:])
        changed.publish(days[-2:])
        return found

    for number, day in enumerate(days):
        make_day(raw, day, *size, spoilt="st01" if number == 1 else "")
        yield step(day, lambda day=day: pipeline.day(day))  # type: ignore[misc]
    make_day(raw, days[1], *size)
    yield step(f"{days[1]}, mended", lambda: pipeline.day(days[1]))
    yield step(f"{days[1]}, once more", lambda: pipeline.day(days[1]))
    yield step(f"the rule from {days[-2]} on", anew)


def draw(steps: Sequence[Mapping[str, Any]], place: Path) -> None:
    """The table behind each step: a panel for each, a bar for each day."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.8 * len(steps), 2.6), layout="constrained")
    panels = figure.subplots(1, len(steps), sharey=True, squeeze=False).flat
    days = sorted({day for step in steps for day in step["heat"]})
    for panel, step in zip(panels, steps, strict=True):
        counts = [step["heat"].get(day, 0) for day in days]
        bars = panel.bar([day.removeprefix("2026-") for day in days], counts)
        panel.bar_label(bars, [f"{count:,}" if count else "" for count in counts], fontsize=7)
        panel.set_title(step["step"].replace(", ", ",\n"), fontsize="small")
        panel.tick_params(axis="x", labelrotation=90)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supylabel("Heat in the table", fontsize="small")
    with rc_context({"svg.fonttype": "none"}):  # letters, not their shapes
        figure.savefig(place)


def heard(subscriber: Subscriber) -> list[str]:
    """The ids of what a subscriber is given, until nothing more comes."""
    ids: list[str] = []
    while True:
        try:
            ids.append(str(subscriber.receive(timeout_s=3).id))
        except TimeoutError:
            return ids


def main() -> None:
    """All of it, told step by step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="the folder of all that is written")
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--stations", type=int, default=8)
    parser.add_argument("--rows", type=int, default=20_000, help="of each station and day")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    session = local_session(given.cores)
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    rules = RULES.read_text(encoding="utf-8")
    with BrokerProcess("--data", str(given.out / "broker")) as broker:
        pipeline = Pipeline(session, given.out, broker.endpoint, rules)
        with Subscriber(broker.endpoint, "Heat()", name="pager", durable=True) as subscriber:
            steps = []
            for told in run(pipeline, given):
                print(json.dumps(told), flush=True)
                steps.append(told)
            ids = heard(subscriber)
    if has_matplotlib():
        draw(steps, given.out / "heat.svg")
    print(json.dumps({"heard": len(ids), "twice": len(ids) - len(set(ids))}))


if __name__ == "__main__":
    main()
