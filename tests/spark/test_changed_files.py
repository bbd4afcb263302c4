"""A file is read as it was when it was looked at, or FileChanged names it, in mid-read too."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.errors import BrokerError
from broker.spark import parquet
from broker.spark.parquet import FileChanged, Group, State

ROWS = pa.table({"time": range(100), "value": [number / 4 for number in range(100)]})
OTHERS = ROWS.set_column(1, "value", [[number / 8 for number in range(100)]])


def replace(path: Path) -> None:
    pq.write_table(OTHERS, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


CHANGES = {
    "gone": Path.unlink,
    "shorter": lambda path: os.truncate(path, 200),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "replaced": replace,
    "written over": lambda path: pq.write_table(OTHERS, path),
    "of another schema": lambda path: pq.write_table(ROWS.select(["time"]), path),
}


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    monkeypatch.setattr(parquet, "READ_TOGETHER", 10)
    monkeypatch.setattr(parquet, "FETCHED_WHOLE", 0)
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path)
    os.utime(path, (1e9, 1e9))
    (whole,) = Group.all_of(str(path), State.of(str(path)), pq.read_metadata(path), {})
    return whole


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("batches", [0, 1, 5])
def test_a_file_that_changed_is_named(group, change, batches):
    rows = group.read(["time", "value"], ())
    read = [next(rows) for _ in range(batches)]
    change(Path(group.path))
    with pytest.raises(FileChanged, match=r"a\.parquet is not what it was when detect looked"):
        next(rows)
    assert [time for batch in read for time in batch["time"].to_pylist()] == [*range(10 * batches)]


def test_a_file_that_cannot_be_read_though_it_is_the_same_is_named(group):
    path = Path(group.path)
    spoilt = path.read_bytes()[:-20] + bytes(20)
    path.write_bytes(spoilt)
    os.utime(path, (1e9, 1e9))
    with pytest.raises(BrokerError, match=r"a\.parquet cannot be read: "):
        [*group.read(["time"], ())]
