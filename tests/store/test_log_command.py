"""``rexmq log``, over the store of a broker that runs and of one that does not."""

import json
import random
from contextlib import closing

import command
import pytest

from broker.store import Append, Put, Store, schema
from broker.store.entries import entry_of, message_of
from matcher.formats.printing import json_lines
from matcher.model import EventType
from matcher.rows import batch_of
from routing.messages import Publish

TEMP = EventType.of("Temp", area="string", value="float")
SMOKE = EventType.of("Smoke", area="string")
SECOND = 1_000_000
START = 1_790_000_000 * SECOND
RULES = """
event Temp(area: string, value: float)
event Smoke(area: string)

rule fire:
define Fire(area: string, temperature: float)
from   Smoke(area = $a) and
       last Temp(area = $a and value > 45) within 5 min from Smoke
where  area = $a, temperature = Temp.value
"""


def log(*words):
    return command.run("log", *words)


def batch(event_type, row, source, time, number):
    return batch_of(event_type, [row], source=source, times=[time], first_sequence=number)


def published(source, events):
    """Batches of one event (type, time, row) of a source, numbered as they stand."""
    batches = []
    for number, (event_type, time, row) in enumerate(events, 1):
        batches.append(batch(event_type, row, source, time, number))
    return batches


def random_entries(seed, sources=5, events=600):
    """What sources have published, in an order in which a broker may have taken it in."""
    chance = random.Random(seed)
    rest = []
    for number in range(sources):
        time, own = START, []
        for _ in range(events):
            time += chance.choice([0, 0, SECOND, 3 * SECOND])
            row = {"area": chance.choice("abc")}
            is_temp = chance.random() < 0.7
            if is_temp:
                row["value"] = chance.choice([20.0, 46.5, 50.25])
            own.append((TEMP if is_temp else SMOKE, time, row))
        rest.append((f"s{number}", published(f"s{number}", own)))
    entries = []
    while rest:
        source, batches = chance.choice(rest)
        count = chance.choice([1, 5, 40])
        some, batches[:] = batches[:count], batches[count:]
        entries.append(entry_of(source, Publish(tuple(some))))
        rest = [one for one in rest if one[1]]
    return entries


@pytest.fixture
def stored(tmp_path):
    with Store.open(tmp_path / "b1") as store:
        for entry in random_entries(7):
            store.write([Append(entry), Put("source", entry.source, b"x")])
        assert store.wait(store.write([]), 30)
        yield tmp_path / "b1"


def test_entries_are_listed_while_the_broker_runs(stored):
    done = log("list", "--data", stored)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == [
        "position",
        "from",
        "to",
        "source",
        "numbers",
        "types",
        "events",
        "bytes",
    ]
    entries = random_entries(7)
    assert lines[1].split()[0] == "1"
    assert lines[-1].startswith(f"{len(entries)} entries, 3000 events, ")
    assert lines[-1].endswith(f"positions 1 to {len(entries)}")
    rows = [
        json.loads(line) for line in log("list", "--data", stored, "--json").stdout.splitlines()
    ]
    assert [row["position"] for row in rows] == [*range(1, len(entries) + 1)]
    assert [row["source"] for row in rows] == [one.source for one in entries]
    assert [row["bytes"] for row in rows] == [len(one.frames) for one in entries]


def test_a_store_is_checked_and_repaired(tmp_path):
    folder = tmp_path / "b1"
    entries = random_entries(3)
    with Store.open(folder) as store:
        for entry in entries:
            store.write([Append(entry)])
        done = log("check", "--data", folder)
        assert done.returncode == 0
        refused = log("check", "--data", folder, "--repair")
        assert refused.returncode == 1
        assert "is in use by process" in refused.stderr
    frames = entries[4].frames
    data = (folder / "broker.db").read_bytes().replace(frames, bytes(len(frames)))
    (folder / "broker.db").write_bytes(data)
    done = log("check", "--data", folder)
    assert done.returncode == 1
    assert done.stderr == "entry 5 is damaged or missing\n"
    assert done.stdout.startswith("damaged; sound are: ")
    done = log("check", "--data", folder, "--repair")
    assert done.returncode == 0
    assert done.stdout.startswith(f"repaired: kept {len(entries) - 1} entries")
    assert str(folder / "broker.db.damaged") in done.stdout
    done = log("check", "--data", folder)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("entries 5 to 5 were lost before")


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]


def test_events_are_exported_in_the_order_of_their_times(stored, tmp_path):
    done = log("export", "--data", stored)
    assert (done.returncode, done.stderr) == (0, "")
    events = events_of(done.stdout)
    assert len(events) == 3_000
    keys = [(one["time"], one["source"], one["sequence"]) for one in events]
    assert keys == sorted(keys)
    output = tmp_path / "out.jsonl"
    assert log("export", "--data", stored, "--output", output).stdout == ""
    assert output.read_text() == done.stdout


def test_an_event_that_stands_in_the_log_twice_is_exported_once(tmp_path):
    """A repeat has the source, the id and the contents of another; whatever differs is given."""

    def publish(value, name="7", source="s"):
        ids = None if name is None else [name]
        row = {"area": "a", "value": value}
        batch = batch_of(TEMP, [row], source=source, times=[START], first_sequence=7, ids=ids)
        return entry_of(source, Publish((batch,)))

    given = [
        publish(20.0),
        publish(20.0, source="other"),
        publish(20.0),  # sent again
        publish(20.0, "8"),  # of the same number, as hashes of ids may be
        publish(21.0),  # a conflict, which nothing hides
        publish(22.0, None),
        publish(22.0, None),
    ]
    with Store.open(tmp_path / "b1") as store:
        for entry in given:
            store.write([Append(entry)])
        assert store.wait(store.write([]), 30)
    events = events_of(log("export", "--data", tmp_path / "b1").stdout)
    told = sorted((e["source"], e["id"], e["data"]["value"]) for e in events)
    assert told == [
        ("other", "7", 20.0),
        ("s", "7", 20.0),
        ("s", "7", 21.0),
        ("s", "7", 22.0),
        ("s", "8", 20.0),
    ]


def test_a_stretch_of_time_and_types_are_exported(stored):
    every = events_of(log("export", "--data", stored).stdout)
    low, high = every[700]["time"], every[1_900]["time"]
    words = ("--from", low, "--to", high, "--type", "Smoke")
    some = events_of(log("export", "--data", stored, *words).stdout)
    assert some == [one for one in every if low <= one["time"] < high and one["type"] == "Smoke"]
    assert some


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_detect_finds_in_an_export_what_it_finds_in_the_events(stored, tmp_path, form):
    rules, direct = tmp_path / "fire.tesla", tmp_path / "direct.jsonl"
    rules.write_text(RULES)
    lines = []
    for entry in random_entries(7):
        lines += [json_lines([one]) for one in message_of(entry).batches]
    random.Random(1).shuffle(lines)
    direct.write_bytes(b"".join(lines))
    done = log("export", "--data", stored, "--format", form, "--output", tmp_path / f"e.{form}")
    assert (done.returncode, done.stderr) == (0, "")
    files = sorted(tmp_path.glob(f"e*.{form}"))
    assert len(files) == (1 if form == "jsonl" else 2)
    expected = command.run("detect", "--rules", rules, "--events", direct)
    found = command.run("detect", "--rules", rules, "--events", *files)
    assert found.stdout == expected.stdout
    assert found.stdout.count("\n") > 100
    assert found.stderr == ""  # an export is in the order of its times


def test_a_store_that_another_writes_for_long_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "BUSY_S", 0.1)
    Store.open(tmp_path).close()
    with closing(schema.connect(tmp_path / "broker.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        done = log("trim", "--data", tmp_path, "--before", "2026-01-01T00:00:00Z")
    assert done.returncode == 1
    assert "cannot be used: database is locked" in done.stderr


def test_usage(stored, tmp_path):
    for words, said in (
        (("export", "--data", stored, "--format", "csv"), "--format: expected jsonl or parquet"),
        (("export", "--data", stored, "--format", "parquet"), "--output FILE.parquet"),
        (("export", "--data", stored, "--output", tmp_path / "x.doc"), "ends in one of"),
        (
            ("export", "--data", stored, "--format", "jsonl", "--output", tmp_path / "x.parquet"),
            "ends in .jsonl",
        ),
        (("export", "--data", stored, "--from", "yesterday"), "--from"),
        (("trim", "--data", stored), "--before"),
        (("list",), "--data"),
    ):
        done = log(*words)
        assert done.returncode == 2, words
        assert said in done.stderr, done.stderr
    for word in ("list", "check", "export"):
        done = log(word, "--data", tmp_path / "nowhere")
        assert done.returncode == 1
        assert "holds no store of a broker" in done.stderr


def test_another_schema_of_a_type_is_named(tmp_path):
    other = EventType.of("Smoke", area="string", thick="bool")
    with Store.open(tmp_path) as store:
        for number, (event_type, row) in enumerate(
            [(SMOKE, {"area": "a"}), (other, {"area": "a", "thick": True})], 1
        ):
            one = batch(event_type, row, "s", START + number * SECOND, number)
            store.write([Append(entry_of("s", Publish((one,))))])
    done = log("export", "--data", tmp_path)
    assert done.returncode == 1
    assert "Smoke had another schema from entry 2 of the log on" in done.stderr
    done = log("export", "--data", tmp_path, "--from", str(START // SECOND + 2))
    assert len(done.stdout.splitlines()) == 1


def test_what_is_printed_hides_nothing(tmp_path):
    area = "a\u009b2J\u202e\u2028"
    with Store.open(tmp_path) as store:
        store.write(
            [Append(entry_of("s", Publish((batch(SMOKE, {"area": area}, "s", START, 1),))))]
        )
        assert store.wait(store.write([]), 30)
    text = log("export", "--data", tmp_path).stdout
    assert "\\u009b2J\\u202e\\u2028" in text
    assert [one["data"] for one in events_of(text)] == [{"area": area}]


def test_what_no_rule_needs_is_trimmed_while_the_broker_runs(tmp_path):
    with Store.open(tmp_path) as store:
        for number in range(1, 101):
            time = START + number * SECOND
            one = batch(SMOKE, {"area": "a"}, "s", time, number)
            store.write([Append(entry_of("s", Publish((one,))))])
        store.trim(60)
        assert store.wait(store.write([]), 30)
        before = str((START + 41 * SECOND) // SECOND)
        done = log("trim", "--data", tmp_path, "--before", before)
        assert (done.returncode, done.stdout, done.stderr) == (0, "40 entries trimmed\n", "")
        assert next(store.entries()).position == store.first_position == 41
        done = log("trim", "--data", tmp_path, "--before", str((START + 90 * SECOND) // SECOND))
        assert done.stdout == "19 entries trimmed\n"
        assert "entries from position 60 on stay" in done.stderr
        assert store.wait(store.write([Put("a", "b", b"")]), 30)
        assert [one.position for one in store.entries()] == [*range(60, 101)]
    assert log("check", "--data", tmp_path).returncode == 0
