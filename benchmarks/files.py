"""Reading and writing files of events, against doing the least that could be called reading.

JSON lines are compared with ``json.loads`` of every line, which checks nothing and makes no
columns; Parquet with ``pyarrow.parquet.read_table`` alone, on one thread.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Row, seconds_of
from matcher.formats import csvfiles, ipcfiles, jsonlines, parquetfiles
from matcher.formats.intake import Intake, Place
from matcher.formats.printing import json_lines
from matcher.formats.tabular import to_arrow
from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, StringColumn

TEMP = EventType.of("Temp", area="string", value="float", count="int")
PLACE = Place("temps", "temps")
BATCH = 16_384


def run(quick: bool) -> Iterator[Row]:
    events = 5_000 if quick else 500_000
    batch = temperatures(events)
    yield from lines(batch)
    yield from tables(batch)


def temperatures(events: int, seed: int = 1) -> EventBatch:
    """Readings of 50 areas, one a second, from 7 sources with ids of their own making."""
    chance = np.random.default_rng(seed)
    sequence = np.arange(1, events + 1)
    areas = tuple(f"area-{number}" for number in range(50))
    sources = tuple(f"sensor/{number}" for number in range(7))
    return EventBatch(
        TEMP,
        1_356_998_400 * MICROSECONDS + sequence * MICROSECONDS,
        EventIds(StringColumn(chance.integers(0, 7, events).astype(np.int32), sources), sequence),
        (
            StringColumn(chance.integers(0, 50, events).astype(np.int32), areas),
            chance.normal(20, 8, events).round(2),
            chance.integers(0, 1000, events),
        ),
    )


def lines(batch: EventBatch) -> list[Row]:
    text = json_lines([batch])
    named = json_lines([batch.take(slice(None, None, -1))]).replace(b'"sequence":', b'"was":')
    rows = []
    for name, data in (("numbered", text), ("with text ids", named)):
        baseline = len(batch) / seconds_of(lambda data=data: loads(data))
        rows += [
            rate(
                f"read JSON lines, {name}", batch, lambda data=data: read(jsonlines, data), baseline
            ),
            rate(
                f"first look at JSON lines, {name}",
                batch,
                lambda data=data: scan(jsonlines, data),
                baseline,
            ),
        ]
    dumps = len(batch) / seconds_of(lambda: dumped(batch))
    written = rate("write JSON lines", batch, lambda: json_lines([batch]), dumps, "json.dumps")
    return [*rows, written]


def tables(batch: EventBatch) -> list[Row]:
    parquet, arrow, text = (written(form, batch) for form in (parquetfiles, ipcfiles, csvfiles))
    plain = io.BytesIO()
    attributes = pa.Table.from_batches([to_arrow(batch)]).select(["time", *TEMP.names])
    pq.write_table(attributes, plain, compression="zstd")
    alone = plain.getvalue()
    return [
        rate(
            "read Parquet, attributes alone",
            batch,
            lambda: read(parquetfiles, alone, "Temp"),
            table_rate(batch, alone),
            "read_table",
        ),
        rate(
            "read Parquet with ids",
            batch,
            lambda: read(parquetfiles, parquet),
            table_rate(batch, parquet),
            "read_table",
        ),
        rate("first look at Parquet", batch, lambda: scan(parquetfiles, parquet)),
        rate("write Parquet", batch, lambda: written(parquetfiles, batch)),
        rate("read Arrow IPC", batch, lambda: read(ipcfiles, arrow)),
        rate("read CSV", batch, lambda: read(csvfiles, text)),
        rate("write CSV", batch, lambda: written(csvfiles, batch)),
    ]


def rate(
    name: str,
    batch: EventBatch,
    action: Callable[[], object],
    baseline: float | None = None,
    baseline_name: str = "json.loads",
) -> Row:
    value = len(batch) / seconds_of(action)
    return Row(name, value, "events/s", baseline_name if baseline else "", baseline)


def read(form: object, data: bytes, type_name: str | None = None) -> int:
    chunks = form.read(io.BytesIO(data), PLACE, Intake(), type_name)  # type: ignore[attr-defined]
    return sum(len(batch) for chunk in chunks for batch in chunk.batches)


def scan(form: object, data: bytes) -> int:
    glances = form.scan(io.BytesIO(data), PLACE, Intake(), None)  # type: ignore[attr-defined]
    return sum(len(glance.times) for glance in glances)


def written(form: object, batch: EventBatch) -> bytes:
    sink: BinaryIO = io.BytesIO()
    writer = form.Writer(sink, batch.type, composite=False, full_cause=False)  # type: ignore[attr-defined]
    for first in range(0, len(batch), BATCH):
        writer.write(batch.take(slice(first, first + BATCH)))
    writer.close()
    sink.seek(0)
    return sink.read()


def table_rate(batch: EventBatch, data: bytes) -> float:
    return len(batch) / seconds_of(lambda: pq.read_table(io.BytesIO(data), use_threads=False))


def loads(data: bytes) -> int:
    return sum(1 for line in data.splitlines() if json.loads(line))


def dumped(batch: EventBatch) -> int:
    return sum(
        len(json.dumps({"type": event.type, "time": event.time, "data": event.data}))
        for event in batch.events()
    )
