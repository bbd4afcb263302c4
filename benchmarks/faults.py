"""Five brokers with stores, and faults at random moments: what is lost, what comes twice?

    python -m benchmarks.campaign faults [--strategy distributed-mt] [--faults 200] [--seed 1]
                                         [--kinds 'kill root,full disk']

Two sources publish all the time; a durable subscription takes what rules find. All of them know the
addresses of all brokers. One fault follows another, of these kinds:

    kill root, kill inner, kill leaf   SIGKILL for the broker that is that now; started again
    kill several, kill all             SIGKILL for some, or all, at once; started again
    stay away                          SIGKILL for a broker that others can do without, for long
    restart                            drained, and started again: its clients go on elsewhere
    stop                               SIGSTOP for longer than heartbeats may be missed, SIGCONT
    kill subscriber                    another goes on under its name
    cut, stall, drop                   a link, or all links of a broker (benchmarks.relay)
    full disk                          the store has no room, for a while
    garbled store, truncated store     refused; repaired, restored from a backup; goes on
    store set back                     SIGKILL; started with a copy that is some seconds old
    clock ahead, clock behind          of a broker, by minutes, for a while

At the end the events of the subscription, each by its number, are compared with those of ``rexmq
detect`` over what the sources published: lost, twice, wrong. What has come before and is marked as
such is counted apart. An event belongs to the fault before its time. A broker whose store is set
back has forgotten what was acknowledged since the copy was made: what differs and reaches into that
time is counted apart, too, as beside a backup. The broker that has the subscription is not set
back: it would give what it has given once more.

Detection goes on when an event comes whose terminator was published after the fault was over: when
the last broker listened again, the link carried, the disk had room; with ``stay away`` since the
broker was killed. A line for each fault as it happens, then a table. The campaign fails if
anything is lost, twice or wrong, or was not acknowledged.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

from typer import Option

from benchmarks.campaign import Outcome, faults_of, tell
from benchmarks.faulty import LINKS, FaultyNetwork
from benchmarks.five import HOMES, SINK, WANTED
from benchmarks.kill import Source, detected
from benchmarks.relay import Weather
from broker import Subscriber

REACH_S = 7.0
"""Seconds from an event to the last composite event that it has a part in, by the rules."""
SET_S = (20.0, 240.0)
"""Seconds by which a clock is set."""
OTHERS = tuple(name for name in LINKS if name != SINK)
SPARES = ("b2", "b4")
"""Brokers that others can do without: no client is there unless others were drained."""
QUIET_S, SURPLUS_S = 15.0, 2.0
"""Seconds in which nothing comes: then what is missing is lost; then nothing comes twice."""
GIVEN_UP_S = 90.0
"""Seconds after which detection counts as not going on."""
NAME = "billing"
SUBSCRIBER = "benchmarks.durable"
SHOWN_MAX = 5


Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds, least and most: from one fault to the next; that a broker is dead, and that one
    stays away; that links, clocks and processes are not as they should be, longer than heartbeats
    may be missed or shorter; that a disk is full; by which a backup is older.
    """

    calm: Range = (1.0, 4.0)
    dead: Range = (0.0, 3.0)
    away: Range = (8.0, 12.0)
    spoilt: Range = (1.0, 9.0)
    full: Range = (1.0, 5.0)
    older: Range = (1.0, 6.0)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that has happened: when it began, seconds since the epoch, and how long detection
    took to go on.
    """

    kind: str
    where: str
    begun: float
    waited_s: float


class Lines:
    """The file of the subscriber's events, looked at while it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._newest = 0.0
        self.count = 0
        """Lines that have been looked at."""
        path.touch()

    def newest(self) -> float:
        """The greatest time of an event that has come, in seconds since the epoch."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        for line in whole.splitlines():
            self.count += 1
            if said := parsed(line):
                self._newest = max(self._newest, moment(said["event"]))
        return self._newest


def parsed(line: bytes) -> dict[str, object] | None:
    """A line of the subscriber; None for one in the midst of which it was killed."""
    try:
        said: dict[str, object] = json.loads(line)
    except ValueError:
        return None
    return said


def moment(line: object) -> float:
    """The time of an event in its form of a line of JSON, in seconds since the epoch."""
    assert isinstance(line, str)
    return datetime.fromisoformat(json.loads(line)["time"]).timestamp()


class Campaign:
    """Brokers, sources and a subscriber, and faults that befall them."""

    def __init__(
        self,
        network: FaultyNetwork,
        folder: Path,
        rate: float,
        seed: int,
        pace: Pace = Pace(),
    ) -> None:
        self._network = network
        self._pace = pace
        self._random = random.Random(seed)
        self._rate, self._folder = rate, folder
        self._lines = Lines(folder / "sink.jsonl")
        self.kinds: Mapping[str, Callable[[], str]] = {
            **{f"kill {role}": lambda role=role: self._kill_role(role) for role in ROLES},
            "kill several": lambda: self._kill(self._some(self._random.randint(2, 4))),
            "kill all": lambda: self._kill(self._network.names),
            "stay away": lambda: self._stay_away(),
            "restart": lambda: self._restart(*self._some(1)),
            "stop": lambda: self._stop(*self._some(1)),
            "kill subscriber": lambda: self._kill_subscriber(),
            **{
                str(one): lambda one=one: self._spoil(one)
                for one in Weather
                if one is not Weather.FAIR
            },
            "full disk": lambda: self._fill_disk(*self._some(1)),
            "garbled store": lambda: self._garble(*self._some(1)),
            "truncated store": lambda: self._truncate(*self._some(1)),
            "store set back": lambda: self._set_back(self._random.choice(self._others(OTHERS))),
            "clock ahead": lambda: self._set_clock(*self._some(1), 1),
            "clock behind": lambda: self._set_clock(*self._some(1), -1),
        }
        self.happened: list[Fault] = []
        self._forgotten: list[Range] = []
        """From when to when brokers have forgotten events, in seconds since the epoch."""
        self._waited_s: float | None = None

    def run(self, faults: int, kinds: Sequence[str]) -> Outcome:
        """Let so many happen, of these kinds in turn; what was lost, twice or wrong."""
        with ExitStack() as stack:
            network = stack.enter_context(self._network)
            # It is there, and attached to, before anything is published.
            with Subscriber(network.endpoint(SINK), *WANTED, name=NAME, durable=True):
                pass
            self._subscriber = self._subscribe()
            stack.callback(lambda: self._subscriber.kill())
            sources = [
                Source(network.endpoints(home), kind, self._rate, self._folder)
                for kind, home in HOMES.items()
            ]
            for number, kind in enumerate(self._drawn(faults, kinds), start=1):
                time.sleep(self._between(self._pace.calm))
                fault = self._happen(kind)
                self.happened.append(fault)
                begun = f"{datetime.fromtimestamp(fault.begun):%H:%M:%S}"
                tell(number, f"{begun}  {fault.kind:<16}{fault.where}", fault.waited_s)
            for source in sources:
                source.end()
            refused = sum(source.refused for source in sources)
            records = [self._folder / f"{kind}.jsonl" for kind in HOMES]
            wanted = detected(records)
            self._await(wanted.total())
        published = [line for record in records for line in record.read_text().splitlines()]
        return self._judge(published, refused, wanted)

    def _drawn(self, faults: int, kinds: Sequence[str]) -> Iterator[str]:
        """Kinds in random order, each as often as the others."""
        while faults > 0:
            some = self._random.sample(kinds, len(kinds))[:faults]
            faults -= len(some)
            yield from some

    def _happen(self, kind: str) -> Fault:
        begun, self._waited_s = time.time(), None
        where = self.kinds[kind]()
        if self._waited_s is None:
            self._waited_s = self._until_more()
        return Fault(kind, where, begun, self._waited_s)

    def _until_more(self) -> float:
        """Seconds until something comes of what is published from now on."""
        since = time.time()
        while self._lines.newest() < since and time.time() < since + GIVEN_UP_S:
            time.sleep(0.02)
        return time.time() - since

    def _subscribe(self) -> subprocess.Popen[bytes]:
        words = [self._network.endpoints(SINK), NAME, str(self._lines.path), *WANTED]
        return subprocess.Popen([sys.executable, "-m", SUBSCRIBER, *words])

    def _await(self, count: int) -> None:
        """Wait for so many lines, and for more than that; or until nothing comes any more."""
        self._lines.newest()
        before, until = 0, time.monotonic() + QUIET_S
        while time.monotonic() < until:
            time.sleep(0.1)
            self._lines.newest()
            if self._lines.count > before:
                before = self._lines.count
                until = time.monotonic() + (QUIET_S if before < count else SURPLUS_S)

    # --- faults; each gives whom it befell ---

    def _some(self, count: int) -> list[str]:
        return sorted(self._random.sample(self._network.names, count))

    def _others(self, names: Sequence[str]) -> list[str]:
        """Those of some brokers that the subscription is not at: it moves when one is drained."""
        home = self._network.home_of(NAME)
        return [name for name in names if name != home]

    def _between(self, bounds: Range) -> float:
        return self._random.uniform(*bounds)

    def _kill(self, names: Sequence[str]) -> str:
        self._network.kill(names)
        time.sleep(self._between(self._pace.dead))
        self._network.start(names)
        return " ".join(names)

    def _kill_role(self, role: str) -> str:
        roles = self._network.roles()
        fitting = [name for name in self._network.names if roles[name] == role]
        return self._kill([self._random.choice(fitting or self._network.names)])

    def _stay_away(self) -> str:
        spare = self._random.choice(self._others(SPARES))
        self._network.kill([spare])
        self._waited_s = self._until_more()
        seconds = self._between(self._pace.away)
        time.sleep(max(0.0, seconds - self._waited_s))
        self._network.start([spare])
        return f"{spare} for {seconds:.1f} s"

    def _restart(self, name: str) -> str:
        self._network.drain_and_start(name)
        return name

    def _stop(self, name: str) -> str:
        seconds = self._between(self._pace.spoilt)
        self._network.pause(name, seconds)
        return f"{name} for {seconds:.1f} s"

    def _kill_subscriber(self) -> str:
        self._subscriber.kill()
        self._subscriber.wait()
        time.sleep(self._between(self._pace.dead))
        self._subscriber = self._subscribe()
        return NAME

    def _spoil(self, weather: Weather) -> str:
        links = self._network.links
        one = self._random.choice(self._network.names)
        if self._random.random() < 0.5:
            struck = [self._random.choice(links)]
        else:
            struck = [link for link in links if one in link]
        seconds = self._between(self._pace.spoilt)
        self._network.become(struck, weather)
        time.sleep(seconds)
        self._network.become(struck, Weather.FAIR)
        where = "-".join(struck[0]) if len(struck) == 1 else f"all of {one}"
        return f"{where} for {seconds:.1f} s"

    def _fill_disk(self, name: str) -> str:
        seconds = self._between(self._pace.full)
        self._network.fill_disk(name, seconds)
        how = "disk" if name in self._network.small else "limit"
        return f"{name} ({how}) for {seconds:.1f} s"

    def _garble(self, name: str) -> str:
        self._network.garble_and_repair(name)
        return name

    def _truncate(self, name: str) -> str:
        self._network.truncate_and_restore(name)
        return name

    def _set_back(self, name: str) -> str:
        seconds, since = self._between(self._pace.older), time.time()
        backup = self._network.back_up(name)
        time.sleep(seconds)
        self._network.kill_and_set_back(name, backup)
        self._forgotten.append((since, time.time() + REACH_S))
        return f"{name} by {seconds:.1f} s"

    def _set_clock(self, name: str, sign: int) -> str:
        seconds, by = self._between(self._pace.spoilt), sign * self._between(SET_S)
        self._network.set_clock(name, by)
        time.sleep(seconds)
        self._network.set_clock(name, 0.0)
        return f"{name} by {by:+.0f} s for {seconds:.1f} s"

    # --- what came ---

    def _judge(self, published: Sequence[str], refused: int, wanted: Counter[str]) -> Outcome:
        came: dict[object, object] = {}
        again = other = 0
        for line in self._lines.path.read_bytes().splitlines():
            if said := parsed(line):
                again += bool(said["again"])
                other += came.setdefault(said["number"], said["event"]) != said["event"]
        received = Counter(str(event) for event in came.values())
        more, less = received - wanted, wanted - received
        beside = Counter(
            {event: count for event, count in (more + less).items() if self._may_differ(event)}
        )
        more, less = more - beside, less - beside
        bad = {
            "lost": less,
            "twice": Counter({event: count for event, count in more.items() if event in wanted}),
            "wrong": Counter(
                {event: count for event, count in more.items() if event not in wanted}
            ),
        }
        self._print_table(published, bad)
        for what, events in bad.items():
            for event in list(events)[:SHOWN_MAX]:
                fault = self._fault_before(event)
                print(f"{what} after fault {fault + 1} ({self.happened[fault].kind}): {event}")
        counts = {
            **{what: events.total() for what, events in bad.items()},
            "under another's number": other,
            "not acknowledged": refused,
        }
        return Outcome(
            f"{len(self.happened)} faults; {len(published)} events; {wanted.total()} composite"
            f" events: {again} marked as having come before, {beside.total()} that differ beside a"
            " backup",
            faults_of(counts),
        )

    def _print_table(self, published: Sequence[str], bad: Mapping[str, Counter[str]]) -> None:
        """A line for each kind of fault, and one for all."""
        counts = {
            "events": self._by_kind(published),
            **{what: self._by_kind(one.elements()) for what, one in bad.items()},
        }
        print(f"\n{'':<18}{'faults':>8}", *(f"{what:>8}" for what in counts), "  p50 s   max s")
        for kind in [*self.kinds, None]:
            waits = [one.waited_s for one in self.happened if kind in (one.kind, None)]
            if waits:
                figures = [count[kind] if kind else count.total() for count in counts.values()]
                print(
                    f"{kind or 'all':<18}{len(waits):>8}",
                    *(f"{figure:>8}" for figure in figures),
                    f"{statistics.median(waits):>7.1f} {max(waits):>7.1f}",
                )

    def _by_kind(self, events: Iterable[str]) -> Counter[str]:
        """How many of the events belong to each kind of fault."""
        return Counter(self.happened[self._fault_before(event)].kind for event in events)

    def _may_differ(self, event: str) -> bool:
        return any(since <= moment(event) <= until for since, until in self._forgotten)

    def _fault_before(self, event: str) -> int:
        """The place of the last fault that began before an event; the first for those before it."""
        return max(0, bisect_right(self.happened, moment(event), key=lambda one: one.begun) - 1)


ROLES = ("root", "inner", "leaf")


def campaign(
    folder: Path,
    strategy: str = "distributed-mt",
    faults: int = 200,
    rate: Annotated[float, Option(help="Events a second of each source.")] = 200.0,
    seed: int = 1,
    kinds: Annotated[str | None, Option(help="Only these, with commas between.")] = None,
) -> Iterator[Outcome]:
    """One campaign."""
    print(f"{strategy}, seed {seed}", flush=True)
    own = Campaign(FaultyNetwork(strategy, folder), folder, rate, seed)
    yield own.run(faults, kinds.split(",") if kinds else [*own.kinds])
