"""Five brokers, two sources and a sink; one broker is killed and started again: what is lost?

    python -m benchmarks.campaign kill [STRATEGY...] [--rate 500] [--runs 3] [--no-kill] [--busy]
    make kill                               # all strategies, rates and ways: hours

The sink's lines are compared with those of ``rexmq detect`` over what the sources published. Faults
of a run: a composite event that is lost, twice or wrong; an event that was refused, or not
acknowledged; a neighbour that was given up though its process was alive; a sink that got nothing
for more than GOES_ON_S once the killed broker was back. ``--busy``: two other programs use the
processor all the time.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from benchmarks import campaign as campaigns
from benchmarks.five import HOMES, KEYS, LINKS, RULES, SINK, TYPES, WANTED, cpu_s, network, started
from broker import PublishBlocked, Publisher, RuleManager
from broker.keys import STRATEGIES
from routing.overlay.overlay import NEIGHBOUR_DOWN

REXMQ = (sys.executable, "-m", "broker")
BEFORE_S, DEAD_S, AFTER_S = 4.0, 3.0, 12.0
"""Seconds of events before the kill, until the broker is started again, and once it is back."""
IN_FORCE_S, QUIET_S, WAIT_S = 3.0, 30.0, 120.0
"""Seconds until a subscription is in force, in which nothing comes any more, and that anything may
take."""
GOES_ON_S = 3.0
LEVEL = "warning"
"""Of what the brokers log: that neighbours are given up is a warning."""
CAMPAIGN_RATES = (200.0, 500.0, 1_000.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A run: events a second of each source, and the broker to kill, if any."""

    strategy: str
    links: str
    rate: float
    victim: str | None
    busy: bool
    stores: bool = False

    def __str__(self) -> str:
        fate = "nobody killed" if self.victim is None else f"{self.victim} killed"
        load = "busy" if self.busy else "quiet"
        stores = ", stores" if self.stores else ""
        return f"{self.strategy}, {self.links}, {self.rate:.0f}/s a source, {fate}, {load}{stores}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run's figures. ``silences``: the longest of the sink from the kill on, and since the killed
    broker was back; ``given_up``: who gave whom up that was alive.
    """

    events: int
    refused: int
    wanted: Counter[str]
    received: Counter[str]
    silences: tuple[float, float]
    given_up: Sequence[str]
    cpu_s: float

    def faults(self) -> Iterator[str]:
        """Each thing that is not as it should be, in words."""
        more = self.received - self.wanted
        wrong = sum(count for line, count in more.items() if line not in self.wanted)
        yield from campaigns.faults_of(
            {
                "events refused or not acknowledged": self.refused,
                "lost": (self.wanted - self.received).total(),
                "twice": more.total() - wrong,
                "wrong": wrong,
            }
        )
        if self.given_up:
            yield f"given up though alive: {', '.join(self.given_up)}"
        if self.silences[1] > GOES_ON_S:
            yield f"silent for more than {GOES_ON_S:g} s once all were there"

    def __str__(self) -> str:
        whole, since = self.silences
        return (
            f"{self.events} events, {self.received.total()} of {self.wanted.total()} composite"
            f" events; silence {whole:.1f} s, {since:.1f} s once all were there;"
            f" CPU {self.cpu_s / self.events * 1e6:.0f} us an event"
        )


def campaign(
    folder: Path,
    strategies: Annotated[list[str] | None, Argument(metavar="STRATEGY...")] = None,
    rate: Annotated[float, Option(help="Events a second of each source.")] = 500.0,
    runs: int = 3,
    links: Literal["star", "line"] = "star",
    victim: Literal["b1", "b2", "b3", "b4", "b5"] = "b2",
    no_kill: Annotated[bool, Option("--no-kill")] = False,
    busy: Annotated[bool, Option("--busy")] = False,
    data: Annotated[bool, Option("--data", help="Brokers have stores.")] = False,
    every_way: Annotated[bool, Option("--all", help="All rates and ways, once each.")] = False,
) -> Iterator[campaigns.Outcome]:
    """Run what was asked for, each run with a folder of its own."""
    if every_way:
        ways = itertools.product(CAMPAIGN_RATES, (victim, None), (False, True))
        ways = [(500.0, victim, False)] * (runs - 1) + list(ways)
    else:
        ways = [(rate, None if no_kill else victim, busy)] * runs
    for number, (strategy, way) in enumerate(itertools.product(strategies or STRATEGIES, ways)):
        case = Case(strategy, links, *way, data)
        logs = folder / str(number)
        logs.mkdir()
        outcome = run(case, logs)
        yield campaigns.Outcome(f"{case}: {outcome}, logs in {logs}", [*outcome.faults()])


def run(case: Case, logs: Path) -> Outcome:
    """One run; its files are in ``logs``."""
    links, data = LINKS[case.links], logs if case.stores else None
    with ExitStack() as stack:
        if case.busy:
            stack.enter_context(_spinning())
            stack.enter_context(_spinning())
        brokers = stack.enter_context(network(case.strategy, links, logs, LEVEL, data=data))
        sink = stack.enter_context(_sink(brokers[SINK].endpoint, logs / "sink.jsonl"))
        used = -sum(map(cpu_s, brokers.values()))
        sources = [
            Source(brokers[home].endpoint, kind, case.rate, logs) for kind, home in HOMES.items()
        ]
        time.sleep(BEFORE_S)
        watch = Watch(sink)
        back_at = watch.begun
        if case.victim is not None:
            used += cpu_s(brokers[case.victim])
            brokers[case.victim].kill()
            watch.look_until(watch.begun + DEAD_S)
            back = stack.enter_context(ThreadPoolExecutor(1)).submit(
                started, case.victim, case.strategy, links, brokers, logs, LEVEL, data=data
            )
            while not back.done():
                watch.look()
            brokers[case.victim], back_at = back.result(), time.monotonic()
        end = back_at + AFTER_S
        watch.look_until(end)
        for source in sources:
            source.end()
        used += sum(map(cpu_s, brokers.values()))
        given_up = list(_given_up(logs, links, case.victim))
        watch.look_until_quiet()
    silences = watch.longest(watch.begun, end), watch.longest(back_at, end)
    records = [logs / f"{kind}.jsonl" for kind in HOMES]
    events = sum(len(record.read_text().splitlines()) for record in records)
    received = Counter(sink.read_text().splitlines())
    refused = sum(source.refused for source in sources)
    return Outcome(events, refused, detected(records), received, silences, given_up, used)


class Watch:
    """Notes when the sink gets something."""

    def __init__(self, path: Path) -> None:
        self.begun = time.monotonic()
        self._path = path
        self._size = -1
        self._times: list[float] = []

    def look(self) -> None:
        """Look once, after a moment."""
        time.sleep(0.02)
        size = self._path.stat().st_size
        if size != self._size:
            self._size = size
            self._times.append(time.monotonic())

    def look_until(self, end: float) -> None:
        """Look until then."""
        while time.monotonic() < end:
            self.look()

    def look_until_quiet(self) -> None:
        """Look until nothing has come for QUIET_S."""
        since = time.monotonic()
        while time.monotonic() < max([since, *self._times[-1:]]) + QUIET_S:
            self.look()

    def longest(self, since: float, until: float) -> float:
        """The longest time between two looks that found something, from then on, in seconds."""
        return longest_silence([*(one for one in self._times if one < until), until], since)


def longest_silence(times: Iterable[float], since: float) -> float:
    """The longest time between two of these from then on, in their unit."""
    later = [since, *(one for one in times if one > since)]
    return max((after - before for before, after in itertools.pairwise(later)), default=0.0)


class Source(campaigns.Worker):
    """Publishes one type at a rate until it is ended, and writes down what it published."""

    def __init__(self, endpoint: str, kind: str, rate: float, folder: Path) -> None:
        super().__init__()
        self._endpoint, self._kind, self._rate = endpoint, kind, rate
        self._path = folder / f"{kind}.jsonl"
        self.refused = 0
        """Once it has ended: how many events were refused, or not acknowledged."""
        self.start()

    def run(self) -> None:
        """Publish; in a thread of its own."""
        draw, last, number = random.Random(self._kind), 0, 0
        with self._path.open("w") as record, ExitStack() as stack:
            publisher = Publisher(
                self._endpoint,
                name=f"src{self._kind}",
                types=[TYPES[self._kind]],
                increasing=True,
                on_refusal="keep",
                timeout_s=WAIT_S,
            )
            stack.callback(publisher.close)
            begun = time.monotonic()
            try:
                while not self.ending.is_set():
                    time.sleep(max(0.0, begun + number / self._rate - time.monotonic()))
                    last, key = max(int(time.time() * 1e6), last + 1), draw.randrange(KEYS)
                    name = f"src{self._kind}-{number}"
                    publisher.publish(self._kind, k=key, n=number, at=last, id=name)
                    record.write(self._line(last, name, key, number))
                    number += 1
                publisher.wait(WAIT_S)
            except PublishBlocked:
                self.refused = publisher.unacknowledged
                stack.pop_all()
                publisher.pause()
            self.refused += publisher.rejected

    def _line(self, time_us: int, name: str, key: int, number: int) -> str:
        seconds, micros = divmod(time_us, 10**6)
        at = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        event = {
            "type": self._kind,
            "time": f"{at}.{micros:06d}Z",
            "id": name,
            "source": f"src{self._kind}",
            "data": {"k": key, "n": number},
        }
        return json.dumps(event) + "\n"


@contextmanager
def _sink(endpoint: str, path: Path) -> Iterator[Path]:
    """A subscriber that writes what it gets into a file."""
    command = [*REXMQ, "sub", *WANTED, "--broker", endpoint, "--when-full", "block"]
    with path.open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
    try:
        _await_sink(endpoint)
        time.sleep(IN_FORCE_S)  # its broker has the last subscription; all others hear of it
        yield path
        child.terminate()  # what is ignored in the background of a script is SIGINT
        child.wait(WAIT_S)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def _await_sink(endpoint: str) -> None:
    with RuleManager(endpoint, connect_timeout_s=WAIT_S) as manager:
        for _ in range(int(WAIT_S / 0.2)):
            if [len(sink["subscriptions"]) for sink in manager.status()["sinks"]] == [len(WANTED)]:
                return
            time.sleep(0.2)
    raise TimeoutError(f"the sink has not subscribed within {WAIT_S:g} s")


@contextmanager
def _spinning() -> Iterator[None]:
    """A program that uses the processor all the time."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        child.kill()
        child.wait()


def _given_up(logs: Path, links: Iterable[str], victim: str | None) -> Iterator[str]:
    """Brokers that gave a living one up, with its name. One that was killed is missed once by each
    of its neighbours, and may find that when it is back.
    """
    for name in links:
        lines = (logs / f"{name}.log").read_text().splitlines()
        gone = [_NEIGHBOUR.findall(line)[0] for line in lines if NEIGHBOUR_DOWN in line]
        if victim in gone:
            gone.remove(victim)
        yield from (f"{other} by {name}" for other in gone)


_NEIGHBOUR = re.compile(r"neighbour=(\S+)")


def detected(records: Sequence[Path]) -> Counter[str]:
    """The lines that one engine finds over what was published."""
    rules = records[0].with_name("rules.tesla")
    rules.write_text(RULES)
    command = [*REXMQ, "detect", "--rules", rules, "--events", *records]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return Counter(found.stdout.splitlines())
