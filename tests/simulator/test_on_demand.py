"""Networks in which the texts of rules are told to those who need them (thesis 7.3.5)."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from networks import run
from simulator_text import RULES, events, overlay

from routing.messages import Confirmed
from routing.network.agreement.knowledge import in_outline, lacking_of
from routing.network.brokers.broker import Broker
from routing.network.brokers.knowing import BEREFT
from simulator import scenario
from simulator.checkers import check
from simulator.clients import Manager, Place
from simulator.experiment import AT_HAND, Experiment, Outcome

LINE = {f"b{place} b{place + 1}": 5.0 for place in range(8)}
"""Nine brokers, b4 in the middle."""
RING = {f"b{place} b{(place + 1) % 8}": 5.0 for place in range(8)}
SECONDS = range(1, 40)
MORE = """
rule smoke:
define Again(area: string)
from Smoke($a) as first and not Temp(area = $a, value > 99) within 2 s from first
where area = $a
"""
STRATEGIES = ["distributed-mt", "push-pull-mt"]


def text_of(
    name: str, links: Mapping[str, float], sinks: Mapping[str, str], at: str = "b1", more: str = ""
) -> str:
    """Sources of both types at ``at``; by broker, what its sink wants."""
    text = f'strategy = "{name}"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += '[protocol]\nrule_texts = "on-demand"\nheartbeat_s = 0.5\n' + overlay(links)
    for source in ("temps", "smokes"):
        text += f'[[source]]\nname = "{source}"\nbroker = "{at}"\nevents = "{source}.jsonl"\n'
    for broker, wanted in sinks.items():
        text += f'[[sink]]\nname = "k-{broker}"\nbroker = "{broker}"\nsubscribe = ["{wanted}"]\n'
    return text + more


def files() -> dict[str, str]:
    temps, smokes = events("Temp", *SECONDS), events("Smoke", *(one + 0.5 for one in SECONDS))
    return {"temps.jsonl": temps, "smokes.jsonl": smokes}


def broker_of(outcome: Outcome, name: str) -> Broker:
    return outcome.experiment.brokers[name].broker


def whole_at(outcome: Outcome) -> dict[str, set[str]]:
    """By rule, the brokers that know its text."""
    found: dict[str, set[str]] = {}
    for name, host in outcome.experiment.brokers.items():
        known = host.broker.agreed.known
        lacking = {facts.name for facts in lacking_of(known)}
        for facts in known.rules:
            holders = found.setdefault(facts.name, set())
            if facts.name not in lacking:
                holders.add(name)
    return found


@pytest.mark.parametrize("name", STRATEGIES)
def test_whoever_takes_part_in_no_tree_knows_outlines(written, name: str) -> None:
    """b4 is the centre; b3 and b5, its children, know all that it knows."""
    outcome = run(written(text_of(name, LINE, {"b0": "Fire"}), RULES + MORE, **files()))
    assert check(outcome) == []
    assert len(outcome.experiment.sinks["k-b0"].arrivals) > 0
    assert whole_at(outcome) == {
        "fire": {"b0", "b1", "b2", "b3", "b4", "b5"},
        "smoke": {"b3", "b4", "b5"},
    }
    everywhere = in_outline(broker_of(outcome, "b4").agreed.known)
    assert broker_of(outcome, "b8").agreed.known == everywhere
    assert [*broker_of(outcome, "b8").ground.detection.trees] == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_who_subscribes_later_gets_the_text_with_the_plan(written, name: str) -> None:
    sink = '[[sink]]\nname = "late"\nbroker = "b8"\nsubscribe = ["Again"]\nat_s = 20.0\n'
    text = text_of(name, LINE, {"b0": "Fire"}, more=sink)
    outcome = run(written(text, RULES + MORE, **files()))
    assert check(outcome) == []
    assert len(outcome.experiment.sinks["late"].arrivals) > 0
    assert whole_at(outcome)["smoke"] == {f"b{place}" for place in range(1, 9)}
    assert "b8" not in whole_at(outcome)["fire"]


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_next_root_has_all_texts_from_those_who_were_next_to_the_last(
    written, name: str
) -> None:
    """b0 is the root, its children know what nobody wants, too; another subscribes to it then."""
    crash = '[[fault]]\nkind = "crash"\nat_s = 10.0\nfor_s = 60.0\nbrokers = ["b0"]\n'
    crash += '[[sink]]\nname = "late"\nbroker = "b5"\nsubscribe = ["Again"]\nat_s = 25.0\n'
    text = text_of(name, RING, {"b4": "Fire"}, at="b3", more=crash)
    outcome = run(written(text, RULES + MORE, **files()))
    assert check(outcome) == []
    assert len(outcome.experiment.sinks["late"].arrivals) > 0


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_rule_whose_text_is_gone_is_evaluated_nowhere(written, name: str) -> None:
    """The root fails, and both of its children, with the text of what nobody wanted. It is known
    still, and can be deployed anew, under the next version; till then who subscribes to it waits.
    """
    more = '[[fault]]\nkind = "crash"\nat_s = 10.0\nfor_s = 5.0\nbrokers = ["b7", "b0", "b1"]\n'
    more += '[[sink]]\nname = "late"\nbroker = "b5"\nsubscribe = ["Again"]\nat_s = 20.0\n'
    more += '[[change]]\nat_s = 30.0\nbroker = "b2"\nrules = "again.tesla"\n'
    text = text_of(name, RING, {"b4": "Fire"}, at="b3", more=more)
    again = "event Temp(area: string, value: float) event Smoke(area: string)" + MORE
    outcome = run(written(text, RULES + MORE, **files(), **{"again.tesla": again}))
    assert check(outcome) == []
    assert bereft_rules(outcome) == {("smoke",)}
    assert whole_at(outcome)["fire"] >= {"b3", "b4"}
    (told,) = (one for one in broker_of(outcome, "b0").agreed.known.rules if one.name == "smoke")
    assert told.version == 1
    late = outcome.experiment.sinks["late"]
    assert late.session.ready
    assert min(one.moment for one in late.arrivals) > 30.0


@pytest.mark.parametrize("change", ["remove", "replace"])
def test_parts_can_change_rules_whose_texts_the_others_have(written, change: str) -> None:
    """b6 to b8 are cut off, and know `smoke` in outline alone."""
    more = '[[fault]]\nkind = "cut"\nat_s = 8.0\nfor_s = 20.0\nlinks = [["b5", "b6"]]\n'
    more += '[[change]]\nat_s = 20.0\nbroker = "b8"\n'
    more += 'remove = "smoke"\n' if change == "remove" else 'rules = "again.tesla"\n'
    text = text_of("distributed-mt", LINE, {"b0": "Fire"}, at="b7", more=more)
    again = "event Temp(area: string, value: float) event Smoke(area: string)" + MORE
    outcome = run(written(text, RULES + MORE, **files(), **{"again.tesla": again}))
    assert check(outcome) == []
    assert bereft_rules(outcome) == {("smoke",)}
    known = broker_of(outcome, "b4").agreed.known
    versions = {facts.name: facts.version for facts in known.rules}
    assert versions == ({"fire": 0} if change == "remove" else {"fire": 0, "smoke": 1})


def bereft_rules(outcome: Outcome) -> set[tuple[str, ...]]:
    """The rules of which logs say that nobody in reach has their texts."""
    return {
        tuple(log.fields["rules"])
        for host in outcome.experiment.brokers.values()
        for _, log in host.warnings
        if log.text == BEREFT
    }


@pytest.mark.parametrize("name", STRATEGIES)
def test_who_was_apart_lets_no_rule_go_that_others_lack(written, name: str) -> None:
    """k1's broker is out of reach when the rule ends, and has yet to get what that found. Another,
    which has nothing to do with the rule, is apart meanwhile, and is the root of its part.
    """
    links = {"n1 n6": 5.0, "n1 n8": 400.0, "n5 n10": 0.5, "n5 n7": 5.0, "n1 n10": 5.0}
    more = '[[fault]]\nkind = "cut"\nat_s = 20.0\nfor_s = 60.0\nlinks = [["n1", "n8"]]\n'
    more += '[[fault]]\nkind = "cut"\nat_s = 30.0\nfor_s = 20.0\nlinks = [["n1", "n6"]]\n'
    more += '[[change]]\nat_s = 25.0\nbroker = "n5"\nremove = "fire"\n'
    text = text_of(name, links, {"n8": "Fire"}, at="n7", more=more)
    outcome = run(written(text, RULES, **files()))
    assert check(outcome) == []
    last = outcome.experiment.sinks["k-n8"].arrivals[-1]
    assert last.moment > 80.0
    assert max(int(batch.time.max()) for batch in last.delivery.batches) > 20 * 10**6


def test_what_a_broker_says_of_rules_that_it_knows_in_outline(written: Path) -> None:
    path = written(text_of("distributed-mt", LINE, {"b0": "Fire"}), RULES + MORE, **files())
    experiment = Experiment(scenario.read(path))
    outcome = experiment.run()
    broker = broker_of(outcome, "b8")
    said = {one["name"]: one for one in broker.status(experiment.simulation.now)["rules"]}
    assert (said["fire"]["state"], said["fire"]["place"]) == ("elsewhere", "?")
    assert "trees in which this broker takes no part" in said["fire"]["says"]
    assert (said["smoke"]["state"], said["smoke"]["place"]) == ("idle", None)
    answers: list[object] = []
    place = Place(experiment.simulation, experiment.brokers["b8"], AT_HAND, 0.5)
    manager = Manager(place, "asks", lambda session: session.show_rule("fire"), answers.append)
    manager.start()
    experiment.simulation.run(outcome.ended_at + 5.0)
    (answer,) = answers
    assert isinstance(answer, Confirmed)
    assert "value > 45" in answer.detail["text"]


def test_who_knows_texts_is_said_in_words_that_are_known(written: Path) -> None:
    text = text_of("distributed-mt", LINE, {"b0": "Fire"}).replace("on-demand", "nowhere")
    with pytest.raises(ValueError, match=r"protocol.rule_texts: .*everywhere, on-demand"):
        scenario.read(written(text, RULES, **files()))
