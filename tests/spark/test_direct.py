"""Tasks that read files themselves, without Spark: what they find together."""

import os
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agreement import row
from cut_cases import Cut, cut_case, found_in_whole, identity
from spark_frames import composite_events, form_of, wide_rows

from broker.spark import cuts, direct, parquet
from broker.spark.blocks import Packing
from broker.spark.direct import FileLook, Files, FileWork, seen_of, work_of
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, TYPE, Form
from broker.spark.look import Look
from broker.spark.parquet import Given, Group, Piece, State, WideRows
from broker.spark.portions import columns_of, portions_of
from broker.spark.scans import Scan
from broker.spark.task import Task
from matcher.model import Event, Kind
from rules.cutting.splitting import ByKey, split

CASES, SEED = int(os.environ.get("REXMQ_CASES", "30")), int(os.environ.get("REXMQ_SEED", "0"))
NAMED = (TIME, SOURCE, SEQUENCE, ID)


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch):
    """So that row groups of few events are read in several batches."""
    for module in (parquet, direct, cuts):
        monkeypatch.setattr(module, "READ_TOGETHER", 7)


def scan_of_rows(events, form: Form, name: str | None, columns, random: Random, folder) -> Scan:
    """A frame of events as files of row groups, in order of time or in none."""
    events = [*events]
    if random.random() < 0.5:
        random.shuffle(events)
    attributes = {
        one.name: tuple(
            Given(form.column(a), a.name, a.kind, form.column(a), a.kind is Kind.FLOAT)
            for a in one.attributes
        )
        for one in form.types
        if name in (None, one.name)
    }
    named = NAMED if name is not None else (TYPE, *NAMED)
    tasks, files = [], random.randint(1, 3)
    for file in range(files):
        own = events[file * len(events) // files : (file + 1) * len(events) // files]
        if not own:
            continue
        table = pa.Table.from_batches([wide_rows(own, form).drop_columns([BAD])])
        times = table.column(TIME).combine_chunks().view(pa.timestamp("us", "UTC"))
        table = table.set_column(table.schema.get_field_index(TIME), TIME, times)
        path = str(folder / f"{name}-{file}.parquet")
        pq.write_table(table, path, row_group_size=random.choice((4, 20, 100)))
        groups = Group.all_of(path, State.of(path), pq.read_metadata(path), {})
        tasks.append(tuple(joined(groups, random)))
    return Scan(tasks, WideRows(tuple(columns), {one: one for one in named}, attributes, name))


def joined(groups, random: Random):
    """Pieces of one row group or of several."""
    while groups:
        count = random.choice((1, 1, 2, 5))
        yield Piece(groups[:count])
        groups = groups[count:]


def work_over(cut: Cut, form: Form, random: Random, folder) -> tuple[FileWork | None, Look]:
    passes = split(cut.ruleset, cut.ways).passes
    portions = portions_of(passes, form, min(cut.parts, cuts.READS_MAX))
    names = [None] if random.random() < 0.5 else sorted({event.type for event in cut.events})
    scans = []
    for name in names:
        own = [event for event in cut.events if name in (None, event.type)]
        columns = columns_of(form, portions, name)
        scans.append(scan_of_rows(own, form, name, columns, random, folder))
    packings = [Packing(portions, name, True, 1) for name in names]
    files, tasks = Files.of(scans, packings)
    look = FileLook(files.for_a_look(), tasks)
    numbers = pa.record_batch({"id": pa.array(range(len(tasks)))})
    rows = [one for batch in look(iter([numbers])) for one in batch.to_pylist()]
    seen, spans = seen_of(rows)
    wanted = tuple({rule.defines.name: rule.defines for rule in cut.ruleset.rules}.values())
    first, *_, last = seen.whole.times
    plain = [
        (part, Task(part, form, (), part.reach or 0, first, last, wanted, True)) for part in passes
    ]
    exactly = random.random() < 0.7
    return work_of(files, plain, portions, spans, cut.parts, exactly=exactly), seen


def is_keyed(work: FileWork, own: cuts.Own) -> bool:
    """Whether the pass of a cell is by key, and cut into several cells."""
    task = work.tasks[own.part]
    return isinstance(task.part.way, ByKey) and len(task.cells) > 1


def found_by(work: FileWork) -> list[Event]:
    numbers = pa.record_batch({"id": pa.array(range(len(work.cells)))})
    return composite_events([*work(iter([numbers]))])


def test_cells_find_what_the_whole_finds(tmp_path, monkeypatch):
    monkeypatch.setattr(cuts, "SKEWED", 100)
    fired = many = 0
    keyed_ways = set()
    for seed in range(SEED, SEED + 10 * CASES):
        if seed >= SEED + CASES and keyed_ways == {True, False}:
            break  # few cases may lack one of the ways
        cut, random = cut_case(seed), Random(seed)
        if not split(cut.ruleset, cut.ways).passes:
            continue
        monkeypatch.setattr(cuts, "READS_MAX", 4)
        if random.random() < 0.5:
            monkeypatch.setattr(cuts, "READS_MAX", 16)
        work, seen = work_over(cut, form_of(has_sequence=True), random, tmp_path)
        assert seen.whole.count == len(cut.events)
        assert not seen.bad
        if work is None:
            continue
        for own in work.cells:  # no files of types that the pass has no use for
            wants = {work.files.may_want(number, own.part) for number, *_ in own.spans}
            assert wants != {True, False}
        ours = sorted(found_by(work), key=identity)
        whole = sorted(found_in_whole(cut), key=identity)
        assert [*map(row, ours)] == [*map(row, whole)], (
            f"seed {seed}, {cut.ways}, {len(work.cells)} cells\n{cut.text}\n"
            f"{[*map(row, ours)]}\nagainst\n{[*map(row, whole)]}"
        )
        fired += len(whole) > 0
        many += len(whole) > 0 and len(work.cells) > 1
        if whole:
            keyed_ways |= {own.bucket is None for own in work.cells if is_keyed(work, own)}
    assert fired > CASES // 4
    assert many > CASES // 10
    assert keyed_ways == {True, False}  # by slices and by buckets


def test_spans_tell_quantiles_of_all_events():
    rows = [
        {"piece": 1, "rows": 3_400, "in_order": True, "times": [*range(17)], "counts": [[]]},
        {"piece": 0, "rows": 1, "in_order": True, "times": [100] * 17, "counts": [[]]},
        {"piece": 1, "rows": 5, "of_type": "T", "reason": "no time"},
    ]
    full = [{"of_type": None, "reason": None, **one} for one in rows]
    seen, spans = seen_of(full)
    assert [span.piece for span in spans] == [1, 0]
    assert seen.bad == {("T", "no time"): 5}
    assert seen.whole.count == 3_401
    assert seen.whole.times[0] == 0
    assert seen.whole.times[-1] == 100
    assert 7 <= seen.whole.times[32] <= 9
