"""Rules that have more matches at an instant than they may yield, and instants in pieces."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import pytest
from cases import Case, nullable, of_sequences, random_case, run
from iteration_cases import iteration_case
from pairs import seeds
from pretended import Pretended, Restless

import rules
from broker.parallel import engine_of
from matcher.model import MICROSECONDS, TIME_MAX, Event
from matcher.rows import batch_of
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections, Detector
from rules.engine.results import outlets
from rules.overrun import Overrun

SCHEMAS = "event A(x: int) event B(y: int) event T(z: int)\n"
PAIRS = """
    define Pair(x: int, y: int)
    from T() and each A() within 10 s from T and each B() within 10 s from T
    where x = A.x, y = B.y
"""
ENGINES = ("cdp", "aip", "aip-published", "auto")


class Bounded:
    """An engine whose host takes a rule that has ended out at once, as a broker does."""

    def __init__(self, engine: Detector) -> None:
        self._engine = engine
        self.overruns: list[Overrun] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        found = self._engine.advance(marks)
        self.overruns += sorted(self._engine.take_overruns(), key=lambda one: one.rule)
        return found


class InPieces(Bounded):
    """An engine that is advanced in pieces, which are put together again."""

    pieces = 0

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        found: list[Detections] = []
        self._engine.advance_in_pieces(marks, found.append)  # type: ignore[attr-defined]
        self.pieces += len(found) - 1
        return Listed(list(chain.from_iterable(one.events() for one in found)))


class Listed(Detections):
    """Detections as a list of events."""

    def __init__(self, events: Sequence[Event]) -> None:
        object.__setattr__(self, "rows", events)

    __slots__ = ("rows",)

    def events(self) -> Iterator[Event]:
        return iter(self.rows)


def restless(most: int) -> Detector:
    engine = Restless(lambda: Pretended(most))
    engine._cpu = CdpEngine(composites_max=most)
    engine._cpu.trust_ids()
    return engine


BOUNDED: Mapping[str, Callable[[int], Detector]] = {
    "cdp": lambda most: make("cdp", composites_max=most),
    "aip": lambda most: make("aip", composites_max=most),
    "aip-published": lambda most: make("aip-published", composites_max=most),
    "on threads": lambda most: engine_of("auto", 2, composites_max=most),
    "on a device": restless,
}


def cases(numbers: range) -> Iterator[Case]:
    for seed in numbers:
        case = iteration_case(seed) if seed % 4 == 1 else random_case(seed)
        yield nullable(case) if seed % 5 == 0 else case


@pytest.mark.parametrize("name", BOUNDED)
def test_a_rule_ends_at_the_same_instant_with_the_same_events_in_every_engine(name: str):
    ended = 0
    for case in cases(seeds(20, 80)):
        case = of_sequences(case) if name == "aip-published" else case
        for most in (1, 3):
            naive, other = Bounded(make("naive", composites_max=most)), Bounded(BOUNDED[name](most))
            wanted, found = run(case, naive), run(case, other)
            assert found.advances == wanted.advances, (case, most)
            assert other.overruns == naive.overruns, (case, most)
            ended += len(naive.overruns)
    assert ended > 5


def test_what_is_given_in_pieces_is_what_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outlets, "PIECE", 1)
    monkeypatch.setattr(outlets, "ROOM_MIN", 1)
    pieces = 0
    for case in cases(seeds(20, 80)):
        for incremental in (False, True):
            engine = InPieces(CdpEngine(incremental=incremental))
            assert run(case, engine) == run(case, CdpEngine(incremental=incremental)), case
            pieces += engine.pieces
    assert pieces > 15


def pairs(engine: Detector, count: int) -> None:
    """Push so many As and Bs, and two Ts at one instant, one at the next."""
    engine.deploy(rules.load(SCHEMAS + PAIRS))
    types = rules.load(SCHEMAS).schemas
    numbers = range(count)
    engine.push(batch_of(types["A"], [{"x": x} for x in numbers], source="a", times=[0] * count))
    engine.push(batch_of(types["B"], [{"y": y} for y in numbers], source="b", times=[0] * count))
    times = [MICROSECONDS, MICROSECONDS, 2 * MICROSECONDS]
    engine.push(batch_of(types["T"], [{"z": 0}] * 3, source="t", times=times))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(("most", "found"), [(17, 17), (18, 27)])
def test_the_bound_counts_all_terminators_of_an_instant(name: str, most: int, found: int):
    """Two Ts make 18 pairs at one instant, and the third 9 at the next."""
    engine = make(name, composites_max=most)
    pairs(engine, 3)
    assert len(engine.advance(TIME_MAX)) == found
    assert [one.instant for one in engine.take_overruns()] == ([MICROSECONDS] * (most < 18))


def test_an_instant_of_a_million_is_given_in_pieces():
    engine, sizes = make("cdp"), []
    pairs(engine, 400)
    engine.advance_in_pieces(TIME_MAX, lambda found: sizes.append(len(found)))  # type: ignore[attr-defined]
    assert sum(sizes) == 3 * 400 * 400
    assert max(sizes) < 2 * outlets.PIECE
