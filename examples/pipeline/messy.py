"""Raw files as people have them: readings of stations, of each day some CSV and some Parquet.

Each file is a function of the seed, of the day and of the station, so it can be made again. One
row in a hundred is wrong, in one of five ways. Stations of odd numbers write CSV, with clocks of
Rome and a decimal comma; the others write Parquet in UTC.
"""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

ROME = ZoneInfo("Europe/Rome")
WRONG = 0.01
SPAN_S = 86_400
Row = tuple[int, dt.datetime | None, float | None]
"""A number of its station, a time, degrees Celsius."""


def make_day(raw: Path, day: str, stations: int, rows: int, seed: int, spoilt: str = "") -> None:
    """The files of a day, over those that there are; ``spoilt``: a station whose thermometer shows
    twenty degrees too much, until the file is made again without it.
    """
    folder = raw / day
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(stations):
        name = f"st{number:02}"
        readings = _readings(day, name, rows, seed, 20.0 if name == spoilt else 0.0)
        if number % 2:
            (folder / f"{name}.csv").write_text(_csv(readings), encoding="utf-8")
        else:
            pq.write_table(_table(readings), folder / f"{name}.parquet")


def _readings(day: str, station: str, rows: int, seed: int, too_much: float) -> list[Row]:
    chance = random.Random(f"{seed}/{day}/{station}")
    begins = dt.datetime.fromisoformat(f"{day}T00:00:00+00:00")
    first = begins.toordinal() * 1_000_000
    made: list[Row] = []
    for number in range(rows):
        at = begins + dt.timedelta(seconds=SPAN_S * number // rows)
        celsius = round(27 + chance.gauss(0, 5) + too_much, 1)
        row: Row = (first + number, at, celsius)
        if chance.random() < WRONG:
            ways = [
                (row[0], None, celsius),
                (row[0], at, None),
                (row[0], at, 999.9),
                (row[0], at.replace(year=1970), celsius),
            ]
            row = chance.choice([*ways, row])
            made.append(row)  # the fifth way: a row that comes twice
            if row[1:] != (at, celsius):
                continue
        made.append(row)
    return made


def _csv(readings: list[Row]) -> str:
    lines = ["No;Date and time;Temp (C)"]
    for number, at, celsius in readings:
        time = "?" if at is None else at.astimezone(ROME).isoformat()
        lines.append(f"{number};{time};{'' if celsius is None else str(celsius).replace('.', ',')}")
    return "\n".join(lines) + "\n"


def _table(readings: list[Row]) -> pa.Table:
    numbers, times, values = zip(*readings, strict=True)
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"n": pa.array(numbers, pa.int64()), "at": stamps, "celsius": list(values)})
