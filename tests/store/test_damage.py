"""Damaged stores: refused or read right, checked, and repaired as far as they are sound."""

import os
import random
import resource
import shutil
from contextlib import closing, suppress

import pytest
from pairs import seeds
from stored import entry, said

from broker.errors import StoreDamaged, StoreError, StoreHeld
from broker.store import Append, Put, Store, schema
from broker.store.damage import check, repair

ENTRIES = [entry(n, size=random.Random(n).choice([10, 900, 9_000, 60_000])) for n in range(1, 400)]
VALUES = {f"source-{n}": b"<%d>" % n * 30 for n in range(300)}
PAGE = schema.PAGE_BYTES


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store that was closed as it should be. Its transactions, and so the places of its pages,
    are the same in every run: where a file is cut off says what is lost of it.
    """
    directory = tmp_path_factory.mktemp("whole")
    with Store.open(directory, retain_bytes=0) as store:
        assert store.wait(store.write([Put("source", *one) for one in VALUES.items()]), 30)
        assert store.wait(store.write([Append(one) for one in ENTRIES]), 30)
        store.trim(11)
        assert store.wait(store.write([]), 30)
    return directory


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "b1")


def garble(directory, *pages, seed=0):
    with (directory / "broker.db").open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(random.Random(seed).randbytes(PAGE))


def change(directory, what, into):
    """Change some bytes wherever they stand: in free places of pages, too."""
    file = directory / "broker.db"
    file.write_bytes(file.read_bytes().replace(what, into))


def read(directory):
    """Everything of a store, opened as a broker does, verified to be what was written."""
    with Store.open(directory) as store:
        found = list(store.entries())
        values = dict(store.items("source"))
    assert all(one == ENTRIES[place] for place, one in _placed(found))
    assert values.items() <= VALUES.items()
    return found, values


def _placed(found):
    return zip([one.position - 1 for one in found], said(found), strict=True)


def test_a_sound_store_is_left_alone(copied):
    report = repair(copied)
    assert report.is_sound
    assert (report.entries, report.values, report.unsound) == (389, 300, [])
    assert report.aside is None
    assert len(read(copied)[0]) == 389


@pytest.mark.parametrize("seed", seeds(10, 25))
def test_what_is_sound_is_kept_and_what_is_not_is_named(copied, seed):
    """Of pages anywhere but the first, with whatever in it."""
    chance = random.Random(seed)
    pages = (copied / "broker.db").stat().st_size // PAGE
    garble(copied, *chance.sample(range(1, pages), chance.choice([1, 3, 20])), seed=seed)
    report = check(copied)
    if report.is_sound:  # what was overwritten was free
        assert [len(one) for one in read(copied)] == [389, 300]
    with suppress(StoreDamaged):
        assert [len(one) for one in read(copied)] == [389, 300]
    repaired = repair(copied)
    if repaired.aside is None:
        return
    assert repaired.aside.stat().st_size == pages * PAGE
    found, values = read(copied)
    missing = {n for low, high in repaired.unsound for n in range(low, high + 1)}
    positions = {one.position for one in found}
    assert positions == {*range(11, 400)} - missing
    assert len(values) == repaired.values
    again = check(copied)
    assert again.is_sound, again.problems
    assert again.lost == repaired.unsound
    with Store.open(copied) as store:
        assert store.last_position == 399 or "keeps of itself" in " ".join(repaired.problems)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 0.99])
def test_a_file_that_is_cut_off_is_refused_and_repaired(copied, share):
    file = copied / "broker.db"
    os.truncate(file, int(file.stat().st_size * share))
    with pytest.raises(StoreDamaged, match=r"rexmq log check --data .* --repair"):
        Store.open(copied)
    report = repair(copied)
    assert not report.is_sound
    found, _ = read(copied)
    assert (len(found) > 200) == (share >= 0.7)
    if share > 0.02:
        with Store.open(copied) as store:
            assert store.last_position == 399


def test_a_repair_without_room_loses_nothing(copied):
    garble(copied, 0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"not repaired: .* make room, and repair again"):
            repair(copied)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(StoreDamaged):
        Store.open(copied)
    assert repair(copied).entries == 389


def test_a_damaged_header_costs_nothing_else(copied):
    garble(copied, 0)
    with pytest.raises(StoreDamaged, match="rexmq log check"):
        Store.open(copied)
    report = repair(copied)
    assert (report.entries, report.values) == (389, 300)
    found, values = read(copied)
    assert len(found) == 389
    assert len(values) == 300


def test_a_damaged_value_is_named(copied):
    change(copied, VALUES["source-7"], b"<8>" * 30)
    with Store.open(copied) as store, pytest.raises(StoreDamaged, match="source 'source-7' is not"):
        dict(store.items("source"))
    assert check(copied).problems == ["the value of source 'source-7' is not what was written"]
    assert repair(copied).values == 299
    assert len(read(copied)[1]) == 299


def test_a_damaged_entry_is_named(copied):
    change(copied, ENTRIES[99].frames[:10], b"0123456789")
    with Store.open(copied) as store, pytest.raises(StoreDamaged, match="entry 100 is not"):
        list(store.entries())
    assert repair(copied).unsound == [(100, 100)]
    assert [one.position for one in read(copied)[0]] == [*range(11, 100), *range(101, 400)]


def test_a_file_that_is_gone_is_not_taken_for_a_new_store(copied):
    (copied / "broker.db").rename(copied / "broker.db.damaged")
    with pytest.raises(StoreDamaged, match="is gone, and what it left"):
        Store.open(copied)
    assert "repair of it was broken off" in check(copied).problems[0]
    report = repair(copied)
    assert report.entries == 389
    assert len(read(copied)[0]) == 389


def test_a_repair_needs_the_store_for_itself(copied):
    with Store.open(copied), pytest.raises(StoreHeld):
        repair(copied)
    assert check(copied).is_sound


def test_nothing_is_repaired_where_there_is_nothing(tmp_path):
    with pytest.raises(StoreError, match="holds no store"):
        repair(tmp_path)


@pytest.mark.parametrize("table", ["entries", "frames", "state", "facts", "lost"])
def test_a_table_whose_root_is_damaged_is_given_up_soon(copied, table):
    with closing(schema.connect(copied / "broker.db")) as file:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        root = file.execute(query, (table,)).fetchone()[0]
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    garble(copied, root - 1)
    report = repair(copied)
    kept = {"entries": (0, 300), "frames": (0, 300), "state": (389, 0)}
    assert (report.entries, report.values) == kept.get(table, (389, 300))
    read(copied)
    assert check(copied).is_sound


def test_two_repairs_put_two_files_aside(copied):
    for name in ("broker.db.damaged", "broker.db.damaged.2"):
        garble(copied, *range(100, 120))
        report = repair(copied)
        assert report.aside == copied / name
    assert check(copied).is_sound


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_torn_write_ahead_log_ends_where_it_is_sound(tmp_path, share):
    """As after a power cut: what was said to be stored before what is torn is there."""
    live, copy = tmp_path / "live", tmp_path / "copy"
    with Store.open(live) as store:
        for number in range(1, 41):
            assert store.wait(store.write([Append(entry(number, size=2_000))]), 30)
        shutil.copytree(live, copy)
    log = copy / "broker.db-wal"
    cut = int(log.stat().st_size * share)
    os.truncate(log, cut)
    with log.open("r+b") as file:
        file.seek(max(32, cut - 3_000))
        file.write(bytes(3_000))
    (copy / "broker.db-shm").unlink()
    with Store.open(copy) as store:
        found = said(store.entries())
        assert found == [entry(n, size=2_000) for n in range(1, len(found) + 1)]
        assert store.last_position == len(found) < 40
    assert check(copy).is_sound
