"""Generated workloads: as many of everything as asked for, where they are asked for (7.4)."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import networkx as nx
import numpy as np
import pytest

import rules
from matcher.model import MICROSECONDS
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.generation import ORIGIN_S, Generated, generate, horizon_s
from simulator.report import delays
from simulator.scenario import ScenarioError
from simulator.topology import TopologySpec, graph_of
from simulator.workload import Workload

SEED = 5


def network(brokers: int = 20) -> nx.Graph:
    return graph_of(TopologySpec("waxman", brokers), Random(SEED))


def made(graph: nx.Graph | None = None, **keys: object) -> Generated:
    workload = Workload(**({"horizon_s": 100.0} | keys))  # type: ignore[arg-type]
    return generate(workload, graph or network(), SEED)


def counts(generated: Generated) -> Counter[str]:
    return Counter(
        {
            batch.type.name: len(batch)
            for _, recording in generated.recordings
            for batch in recording.batches
        }
    )


def test_a_seed_gives_one_workload() -> None:
    one, same = made(values=5), made(values=5)
    assert (one.rules, one.subscriptions) == (same.rules, same.subscriptions)
    for (_, mine), (_, theirs) in zip(one.recordings, same.recordings, strict=True):
        for left, right in zip(mine.batches, theirs.batches, strict=True):
            assert np.array_equal(left.time, right.time)
            assert np.array_equal(left.columns[0], right.columns[0])


def test_what_is_not_asked_to_differ_does_not() -> None:
    one, other = made(subscriptions=3), made(subscriptions=9, negations=0.5)
    assert counts(one) == counts(other)
    assert [broker for broker, _ in one.recordings] == [broker for broker, _ in other.recordings]


@pytest.mark.parametrize("law", ["exponential", "zipf", "even"])
def test_rates_lie_between_their_bounds(law: str) -> None:
    found = sorted(counts(made(types=20, rates=(1.0, 16.0), law=law)).values())
    assert found[0] == pytest.approx(100, rel=0.4)
    assert found[-1] == pytest.approx(1_600, rel=0.1)
    middle = {"exponential": 400, "zipf": 160, "even": 850}[law]
    assert found[10] == pytest.approx(middle, rel=0.3)


def test_rules_have_what_they_are_asked_to_have() -> None:
    generated = made(
        rules=200,
        length=4,
        window_s=10.0,
        window_spread=0.5,
        selection={"last": 0.5, "each": 0.5},
        values=3,
        parameters=0.5,
        negations=0.25,
        aggregates=0.1,
    )
    found = rules.load(generated.rules).rules
    assert len(found) == 200
    text = generated.rules
    assert text.count("each T") == pytest.approx(300, rel=0.2)
    assert text.count("key = e0.key)") == pytest.approx(100, rel=0.3)
    assert text.count("not T") == pytest.approx(50, rel=0.4)
    assert text.count("Count(") == pytest.approx(20, rel=0.6)
    windows = [int(one.split(" ms")[0]) for one in text.split("within ")[1:]]
    assert 5_000 <= min(windows) < 6_000 < 14_000 < max(windows) <= 15_000


def test_rules_of_a_class_share_no_type_with_another() -> None:
    generated = made(types=40, rules=40, classes=4)
    used: dict[int, set[str]] = {}
    for number, rule in enumerate(rules.load(generated.rules).rules):
        used.setdefault(number % 4, set()).update(one.name for one in rule.used_types)
    assert sum(map(len, used.values())) == len(set().union(*used.values()))


def spread(graph: nx.Graph, locality: float) -> float:
    """The mean delay between the homes of two types of one class."""
    generated = made(graph, types=60, classes=6, publisher_locality=locality)
    homes = {one.name: place for place, own in generated.recordings for one in own.types}
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight="delay_s"))
    names = sorted(homes, key=lambda name: int(name[1:]))
    groups = [names[number::6] for number in range(6)]
    found = [lengths[homes[a]][homes[b]] for own in groups for a in own for b in own]
    return float(np.mean(found))


def test_publishers_of_a_class_are_near_each_other() -> None:
    graph = network()
    far, near, same = (spread(graph, locality) for locality in (0.0, 0.8, 1.0))
    assert 0 == same < near < 0.8 * far


def test_sinks_are_near_what_they_want() -> None:
    graph = network()
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight="delay_s"))

    def distance(locality: float) -> float:
        generated = made(
            graph, classes=10, publisher_locality=1.0, sink_locality=locality, subscriptions=5
        )
        homes = {one.name: place for place, own in generated.recordings for one in own.types}
        used = {
            rule.defines.name: next(iter(rule.used_types)).name
            for rule in rules.load(generated.rules).rules
        }
        found = [
            lengths[broker][homes[used[text.removesuffix("()")]]]
            for broker, filters in generated.subscriptions.items()
            for text in filters
        ]
        assert {len(filters) for filters in generated.subscriptions.values()} == {5}
        return float(np.mean(found))

    assert distance(0.9) < 0.7 * distance(0.0)


def test_publishing_goes_on_until_the_rarest_has_occurred_so_often() -> None:
    workload = Workload(types=12, rates=(0.05, 5.0), rarest_count=30)
    generated = generate(workload, network(), SEED, warm_up_s=20.0)
    since = (ORIGIN_S + 20.0) * MICROSECONDS
    found = {
        batch.type.name: int((batch.time >= since).sum())
        for _, recording in generated.recordings
        for batch in recording.batches
    }
    assert 30 in found.values()
    assert generated.horizon_s == pytest.approx(20 + 30 / 0.05, rel=0.5)


def test_parts_are_the_whole_cut(tmp_path: Path) -> None:
    workload = Workload(types=12, rates=(0.05, 5.0), rarest_count=30)
    whole = generate(workload, network(), SEED, warm_up_s=20.0)
    assert horizon_s(workload, SEED, 20.0) == whole.horizon_s
    ends = [0.0, 100.0, 250.0, whole.horizon_s + 50]
    parts = [
        generate(msgspec.structs.replace(workload, part=part), network(), SEED, warm_up_s=20.0)
        for part in pairwise(ends)
    ]
    assert {(part.rules, part.horizon_s) for part in parts} == {(whole.rules, whole.horizon_s)}
    assert all(part.subscriptions == whole.subscriptions for part in parts)
    assert sum(events_of(whole).values()) > 1_000
    assert events_of(whole) == sum(map(events_of, parts), Counter())
    for (begin, _), part in zip(pairwise(ends), parts, strict=True):
        assert {one.span[0] for _, one in part.recordings if one.span} == {
            round((ORIGIN_S + begin) * MICROSECONDS)
        }


def events_of(generated: Generated) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for broker, recording in generated.recordings:
        for batch in recording.batches:
            values = (column.tolist() for column in batch.columns)
            numbers = batch.ids.sequence.tolist()
            rows = zip(numbers, batch.time.tolist(), *values, strict=True)
            found.update((broker, recording.name, batch.type.name, *row) for row in rows)
    return found


BASE = """
seed = 3
engine = "naive"
[topology]
kind = "ring"
brokers = 5
[workload]
types = 10
rates = [0.05, 1.0]
rules = 6
length = 2
window_s = 5.0
subscriptions = 3
horizon_s = 20.0
negations = 0.3
aggregates = 0.3
parameters = 0.3
selection = { last = 0.6, first = 0.2, each = 0.2 }
"""


def run(path: Path, text: str) -> Outcome:
    file = path / "scenario.toml"
    file.write_text(text)
    return Experiment(scenario.read(file)).run()


@pytest.mark.parametrize("strategy", ["centralized", "distributed-st"])
def test_a_generated_scenario_is_as_the_oracle_says(tmp_path: Path, strategy: str) -> None:
    outcome = run(tmp_path, f'strategy = "{strategy}"\n{BASE}')
    assert outcome.settled
    assert check(outcome) == []
    assert sum(len(sink.arrivals) for sink in outcome.experiment.sinks.values()) > 20
    assert run(tmp_path, f'strategy = "{strategy}"\n{BASE}').digest == outcome.digest


def test_what_happens_in_the_warm_up_is_not_measured(tmp_path: Path) -> None:
    whole, later = (run(tmp_path, f"warm_up_s = {warm}\n{BASE}") for warm in (0.0, 10.0))
    assert whole.digest == later.digest
    assert 0 < len(delays(later.experiment)) < 0.8 * len(delays(whole.experiment))
    sent = [
        sum(a.bytes + b.bytes for a, b in one.experiment.lanes.values()) for one in (whole, later)
    ]
    assert 0 < sent[1] < 0.8 * sent[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("types = 10", "types = 0", "workload: types: at least 1, not 0"),
        ("types = 10", "types = 1", "workload: types: 1 classes of rules of 2 events need 2"),
        ("rates = [0.05, 1.0]", "rates = [2.0, 1.0]", "workload: rates: expected two that rise"),
        ("parameters = 0.3", "parameters = 3", "workload: parameters: expected a share"),
        ("horizon_s = 20.0", "", "workload: expected either horizon_s or rarest_count"),
        (
            "horizon_s = 20.0",
            "horizon_s = 20.0\npart = [5, 3]",
            "workload: part: expected two seconds that rise",
        ),
        ("subscriptions = 3", "subscriptions = 7", "workload: subscriptions: there are no 7 rules"),
        ("last = 0.6", "next = 0.6", "workload: selection: expected shares of last, first, each"),
        ("length = 2", 'length = "2"', "workload.length: expected `int`, got `str`"),
        ("seed = 3", "seed = 3\nwarm_up_s = -1.0", "warm_up_s: expected 0 or more"),
    ],
)
def test_a_bad_workload_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in BASE
    file = tmp_path / "scenario.toml"
    file.write_text(BASE.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        scenario.read(file)
    assert message in str(caught.value)


@pytest.mark.parametrize("strategy", ["distributed-st", "push-pull-mt"])
def test_parts_deliver_together_what_the_whole_delivers(tmp_path: Path, strategy: str) -> None:
    """Each part has a warm-up as long as the rules reach: here one window."""
    text = f'strategy = "{strategy}"\n{BASE}'
    ends, reach = [0.0, 8.0, 13.0, 25.0], 5.0
    parts = Counter[tuple[object, ...]]()
    for begin, end in pairwise(ends):
        since = max(0.0, begin - reach)
        part = run(tmp_path, text.replace("horizon_s", f"part = [{since}, {end}]\nhorizon_s"))
        parts += delivered(part, begin, end)
    whole = run(tmp_path, text)
    assert parts == delivered(whole, 0.0, 25.0)
    assert len(parts) > 20


def delivered(outcome: Outcome, begin_s: float, end_s: float) -> Counter[tuple[object, ...]]:
    """By sink, what was delivered of a time after publishing began, the begin not included."""
    ends = [round((ORIGIN_S + one) * MICROSECONDS) for one in (begin_s, end_s)]
    return Counter(
        (name, batch.type.name, time, *values)
        for name, sink in outcome.experiment.sinks.items()
        for arrival in sink.arrivals
        for batch in arrival.delivery.batches
        for time, *values in zip(batch.time.tolist(), *map(list, batch.columns), strict=True)
        if ends[0] < time <= ends[1]
    )


def test_a_part_after_the_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"workload\.part: begins at 30 s, and all is over"):
        run(tmp_path, BASE.replace("horizon_s", "part = [30, 40]\nhorizon_s"))
