"""Faults that are drawn from the seed: what the table says, no overlaps, the oracle's results."""

import itertools
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from simulator_text import SMALL

from broker.cli import main
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment
from simulator.faults import KINDS, Fault
from simulator.mishaps import BOUNDS, Mishaps, Targets, draw
from simulator.scenario import ScenarioError

ONE = "span_s = [0.0, 1.0]\ncount = 1\n"
TARGETS = Targets((("a", "b"), ("b", "c"), ("c", "a")), ("a", "b", "c"), ("s1", "s2"))
NETWORK = """
seed = {seed}
strategy = "{strategy}"
[topology]
kind = "waxman"
brokers = 6
degree = 3.0
[workload]
types = 10
rates = [0.5, 3.0]
rules = 6
window_s = 4.0
subscriptions = 3
horizon_s = 12.0
[protocol]
message_cost_us = 200.0
[faults]
span_s = [-3.0, 11.0]
"""


def drawn(seed: int = 1, others: tuple[Fault, ...] = (), **keys: object) -> tuple[Fault, ...]:
    table = Mishaps(**{"span_s": (0.0, 100.0), "count": 40, **keys})  # type: ignore[arg-type]
    return draw(table, TARGETS, others, Random(seed))


def places(fault: Fault) -> set[object]:
    """Where it is: names, and links as sets."""
    where = KINDS[fault.kind].where
    named = getattr(fault, where) or getattr(TARGETS, where)
    return {one if isinstance(one, str) else frozenset(one) for one in named}


def test_faults_are_as_the_table_says() -> None:
    found = drawn(
        count=200,
        kinds=tuple(KINDS),
        for_s=(0.5, 2.0),
        places=(1, 2),
        values={"loss": (0.3, 0.4)},
        span_s=(-10.0, 500.0),
    )
    assert {one.kind for one in found} == set(KINDS)
    assert [one.at_s for one in found] == sorted(one.at_s for one in found)
    for one in found:
        assert -10.0 <= one.at_s <= 500.0
        assert one.for_s is not None
        assert 0.5 <= one.for_s <= 2.0
        assert len(places(one)) in (1, 2)
        if one.kind in BOUNDS:
            least, greatest = (0.3, 0.4) if one.kind == "loss" else BOUNDS[one.kind]
            assert one.value is not None
            assert least <= one.value <= greatest
    assert {len(places(one)) for one in found} == {1, 2}


@pytest.mark.parametrize("seed", range(20))
def test_those_of_one_kind_in_one_place_do_not_overlap(seed: int) -> None:
    """Nor do they overlap those that are spelled out, to the end or everywhere."""
    others = (
        Fault("cut", 20.0, links=(("b", "a"),)),
        Fault("crash", 40.0, 20.0),
        Fault("slow", 10.0, 30.0, brokers=("a",), value=2.0),
    )
    kinds = ("cut", "crash", "slow", "loss")
    found = (*others, *drawn(seed, others, kinds=kinds, places=(1, 3), for_s=(5.0, 20.0)))
    assert len(found) > 10
    for one, other in itertools.combinations(found, 2):
        if one.kind == other.kind and places(one) & places(other):
            first, second = sorted((one, other), key=lambda fault: fault.at_s)
            assert first.for_s is not None, f"seed {seed}"
            assert first.at_s + first.for_s < second.at_s, f"seed {seed}"


def test_one_every_so_often_comes_as_often() -> None:
    count = sum(len(drawn(seed, count=None, every_s=2.0, for_s=(0.1, 0.1))) for seed in range(40))
    assert 1_800 < count < 2_200
    assert drawn(count=0) == ()


def test_faults_strike_only_what_is_named() -> None:
    found = drawn(kinds=("cut", "slow"), links=(("b", "a"),), brokers=("c",))
    assert {frozenset().union(*places(one)) for one in found} == {frozenset("ab"), frozenset("c")}


def test_a_seed_draws_the_same_faults_and_another_others() -> None:
    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


# --- in scenarios --------------------------------------------------------------------------------


def written_network(written, seed: int, strategy: str, keys: str) -> Path:
    return written(NETWORK.format(seed=seed, strategy=strategy) + keys)


def test_drawn_faults_stand_beside_those_spelled_out(written) -> None:
    cut = '[[fault]]\nkind = "cut"\nat_s = 1.0\nfor_s = 0.5\n'
    path = written_network(written, 1, "centralized", f"count = 6\n{cut}")
    first, *others = scenario.read(path).faults
    assert first == Fault("cut", 1.0, 0.5)
    assert len(others) == 6
    assert tuple(scenario.read(path).faults) == (first, *others)
    assert scenario.read(path, 2).faults[1:] != tuple(others)
    assert scenario.read(path).heartbeat_s == 1.0


def test_all_but_the_faults_stays_as_it_is(written) -> None:
    path = written_network(written, 1, "centralized", "count = 6\n")
    with_faults = scenario.read(path)
    path.write_text(path.read_text().partition("[faults]")[0])
    quiet = scenario.read(path)
    assert quiet.heartbeat_s == 600.0
    assert replace(with_faults, faults=(), heartbeat_s=600.0) == quiet
    one, other = (Experiment(read).recordings for read in (with_faults, quiet))
    assert [(name, len(recording)) for name, recording in one] == [
        (name, len(recording)) for name, recording in other
    ]


@pytest.mark.parametrize(
    ("seed", "strategy"),
    [
        (1, "centralized"),
        (2, "distributed-st"),
        (3, "distributed-mt"),
        (4, "push-pull-st"),
        (5, "push-pull-mt"),
        (6, "adaptive"),
    ],
)
def test_what_protocols_survive_changes_no_result(written, seed: int, strategy: str) -> None:
    keys = """
count = 15
kinds = ["loss", "repeats", "reordering", "delay", "slow", "skew", "cut"]
for_s = [0.1, 3.0]
places = [1, 3]
"""
    path = written_network(written, seed, strategy, keys)
    one, same = (Experiment(scenario.read(path)).run() for _ in range(2))
    assert len(one.experiment.scenario.faults) == 15
    assert one.settled
    assert check(one) == [], f"seed {seed}"
    assert one.digest == same.digest


def test_the_command_checks_them(written, capsys) -> None:
    path = written(f"{SMALL}\n[faults]\nspan_s = [0.0, 3.0]\ncount = 3\n")
    assert main(["simulate", str(path), "--check"]) == 0
    assert "as the oracle" in capsys.readouterr().out


def test_clocks_of_sources_in_files_and_of_a_workload_go_wrong(written) -> None:
    found = scenario.read(
        written_network(written, 1, "centralized", 'count = 30\nkinds = ["skew"]\n')
    )
    names = {name for fault in found.faults for name in fault.sources}
    assert len(names) > 1
    published = {recording.name for _, recording in Experiment(found).recordings}
    assert names <= published
    path = written(f'{SMALL}\n[faults]\nspan_s = [0.0, 3.0]\ncount = 1\nkinds = ["skew"]\n')
    assert scenario.read(path).faults[0].sources == ("s1",)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "faults: object missing required field `span_s`"),
        ("span_s = [1.0]\ncount = 1", "faults.span_s: expected `array` of length 2"),
        ("span_s = [2.0, 1.0]\ncount = 1", "faults: span_s: expected two that rise"),
        ("span_s = [0.0, nan]\ncount = 1", "faults.span_s[2]: expected a finite number"),
        ("span_s = [0.0, 1.0]", "faults: expected either count or every_s"),
        ("span_s = [0.0, 1.0]\ncount = 1\nevery_s = 1.0", "faults: expected either count or"),
        ("span_s = [0.0, 1.0]\ncount = -1", "faults: count: at least 0, not -1"),
        ("span_s = [0.0, 1.0]\nevery_s = 0.0", "faults: every_s must be positive"),
        ("{}for_s = [0.0, 1.0]", "faults: for_s: at least 0.001, not 0.0"),
        ("{}for_s = [2.0, 1.0]", "faults: for_s: expected two that rise"),
        ("{}places = [0, 1]", "faults: places: at least 1, not 0"),
        ("{}places = [3, 1]", "faults: places: expected two that rise"),
        ('{}kinds = ["quake"]', "faults: kinds: expected some of cut, loss"),
        ("{}kinds = []", "faults: kinds: expected different ones, found []"),
        ('{}kinds = ["cut", "cut"]', "faults: kinds: expected different ones"),
        ("{}values = {{ cut = [0.0, 1.0] }}", "faults: values: expected some of loss, repeats"),
        ("{}values = {{ loss = [0.0, 2.0] }}", "faults: values.loss: value: expected a share"),
        ("{}values = {{ slow = [3.0, 2.0] }}", "faults: values.slow: expected two that rise"),
        ('{}sources = ["s1"]', "faults: sources: no fault of these kinds is on sources"),
        ('{}links = [["b1", "b9"]]', "faults.links: there is no link between b1 and b9"),
        ('{}brokers = ["b9"]', "faults.brokers: there is no broker 'b9'"),
        ('{}kinds = ["skew"]\nsources = ["x"]', "faults.sources: there is no source 'x'"),
        ("{}kind = 3", "faults: object contains unknown field `kind`"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(written, keys: str, message: str) -> None:
    path = written(f"{SMALL}\n[faults]\n{keys.format(ONE)}\n")
    with pytest.raises(ScenarioError) as caught:
        scenario.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_there_must_be_something_to_strike(written) -> None:
    alone = 'seed = 1\n[[broker]]\nname = "b1"\n[faults]\nspan_s = [0.0, 1.0]\ncount = 1\n'
    with pytest.raises(ScenarioError, match=r"faults\.kinds: there are no links to strike"):
        scenario.read(written(alone))
