"""Hybrid parallelism from inside: pairs evaluated once, what is kept, who fails, what is refused.

That it detects what the other engines detect is tried in ``tests/conformance``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from random import Random

import numpy as np
import pytest
from event_batches import batch_of_events
from pairs import seeds

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventType
from rules.engine import make
from rules.engine.chains.hybrid.chains import Window
from rules.engine.chains.hybrid.costs import AgentWork, expected, loads_of, shares_of, units_of
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.memory import ChunkMemory
from rules.engine.chains.hybrid.pipeline import Crew, limits, reaches
from rules.engine.chains.hybrid.roles import inputs_of, verify_roles
from rules.errors import RuleErrors

SECOND = MICROSECONDS
TYPES = {name: EventType.of(name, k="int", v="int") for name in "ABC"}
SCHEMAS = " ".join(f"event {name}(k: int, v: int)" for name in TYPES)
CHAIN = """ rule chain: define Chain() from C() as c and each B(k = c.k) as b within 20 s from c
    and each A(v > b.v) as a within 20 s from b and a within 30 s from c"""


@pytest.fixture(name="at_once")
def _at_once() -> Iterator[Callable[..., Iterable[None]]]:
    with ThreadPoolExecutor(8) as pool:

        def at_once(work: Callable[[int], None], workers: Sequence[int]) -> Iterable[None]:
            futures = [pool.submit(work, worker) for worker in workers]
            wait(futures)
            return [one.result() for one in futures]

        yield at_once


def engine_of(crew: Crew, text: str = CHAIN) -> HybridEngine:
    engine = HybridEngine(crew)
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


def push(engine: HybridEngine, count: int, first: int = 0) -> None:
    """So many events, one a second from that number on."""
    random = Random(first)
    happened: dict[str, list[Event]] = {name: [] for name in TYPES}
    for number in range(first, first + count):
        name = random.choice("ABC")
        data = {"k": random.randint(0, 2), "v": random.randint(0, 5)}
        happened[name].append(Event(name, number * SECOND, name, str(number), data, number))
    for name, events in happened.items():
        engine.push(batch_of_events(TYPES[name], events))


def evaluated(engine: HybridEngine) -> list[int]:
    """How many pairs each agent has evaluated."""
    (pipeline,) = engine._pipelines.values()
    return [int(one.evaluations) for one in pipeline.work_done()]


def test_each_pair_is_evaluated_once_whoever_comes_first(at_once: Callable[..., Iterable[None]]):
    found = []
    for seed in seeds(8, 24):
        small = {"capacity": 1 + seed % 5, "batch": 1 + seed % 3, "seed": seed, "few": 0}
        engine = engine_of(Crew(1 + seed % 8, at_once=at_once, **small))
        push(engine, 200)
        composites = len(engine.advance(TIME_MAX))
        found.append((composites, evaluated(engine)))
    assert found[0][0] > 100
    assert all(one == found[0] for one in found)


def test_without_tickets_pairs_are_evaluated_twice_and_repeats_are_counted(
    at_once: Callable[..., Iterable[None]],
):
    repeats, composites = 0, set[int]()
    for seed in range(100):  # where other programs run, threads seldom run at the same time
        if repeats and seed >= 3:
            break
        crew = Crew(4, "state", at_once, capacity=2, batch=2, seed=1 + seed, few=0, tickets=False)
        engine = engine_of(crew)
        push(engine, 200)
        composites.add(len(engine.advance(TIME_MAX)))
        repeats += engine.memory()["repeats"]
    assert len(composites) == 1
    assert repeats > 0


def test_sequences_that_no_event_can_complete_are_deleted_and_their_chunks_used_again():
    engine = engine_of(Crew())
    words = []
    for start in range(0, 4_000, 400):
        push(engine, 400, start)
        engine.advance((start + 400) * SECOND)
        kept = engine.memory()
        assert 0 < kept["sequences"] < 400
        words.append(kept["chunks"])
    assert words[-1] == words[2], "it grows no more"
    (pipeline,) = engine._pipelines.values()
    assert all(feed._count < 600 for feed in pipeline._feeds)
    engine.advance(TIME_MAX)
    assert engine.memory()["sequences"] == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_worker_that_fails_ends_the_detection_with_its_error(
    at_once: Callable[..., Iterable[None]], monkeypatch: pytest.MonkeyPatch, threads: int
):
    engine = engine_of(Crew(threads, at_once=at_once, few=0))
    push(engine, 400)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("rules.engine.chains.hybrid.memory.np.empty", fail)
    with pytest.raises(MemoryError, match="no room"):
        engine.advance(300 * SECOND)


def test_what_goes_wrong_outside_compiled_code_ends_the_other_workers_too(
    at_once: Callable[..., Iterable[None]], monkeypatch: pytest.MonkeyPatch
):
    engine = engine_of(Crew(3, "state", at_once, few=0))
    push(engine, 400)
    from rules.engine.chains.hybrid.working import work

    def fail(address: int, worker: int) -> int:
        if worker == 1:
            raise ZeroDivisionError("here")
        return work(address, worker)

    monkeypatch.setattr("rules.engine.chains.hybrid.pipeline.work", fail)
    with pytest.raises(ZeroDivisionError, match="here"):
        engine.advance(300 * SECOND)


def test_memory_says_behind_its_first_word_how_much_there_is():
    memory = ChunkMemory()
    address = memory._function(10)
    assert address == memory._pieces[0].ctypes.data
    assert memory._pieces[0][0] == memory._pieces[0].nbytes
    memory._function(1 << 20)
    assert memory.words >= (1 << 20) + (1 << 13)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("define X() from A()", "it is about one event"),
        ("define X() from A() and last B() within 1 s from A", "by first or last"),
        ("define X() from A() and not B() within 1 s from A", "it is about one event"),
        ("define X() from all A(), B() within 1 s", "in any order"),
        ("define X() from A() and each B() or C() within 1 s from A", "it has alternatives"),
        ("define X() from A() and each B() within 1 s from A consuming B", "it consumes"),
        (
            "define X() from A() and each B() within 1 s from A and each C() within 1 s from A",
            "no single chain",
        ),
        (
            "define X() from A() and each B() within 1 s from A "
            "define Y() from X() and each B() within 1 s from X",
            "its event X comes from a rule",
        ),
        ("define X() from Timer(S = 0) and each B() within 1 s from Timer", "Timer"),
    ],
)
def test_what_is_no_chain_is_refused_with_a_reason(text: str, reason: str):
    engine = make("hybrid")
    with pytest.raises(RuleErrors, match=reason):
        engine.deploy(rules.load(f"{SCHEMAS} {text}"))
    assert not engine.marks


def test_a_rule_over_the_events_of_one_that_is_there_is_refused():
    engine = make("hybrid")
    known = rules.load(
        f"{SCHEMAS} define X(k: int) from A() and each B() within 1 s from A where k = A.k"
    )
    engine.deploy(known)
    over = "event X(k: int) define Y() from X() and each B() within 1 s from X"
    with pytest.raises(RuleErrors, match="its event X comes from a rule"):
        engine.deploy(rules.load(f"{SCHEMAS} {over}"))


def test_an_end_of_a_rule_with_too_many_composites_is_as_in_other_engines():
    outcomes = []
    for engine in (make("cdp", composites_max=20), HybridEngine(composites_max=20)):
        engine.deploy(rules.load(SCHEMAS + CHAIN))
        push(engine, 200)
        found = [(one.time, one.cause_full) for one in engine.advance(TIME_MAX).events()]
        outcomes.append((found, engine.take_overruns()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1]


def test_sequences_are_made_again_after_a_snapshot():
    whole, before, after = engine_of(Crew()), engine_of(Crew()), engine_of(Crew())
    for engine in (whole, before):
        push(engine, 200)
        engine.advance(200 * SECOND)
    after.resume(before.snapshot())
    found = []
    for engine in (whole, after):
        push(engine, 100, 200)
        found.append([one.cause_full for one in engine.advance(TIME_MAX).events()])
    assert found[0] == found[1]
    assert any("199" in cause for causes in found[0] for cause in causes)


def test_an_event_that_is_late_is_paired_with_all_that_is_there():
    engines = engine_of(Crew()), make("cdp")
    engines[1].deploy(rules.load(SCHEMAS + CHAIN))
    found = []
    for engine in engines:
        push(engine, 100)
        engine.advance(100 * SECOND)
        late = Event("B", 95 * SECOND, "late", "1", {"k": 1, "v": 0}, 1)
        engine.push(batch_of_events(TYPES["B"], [late]))
        push(engine, 50, 100)
        found.append([one.cause_full for one in engine.advance(TIME_MAX).events()])
    assert found[0] == found[1]
    assert any("late#1" in cause for cause in found[0])


def test_events_are_kept_until_the_nearest_way_of_windows_to_the_terminator_has_passed():
    windows = [Window(3, 2, 5), Window(2, 1, 5), Window(1, 0, 5), Window(3, 1, 7), Window(2, 0, 2)]
    assert reaches(windows, 4) == [7, 7, 5, 0]
    assert reaches(windows[:3], 4) == [15, 10, 5, 0]


# --- costs and roles -----------------------------------------------------------------------------


def test_the_recursion_of_rates_is_the_closed_form_of_the_paper():
    rates, selectivities, window = [3.0, 2.0, 5.0, 7.0], [0.1, 0.05, 0.2], 4.0
    agents = expected(rates, selectivities, window)
    for place in range(1, 4):
        factors = np.prod([rates[one] * selectivities[one - 1] for one in range(1, place)])
        assert agents[place - 1].sequences == pytest.approx(
            rates[0] * window ** (place - 1) * factors
        )


def test_threads_are_whole_and_every_unit_has_its_least():
    assert shares_of([6, 3, 1], 5, 1) == [3, 1, 1]
    assert shares_of([1, 1, 1], 2, 0).count(0) == 1
    assert shares_of([100, 1, 1], 8, 2) == [4, 2, 2]
    for seed in range(200):
        random = Random(seed)
        loads = [random.random() ** 4 for _ in range(random.randint(1, 6))]
        least = random.randint(0, 2)
        threads = random.randint(max(1, least * len(loads)), 24)
        shares = shares_of(loads, threads, least)
        assert sum(shares) == threads
        assert min(shares) >= least


def test_the_neighbours_with_least_to_do_are_fused_first():
    assert units_of([5, 1, 1, 9], 3) == [[1], [2, 3], [4]]
    assert units_of([5, 1, 1, 9], 1) == [[1, 2, 3, 4]]
    assert loads_of([AgentWork(10, 10, 100, 0)], 2, 10) == [pytest.approx(100.6)]


def test_every_input_has_a_worker_or_the_roles_are_refused():
    for roles, threads in (("static", 4), ("static", 9), ("state", 2), ("full", 1), ("full", 7)):
        shares = shares_of([3, 1], threads, {"static": 2, "state": 1, "full": 0}[roles])
        inputs = inputs_of(roles, shares, [[1, 2], [3]])
        assert len(inputs) == threads
        assert {one for some in inputs for one in some} == set(range(2, 8))
    with pytest.raises(ValueError, match="roles static: 5 agents take 10 threads or more, found 9"):
        verify_roles("static", 9, 5)
    with pytest.raises(ValueError, match="expected one of static, state, full"):
        verify_roles("other", 9, 5)


def test_slices_have_more_events_for_more_threads() -> None:
    times = np.arange(2_000) * SECOND
    slices = [len(list(limits([times], TIME_MAX, SECOND, Crew(one)))) for one in (1, 2, 8, 64)]
    assert slices == [16, 16, 4, 1]
