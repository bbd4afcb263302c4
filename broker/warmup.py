"""Getting an engine's kernels ready before anybody waits for them.

The kernels are compiled when they are first used, and kept on disk; loading them takes the better
part of a second, and compiling them, once after an installation, much longer. A broker that did
that at its first event would be silent meanwhile, and its clients would take it for dead. So a
small detection that touches every operator runs before the broker serves anybody.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from matcher.filters.constraint import Filter
from matcher.kernels.building import build_group
from matcher.kernels.encoding import encode
from matcher.kernels.entering import index_insert_all
from matcher.kernels.index import index_match
from matcher.matching import ON_PROCESSOR, Matching
from matcher.methods.loading import load_kernels
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    TIME_MIN,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from rules import load
from rules.engine import Detector, make
from rules.engine.cdp import CdpEngine
from rules.engine.intake.duplicates import DuplicateFilter
from rules.engine.intake.naming import FEW
from rules.engine.kernels.instants import process
from rules.engine.linking import loading
from runtime.compiling import awaited
from runtime.compiling.compiled import can_keep, folder_of, is_kept

READING = EventType.of("Reading", area="string", value="float", count="int")
RULES = f"""
event {READING}
define Chain(n: int) from Reading(count < 12) as r and each Reading(area = r.area, count >= 0) as s
    within 5 s from r and each Reading(value < s.value) as t within 5 s from s where n = t.count
define Simple(area: string) from Reading(value > 1) as r where area = r.area
define One(n: int) from Reading(count = 1) as r where n = r.count
define Each(n: int) from Reading(area = $a) as r and each Reading(area = $a) as s
    within 5 s from r and not Reading(value < 0) between r and s where n = s.count
define Last(v: float) from Reading(value = $v) as r
    and last Reading(value < $v) as s within 5 s from r where v = s.value
define Mean(m: float) from Reading(area = $a) as r
    and $m = Avg(Reading(area = $a).value within 5 s from r) and $m > 0
    and Count(Reading() within 5 s from r) > 0 where m = $m consuming r
define Again(n: int) from Each() as e and last Simple() as s within 5 s from e where n = e.n
"""
LATER = """
rule later: define Later(n: int) from Reading(area = $a) as r
    and last Reading(area = $a) as s within 60 s from r where n = s.count
"""
"""A rule that looks farther back than those before, and comes when events have."""
ON_DEVICE = f"""
event {READING}
define Found(v: float) from Reading(area = $a, value = $v) as r
    and last Reading(area = $a, value <= $v) as s within 5 s from r
    and 2-first Reading(value + count <= 2 * $v) as t within 5 s from r
    and not Reading(count < 0) between s and r where v = s.value + t.value
define Every(n: int) from Reading(count = $c) as r
    and each Reading(count <= $c) as s within 2 s from r and s within 3 s from r
    and $n = Sum(Reading(count < s.count).count within 5 s from s) and $n > 0 where n = $n + s.count
"""
"""Rules that a GPU takes (docs/gpu.md)."""
INDEXED = 2_100
"""So many events that columns on a GPU have indexes."""
MANY = 200
"""So many events that the kernels' tables grow."""


_MATCHING = (encode, index_insert_all, build_group, index_match)
"""Kernels that match many subscriptions together."""


def warm_up(engine: str, device: str = "cpu") -> None:
    """Run a small detection on an engine of this name, and throw it away; one on the ``device``
    too, unless that is ``cpu``. There are kernels of a device that are kept nowhere.

    Rules change to automata and back meanwhile, come and go, tables grow, and what is found is
    read: whoever was the first to need one of the kernels for that would wait for it.
    """
    detector = make(engine)
    if not isinstance(detector, CdpEngine):  # plain Python
        return
    if can_keep(process) and not all(map(is_kept, (process, *loading.KERNELS.values()))):
        _compile_elsewhere(f"run_on({engine!r})", "loading.compile_others()")
    _run(detector)
    if device != "cpu":
        _run_on_device(make(engine, device="gpu"))


def place() -> str | None:
    """The folder where the kernels of engines are kept, or will be; None: nowhere."""
    return folder_of(process)


def run_on(engine: str) -> None:
    """Run it without looking whether anything is kept: for a process that compiles."""
    detector = make(engine)
    assert isinstance(detector, CdpEngine)
    _run(detector)


def _run(detector: CdpEngine) -> None:
    loading.load_all()
    detector.deploy(load(RULES, file="<warm-up>"))
    for start, incremental in ((0, True), (4, False)):
        detector.push(_readings(start, 4))
        detector.advance((start + 4) * MICROSECONDS)
        detector.switch(dict.fromkeys(detector.marks, incremental))
    detector.push(_readings(8, 1))
    detector.push(_named(_readings(9, FEW)))
    many = 9 + FEW
    detector.push(_readings(many, MANY))
    found = detector.advance((many + MANY - 2) * MICROSECONDS)
    assert len(list(found.events())) == len(found)
    detector.push(_readings(many + MANY, 2 * MANY))  # behind the few that are left
    detector.choose()
    detector.remove(next(iter(detector.marks)))
    detector.deploy(load(LATER, known={READING.name: READING}, file="<warm-up>"), since=TIME_MIN)
    detector.advance(TIME_MAX)
    for name in tuple(detector.marks):
        detector.remove(name)
    repeats = DuplicateFilter()  # as engines side by side have one before them
    repeats.accept(_readings(0, MANY))
    for _ in range(2):  # the second time they are compared with what they were
        repeats.accept(_named(_readings(MANY, MANY)))


def _run_on_device(detector: Detector) -> None:
    """Rules of all that a device evaluates, so many events that columns have indexes, and twice:
    the first time compiles kernels.
    """
    detector.deploy(load(ON_DEVICE, file="<warm-up>"))
    for start in (0, INDEXED):
        detector.push(_readings(start, INDEXED))
        detector.advance((start + INDEXED) * MICROSECONDS)


def _compile_elsewhere(*statements: str) -> None:
    """Have a process execute each, and wait for the first, whose kernels are told of.

    Each waits for what the other is at, so nothing is compiled twice but what both are made of. All
    are ended when they are not needed any more, wherever they are. These processes give back the
    memory that compiling takes, which is more than a broker needs in all. If there can be none,
    they fail, or nothing can be kept, it is compiled here.
    """
    if not sys.executable:
        return
    with ExitStack() as running:
        first, *_ = [_started(one, running) for one in statements[: os.cpu_count() or 1]]
        for line in first.stdout or ():
            awaited.tell(line.strip() or None)


def _started(statement: str, running: ExitStack) -> subprocess.Popen[str]:
    program = (
        f"import sys; sys.path[:] = {sys.path!r}",  # where this process found what it runs
        "from broker import warmup",
        "warmup.awaited.tell = lambda name: print(name or '', flush=True)",
        f"warmup.{statement}",
    )
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", "\n".join(program)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what goes wrong there goes wrong here too, and is told
        text=True,
    )
    running.enter_context(child)
    running.callback(child.terminate)
    return child


def warm_up_matching(matching: Matching = ON_PROCESSOR) -> None:
    """The same for the kernels that match many subscriptions together.

    Where those of ``auto`` are kept on disk they are left there: loading them takes a tenth of a
    second, which a broker of few subscriptions need not spend. Those of a device are kept nowhere.
    """
    if matching.way != ON_PROCESSOR.way:
        matcher = matching.make()
        matcher.add(1, 1, Filter.of(("value", ">", 1.0), ("area", "prefix", "a")))
        for count in (1, 2):
            assert matcher.match(_readings(2, count), filters=True).filter_lists()[0] == [1]
    elif not all(map(is_kept, _MATCHING)):
        if can_keep(encode):
            _compile_elsewhere("load_kernels()")
        if not all(map(is_kept, _MATCHING)):
            load_kernels()


def _readings(start: int, count: int) -> EventBatch:
    numbers = np.arange(start, start + count)
    places = tuple(f"a{number}" for number in range(max(2, count)))
    areas = StringColumn((numbers % len(places)).astype(np.int32), places)
    ids = EventIds(StringColumn.constant("warm-up", count), numbers << 6)
    columns = (areas, numbers.astype(np.float64), numbers)
    return EventBatch(READING, numbers * MICROSECONDS, ids, columns)


def _named(batch: EventBatch) -> EventBatch:
    """The same events with texts for ids, which are numbers nevertheless."""
    texts = StringColumn.from_strings(batch.ids.printed())
    ids = EventIds(batch.ids.source, np.zeros(len(batch), np.int64), texts)
    return replace(batch, ids=ids)
