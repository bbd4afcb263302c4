"""A table of Parquet files, a folder for each day, whose commits are atomic.

Law: readers see all of a commit or nothing of it. The files of a commit go to a folder of their
own; then the list of each day's folder, ``current.json``, is put in the place of the former one by
a rename. A commit that dies leaves a folder that no list names; the next one sweeps it away.

One program writes at a time. (Delta Lake does as much for many; its Java parts come from Maven.)
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

CURRENT = "current.json"
DAY = "day"


class Ledger:
    """The table in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def days(self) -> dict[str, str]:
        """By day, its folder within the table's."""
        current = self._folder / CURRENT
        return dict(json.loads(current.read_text())) if current.exists() else {}

    def read(self, session: SparkSession, days: Iterable[str]) -> DataFrame | None:
        """What is committed of these days, without the day; None where it is nothing."""
        known = self.days
        paths = [str(self._folder / known[day]) for day in days if day in known]
        return session.read.parquet(*paths) if paths else None

    def replace(self, rows: DataFrame, days: Iterable[str]) -> None:
        """Commit rows, which have a column ``day``, as all that there is of these days."""
        before = self.days
        self._sweep(before.values())
        commit = uuid.uuid4().hex
        rows.write.partitionBy(DAY).parquet(str(self._folder / commit))
        places = {day: f"{commit}/{DAY}={day}" for day in days}
        written = {day: at for day, at in places.items() if (self._folder / at).is_dir()}
        now = {day: at for day, at in before.items() if day not in places} | written
        fresh = self._folder / f"{CURRENT}.new"
        fresh.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n")
        os.replace(fresh, self._folder / CURRENT)
        self._sweep(now.values())

    def _sweep(self, kept: Iterable[str]) -> None:
        """Remove folders of days that the list does not name."""
        names = {self._folder / place for place in kept}
        for commit in (one for one in self._folder.iterdir() if one.is_dir()):
            for day in commit.glob(f"{DAY}=*"):
                if day not in names:
                    shutil.rmtree(day)
            if not any(commit.glob(f"{DAY}=*")):
                shutil.rmtree(commit)
