"""Random networks against the oracle: they are right, and what is wrong is found and made small."""

import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from pairs import seeds
from slow_slices import slow_slices

from broker.cli import main
from routing.evaluation import replay
from routing.network.brokers import resending
from routing.network.evaluation.divided import DividedDetection
from simulator import clients, scenario
from simulator.checkers import check
from simulator.experiment import Experiment
from simulator.faults import KINDS
from simulator.fuzzing.campaign import (
    Failure,
    cases_of,
    differences,
    failures,
    smallest,
    strategies as registered,
)
from simulator.fuzzing.case import Case, Then, used
from simulator.fuzzing.making import made_open, made_restless, random_case
from simulator.fuzzing.shrinking import shrink, smaller_cases
from simulator.fuzzing.tearing import (
    made_changing,
    made_ending,
    made_longer,
    made_replacing,
    made_torn,
    with_crashes,
)
from simulator.fuzzing.world import COMPOSITE
from simulator.oracle import Oracle

STRATEGIES = registered()


@cache
def centralized(seed: int) -> Case:
    return random_case(seed, "centralized")


@pytest.mark.parametrize("seed", seeds(6, 40))
def test_a_random_network_is_as_the_oracle_says(seed: int) -> None:
    """Every strategy has its turn; ``make fuzz`` runs more seeds, each with all of them."""
    case = random_case(seed, STRATEGIES[seed % len(STRATEGIES)])
    assert differences(case) == [], f"seed {seed}, {case.strategy}"


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_so_is_one_whose_brokers_send_again_a_few_events_at_a_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And wait until these are acknowledged."""
    monkeypatch.setattr(replay, "SLICE_EVENTS", 1 + seed % 4)
    monkeypatch.setattr(resending, "UNDER_WAY_EVENTS", 1 + seed % 3)
    case = random_case(seed, STRATEGIES[(seed + 2) % len(STRATEGIES)])
    assert differences(case) == [], f"seed {seed}, {case.strategy}"


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_so_is_one_whose_brokers_take_a_while_for_each_rule(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what neighbours say waits meanwhile."""
    slow_slices(monkeypatch, 0.02 + seed % 3)
    case = random_case(seed, STRATEGIES[(seed + 4) % len(STRATEGIES)])
    assert differences(case) == [], f"seed {seed}, {case.strategy}"


def test_the_networks_have_what_they_are_to_have() -> None:
    cases = [centralized(seed) for seed in range(60)]
    text = "\n".join(str(rule) for case in cases for rule in case.rules)
    for words in (
        "each ",
        "first ",
        "2-last ",
        "not ",
        "Count(",
        "Sum(",
        "$x",
        "consuming",
        "all ",
        "Timer(",
    ):
        assert words in text
    assert {len(case.brokers) for case in cases} >= {2, 5, 8, 12}
    assert sum(len(case.links) >= len(case.brokers) for case in cases) > 15  # with cycles
    kinds = {fault.kind for case in cases for fault in case.faults}
    assert kinds == KINDS.keys()
    changes = [change for case in cases for change in case.changes]
    assert sum(bool(change.removed) for change in changes) > 2
    assert sum(bool(change.rules) for change in changes) > 8
    assert sum(case.ordering == "arrival" for case in cases) > 2
    assert sum(len(case.changes) > 4 for case in cases) > 1  # restless


def test_a_restless_network_changes_often_and_makes_sense() -> None:
    """Whatever the case, and with no rule that would wait for a type (``is_sound``)."""
    restless = 0
    for seed in range(12):
        case = centralized(seed)
        found = made_restless(case, Random(seed))
        assert found.is_sound
        assert found == replace(case, changes=found.changes)
        at_s = [change.at_s for change in found.changes]
        assert at_s == sorted(at_s)
        restless += found != case and 3 <= len(at_s) <= 8
    assert restless > 8


def test_clients_of_an_open_network_come_in_mid_stream() -> None:
    came = gone = late = 0
    for seed in range(12):
        case = centralized(seed)
        found = made_open(case, Random(seed))
        assert replace(found, coming=case.coming, sinks=case.sinks) == case
        assert {name for name, _ in found.coming} <= {name for name, _ in case.homes}
        came += sum(sink.at_s is not None for sink in found.sinks)
        gone += sum(sink.for_s is not None for sink in found.sinks)
        late += len(found.coming)
        assert all(smaller != found for smaller in smaller_cases(found))
    assert min(came, gone, late) > 2


def test_sources_of_a_moving_network_go_on_at_other_brokers() -> None:
    cases = [centralized(seed) for seed in range(200)]
    moving = [case for case in cases if case.moves]
    assert 20 < len(moving) < 80
    homes = [(dict(case.homes)[move.source], move) for case in moving for move in case.moves]
    assert any(move.broker not in (home, None) for home, move in homes)
    assert any(move.broker == home and move.away_s == 0.0 for home, move in homes)
    for case in moving:
        for one, other in itertools.pairwise(case.moves):
            assert one.source != other.source or one.at_s + one.away_s <= other.at_s + 1e-9


def test_in_fickle_networks_sinks_turn_to_other_things_and_sources_rest() -> None:
    cases = [centralized(seed) for seed in range(200)]
    turns = [(sink, then) for case in cases for sink in case.sinks for then in sink.then]
    assert len(turns) > 20
    assert any(then.subscribe for _, then in turns)
    assert any(then.unsubscribe for _, then in turns)
    assert any(move.broker is None for case in cases for move in case.moves)
    case = next(case for case in cases if len(case.sinks[0].then) > 1)
    (first, *_), fewer = case.sinks, {one.sinks[0].then for one in smaller_cases(case)}
    assert first.then[1:] in fewer
    assert all(replace(case, sinks=(first,)).is_sound for first in case.sinks)
    useless = replace(first, then=(Then(1.0, (), ("Nothing()",)),))
    assert not replace(case, sinks=(useless,)).is_sound


def test_in_narrow_networks_sources_wait_for_one_another() -> None:
    cases = [centralized(seed) for seed in range(200)]
    narrow = [case for case in cases if case.publish_credit is not None]
    assert 5 < len(narrow) < 40
    for case in narrow:
        assert case.source_lead_max_s is not None
        smaller = list(smaller_cases(case))
        assert replace(case, publish_credit=None) in smaller
        assert replace(case, source_lead_max_s=None) in smaller


def test_in_half_of_the_networks_brokers_soon_ask_what_is_needed(tmp_path: Path) -> None:
    cases = [centralized(seed) for seed in range(60)]
    asking = [case for case in cases if case.unasked_events_max is not None]
    assert 15 < len(asking) < 45
    assert not any(case.ordering == "arrival" for case in asking)
    assert all(replace(one, unasked_events_max=None) in smaller_cases(one) for one in asking)
    let_go = 0
    for case in asking:
        outcome = Experiment(scenario.read(case.write(tmp_path / str(case.seed)))).run()
        for host in outcome.experiment.brokers.values():
            buffer = host.broker.context.detection.replay_buffer
            let_go += buffer.place - len(buffer)
        if let_go > 20:
            break
    assert let_go > 20


def test_in_some_networks_a_broker_with_clients_fails() -> None:
    failing = 0
    for seed in range(100):
        case = centralized(seed)
        used = {broker for _, broker in case.homes} | {sink.broker for sink in case.sinks}
        crashed = {name for fault in case.faults for name in fault.brokers}
        failing += not crashed.isdisjoint(used)
    assert failing > 0


def test_some_torn_networks_are_so_for_longer_than_events_come() -> None:
    long = 0
    for seed in range(40):
        case = made_torn(centralized(seed), Random(seed))
        found = made_longer(case, Random(seed))
        assert len(found.faults) == len(case.faults)
        cuts = [fault for fault in found.faults if fault.kind == "cut"]
        long += any(fault.for_s > 80.0 for fault in cuts)
    assert long > 5


def test_in_some_torn_networks_rules_come_under_new_names() -> None:
    random = Random(5)
    torn = [made_torn(centralized(seed), random) for seed in range(10)]
    cases = [made_changing(case, random) for case in torn]
    changing = [case for case in cases if case.changes]
    assert 1 < len(changing) < len(cases)
    for case in changing:
        assert case.is_sound
        names = [rule.name for change in case.changes for rule in change.rules]
        assert len({*names, *(rule.name for rule in case.rules)}) == len(names) + len(case.rules)
        assert not any(change.removed for change in case.changes)


def test_in_some_torn_networks_a_rule_ends_that_no_other_uses() -> None:
    random, ending = Random(7), 0
    for seed in range(40):
        torn = made_changing(made_torn(centralized(seed), random), random)
        case = made_ending(torn, random)
        gone = [change.removed for change in case.changes if change.removed]
        assert case.is_sound
        assert [one for one in case.changes if not one.removed] == list(torn.changes)
        assert [one.at_s for one in case.changes] == sorted(one.at_s for one in case.changes)
        if gone:
            ending += 1
            (rule,) = (one for one in case.rules if one.name == gone[0])
            others = [one for change in case.changes for one in change.rules]
            assert rule.defines not in used([*(o for o in case.rules if o != rule), *others])
    assert 5 < ending < 35


def test_in_some_torn_networks_a_rule_takes_the_place_of_another_that_no_other_uses() -> None:
    random, replaced = Random(8), 0
    for seed in range(40):
        torn = made_ending(made_torn(centralized(seed), random), random)
        case = made_replacing(torn, random)
        gone = {change.removed for change in torn.changes}
        new = [one for change in case.changes for one in change.rules]
        assert case.is_sound
        assert [one for one in case.changes if not one.rules] == list(torn.changes)
        if new:
            replaced += 1
            (old,) = (one for one in case.rules if one.name == new[0].name)
            assert old.name not in gone
            assert old.defines not in used([one for one in case.rules if one != old])
    assert 5 < replaced < 35


def test_in_some_networks_rules_hold_from_a_past_instant() -> None:
    """New ones, also where brokers go on with their stores, once all of them are back."""
    killed = ended = past = 0
    for seed in range(200):
        case = centralized(seed)
        known = {rule.name for rule in case.rules}
        for change in case.changes:
            if change.since_s is not None:
                past += 1
                assert case.ordering == "watermark"
                assert case.is_sound
                assert change.since_s < change.at_s
                assert not known & {rule.name for rule in change.rules}
                kills = [one for one in case.faults if one.kind == "restart"]
                killed += bool(kills)
                for one in kills:
                    is_whole = set(one.brokers) == set(case.brokers)
                    assert not is_whole or change.at_s > one.at_s + one.for_s
            known.update(rule.name for rule in change.rules)
            ended += change.removed.startswith("p")
    assert min(killed, ended) > 1
    assert past > 30


def test_links_of_a_torn_network_are_cut_for_longer_than_is_noticed() -> None:
    long = 0
    for seed in range(12):
        case = centralized(seed)
        found = made_torn(case, Random(seed))
        assert found.is_sound
        cuts = [fault for fault in found.faults if fault.kind == "cut"]
        assert len({fault.links for fault in cuts}) == len(cuts) > 0
        assert (found.ordering, found.changes) == ("watermark", ())
        long += sum(fault.for_s > 3 * found.heartbeat_s for fault in cuts)
    assert long > 8


def test_what_changes_makes_a_difference(tmp_path: Path) -> None:
    """Of rules that are deployed in mid-stream something is detected, and removed ones held."""
    later = ended = 0
    for seed in range(30):
        case = centralized(seed)
        if case.changes and case.ordering == "watermark":
            experiment = (
                Experiment(scenario.read(case.write(tmp_path / str(seed)))).run().experiment
            )
            held = experiment.book.held
            ended += sum(one.until is not None for one in held)
            begun = [one for one in held if one.since is not None]
            later += len(Oracle(begun, experiment.batches).answer(COMPOSITE).composite)
        if ended > 1 and later > 5:
            break
    assert ended > 1
    assert later > 5


def test_something_is_detected_in_them(tmp_path: Path) -> None:
    detected = 0
    for seed in range(9):
        path = centralized(seed).write(tmp_path / str(seed))
        for sink in Experiment(scenario.read(path)).run().experiment.sinks.values():
            batches = (batch for one in sink.arrivals for batch in one.delivery.batches)
            detected += sum(len(batch) for batch in batches if batch.is_composite)
        if detected > 50:
            break
    assert detected > 50


def test_a_seed_gives_one_case() -> None:
    one, other = (random_case(7, name) for name in ("centralized", "distributed-st"))
    assert one == replace(other, strategy="centralized")
    assert one != random_case(8, "centralized")


def test_what_was_committed_and_is_taken_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one of the first seeds, where a checkpoint comes by while rules begin anew."""
    case = random_case(16, "push-pull-mt")
    assert differences(case) == []
    monkeypatch.setattr(DividedDetection, "not_before_committed", lambda self, times: dict(times))
    assert any("what was committed of rule" in line for line in differences(case))


def test_a_subscription_that_comes_again_brings_nothing_twice() -> None:
    """Its tree, which nobody had wanted for a while, began where an earlier plan had it begin."""
    assert differences(random_case(4034, "push-pull-mt")) == []


def lose_the_second(self: clients.Sink, result: object) -> None:
    """A sink that forgets what comes second."""
    if isinstance(result, clients.Delivery):
        self.arrivals.append(clients.Arrival(0.0, result))
        if len(self.arrivals) == 2:
            self.arrivals[1:] = []
        self.session.consume(len(result))


def test_a_mistake_is_found_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients.Sink, "take", lose_the_second)
    found = next(failures(cases_of(range(15, 40), ("centralized",)), 1))
    small = smallest(found)
    assert any("missing" in line for line in small.differences)
    assert len(small.case.events) < len(found.case.events) / 2
    assert len(small.case.brokers) == 1
    assert len(small.case.sinks) == 1
    path = small.case.write(tmp_path)
    assert check(Experiment(scenario.read(path)).run()) == list(small.differences)


def test_shrinking_keeps_what_it_takes() -> None:
    case = next(
        case
        for seed in range(99)
        if len((case := centralized(seed)).brokers) > 4
        and len(case.faults) > 1
        and not case.faults[0].links  # else it needs the brokers at one of them
    )
    kind, broker = case.faults[0].kind, case.brokers[2]

    def fails(smaller: Case) -> bool:
        kinds = {fault.kind for fault in smaller.faults}
        return kind in kinds and broker in smaller.brokers and len(smaller.events) >= 3

    small = shrink(case, fails)
    assert [fault.kind for fault in small.faults] == [kind]
    assert small.brokers == (broker,)
    assert len(small.events) == 3
    assert small.is_sound


def test_the_command_tells_what_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = random_case(3, "centralized")
    words = ["simulate", "--fuzz", "--seeds", "3..4", "--strategy", "centralized"]
    words += ["--out", str(tmp_path)]
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert main(words) == 0
    assert "1 seeds with centralized: all as the oracle" in capsys.readouterr().out
    failure = Failure(case, ("sink k0: something else",))
    monkeypatch.setattr("simulator.fuzzing.cli.failures", lambda cases, processes: [failure])
    monkeypatch.setattr("simulator.fuzzing.cli.smallest", lambda failure: failure)
    assert main(words) == 1
    told = capsys.readouterr().out
    assert "seed 3, centralized: fails\n  sink k0: something else" in told
    assert (tmp_path / "seed-3-centralized" / "scenario.toml").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fuzz", "--seeds", "4..4"], "expected A..B with A below B"),
        (["--fuzz", "--seeds", "x"], "expected A..B with A below B"),
        (["--fuzz", "scenario.toml"], "either a scenario or --fuzz"),
        (["--fuzz", "--check"], "takes --seeds, --strategy and --out alone"),
        (["--fuzz", "--strategy", "foo"], "--strategy: expected one of centralized"),
        (["--fuzz", "--seed", "3"], "takes --seeds, --strategy and --out alone"),
        (["scenario.toml", "--seeds", "1..2"], "a scenario has its own"),
        ([], "either a scenario or --fuzz"),
    ],
)
def test_wrong_words_exit_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


# --- what campaigns have found -----------------------------------------------------------------

Network = dict[tuple[str, str], float]
"""Links, with their delays in milliseconds."""


def run(path: Path, head: str, network: Network, homes: dict[str, str], rest: str) -> list[str]:
    """The differences of a scenario in which an A and a B are published once, at the same time."""
    path.joinpath("rules.tesla").write_text(
        "event A(p: int)\nevent B(p: int)\nrule r: define Z() from B() as b\n"
    )
    text = f'{head}\nengine = "naive"\nrules = "rules.tesla"\n[protocol]\nheartbeat_s = 20.0\n'
    for name in dict.fromkeys(name for pair in network for name in pair):
        text += f'[[broker]]\nname = "{name}"\n'
    for (one, other), delay_ms in network.items():
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\ndelay_ms = {delay_ms}\n'
    for name, broker in homes.items():
        path.joinpath(f"{name}.jsonl").write_text(
            f'{{"type": "{name}", "time": 11, "source": "{name}", "id": "1", "data": {{"p": 1}}}}'
        )
        text += f'[[source]]\nname = "{name}"\nbroker = "{broker}"\nevents = "{name}.jsonl"\n'
    file = path / "scenario.toml"
    file.write_text(text + rest)
    return check(Experiment(scenario.read(file)).run())


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_goes_on_behind_what_it_speaks_of(tmp_path: Path, seed: int) -> None:
    """Packets that overtook one another were taken in at once, and the plan was told first."""
    head = f'seed = {seed}\nstrategy = "distributed-st"'
    network = {("n1", "n3"): 0.5, ("n1", "n8"): 400.0, ("n3", "n9"): 40.0}
    rest = '[[sink]]\nname = "k"\nbroker = "n3"\nsubscribe = ["Z"]\n'
    rest += '[[fault]]\nkind = "reordering"\nat_s = -10.0\nfor_s = 25.0\nvalue = 0.02\n'
    assert run(tmp_path, head, network, {"A": "n1", "B": "n9"}, rest) == []


@pytest.mark.parametrize("seed", range(8))
def test_the_last_event_goes_on_before_its_type_is_forgotten(tmp_path: Path, seed: int) -> None:
    """The event and the end of its source came at once, and the end was told first."""
    head = f'seed = {seed}\nstrategy = "centralized"'
    network = {("n0", "n5"): 400.0, ("n0", "n8"): 5.0}
    rest = '[[sink]]\nname = "k"\nbroker = "n8"\nsubscribe = ["A"]\n'
    rest += '[[fault]]\nkind = "reordering"\nat_s = -4.0\nfor_s = 20.0\nvalue = 0.04\n'
    assert run(tmp_path, head, network, {"A": "n5", "B": "n0"}, rest) == []


def test_only_brokers_without_clients_fail_whatever_is_left_out() -> None:
    """Whoever has clients loses what it has taken over."""
    failing = 0
    for seed in range(30):
        random = Random(seed)
        case = with_crashes(made_torn(centralized(seed), random), random)
        for one in (case, *smaller_cases(case)):
            used = {broker for _, broker in one.homes} | {sink.broker for sink in one.sinks}
            losing = [fault for fault in one.faults if fault.kind == "crash"]
            crashed = {name for fault in losing for name in fault.brokers}
            assert crashed <= set(one.brokers) - used, f"seed {seed}"
            failing += bool(crashed)
    assert failing > 10
