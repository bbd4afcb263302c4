"""Processes that are killed while they write, and disks that have no room."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from pairs import seeds
from stored import entry, said

from broker.errors import StoreError
from broker.store import Append, Put, Store, Sync
from broker.store.damage import check

WRITER = """
import os, pathlib, random, sys
from stored import entry
from broker.store import Append, Put, Store, Sync

directory, seed, sync = pathlib.Path(sys.argv[1]), int(sys.argv[2]), Sync(sys.argv[3])
chance = random.Random(seed)

def say(*words):  # a line at once, whichever thread says it
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

with Store.open(directory, sync=sync, retain_bytes=100_000, on_stored=say) as store:
    number, first = store.last_position, store.last_position
    say("from", first)
    while True:
        many = chance.choice([1, 1, 2, 30])
        some = [entry(number + n, size=chance.randrange(20_000)) for n in range(1, many + 1)]
        number += many
        ticket = store.write([*map(Append, some), Put("source", "s", b"%d" % number)])
        say(ticket, number)
        store.trim(max(1, number - 20))
        if store.is_full or chance.random() < 0.2:
            store.wait(ticket)
"""


@pytest.mark.parametrize(("seed", "sync"), [*((n, "full") for n in seeds(2, 5)), (5, "normal")])
def test_what_was_said_to_be_stored_is_there_after_kill_9(tmp_path, seed, sync):
    """Three times in a row, each over what the killed ones before have left."""
    chance = random.Random(seed)
    at_least = 0
    for turn in range(3):
        output = killed(tmp_path, seed * 10 + turn, sync, chance.uniform(0.0, 0.25))
        first, tickets, told = parsed(output)
        if first is not None:
            assert first >= at_least
            at_least = max(first, at_least, *(tickets[one] for one in told if one in tickets), 0)
        with Store.open(tmp_path) as store:
            last = store.last_position
            assert last >= at_least
            found = list(store.entries())
            assert [one.position for one in found] == [*range(store.first_position, last + 1)]
            assert [one.first_sequence for one in found] == [one.position for one in found]
            if last:
                assert store.get("source", "s") == b"%d" % last
        assert check(tmp_path).is_sound
        at_least = last
    assert at_least


def killed(directory, seed, sync, after_s):
    """What a writer has printed that was killed so long after it began to write."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), str(seed), sync],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as writer:
        begun = writer.stdout.readline()
        reading = Reading(writer.stdout)
        time.sleep(after_s)
        writer.send_signal(signal.SIGKILL)
        return begun + reading.all()


class Reading(threading.Thread):
    """Reads a pipe to its end, so that who writes is not held up."""

    def __init__(self, pipe):
        super().__init__()
        self._pipe, self._data = pipe, b""
        self.start()

    def run(self):
        self._data = self._pipe.read()

    def all(self):
        self.join()
        return self._data


def parsed(output):
    """The position that a writer began at, its tickets with their positions, and those told."""
    lines = [line.split() for line in output.decode().split("\n")[:-1]]
    if not lines:
        return None, {}, []
    tickets = {int(line[0]): int(line[1]) for line in lines[1:] if len(line) == 2}
    return int(lines[0][1]), tickets, [int(line[0]) for line in lines[1:] if len(line) == 1]


# --- no room ---


class Account:
    """What a store has told."""

    def __init__(self):
        self.failures, self.tickets = [], []

    def opened(self, directory, **options):
        return Store.open(
            directory, on_stored=self.tickets.append, on_failed=self.failures.append, **options
        )


def fill(store):
    """Write until there is no room any more; gives how many entries were written."""
    number = 0
    deadline = time.monotonic() + 60
    while not store.is_out_of_room:
        assert time.monotonic() < deadline
        number += 1
        store.wait(store.write([Append(entry(number, size=20_000))]), 0.2)
    return number


def verify_goes_on(store, account, number):
    """After there is room again."""
    ticket = store.write([Append(entry(number + 1)), Put("a", "b", b"c")])
    assert store.wait(ticket, 30)
    assert not store.is_out_of_room
    assert len(account.failures) == 1
    assert account.tickets == sorted(account.tickets)
    assert store.last_position == number + 1
    found = said(store.entries())
    assert found[:-1] == [entry(n, size=20_000) for n in range(1, number + 1)]


def test_a_full_disk_costs_nothing_and_is_gone_on_from(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.decode().strip()}")
    account = Account()
    try:
        with account.opened(disk / "b1") as store:
            number = fill(store)
            assert isinstance(account.failures[0], StoreError)
            assert "disk is full" in str(account.failures[0])
            later = store.write([Append(entry(number + 1, size=20_000))])
            assert not store.wait(later, 1.5)
            subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
            assert store.wait(later, 30)
            verify_goes_on(store, account, number + 1)
        assert check(disk / "b1").is_sound
    finally:
        subprocess.run(["umount", disk], check=True)


@contextmanager
def files_of_at_most(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_limit_on_files_is_no_room_either(tmp_path):
    account = Account()
    with account.opened(tmp_path) as store:
        with files_of_at_most(1_000_000):
            number = fill(store)
        verify_goes_on(store, account, number)
    assert check(tmp_path).is_sound


def test_a_store_without_room_can_be_closed_and_keeps_what_it_said(tmp_path):
    account = Account()
    with files_of_at_most(1_000_000):
        with account.opened(tmp_path, sync=Sync.NORMAL) as store:
            fill(store)
        stored = account.tickets[-1]
    with Store.open(tmp_path) as store:
        assert said(store.entries()) == [entry(n, size=20_000) for n in range(1, stored + 1)]


def test_a_store_opens_where_what_was_written_last_finds_no_room_in_its_file(tmp_path):
    live, copy = tmp_path / "live", tmp_path / "copy"
    with Store.open(live) as store:
        ticket = store.write([Append(entry(n, size=20_000)) for n in range(1, 51)])
        assert store.wait(ticket, 30)
        shutil.copytree(live, copy)  # as it is after kill -9
    size = (copy / "broker.db").stat().st_size
    assert size < 500_000 < (copy / "broker.db-wal").stat().st_size
    account = Account()
    with files_of_at_most(500_000), account.opened(copy) as store:
        assert said(store.entries()) == [entry(n, size=20_000) for n in range(1, 51)]
        last = store.write([Append(entry(51, size=20_000))])
        assert not store.wait(last, 1.5)
        assert store.is_out_of_room
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert store.wait(last, 30)


def test_a_new_store_without_room_is_refused_by_name(tmp_path):
    with files_of_at_most(10_000), pytest.raises(StoreError, match=f"{tmp_path} cannot be used"):
        Store.open(tmp_path)
    Store.open(tmp_path).close()


def test_another_error_ends_writing_and_is_told(tmp_path):
    account = Account()
    with account.opened(tmp_path) as store:
        assert store.wait(store.write([Append(entry(1))]), 30)
        store._writer._connection.execute("PRAGMA query_only=ON")
        ticket = store.write([Append(entry(3))])
        assert not store.wait(ticket, 30)
        assert account.failures == [store.failure]
        with pytest.raises(StoreError, match="cannot be written"):
            store.write([])
