"""Footprints of rules: what they say, beside what an engine's arrays hold by their own accounts."""

from collections.abc import Iterable

import numpy as np
import pytest
from event_batches import batch_of_events

import rules
from matcher.model import MICROSECONDS, Event, EventType
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector
from rules.engine.kernels import layout
from rules.engine.memory.footprints import WORD, segments, split
from rules.engine.threads.parts import PartedEngine

TYPES = [EventType.of(name, n="int", k="int") for name in ("Temp", "Smoke", "Gas")]
DECLARED = "".join(f"event {one}\n" for one in TYPES)
SEQUENCES = """
rule far: define Far(n: int) from Smoke() and each Temp(n = Smoke.n) within 5 min from Smoke
  where n = Temp.n
rule near: define Near(n: int) from Smoke() and each Temp(n = Smoke.n) within 1 min from Smoke
  where n = Temp.n
rule three: define Three(n: int) from Smoke() and last Temp(k = $k) within 2 min from Smoke
  and last Gas(k = $k) within 2 min from Temp where n = Gas.n
rule apart: define Apart(n: int) from Gas() as a and last Gas(n > 5) as b
  within 1 min from a where n = b.n
"""
SUMS = """
rule sums: define Sums(s) from Smoke() where s = Sum(Temp(k > 2).n within 4 min from Smoke)
rule most: define Most(s) from Smoke() where s = Max(Temp().n within 4 min from Smoke)
"""
SECONDS = 400


def run(engine: Detector, text: str, seconds: int = SECONDS) -> None:
    """A few events of each type a second."""
    engine.deploy(rules.load(DECLARED + text))
    for start in range(0, seconds, 50):
        for type_ in TYPES:
            every = 10 if type_.name == "Smoke" else 1
            times = range(10 * start, 10 * min(start + 50, seconds), every)
            engine.push(
                batch_of_events(
                    type_,
                    [
                        Event(
                            type_.name,
                            n * MICROSECONDS // 10,
                            type_.name,
                            str(n),
                            {"n": n % 97, "k": n % 7},
                            n,
                        )
                        for n in times
                    ],
                )
            )
        engine.advance((start + 50) * MICROSECONDS)


def chained(first: int, following: np.ndarray) -> Iterable[int]:
    while first >= 0:
        yield first
        first = int(following[first])


def held(engine: CdpEngine) -> int:
    """Bytes of the arrays with entries, sequences and events, without what is free in them."""
    arrays = engine._arrays
    heap = arrays["heap"][: arrays.counters[layout.HEAP_TOP]]
    free = sum(
        len(list(chained(first, heap))) << size
        for size, first in enumerate(arrays["free"].tolist())
    )
    lists = arrays["lists"][: arrays.counters[layout.LISTS_TOP]]
    summaries = arrays["summaries"]
    unused = list(chained(arrays.counters[layout.SUMMARIES_FREE], summaries["next"]))
    used = summaries[: arrays.counters[layout.SUMMARIES_TOP] - len(unused)]
    return heap.nbytes - WORD * free + lists[lists["capacity"] > 0].nbytes + used.nbytes


@pytest.mark.parametrize("name", ["cdp", "aip", "aip-published"])
def test_rules_take_together_what_the_arrays_hold(name: str):
    engine = make(name)
    run(engine, SEQUENCES if name == "aip-published" else SEQUENCES + SUMS)
    assert isinstance(engine, CdpEngine)
    taken = engine.footprints()
    assert min(taken.values()) > 0
    assert sum(taken.values()) == pytest.approx(held(engine), rel=0.001)
    rows = sum(count for name, count in engine.memory().items() if name.startswith("rows/"))
    assert sum(taken.values()) > WORD * (layout.HEADER + 2) * rows


def test_who_looks_farther_back_has_more_of_what_is_shared():
    engine = make("cdp")
    run(engine, SEQUENCES)
    taken = engine.footprints()
    assert 3 < taken["far"] / taken["near"] <= 5


def test_what_nobody_else_uses_is_a_rules_own():
    alone, among = make("cdp"), PartedEngine([CdpEngine(), CdpEngine()], map)
    apart = SEQUENCES[SEQUENCES.index("rule apart") :]
    run(alone, apart)
    run(among, apart + "rule smoke: define Other(n: int) from Smoke() where n = Smoke.n\n")
    assert alone.footprints()["apart"] == among.footprints()["apart"] > 0


def test_what_has_gone_is_nobodys():
    engine = make("cdp")
    run(engine, SEQUENCES)
    full = sum(engine.footprints().values())
    engine.remove("far")
    assert engine.footprints().keys() == {"near", "three", "apart"}
    for name in ("near", "three", "apart"):
        engine.remove(name)
    assert engine.footprints() == {}
    assert full > 100_000


def test_hybrid_counts_its_chunks():
    engine = make("hybrid")
    run(engine, "\n".join(SEQUENCES.splitlines()[:3]))
    kept = engine.memory()
    assert engine.footprints()["far"] >= WORD * kept["chunks"] > 0


def test_an_engine_without_tables_says_nothing():
    engine = make("naive")
    run(engine, SEQUENCES, 10)
    assert engine.footprints() == {}


def test_words_are_split_by_how_far_back_rules_look():
    things, rules_, reaches = np.array(
        [(0, 0, 299), (0, 1, 59), (0, 1, 10), (1, 1, 0), (1, 2, 0)], np.int64
    ).T
    shares = split(np.array([36, 10, 0]), things, rules_, reaches, 4)
    assert shares.tolist() == [30, 6 + 5, 5, 0]


def test_segments_are_powers_of_two_and_no_less_than_a_line():
    words = np.array([0, 1, 8, 9, 16, 17, 2**40, 2**40 + 1])
    assert segments(words).tolist() == [0, 8, 8, 16, 16, 32, 2**40, 2**41]
