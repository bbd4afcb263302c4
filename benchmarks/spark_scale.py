"""Spark at a size: keys, skew, clusters and memory, and the same pattern written by others.

    python -m benchmarks.spark_scale --folder F --rows 100000000 CASE...

A case is made of a table, a way to run, and the rules; each runs in a process of its own, on tables
that stay in the folder:

    even/detect/1           1,000 keys; ``detect`` on local[1]
    skewed/detect/2         half of the events have one key; local[2]
    keys=10000000/detect/2  so many keys
    even/detect/cluster     local-cluster[2,1,2048]: two workers of one core and 2 GiB each
    even/scan/1             ``detect`` where Spark reads the files
    even/bare               the engine alone, in one thread, over the same files, read as it goes
    even/pandas/1           the same pattern by ``applyInPandas``, written by hand
    even/flink/1            the same by Flink's MATCH_RECOGNIZE, over one CSV file of the same rows

The rules are one swing from low to high by key, which all of these can say; with ``+ten`` behind
the table the ten rules of ``benchmarks.spark``, with ``+whole`` a rule that no key and no time
cuts. Flink runs in the Python of ``--flink``, as it asks for another pyarrow. Before it is timed, a
way runs over a tenth of a million rows, so that Java has compiled most of what it needs.

A line for each case: seconds by the clock, composite events, the most memory of Python's workers,
what Spark shuffled, and the load of the machine before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from benchmarks.apart import outcome_of
from benchmarks.spark import KEY, RULES, record, rules
from benchmarks.spark_log import LOGGED, used

WITHIN_S = 300
SWING = f"""{RULES}
rule swing: define Swing(area: string, before: float, after: float)
from Reading(area = $a, value > 0.9) as Now and
     last Reading(area = $a, value < 0.1) as Before within {WITHIN_S} s from Now and
     not Reading(area = $a, value > 0.9) between Before and Now
where area = $a, before = Before.value, after = Now.value
"""
WHOLE = f"""{RULES}
rule pair: define Pair(room: int)
from Reading(value > 0.99) as Now and
     last Reading(value < 0.01) as Before within 1 min from Now
where room = Now.room
consuming Before
"""
TEXTS = {"": SWING, "ten": rules(10), "whole": WHOLE}
WARMING = 100_000


def table_of(session: Any, folder: Path, kind: str, rows: int) -> Path:
    """The folder of a table in Parquet, of 8 files in order of time, made if it is not there."""
    path = folder / f"{kind}-{rows}"
    if path.exists():
        return path
    key = KEY
    if kind.startswith("keys="):
        key = f"pmod(xxhash64(id), {int(kind.partition('=')[2])})"
    elif kind == "skewed":
        key = f"if(pmod(xxhash64(id, 4), 2) = 0, 0, {KEY})"
    record(session, rows, str(path), key)
    return path


# --- the ways ------------------------------------------------------------------------------------


def detected(session: Any, path: Path, text: str, **options: Any) -> int:
    from broker.spark import detect

    return detect({"Reading": session.read.parquet(str(path))}, text, **options).count()


def scanned(session: Any, path: Path, text: str) -> int:
    return detected(session, path, text, reads_files=False)


def by_hand(session: Any, path: Path, text: str) -> int:
    """Each swing is a low value whose next low or high one is high, and not too late."""
    import numpy as np
    import pandas as pd

    def swings(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.sort_values("time")
        value, at = rows["value"].to_numpy(), rows["time"].to_numpy()
        marked = np.flatnonzero((value < 0.1) | (value > 0.9))
        before, after = marked[:-1], marked[1:]
        fits = (value[before] < 0.1) & (value[after] > 0.9)
        fits &= at[after] - at[before] <= np.timedelta64(WITHIN_S, "s")
        return pd.DataFrame(
            {
                "area": rows["area"].iloc[after[fits]],
                "before": value[before[fits]],
                "after": value[after[fits]],
            }
        )

    columns = session.read.parquet(str(path)).select("time", "area", "value")
    schema = "area string, before double, after double"
    return columns.groupBy("area").applyInPandas(swings, schema).count()


WAYS: dict[str, Callable[[Any, Path, str], int]] = {
    "detect": detected,
    "scan": scanned,
    "pandas": by_hand,
}


def bare(path: Path, text: str) -> int:
    """The engine alone, in one thread, over files that it reads batch by batch."""
    from matcher.formats.intake import Intake, Place
    from matcher.formats.tabular import from_arrow
    from matcher.model import TIME_MAX
    from rules.engine import make
    from rules.language import load

    pa.set_cpu_count(1)
    checked = load(text)
    intake = Intake(checked.schemas)
    engine, count = make("auto"), 0
    engine.deploy(checked)
    for file in sorted(path.glob("*.parquet")):
        for piece in pq.ParquetFile(file).iter_batches(65_536, use_threads=False):
            batch = from_arrow(piece, Place(file.name, ""), intake, "Reading")
            engine.push(batch)
            count += len(engine.advance(int(batch.time[-1])))
    return count + len(engine.advance(TIME_MAX))


# --- Flink ---------------------------------------------------------------------------------------

FLINK = """
import sys, time
from pathlib import Path
from pyflink.table import EnvironmentSettings, TableEnvironment

path, cores, within = sys.argv[1:]
tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for name, value in {
    "parallelism.default": cores,
    "taskmanager.numberOfTaskSlots": cores,
    "table.local-time-zone": "UTC",
    "taskmanager.memory.process.size": "4g",
}.items():
    tables.get_config().set(name, value)
tables.execute_sql(f'''CREATE TABLE reading (
    ms BIGINT, area STRING, `value` DOUBLE, `time` AS TO_TIMESTAMP_LTZ(ms, 3),
    WATERMARK FOR `time` AS `time` - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')''')
begun = time.perf_counter()
tables.execute_sql(f'''CREATE TABLE swing (area STRING, `before` DOUBLE, `after` DOUBLE)
WITH ('connector' = 'filesystem', 'path' = '{path}.swings', 'format' = 'csv')''')
tables.execute_sql(f'''INSERT INTO swing
SELECT area, before_, after_ FROM reading MATCH_RECOGNIZE (
    PARTITION BY area ORDER BY `time`
    MEASURES B.`value` AS before_, N.`value` AS after_
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (B O*? N) WITHIN INTERVAL '{within}' SECOND(3, 3)
    DEFINE B AS B.`value` < 0.1, O AS O.`value` BETWEEN 0.1 AND 0.9, N AS N.`value` > 0.9
)''').wait()
seconds = time.perf_counter() - begun
written = [file for file in Path(path + ".swings").rglob("*") if file.is_file()]
print(sum(len(file.read_text().splitlines()) for file in written), seconds)
"""


def csv_of(path: Path) -> Path:
    """The rows of a table as one CSV file in order of time, without a heading."""
    target = path.with_suffix(".csv")
    if not target.exists():
        schema = pa.schema([("at", pa.int64()), ("area", pa.string()), ("value", pa.float64())])
        options = pcsv.WriteOptions(include_header=False, quoting_style="none")
        with pcsv.CSVWriter(target, schema, write_options=options) as writer:
            for file in sorted(path.glob("*.parquet")):
                for piece in pq.ParquetFile(file).iter_batches(columns=["time", "area", "value"]):
                    at = piece.column(0).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
                    columns = [at, piece.column(1).cast(pa.string()), piece.column(2)]
                    writer.write(pa.record_batch(columns, schema=schema))
    return target


def flink(python: str, path: Path, cores: str) -> dict[str, float]:
    """Flink's own seconds, from the query on; starting is not counted."""
    # A match ends before its window does there, and may end with it here.
    source = csv_of(path)
    shutil.rmtree(f"{source}.swings", ignore_errors=True)
    command = [python, "-c", FLINK, str(source), cores, f"{WITHIN_S}.001"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, seconds = done.stdout.split()[-2:]
    return {"seconds": float(seconds), "composite events": float(count)}


# --- running -------------------------------------------------------------------------------------


def measure(folder: Path, case: str, rows: int, python: str) -> dict[str, float]:
    """One case, in this process."""
    kind, way, *where = case.split("/")
    kind, _, text = kind.partition("+")
    warnings.simplefilter("ignore")
    if way == "flink":
        return flink(python, folder / f"{kind}-{rows}", where[0])
    if way == "bare":
        bare(folder / f"{kind}-{WARMING}", TEXTS[text])
        begun = time.perf_counter()
        count = bare(folder / f"{kind}-{rows}", TEXTS[text])
        return {"seconds": time.perf_counter() - begun, "composite events": count}
    from broker.spark import local_session

    with tempfile.TemporaryDirectory() as log:
        settings = {**LOGGED, "spark.eventLog.dir": Path(log).as_uri()}
        cores = 2
        if where[0] == "cluster":
            settings |= {"spark.master": "local-cluster[2,1,2048]", "spark.executor.memory": "2g"}
        else:
            cores = int(where[0])
        session = local_session(cores, "2g", settings)
        session.sparkContext.setLogLevel("OFF")
        if way == "make":
            for size in (WARMING, rows):
                table_of(session, folder, kind, size)
            session.stop()
            return {}
        WAYS[way](session, folder / f"{kind}-{WARMING}", TEXTS[text])
        begun = time.perf_counter()
        count = WAYS[way](session, folder / f"{kind}-{rows}", TEXTS[text])
        seconds = time.perf_counter() - begun
        session.stop()
        return {"seconds": seconds, "composite events": count, **used(Path(log))}


def told(case: str, figures: dict[str, float], load: float) -> str:
    """The line of a case."""
    parts = [f"{case:<28}{figures['seconds']:8.1f} s", f"{figures['composite events']:,.0f} found"]
    if "workers, bytes" in figures:
        parts.append(f"workers {figures['workers, bytes'] / 2**20:.0f} MiB")
        parts.append(f"{figures['shuffled, bytes'] / 2**20:.0f} MiB shuffled")
    return "; ".join([*parts, f"load {load:.1f}"])


def main() -> int:
    """Run the cases; the exit status is 1 if one has failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", metavar="CASE")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--flink", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(asked.folder, asked.cases[0], asked.rows, asked.flink)))
        return 0
    asked.folder.mkdir(parents=True, exist_ok=True)
    common = ["--measure", "--folder", str(asked.folder), "--rows", str(asked.rows)]
    common += ["--flink", asked.flink]
    fails = 0
    for case in asked.cases:
        kind = case.partition("/")[0].partition("+")[0]
        if not (asked.folder / f"{kind}-{asked.rows}" / "_SUCCESS").exists():
            outcome_of("benchmarks.spark_scale", [f"{kind}/make/2", *common])
        load = os.getloadavg()[0]
        outcome = outcome_of("benchmarks.spark_scale", [case, *common])
        fails += not outcome.figures
        if outcome.figures:
            print(told(case, dict(outcome.figures), load), flush=True)
        else:
            print(f"{case:<28}{outcome.failure}", flush=True)
    return int(fails > 0)


if __name__ == "__main__":
    sys.exit(main())
