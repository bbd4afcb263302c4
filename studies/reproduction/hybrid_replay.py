"""A broker that replays a log: the question of hybrid parallelism that nobody asks, measured.

Live, a broker advances with a few events at a time, which are not worth the threads. A log that is
read again, since a rule holds from a past instant on (``rexmq rule add --since``) or the broker
starts again, has thousands at a time. Here a store has a log of published messages; it is read as a
broker reads it (``recovery.past``), slice by slice, and its engine advances to what nothing unread
is earlier than. What a broker does beside that, to send events along a tree, is not in it.

Law: every engine finds as many composite events of a log. Figures are events a second of processor
time, of all threads: so two threads gain nothing by it, but what they lose by sharing is seen. The
best of some runs in turns counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.hybrid_workloads import Stream, distant
from broker.parallel import engine_of
from broker.store.entries import entry_of
from broker.store.extracts import Extracts
from broker.store.store import Store
from broker.store.values import Append, Sync
from matcher.model import TIME_MAX, EventBatch, EventType
from routing.evaluation.replay import packed_parts
from routing.messages import Publish
from routing.network.recovery.past import Past
from routing.storage import KeptLog
from rules import load
from rules.engine import Detector
from studies.bench_multicore import activities, correlation
from studies.reproduction.experiment import Chart, Claim, Outcome, Table
from studies.reproduction.verdicts import ABOVE, Asked, Estimate

MESSAGE = 64
"""Events of a message that was published."""
TURNS, TURNS_QUICK = 2, 1
ALONE, BROKER = "read alone [events/s]", "auto, as a broker [events/s]"
HYBRID = "hybrid, 2 threads [events/s]"
WAYS: Mapping[str, tuple[str, int]] = {
    BROKER: ("auto", 1),
    "columns (cdp) [events/s]": ("cdp", 1),
    "automata (aip) [events/s]": ("aip", 1),
    "hybrid, 1 thread [events/s]": ("hybrid", 1),
    HYBRID: ("hybrid", 2),
}
COLUMNS = ("log", "composite events", ALONE, *WAYS)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is to be kept in a log: its name, and how so many events are made."""

    name: str
    make: Callable[[int], Stream]
    sizes: Sequence[int]


LOGS = (
    Kept("distant", partial(distant, window=60), (100_000, 300_000)),
    Kept("correlation", lambda events: correlation(events // 6, 12), (100_000,)),
    Kept("sensors", lambda events: activities(events, 110), (100_000,)),
)
"""A condition between distant events, where hybrid is ahead of all, and the page's patterns."""
QUICK_EVENTS = 3_000


def messages(stream: Stream) -> Iterator[Publish]:
    """The events of a stream as a client may have published them, in the order of time."""
    for chunk in stream.chunks:
        times = np.sort(np.concatenate([batch.time for batch in chunk]))
        edges = [*times[::MESSAGE].tolist(), TIME_MAX]
        for begin, end in pairwise(edges):
            cut = [_between(batch, begin, end) for batch in chunk]
            if some := tuple(batch for batch in cut if len(batch)):
                yield Publish(some)


def _between(batch: EventBatch, begin: int, end: int) -> EventBatch:
    return batch.take(slice(*np.searchsorted(batch.time, (begin, end)).tolist()))


def kept(stream: Stream, store: Store) -> KeptLog:
    """A stream in a store's log."""
    ticket = 0
    for message in messages(stream):
        ticket = store.write([Append(entry_of("generator", message))])
        if store.is_full:
            store.wait(ticket)
    store.wait(ticket)
    return Extracts(store)


def replayed(log: KeptLog, types: Mapping[str, EventType], engine: Detector | None) -> int:
    """How many composite events an engine finds in a log; without one the log is read alone."""
    since = log_begins(log)
    past, found = Past(log, dict.fromkeys(types, since), (), types), 0
    while past:
        for batch in (one for part in packed_parts(past.take()) for one in part):
            if engine is not None:
                engine.push(batch)
        if engine is not None:
            found += len(engine.advance(min(past.bounds.values())))
    return found if engine is None else found + len(engine.advance(TIME_MAX))


def log_begins(log: KeptLog) -> int:
    """The time of the first event of a log."""
    return min(one.least for one in log.stretches(0))


def measured(stream: Stream, turns: int) -> tuple[int, list[float]]:
    """The composite events of a stream's log, and events a second: read alone, and by each way."""
    rules = load(stream.rule)
    types = {batch.type.name: batch.type for chunk in stream.chunks for batch in chunk}
    best: list[float] = [float("inf")] * (1 + len(WAYS))
    counts: set[int] = set()
    with tempfile.TemporaryDirectory() as name, Store.open(Path(name), sync=Sync.NORMAL) as store:
        log = kept(stream, store)
        for _ in range(turns):
            for place, way in enumerate((None, *WAYS.values())):
                engine = None if way is None else engine_of(*way)
                if engine is not None:
                    engine.deploy(rules)
                begun = time.process_time()
                found = replayed(log, types, engine)
                best[place] = min(best[place], time.process_time() - begun)
                if engine is not None:
                    counts.add(found)
    if len(counts) > 1:
        raise AssertionError(f"{stream.name}: engines differ, {sorted(counts)}")
    return counts.pop(), [stream.events / seconds for seconds in best]


def replays(quick: bool) -> Outcome:
    """Events a second in every way, log by log."""
    rows = []
    for one in LOGS:
        measured(one.make(QUICK_EVENTS), 1)  # this compiles
        for size in (QUICK_EVENTS,) if quick else one.sizes:
            stream = one.make(size)
            found, rates = measured(stream, TURNS_QUICK if quick else TURNS)
            rows.append((f"{one.name}, {stream.events:,} events", found, *rates))
    return replays_told(Table(COLUMNS, tuple(rows)))


def replays_told(table: Table) -> Outcome:
    """What is drawn and said of such a table."""
    pairs = zip(table.column("log"), table.column(HYBRID), table.column(BROKER), strict=True)
    ratios = [
        Estimate.single(float(ours) / float(broker), str(log))
        for log, ours, broker in pairs
        if isinstance(ours, int | float) and isinstance(broker, int | float)
    ]
    asked: list[Asked] = [(one, ABOVE) for one in ratios]
    told = "hybrid, 2 threads, over auto: " + ", ".join(f"{one.value:.3g}" for one in ratios)
    published = "a broker that replays a log would gain by hybrid"
    claim = Claim.judged(published, told, asked)
    if not ratios:
        claim = Claim.unmeasured(published, "the machine was not quiet")
    chart = Chart((ALONE, *WAYS), "events a second", (False, True))
    return Outcome(table, (chart,), (claim,))
