"""A source, a broker with a store and a durable subscription, each killed at random moments: what
was acknowledged is not lost, and nothing comes twice.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from counting import acknowledged
from pairs import some_of

from broker import Subscriber
from broker.process import BrokerProcess

KILLS, PAUSE_S, WAIT_S = 5, (0.05, 0.6), 60.0


class Ends:
    """The three, each of which is killed and started again at once, without a wait for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = BrokerProcess(*self._data)
        self.endpoint = self.broker.endpoint
        with Subscriber(self.endpoint, "A()", name="all", durable=True):
            pass  # it is there before the first event
        self.sink, self.source = self._start_sink(), self._start_source()

    @property
    def _data(self) -> tuple[str, ...]:
        return "--name", "b1", "--data", str(self.folder / "b1")

    def _start_sink(self) -> subprocess.Popen[bytes]:
        words = "-m", "benchmarks.durable", self.endpoint, "all", str(self.lines), "A()"
        return subprocess.Popen([sys.executable, *words])

    def _start_source(self) -> subprocess.Popen[bytes]:
        words = "-m", "tests.counting", self.endpoint, str(self.count)
        return subprocess.Popen([sys.executable, *words])

    @property
    def lines(self) -> Path:
        return self.folder / "sink.jsonl"

    @property
    def count(self) -> Path:
        return self.folder / "count"

    def kill(self, what: str) -> None:
        if what == "broker":
            self.broker.kill()
            self.broker = BrokerProcess(*self._data, listen=(self.endpoint,), patient=False)
            return
        child: subprocess.Popen[bytes] = getattr(self, what)
        child.kill()
        child.wait()
        setattr(self, what, getattr(self, f"_start_{what}")())

    def taken(self) -> Iterator[tuple[int, bool, int]]:
        """Of each event that was written: its number, whether it came again, and what it counts;
        but for a line in the midst of which the sink was killed.
        """
        for line in self.lines.read_bytes().splitlines() if self.lines.exists() else ():
            try:
                said = json.loads(line)
            except ValueError:
                continue
            yield said["number"], said["again"], json.loads(said["event"])["data"]["n"]

    def end(self) -> None:
        for child in (self.source, self.sink):
            child.kill()
            child.wait()
        self.broker.kill()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    found = Ends(tmp_path)
    try:
        yield found
    finally:
        found.end()


@pytest.mark.parametrize("seed", some_of([1, 2, 3], 0))
def test_nothing_acknowledged_is_lost_and_nothing_comes_twice(ends: Ends, seed: int) -> None:
    moments = random.Random(seed)
    victims = KILLS * ["broker", "source", "sink"]
    moments.shuffle(victims)
    await_count(ends, 1)
    for victim in victims:
        time.sleep(moments.uniform(*PAUSE_S))
        ends.kill(victim)
    await_count(ends, acknowledged(ends.count) + 1)
    ends.source.kill()
    ends.source.wait()
    count = acknowledged(ends.count)
    until = time.monotonic() + WAIT_S
    while not {n for _, _, n in ends.taken()} >= {*range(count)}:
        assert time.monotonic() < until, "some that was acknowledged is missing"
        time.sleep(0.05)
    came = dict[int, int]()
    for number, again, n in ends.taken():
        assert again or number not in came, "twice, and not marked"
        assert came.setdefault(number, n) == n, "one number, one event"
    assert len({*came.values()}) == len(came), "one event, one number"


def await_count(ends: Ends, count: int) -> None:
    """Wait until so many numbers are acknowledged."""
    until = time.monotonic() + WAIT_S
    while acknowledged(ends.count) < count:
        assert time.monotonic() < until, "nothing is acknowledged any more"
        time.sleep(0.05)
