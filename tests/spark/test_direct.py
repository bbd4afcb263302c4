"""Tasks that read files themselves, without Spark: what they find together, and when they may."""

import os
from dataclasses import replace
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agreement import row, same
from cut_cases import Cut, cut_case, found_in_whole, identity
from spark_frames import composite_events, form_of, wide_rows

from broker.spark import direct, parquet
from broker.spark.blocks import Packing, Portion
from broker.spark.direct import FileLook, Files, FileWork, Span, seen_of, work_of
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, TYPE, Form
from broker.spark.look import Look, Share
from broker.spark.parquet import Given, Piece, State, WideRows
from broker.spark.portions import columns_of, portions_of
from broker.spark.scans import Scan
from broker.spark.task import Task
from matcher.model import Event, Kind
from rules.cutting.splitting import split

CASES, SEED = int(os.environ.get("REXMQ_CASES", "60")), int(os.environ.get("REXMQ_SEED", "0"))
NAMED = (TIME, SOURCE, SEQUENCE, ID)


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch):
    """So that row groups of few events are read in several batches."""
    for module in (parquet, direct):
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
        groups = pq.read_metadata(path).num_row_groups
        tasks.append(tuple(Piece(path, State.of(path), group, {}) for group in range(groups)))
    return Scan(tasks, WideRows(tuple(columns), {one: one for one in named}, attributes, name))


def work_over(cut: Cut, form: Form, random: Random, folder) -> tuple[FileWork | None, Look]:
    passes = split(cut.ruleset, cut.ways).passes
    portions = portions_of(passes, form, min(cut.parts, direct.READS_MAX))
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
    return work_of(files, plain, portions, seen, spans, cut.parts, exactly=exactly), seen


def found_by(work: FileWork) -> list[Event]:
    numbers = pa.record_batch({"id": pa.array(range(len(work.cells)))})
    return composite_events([*work(iter([numbers]))])


def test_cells_find_what_the_whole_finds(tmp_path, monkeypatch):
    monkeypatch.setattr(direct, "SKEWED", 100)
    fired = many = 0
    for seed in range(SEED, SEED + CASES):
        cut, random = cut_case(seed), Random(seed)
        if not split(cut.ruleset, cut.ways).passes:
            continue
        monkeypatch.setattr(direct, "READS_MAX", 4)
        if random.random() < 0.5:
            monkeypatch.setattr(direct, "READS_MAX", 16)
        work, seen = work_over(cut, form_of(has_sequence=True), random, tmp_path)
        assert seen.whole.count == len(cut.events)
        assert not seen.bad
        if work is None:
            continue
        ours = sorted(found_by(work), key=identity)
        whole = sorted(found_in_whole(cut), key=identity)
        assert len(ours) == len(whole) and all(map(same, ours, whole)), (  # noqa: PT018
            f"seed {seed}, {cut.ways}, {len(work.cells)} cells\n{cut.text}\n"
            f"{[*map(row, ours)]}\nagainst\n{[*map(row, whole)]}"
        )
        fired += len(whole) > 0
        many += len(whole) > 0 and len(work.cells) > 1
    assert fired > CASES // 4
    assert many > CASES // 10


# --- when it is better to pack -------------------------------------------------------------------


def spans_of(*times: tuple[int, int], rows: int = 1 << 20, counts=((),)) -> list[Span]:
    """Row groups in order, of so many events between two times each."""
    inner = direct.TIMES - 1
    return [
        Span(number, rows, True, (first, *[first] * inner, last), counts)
        for number, (first, last) in enumerate(times)
    ]


def is_direct(spans: list[Span], buckets: int = 1, cells: int = 4) -> bool:
    """Whether work over such row groups would read them directly."""
    import rules

    loaded = rules.load(
        "event T(k: int)\nrule pair: define P() from T(k = $k) as N and last T(k = $k) "
        "within 1 min from N"
    )
    (part,) = split(loaded, ("key",) if buckets > 1 else ("time",)).passes
    portion = Portion(frozenset({"T"}), (), {"T": "v0"}, 0, buckets, 4)
    files = Files([], [], [])
    task = Task(part, form_of(), (), part.reach or 0, 0, 1, (), False)
    count = sum(span.rows for span in spans)
    first, last = spans[0].times[0], max(span.times[-1] for span in spans)
    seen = Look(Share(count, tuple(range(first, last + 1, (last - first) // 64))), {})
    work = work_of(files, [(part, task)], [portion], seen, spans, cells, exactly=False)
    return work is not None


def test_files_are_read_directly_while_rows_are_not_read_too_often():
    hour = 3_600 * 10**6
    tiled = spans_of(*((n * hour, (n + 1) * hour - 1) for n in range(8)))
    assert is_direct(tiled)
    everywhere = spans_of(*[(0, 8 * hour)] * 8)
    assert is_direct(everywhere, cells=direct.READS_MAX)
    assert not is_direct(everywhere, cells=direct.READS_MAX + 1)
    keyed = spans_of((0, hour), counts=((50, 52),))
    assert is_direct(keyed, 2)
    assert not is_direct(spans_of((0, hour), counts=((100, 2),)), 2)
    assert not is_direct(spans_of((0, hour), counts=((1,) * 5,)), 5)
    unsorted = [replace(span, in_order=False) for span in everywhere]
    assert not is_direct(unsorted)


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
