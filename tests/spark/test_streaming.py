"""``detect_stream`` gives what the oracle gives over the whole, however the stream was cut up."""

import os
import warnings
from collections import defaultdict
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agreement import row
from cut_cases import Cut, cut_case, found_in_whole, identity
from rule_texts import SCHEMAS
from spark_frames import ARROW, NAMES, composite_events, events_of, form_of, wide_rows

from broker.spark import detect_remaining, detect_stream, streaming
from broker.spark.columns import from_bytes
from broker.spark.memory import Memory, OtherCheckpoint
from broker.spark.remaining import ending
from broker.spark.streaming import METRICS, packing_of, parts_of
from matcher.model import MICROSECONDS, Event
from rules.cutting.splitting import KEY, ByKey, split

CASES, FIRST = int(os.environ.get("REXMQ_CASES", "40")), int(os.environ.get("REXMQ_SEED", "0"))
DAY = 86_400 * MICROSECONDS
PIECE = ("number", "first", "last", "events")
KINDS = {one.name: one.kind for schema in SCHEMAS.values() for one in schema.attributes}


# --- random streams ----------------------------------------------------------------------------


def stream_case(seed: int) -> Cut | None:
    """Random rules and events of the day after the epoch; None where there are no rules."""
    cut = cut_case(seed)
    if not split(cut.ruleset, (KEY,)).passes:
        return None
    events = tuple(
        Event(e.type, e.time + DAY, e.source, e.id, e.data, e.sequence) for e in cut.events
    )
    return Cut(cut.rules, events, (KEY,), cut.parts)


def is_endless(cut: Cut) -> bool:
    """Whether some of the rules consume events, or use what they define."""
    return any(part.reach is None for part in split(cut.ruleset, (KEY,)).passes)


def micro_batches(random: Random, cut: Cut) -> tuple[list[list[Event]], int]:
    """The events in random batches, and by how many microseconds they are out of order at most."""
    disorder = random.choice((0, 3, 15)) * MICROSECONDS
    left = sorted(cut.events, key=lambda event: event.time + random.uniform(0, disorder))
    batches = []
    while left:
        count = random.choice((1, 2, 5, 20, 40))
        batches.append(left[:count])
        left = left[count:]
    return batches, disorder


def found_before(cut: Cut, watermark_ms: int) -> list[Event]:
    found = found_in_whole(cut)
    return sorted((e for e in found if e.time < watermark_ms * 1000), key=identity)


def check(ours: list[Event], whole: list[Event], told: str) -> None:
    assert [*map(row, ours)] == [*map(row, whole)], (
        f"{told}\n{[*map(row, ours)]}\nagainst\n{[*map(row, whole)]}"
    )


# --- the memory of cells, without Spark -----------------------------------------------------------


class Value:
    def __init__(self) -> None:
        self.value = None

    def get(self):
        return self.value

    def update(self, value) -> None:
        self.value = value


class Pieces(dict):
    def updateValue(self, key, value):  # noqa: N802
        self[key] = value

    def iterator(self):
        return iter([*self.items()])

    def removeKey(self, key):  # noqa: N802
        del self[key]


class Cell:
    """A state store for one cell, as far as Memory needs it, and the timers that it has set."""

    def __init__(self) -> None:
        self.values, self.pieces, self.timers = defaultdict(Value), Pieces(), set()

    def getValueState(self, name, schema):  # noqa: N802
        return self.values[name]

    def getMapState(self, name, key, schema):  # noqa: N802
        return self.pieces

    def registerTimer(self, expiry):  # noqa: N802
        self.timers.add(expiry)


class Watermark(int):
    def getCurrentWatermarkInMs(self):  # noqa: N802
        return int(self)


class Stream:
    """Micro-batches through packing and memory, each cell by a processor that knows nothing yet."""

    def __init__(self, cut: Cut, cells: int, wanted, *, keeps_engine: bool = False) -> None:
        self.form = form_of()
        passes = split(cut.ruleset, (KEY,)).passes
        self.parts = parts_of(
            passes, self.form, cells, wanted, keeps_engine=keeps_engine, full_cause=True
        )
        self.packing = packing_of(self.parts, self.form, drops_bad=True)
        self.cells: dict[int, Cell] = {}
        self.watermark = 0
        self.found: list[pa.RecordBatch] = []
        self.late = 0

    def take(self, events: list[Event], disorder: int) -> None:
        for packed in self.packing(iter([self.rows(events)])):
            for one in packed.to_pylist():
                self.go_on(one["cell"], "handleInputRows", iter([{**one}]))
        self.fire()
        latest = max(event.time for event in events) // 1000 - disorder // 1000
        self.watermark = max(self.watermark, latest)

    def remaining(self) -> list[pa.RecordBatch]:
        """What the cells would find at the end, out of states as Spark gives them."""
        found = []
        for number, cell in self.cells.items():
            *numbers, plan = cell.values["head"].get()
            head = dict(zip(("mark", "first", "pending", "pieces"), numbers, strict=True))
            states = [{"head": head | {"plan": plan}}]
            states += [
                {"pieces": dict(zip(PIECE, (*key, *value), strict=True))}
                for key, value in cell.pieces.items()
            ]
            engine = cell.values["engine"].get()
            states += [{"engine": engine[0]}] if engine else []
            names = ("head", "pieces", "engine")
            rows = [{"cell": number, **dict.fromkeys(names), **state} for state in states]
            packed = ending(self.parts)(pa.Table.from_pylist(rows))
            found += map(from_bytes, packed.column("found").to_pylist())
        return found

    def fire(self) -> None:
        for number, cell in self.cells.items():
            for timer in sorted(one for one in cell.timers if one <= self.watermark):
                cell.timers.discard(timer)
                self.go_on(number, "handleExpiredTimer", None)

    def go_on(self, number: int, method: str, argument) -> None:
        cell = self.cells.setdefault(number, Cell())
        memory = Memory(self.parts, "plan")
        memory.init(cell)
        water = Watermark(self.watermark)
        if argument is None:
            results = memory.handleExpiredTimer((number,), water, None)
        else:
            results = memory.handleInputRows((number,), argument, water)
        for result in results:
            self.late += result.late
            if result.found:
                self.found.append(from_bytes(result.found))

    def rows(self, events: list[Event]) -> pa.RecordBatch:
        rows = wide_rows(events, self.form)
        for place, part in enumerate(self.parts):
            cells = pa.array([self.cell(part, e) for e in events], pa.int32())
            rows = rows.append_column(f"cell{place}", cells)
        return rows

    @staticmethod
    def cell(part, event: Event) -> int:
        way = part.task.part.way
        if not isinstance(way, ByKey) or event.type not in dict(way.attributes):
            return 0
        key = event.data[SCHEMAS[event.type].names[way.place(event.type)]]
        return hash(str(key)) % len(part.task.cells)


def test_memories_of_cells_find_what_the_whole_finds():
    tried = fired = endless = remained = 0
    seed = FIRST
    while tried < CASES:
        cut, random = stream_case(seed), Random(seed)
        seed += 1
        if cut is None:
            continue
        tried += 1
        wanted = tuple({rule.defines.name: rule.defines for rule in cut.ruleset.rules}.values())
        keeps_engine = random.random() < 0.3
        stream = Stream(cut, random.randint(1, 4), wanted, keeps_engine=keeps_engine)
        batches, disorder = micro_batches(random, cut)
        for batch in batches:
            stream.take(batch, disorder)
        stream.fire()
        assert stream.late == 0, f"seed {seed - 1}"
        whole = found_before(cut, stream.watermark)
        fired += len(whole) > 0
        endless += len(whole) > 0 and is_endless(cut)
        ours = sorted(composite_events(stream.found), key=identity)
        told = f"seed {seed - 1}, {disorder} us out of order\n{cut.text}"
        check(ours, whole, told)
        remaining = composite_events(stream.remaining())
        ours = sorted([*ours, *remaining], key=identity)
        check(ours, sorted(found_in_whole(cut), key=identity), f"{told}\nat the end")
        remained += len(remaining)
    assert remained > CASES
    assert fired > CASES // 4
    assert endless > CASES // 20


PAIRS = """
event Temp(area: string, value: float)
rule pair: define Pair(area: string, first: float, second: float)
from Temp(area = $a) as Now and last Temp(area = $a) as Before within 1 min from Now
where area = $a, first = Before.value, second = Now.value
"""


# --- real streams ------------------------------------------------------------------------------


def schema_of_files() -> str:
    kinds = {"int": "long", "float": "double", "bool": "boolean", "string": "string"}
    names = [f"{name} {kinds[KINDS[name].value]}" for name in NAMES]
    return ", ".join(
        ["type string, time timestamp, source string, sequence long, id string", *names]
    )


def write_batch(folder, number: int, events: list[Event]) -> None:
    """One file, which is one micro-batch; its age puts it in its place."""
    columns = {
        "type": pa.array([e.type for e in events]),
        "time": pa.array([e.time for e in events], pa.int64()).view(pa.timestamp("us", "UTC")),
        "source": pa.array([e.source for e in events]),
        "sequence": pa.array([e.sequence for e in events], pa.int64()),
        "id": pa.array([e.id for e in events]),
    }
    for name in NAMES:
        values = [e.data.get(name) for e in events]
        columns[name] = pa.array(values, ARROW[KINDS[name]])
    path = folder / f"{number:03}.parquet"
    pq.write_table(pa.table(columns), folder.parent / path.name)
    os.utime(folder.parent / path.name, (1e9 + number, 1e9 + number))
    (folder.parent / path.name).rename(path)


class Sink:
    """What each micro-batch gave; one that is done again takes the place of the first attempt."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.batches: dict[int, list[Event]] = {}
        self.fails_at = fails_at

    def __call__(self, frame, number: int) -> None:
        self.batches[number] = events_of(frame)
        if number == self.fails_at:
            self.fails_at = None
            raise RuntimeError("the sink fails")

    def found(self) -> list[Event]:
        return sorted((e for batch in self.batches.values() for e in batch), key=identity)


def run_stream(spark, folder, sink: Sink, text: str, disorder: int, **options):
    """Take in the files that are there and end; gives the progress of each micro-batch."""
    stream = spark.readStream.schema(schema_of_files()).option("maxFilesPerTrigger", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = detect_stream(
            stream.parquet(str(folder)),
            text,
            disorder=f"{disorder // 1000} ms",
            full_cause=True,
            **options,
        )
    writer = found.writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder.parent / "checkpoint")).start()
    query.awaitTermination()
    return query.recentProgress


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fails_at", [None, 1])
def test_a_stream_stopped_and_restarted_finds_what_the_whole_finds(spark, tmp_path, fails_at):
    """In mid-stream the query ends, or the sink fails, and it goes on from its checkpoint; there
    some of the rules consume events or use what they define.
    """
    cases = (stream_case(seed) for seed in range(FIRST, FIRST + 10**6))
    endless = fails_at is not None
    cut = next(
        case
        for case in cases
        if case and is_endless(case) == endless and len(found_in_whole(case)) > 20
    )
    random = Random(len(cut.text))
    batches, disorder = micro_batches(random, cut)
    whole = [e for batch in batches for e in batch]
    size = -(-len(whole) // 2)
    batches = [whole[at : at + size] for at in range(0, len(whole), size)]
    end = max(e.time for e in whole) + disorder + MICROSECONDS
    batches.append([Event("Flush", end, "flush", "1", {}, 1)])
    folder = tmp_path / "in"
    folder.mkdir()
    sink = Sink(fails_at)
    middle = 1 if fails_at is None else 2
    for number, batch in enumerate(batches[:middle]):
        write_batch(folder, number, batch)
    if fails_at is None:
        progress = run_stream(spark, folder, sink, cut.text, disorder, cells=2)
    else:
        progress = []
        with pytest.raises(Exception, match="the sink fails"):
            run_stream(spark, folder, sink, cut.text, disorder, cells=2)
    for number, batch in enumerate(batches[middle:], middle):
        write_batch(folder, number, batch)
    progress += run_stream(spark, folder, sink, cut.text, disorder, cells=2)
    check(sink.found(), sorted(found_in_whole(cut), key=identity), cut.text)
    if fails_at is None:
        counts = [one.observedMetrics[METRICS] for one in progress]
        assert sum(one["late"] or 0 for one in counts) == 0
        assert sum(one["composites"] or 0 for one in counts) == len(sink.found())


@pytest.mark.parametrize("keep", ["events", "engine"])
def test_what_remains_at_the_end_is_found_and_the_query_may_still_go_on(spark, tmp_path, keep):
    """The first half of the day, its end, and then the second half all the same."""
    cases = (stream_case(seed) for seed in range(FIRST, FIRST + 10**6))
    cut = next(case for case in cases if case and len(found_in_whole(case)) > 20)
    events = sorted(cut.events, key=lambda event: event.time)
    middle = next(at for at in range(len(events) // 2, len(events)) if is_between(events, at))
    folder = tmp_path / "in"
    folder.mkdir()
    sink = Sink()
    for number, half in enumerate((events[:middle], events[middle:])):
        write_batch(folder, number, half)
        run_stream(spark, folder, sink, cut.text, 40 * MICROSECONDS, cells=2, keep=keep)
        came = Cut(cut.rules, tuple(events[: middle if number == 0 else None]), (KEY,), cut.parts)
        stream = spark.readStream.schema(schema_of_files()).parquet(str(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = detect_remaining(
                stream, cut.text, tmp_path / "checkpoint", cells=2, keep=keep, full_cause=True
            )
        remaining = events_of(frame)
        assert remaining
        ours = sorted([*sink.found(), *remaining], key=identity)
        check(ours, sorted(found_in_whole(came), key=identity), cut.text)
    with pytest.raises(OtherCheckpoint, match="made with other rules, columns or cells"):
        detect_remaining(stream, cut.text, tmp_path / "checkpoint", cells=3, keep=keep)


def is_between(events: list[Event], at: int) -> bool:
    """Whether no two simultaneous events are parted there."""
    return events[at - 1].time < events[at].time


PAIRS = """
event Temp(area: string, value: float)
event Smoke(area: string)
rule alarm: define Alarm(area: string, value: float)
from Smoke(area = $a) as Now and last Temp(area = $a) as Before within 1 min from Now
where area = $a, value = Before.value
"""


def test_frames_of_types_wait_for_the_slowest_and_what_is_late_or_bad_is_counted(spark, tmp_path):
    """Two streams without ids: the watermark is that of the smoke, which lags behind."""
    batches = [
        [("a", 100.0, 1.0), ("b", 101.0, 2.0), ("b", 500.0, 3.0)],
        [("a", 90.0, 9.0), ("a", 119.0, 4.0), ("a", 120.0, None), ("b", 501.0, 5.0)],
        [("a", 50.0, 7.0), ("b", 502.0, 6.0)],  # the first is late by now
    ]
    smokes = [[("a", 110.0)], [("b", 121.0)], [("a", 300.0), ("b", 510.0)]]
    places = {"Temp": tmp_path / "temps", "Smoke": tmp_path / "smokes"}
    schemas = {
        "Temp": "area string, time double, value double",
        "Smoke": "area string, time double",
    }
    frames = {}
    for name, rows in (("Temp", batches), ("Smoke", smokes)):
        for number, batch in enumerate(rows):
            columns = zip(*batch, strict=True)
            names = ("area", "time", "value")
            table = pa.table({n: pa.array(c) for n, c in zip(names, columns, strict=False)})
            places[name].mkdir(exist_ok=True)
            path = places[name] / f"{number}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1e9 + number, 1e9 + number))
        stream = spark.readStream.schema(schemas[name]).option("maxFilesPerTrigger", 1)
        frames[name] = stream.parquet(str(places[name]))
    with pytest.warns(UserWarning, match="ordered by what they hold"):
        found = detect_stream(frames, PAIRS, disorder="5 s", on_bad="drop")
    sink = Sink()
    writer = found.writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    alarms = sorted((e.time / 1e6, *e.data.values()) for e in sink.found())
    assert alarms == [(110.0, "a", 1.0), (121.0, "b", 2.0)]  # at 510 the watermark is 497
    counts = [one.observedMetrics[METRICS] for one in query.recentProgress]
    assert {
        name: sum(one[name] or 0 for one in counts)
        for name in ("events", "late", "dropped", "composites")
    } == {"events": 11, "late": 1, "dropped": 1, "composites": 2}


@pytest.mark.filterwarnings("ignore:the events have no column")
def test_what_a_stream_cannot_do_is_told_in_a_sentence(spark, tmp_path):
    frame = spark.createDataFrame([], "area string, time double, value double")
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path))
    rule = "event Temp(area: string, value: float)\nrule hot: define Hot(area: string) from "
    hot = rule + "Temp(area = $a, value > 45) where area = $a"
    with pytest.raises(ValueError, match="the frame of Temp is no stream"):
        detect_stream({"Temp": frame}, hot, disorder="1 s")
    with pytest.raises(ValueError, match="keep is 'events' or 'engine', not 'both'"):
        detect_stream({"Temp": stream}, hot, disorder="1 s", keep="both")
    with pytest.raises(ValueError, match="option disorder is a duration such as 30 s, not 'late'"):
        detect_stream({"Temp": stream}, hot, disorder="late")
    store = "spark.sql.streaming.stateStore.providerClass"
    sound = spark.conf.get(store)
    spark.conf.unset(store)
    try:
        spark.conf.set(store, sound.replace("RocksDBStateStore", "HDFSBackedStateStore"))
        with pytest.raises(ValueError, match="RocksDBStateStoreProvider before"):
            detect_stream({"Temp": stream}, hot, disorder="1 s")
    finally:
        spark.conf.set(store, sound)


def test_a_checkpoint_with_other_rules_is_refused():
    cut = next(case for seed in range(100) if (case := stream_case(seed)))
    stream = Stream(cut, 1, ())
    stream.take(list(cut.events), 0)
    (number, cell), *_ = stream.cells.items()
    memory = Memory(stream.parts, "another plan")
    memory.init(cell)
    with pytest.raises(ValueError, match="made with other rules, columns or cells"):
        memory.handleExpiredTimer((number,), Watermark(1), None)


def test_every_micro_batch_has_a_cell_that_knows_the_query():
    """Cell 0 comes with all that brings rows, also without an event of its own and a watermark."""
    stream = Stream(next(case for seed in range(100) if (case := stream_case(seed))), 4, ())
    stream.go_on(0, "handleInputRows", iter([{"dropped": 0, "events": b""}]))
    memory = Memory(stream.parts, "another plan")
    memory.init(stream.cells[0])
    with pytest.raises(ValueError, match="made with other rules, columns or cells"):
        memory.handleInputRows((0,), [], Watermark(0))


def test_a_stream_that_is_refused_leaves_its_checkpoint_as_it_was(spark, tmp_path):
    """Started with other cells, and with other rules, it is refused before it writes anything,
    whichever cells its rows come to.
    """
    folder = tmp_path / "in"
    folder.mkdir()
    rules = PAIRS.replace("area", "s").replace("value", "v")
    other, sink = rules.replace("1 min", "2 min"), Sink()

    def start(number: int, text: str, cells: int) -> None:
        time, key = (100 + 100 * number) * MICROSECONDS, f"a{number}"
        temp = Event("Temp", time, "s", f"t{number}", {"s": key, "v": 50.0}, 2 * number)
        smoke = Event("Smoke", time + 1, "s", f"s{number}", {"s": key}, 2 * number + 1)
        write_batch(folder, number, [temp, smoke])
        run_stream(spark, folder, sink, text, 0, cells=cells)

    start(0, rules, 16)
    for number, (text, cells) in enumerate([(rules, 4), (other, 16)], 1):
        with pytest.raises(Exception, match="made with other rules, columns or cells"):
            start(number, text, cells)
    start(3, rules, 16)
    assert [event.data["s"] for event in sink.found()] == ["a0", "a1", "a2"]


def test_protobuf_may_be_missing_with_all_of_its_namespace(monkeypatch) -> None:
    def find(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(streaming.importlib.util, "find_spec", find)
    assert not streaming._has_protobuf()
