"""The simulated multicore: pairs and matches are the engine's, time a function of the seed."""

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

import rules
from benchmarks.hybrid import detected
from matcher.model import MICROSECONDS
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.pipeline import Crew
from studies.bench_multicore import STREAMS
from studies.multicore.chains import Chain, agents_of, spread
from studies.multicore.costs import ChainCosts, StepCosts, read
from studies.multicore.machine import Detection, Multicore, detect
from studies.multicore.printed import Printed, capped, others_as_printed
from studies.multicore.runs import detect_by_runs, edges_of
from studies.multicore_chains import chain_of

STEPS = StepCosts(
    take_ns=200,
    visit_ns=10,
    try_ns=20,
    put_ns=20,
    lock_ns=5,
    line_ns=100,
    wake_ns=10_000,
    slice_ns=50_000,
    stored_ns=5,
    composite_ns=200,
)
COSTS = ChainCosts(pair_ns=40, event_ns=300)
SIZES = {"changes": (150, 8), "correlation": (150, 8), "sensors": (1_000, 80, 4)}
SECOND = MICROSECONDS


def chain(kind: str) -> Chain:
    make, _, _ = STREAMS[kind]
    return chain_of(make(*SIZES[kind]))


def on(cores: int, of: Chain, **choices: object) -> Detection:
    return detect(of, STEPS, COSTS, Crew(cores, **choices))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", SIZES)
def test_pairs_sequences_and_matches_are_those_of_the_engine(kind: str) -> None:
    make, _, _ = STREAMS[kind]
    stream = make(*SIZES[kind])
    engine = HybridEngine(Crew())
    composites = detected(engine, rules.load(stream.rule), stream.chunks)
    (pipeline,) = engine._pipelines.values()
    real = [(one.sequences, one.evaluations, one.sent) for one in pipeline.work_done()]
    assert composites > 10
    for crew in (
        Crew(),
        Crew(2),
        Crew(7, seed=3),
        Crew(10, "static"),
        Crew(6, "state"),
        Crew(24, few=0, capacity=3, batch=2, slice=200),
    ):
        done = detect(chain_of(stream), STEPS, COSTS, crew)
        assert done.composites == composites
        assert [(one.sequences, one.evaluations, one.sent) for one in done.work] == real
    assert detect_by_runs(chain_of(stream), STEPS, COSTS, 5).composites == composites


def test_a_run_is_a_function_of_its_seed_and_another_seed_finds_as_much() -> None:
    once, again, other = (on(6, chain("changes"), seed=seed) for seed in (1, 1, 2))
    assert once.seconds == again.seconds
    assert (once.created == again.created).all()
    assert once.slices == again.slices
    assert other.composites == once.composites


def test_more_cores_take_no_more_time_than_one_and_no_less_than_their_share() -> None:
    make, _, _ = STREAMS["correlation"]
    given = chain_of(make(300, 12))
    alone = on(1, given)
    for cores in (2, 4, 8):
        done = on(cores, given)
        assert alone.pairing_s / cores < done.pairing_s < alone.pairing_s


def test_one_core_by_runs_is_no_faster_than_one_core() -> None:
    """Runs overlap, so more is evaluated."""
    given = chain("correlation")
    alone = on(1, given)
    assert detect_by_runs(given, STEPS, COSTS, 1).seconds > 0.99 * alone.seconds
    assert len(edges_of(given, 1)) == 1 + 8


def test_units_may_be_fused_where_threads_are_enough() -> None:
    given = chain("correlation")
    apart, fused = (
        detect(given, STEPS, COSTS, Crew(10, "static"), units_max=most) for most in (5, 4)
    )
    assert apart.composites == fused.composites
    assert apart.seconds != fused.seconds


def test_matches_are_late_by_what_is_waited_for() -> None:
    """With events that come slowly a slice waits for its last one, and latency with it."""
    given = chain("correlation")

    def at_pace(time: int) -> float:
        return float(time - given.first)  # a thousandth of the stream's time

    done = detect(given, STEPS, COSTS, Crew(2), arrival=at_pace)
    assert done.seconds > (given.last - given.first) / 1e9
    assert 0 < done.latency_s(at_pace) < done.seconds


def test_a_state_that_repeats() -> None:
    """Each run of up to three B, in order, between C and A, within 6 s: as by trying all."""
    random = np.random.default_rng(5)
    times = [np.sort(random.choice(40, size, replace=False)) * SECOND for size in (8, 14, 9)]
    values = [random.integers(0, 4, len(one)) for one in times]

    def fits(place: int, numbers: np.ndarray, later: int, others: np.ndarray) -> np.ndarray:
        return values[place][numbers] <= values[later][others]

    given = Chain(tuple(times), 6 * SECOND, fits, repeated=1, repeats=3)
    expected = sum(
        _is_match(given, values, [(0, c), *((1, b) for b in run), (2, a)])
        and times[2][a] - times[0][c] <= 6 * SECOND
        for c in range(8)
        for length in (1, 2, 3)
        for run in combinations(range(14), length)
        for a in range(9)
    )
    assert expected > 20
    for cores in (1, 4):
        assert on(cores, given, few=0, capacity=2).composites == expected


def _is_match(given: Chain, values: list[np.ndarray], events: list[tuple[int, int]]) -> bool:
    return all(
        given.times[place][one] <= given.times[later][other]
        and values[place][one] <= values[later][other]
        for (place, one), (later, other) in pairwise(events)
    )


def test_a_word_that_is_shared_costs_more_after_another_and_is_waited_for() -> None:
    given = chain("correlation")
    machine = Multicore(given, agents_of(given), STEPS, COSTS, Crew(3), None)
    first, second, third = machine._workers
    waits = [machine._have("ticket", one) for one in (first, first, second, third)]
    assert waits == [5, 10, 110, 210]


def test_ranges_are_spread() -> None:
    owner, number = spread(np.array([3, 5, 5]), np.array([5, 5, 7]))
    assert (owner.tolist(), number.tolist()) == ([0, 0, 2, 2], [3, 4, 5, 6])


def test_the_table_of_costs_is_read_and_a_bad_one_is_refused(tmp_path) -> None:
    assert set(read().chains) == set(STREAMS)
    file = tmp_path / "costs.toml"
    file.write_text("machine = 5\n")
    with pytest.raises(ValueError, match=r"costs\.toml: Expected `str`"):
        read(file)


def test_the_published_purge_loses_matches_where_several_work_and_slices_lose_none() -> None:
    make, _, _ = STREAMS["correlation"]
    given = chain_of(make(240, 10, 5))
    whole, alone, several = (
        detect(given, STEPS, COSTS, Crew(cores), printed=Printed(purge=purges))
        for cores, purges in ((6, False), (1, True), (6, True))
    )
    assert (whole.lost, alone.lost) == (0, 0)
    assert several.lost > 0
    assert several.composites + several.lost == whole.composites


def test_workers_beyond_the_caps_change_their_group_or_are_idle() -> None:
    """Of agents 1 and 2 with six workers each, events (even) and matches (odd) in turns."""
    inputs = [[2], [3]] * 3 + [[4], [5]] * 3
    assert capped(inputs, [5.5, 1.2]) == [[2], [3]] * 3 + [[4], [5]] * 2 + [[], []]
    assert capped([[2], [2], [3]], [0.1]) == [[2], [3], []]
    both = [[4, 5], [5, 4], [4, 5]]
    assert capped(both, [0.0, 0.3]) == [[4, 5], [5, 4], []]
    fused = [[2, 4], [3, 5], [2, 4]]
    assert capped(fused, [0.4, 0.8]) == fused
    assert capped(fused, [0.4, 0.4]) == [*fused[:2], []]


def test_another_agent_is_chosen_as_printed_behind_ones_own() -> None:
    inputs = [4, 5, 2, 6, 3, 7]
    orders = [list(others_as_printed(inputs, 6, Random(seed))) for seed in range(20)]
    assert all(one[:3] == [4, 5, 6] and sorted(one[3:]) == [2, 3, 6, 7] for one in orders)
    assert len({tuple(one) for one in orders}) > 5
    assert list(others_as_printed(inputs, 4, Random(1)))[:2] == [4, 5]


def test_caps_and_the_printed_choice_lose_time_and_no_match() -> None:
    make, _, _ = STREAMS["correlation"]
    given = chain_of(make(240, 10, 5))
    agents = agents_of(given)

    def on_24(roles: str, **printed: bool) -> Detection:
        as_printed = Printed(**printed)
        return detect(given, STEPS, COSTS, Crew(24, roles), agents=agents, printed=as_printed)

    whole, other = on_24("full"), on_24("full", choice=True)
    assert (other.lost, other.idle) == (0, 0)
    assert other.composites == whole.composites
    assert other.seconds != whole.seconds
    free, fewer = on_24("static"), on_24("static", caps=True)
    assert (free.idle, fewer.lost) == (0, 0)
    assert fewer.idle > 0
    assert fewer.composites == whole.composites
