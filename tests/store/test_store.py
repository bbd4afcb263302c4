"""The store of a broker, on real files."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from msgspec.structs import replace
from stored import entry, said

from broker.errors import BeyondRetention, StoreDamaged, StoreError, StoreHeld, StoreVersion
from broker.store import Append, Clear, Delete, Put, Reader, Store, Sync, reader, schema
from broker.store.extracts import Extracts
from matcher.model import TIME_MAX, TIME_MIN
from routing.errors import Refusal
from routing.messages import ReadLog
from routing.storage import Stretch


def stored(store, *changes):
    assert store.wait(store.write(changes), 30)


def test_entries_and_values_are_there_again(tmp_path):
    with Store.open(tmp_path) as store:
        stored(store, Append(entry(1)), Put("source", "s", b"1"), Put("name", "", b"b1"))
        stored(store, Append(entry(2)), Append(entry(3)), Put("source", "s", b"3"))
        stored(store, Put("source", "t", b"9"), Delete("name", ""))
        assert store.last_position == 3
    with Store.open(tmp_path) as store:
        assert said(store.entries()) == [entry(1), entry(2), entry(3)]
        assert [one.position for one in store.entries(after=1)] == [2, 3]
        assert [one.position for one in store.entries(1, 2)] == [2]
        assert list(store.items("source")) == [("s", b"3"), ("t", b"9")]
        assert store.get("source", "t") == b"9"
        assert store.get("name", "") is None
        stored(store, Append(entry(4)))
        assert store.last_position == 4


def test_the_last_of_several_changes_of_a_value_counts(tmp_path):
    with Store.open(tmp_path) as store:
        tickets = [store.write([Put("a", "k", b"%d" % n), Delete("a", "l")]) for n in range(50)]
        store.write([Put("a", "l", b"x")])
        assert store.wait(store.write([Put("a", "k", b"end")]), 30)
        assert tickets == sorted(tickets)
        assert list(store.items("a")) == [("k", b"end"), ("l", b"x")]


def test_all_of_a_kind_can_be_deleted_and_what_comes_after_stays(tmp_path):
    with Store.open(tmp_path) as store:
        stored(store, Put("a", "k", b"1"), Put("a", "l", b"1"), Put("b", "k", b"1"))
        store.write([Put("a", "m", b"2"), Clear("a"), Put("a", "k", b"3")])
        stored(store, Put("a", "n", b"4"))
        assert list(store.items("a")) == [("k", b"3"), ("n", b"4")]
        assert list(store.items("b")) == [("k", b"1")]


def test_values_of_a_kind_are_read_some_at_a_time_in_the_order_of_their_keys(tmp_path):
    with Store.open(tmp_path) as store:
        values = {f"{number:03d}": bytes([number]) * 100_000 for number in range(30)}
        stored(store, Put("b", "000", b""), *(Put("a", *one) for one in values.items()))
        found, parts = {}, 0
        while part := store.following("a", max(found, default="")):
            assert sum(len(value) for _, value in part) <= 1_200_000
            found |= part
            parts += 1
        assert list(found.items()) == list(values.items())
        assert parts == 3


def test_tickets_are_told_in_their_order_and_only_once_what_they_say_is_there(tmp_path):
    told, missing = [], []

    def on_stored(ticket):
        with Reader.open(tmp_path) as reader:
            if reader.last_position < ticket:
                missing.append(ticket)
        told.append(ticket)

    with Store.open(tmp_path, on_stored=on_stored) as store:
        for number in range(1, 300):
            store.write([Append(entry(number))])
    assert told == sorted(set(told))
    assert told[-1] == 299
    assert not missing


def test_entries_are_read_some_at_a_time_whatever_their_size(tmp_path):
    with Store.open(tmp_path) as store:
        stored(store, *(Append(entry(n, size=n % 7 * 200_000)) for n in range(1, 60)))
        assert said(store.entries()) == [entry(n, size=n % 7 * 200_000) for n in range(1, 60)]


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 1_000])
def test_any_number_of_entries_is_one_transaction(tmp_path, count):
    told = []
    with Store.open(tmp_path, on_stored=told.append, sync=Sync.NORMAL) as store:
        stored(store, *(Append(entry(n)) for n in range(1, count + 1)))
        assert said(store.entries()) == [entry(n) for n in range(1, count + 1)]
    assert told == [1]


def test_entries_by_time(tmp_path):
    times = [10, 50, 20, 70, 60, 90]
    with Store.open(tmp_path) as store:
        stored(store, *(Append(entry(n, time=time)) for n, time in enumerate(times, 1)))
        assert [one.first_time for one in store.entries(since_time=50)] == [50, 70, 60, 90]
        assert [one.first_time for one in store.entries(before_time=60)] == [10, 50, 20]
        found = store.entries(since_time=20, before_time=61)
        assert [one.first_time for one in found] == [50, 20, 60]
        assert not list(store.entries(since_time=91))


def test_what_waits_is_bounded_by_whoever_asks(tmp_path):
    at_work, go_on = threading.Event(), threading.Event()

    def on_stored(_):
        at_work.set()
        assert go_on.wait(30)

    with Store.open(tmp_path, on_stored=on_stored, waiting_bytes=100_000) as store:
        store.write([Append(entry(1))])
        assert at_work.wait(30)
        assert not store.is_full
        last = 0
        for number in range(2, 12):
            last = store.write([Append(entry(number, size=10_000))])
        assert store.is_full
        go_on.set()
        assert store.wait(last, 30)
        assert not store.is_full


def test_a_second_opener_is_refused_by_the_name_of_the_first(tmp_path):
    program = (
        "import sys, pathlib; from broker.store import Store\n"
        "with Store.open(pathlib.Path(sys.argv[1])): print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreHeld, match=rf"{tmp_path} is in use by process {other.pid}\b"):
            Store.open(tmp_path)
        with Reader.open(tmp_path) as reader:
            assert not list(reader.entries())
        other.communicate("\n")
    assert other.returncode == 0
    Store.open(tmp_path).close()


def test_a_reader_sees_what_is_stored_while_the_broker_runs(tmp_path):
    with Store.open(tmp_path) as store, Reader.open(tmp_path) as reader:
        stored(store, Append(entry(1)))
        assert said(reader.entries()) == [entry(1)]
        stored(store, Append(entry(2)), Put("a", "b", b"c"))
        assert said(reader.entries(after=1)) == [entry(2)]
        assert list(reader.items("a")) == [("b", b"c")]
        assert reader.summary()[:5] == (1, 2, 2, 2, 200)
    with Reader.open(tmp_path) as reader:
        assert said(reader.entries()) == [entry(1), entry(2)]


def test_where_there_is_no_store_there_is_nothing_to_read(tmp_path):
    with pytest.raises(StoreError, match=f"{tmp_path} holds no store of a broker"):
        Reader.open(tmp_path)


# --- versions ---


def older(folder):
    """A store of version 0: a file of SQLite that says whose it is, and has no tables."""
    with closing(sqlite3.connect(folder / "broker.db", isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")


def test_a_store_of_an_older_version_is_migrated(tmp_path):
    older(tmp_path)
    with pytest.raises(StoreError, match="a store of an older version"):
        Reader.open(tmp_path)
    with Store.open(tmp_path) as store:
        stored(store, Append(entry(1)))
    with Reader.open(tmp_path) as reader:
        assert said(reader.entries()) == [entry(1)]


def test_what_is_stored_survives_migrations(tmp_path, monkeypatch):
    with Store.open(tmp_path) as store:
        stored(store, Append(entry(1)), Put("a", "b", b"c"))
    more = ("ALTER TABLE lost ADD COLUMN why TEXT;", "CREATE TABLE later (x INTEGER) STRICT;")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *more))
    monkeypatch.setattr(schema, "VERSION", len(schema.MIGRATIONS))
    for _ in range(2):
        with Store.open(tmp_path) as store:
            assert said(store.entries()) == [entry(1)]
            assert store.get("a", "b") == b"c"
    monkeypatch.undo()
    newer, known = schema.VERSION + 2, schema.VERSION
    with pytest.raises(StoreVersion, match=rf"version {newer}, .* up to {known}"):
        Store.open(tmp_path)
    with pytest.raises(StoreVersion, match=rf"version {newer}, .* up to {known}"):
        Reader.open(tmp_path)


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path, monkeypatch):
    with Store.open(tmp_path) as store:
        stored(store, Append(entry(1)))
    broken = "CREATE TABLE half (x INTEGER) STRICT; CREATE TABLE entries (x INTEGER) STRICT;"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    monkeypatch.setattr(schema, "VERSION", len(schema.MIGRATIONS))
    with pytest.raises(StoreError, match="table entries already exists"):
        Store.open(tmp_path)
    monkeypatch.undo()
    with Store.open(tmp_path) as store:
        assert said(store.entries()) == [entry(1)]


def test_a_file_of_another_program_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "broker.db")) as file:
        file.execute("CREATE TABLE t (x)")
    with pytest.raises(StoreDamaged, match="is no store of a broker"):
        Store.open(tmp_path)


# --- retention ---


def test_entries_go_that_no_rule_needs_and_retention_does_not_keep(tmp_path):
    now = [1_000_000_000]
    with Store.open(tmp_path, retain_s=10, clock=lambda: now[0]) as store:
        for number in range(1, 11):
            now[0] += 1_000_000
            stored(store, Append(entry(number)))
        store.trim(5)
        stored(store)
        assert store.first_position == 1
        now[0] += 8_000_000  # 7 are older than 10 s; of these, 4 are needed no more
        store.trim(6)
        stored(store)
        assert [one.position for one in store.entries()] == [6, 7, 8, 9, 10]
        assert store.first_position == 6
        with pytest.raises(BeyondRetention, match="from position 6 on; 3 is asked for"):
            list(store.entries(after=2))
        assert len(list(store.entries(after=5))) == 5


def test_bytes_end_retention_as_well(tmp_path):
    with Store.open(tmp_path, retain_s=1e9, retain_bytes=3_000) as store:
        stored(store, *(Append(entry(n, size=1_000)) for n in range(1, 11)))
        store.trim(100)
        stored(store)
        assert [one.position for one in store.entries()] == [8, 9, 10]


def test_without_a_bound_all_is_kept(tmp_path):
    with Store.open(tmp_path) as store:
        stored(store, *(Append(entry(n)) for n in range(1, 11)))
        store.trim(100)
        stored(store)
        assert len(list(store.entries())) == 10


def test_positions_go_on_where_nothing_is_left(tmp_path):
    with Store.open(tmp_path, retain_bytes=0) as store:
        stored(store, *(Append(entry(n)) for n in range(1, 4)))
        store.trim(4)
        stored(store)
        assert not list(store.entries())
    with Store.open(tmp_path, retain_bytes=0) as store:
        assert (store.first_position, store.last_position) == (4, 3)
        stored(store, Append(entry(4)))
        assert [one.position for one in store.entries()] == [4]


def test_a_log_of_which_nothing_is_left_is_read_to_its_end(tmp_path):
    with Store.open(tmp_path, retain_bytes=0) as store:
        stored(store, *(Append(entry(n)) for n in range(1, 4)))
        store.trim(4)
        stored(store)
        for outlined in (True, False):
            assert Extracts(store).read(ReadLog(1, outlined=outlined), cut=False) == ((), 3, 3)


def extract(log, request):
    """The positions of an extract's entries, up to where it was read, and where the log ends."""
    entries, read, last = Extracts(log).read(request, cut=False)
    return [one.position for one in entries], read, last


@pytest.mark.parametrize("outlined", [True, False])
def test_an_extract_holds_all_that_it_says_to_have_read(tmp_path, monkeypatch, outlined):
    with Store.open(tmp_path) as store:
        stored(store, Append(entry(1)))
        with monkeypatch.context() as patch:
            waits = []
            patch.setattr(store._writer, "add", waits.append)
            store.write([Append(entry(2))])
        assert extract(store, ReadLog(1, outlined=outlined)) == ([1], 1, 1)
        store._writer.add(*waits)
        stored(store)
        assert extract(store, ReadLog(2, after=1, outlined=outlined)) == ([2], 2, 2)


@pytest.mark.parametrize("outlined", [True, False])
def test_an_extract_holds_nothing_behind_what_it_says_to_have_read(tmp_path, outlined):
    class Busy:
        """A store that gets an entry as soon as somebody has asked where it ends."""

        def __getattr__(self, name):
            value = getattr(store, name)
            if name == "last_position":
                stored(store, Append(entry(value + 1)))
            return value

    with Store.open(tmp_path) as store:
        stored(store, Append(entry(1)))
        for number in (1, 2):
            asked = ReadLog(number, after=number - 1, outlined=outlined)
            assert extract(Busy(), asked) == ([number], number, number)


def test_a_log_is_whole_from_behind_the_latest_event_that_was_let_go(tmp_path):
    with Store.open(tmp_path, retain_bytes=0) as store:
        assert store.whole_from == TIME_MIN
        late = [replace(entry(n), first_time=n, last_time=last) for n, last in ((1, 90), (2, 20))]
        stored(store, *map(Append, late), Append(replace(entry(3), first_time=3, last_time=99)))
        store.trim(3)
        stored(store)
        assert [one.position for one in store.entries()] == [3]
        assert store.whole_from == 91
    with Store.open(tmp_path, retain_bytes=0) as store:
        assert store.whole_from == 91


def test_stretches_say_where_events_from_a_time_on_are(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "STRETCH_ENTRIES", 4)
    with Store.open(tmp_path, retain_bytes=0) as store:
        stored(store, *(Append(entry(n, time=100 - n)) for n in range(1, 11)))
        ahead = store.stretches(94)
        stored(store, Append(entry(11, time=99)))
        assert list(ahead) == [(1, 4, 96), (5, 6, 94), (9, 8, TIME_MAX)]
        assert list(store.stretches(94))[2:] == [(11, 11, 99)]
        store.trim(3)
        stored(store)
        log = Extracts(store)
        with pytest.raises(Refusal, match="from position 3 on"):
            list(log.events(Stretch(1, 4, 96), 94))


def test_a_reader_of_what_goes_meanwhile_is_told(tmp_path):
    with Store.open(tmp_path, retain_bytes=0) as store:
        stored(store, *(Append(entry(n)) for n in range(1, 101)))
        reading = store.entries()
        assert next(reading).position == 1
        store.trim(90)
        stored(store)
        with pytest.raises(BeyondRetention, match="from position 90 on"):
            list(reading)


def test_a_closed_store_gives_its_folder_back(tmp_path):
    Store.open(tmp_path).close()
    Store.open(tmp_path).close()
    assert os.listdir("/proc/self/fd")


# --- backups, as docs/durability.md has them ---


@pytest.mark.parametrize("way", ["backup", "vacuum"])
def test_a_copy_of_a_store_in_use_is_a_store(tmp_path, way):
    copy = tmp_path / "copy"
    copy.mkdir()
    with Store.open(tmp_path / "live") as store:
        stored(store, *(Append(entry(n)) for n in range(1, 200)), Put("a", "b", b"c"))
        store.write([Append(entry(200))])
        with (
            closing(sqlite3.connect(tmp_path / "live" / "broker.db")) as live,
            closing(sqlite3.connect(copy / "broker.db")) as target,
        ):
            if way == "backup":
                live.backup(target)
            else:
                live.execute("VACUUM INTO ?", (str(copy / "broker.db"),))
        stored(store, Append(entry(201)))
    with Store.open(copy) as store:
        found = said(store.entries())
        assert found == [entry(n) for n in range(1, len(found) + 1)]
        assert len(found) in (199, 200)
        assert store.get("a", "b") == b"c"
        stored(store, Append(entry(len(found) + 1)))
