"""Rules that come, or go, while parts of a network are out of reach of each other (S15).

What nobody can say of an instant is not said: where somebody is out of reach who publishes what a
rule needs, it is neither deployed nor removed. Where nobody is, whoever was apart gets all that the
rule has found meanwhile.
"""

import pytest
from networks import run
from pairs import some_of_each
from simulator_text import SMALL, TWO, events, overlay

from routing.messages import Code
from routing.network import strategy
from simulator.checkers import check

BEFORE = """
event Temp(area: string, value: float)
event Smoke(area: string)
rule r0: define Z() from Smoke()
"""
LATER = "event Temp(area: string, value: float)\nevent Smoke(area: string)\n"


def network(name: str, sink: str, *changes: str) -> str:
    """Smoke is published at n0, Temp at n2, and n2 is out of reach from 20 s to 60 s."""
    text = f"""
strategy = "{name}"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
[[source]]
name = "s0"
broker = "n0"
events = "s0.jsonl"
[[source]]
name = "s2"
broker = "n2"
events = "s2.jsonl"
[[sink]]
name = "k"
broker = "{sink}"
subscribe = ["Z"]
[[fault]]
kind = "cut"
at_s = 20.0
for_s = 40.0
links = [["n1", "n2"]]
"""
    return (
        text + overlay({"n0 n1": 5, "n1 n2": 5}) + "".join(map("[[change]]\n{}\n".format, changes))
    )


@pytest.mark.parametrize("name", strategy.names())
def test_who_was_apart_when_a_rule_came_gets_all_that_it_has_found(written, name: str) -> None:
    """What a broker lacks of a rule that it had not heard of was not sent again (found by a fuzz of
    torn networks whose rules change).
    """
    change = 'at_s = 30.0\nbroker = "n1"\nrules = "later.tesla"'
    later = LATER + "rule r1: define Z() from Smoke()"
    files = {"s0.jsonl": events("Smoke", 0.0, 32.0, 34.0, 80.0), "s2.jsonl": events("Temp", 1.0)}
    text = network(name, "n2", change)
    outcome = run(written(text, BEFORE, **files, **{"later.tesla": later}))
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 4 + 3


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_waits_for_who_publishes_what_it_needs(written, name: str) -> None:
    """It held from the beginning in one part, while the other went on without it (found by the same
    fuzz).
    """
    changes = [
        'at_s = 30.0\nbroker = "n0"\nrules = "later.tesla"',
        'at_s = 31.0\nbroker = "n0"\nremove = "r2"',
        'at_s = 70.0\nbroker = "n0"\nrules = "later.tesla"',
        'at_s = 71.0\nbroker = "n0"\nremove = "r2"',
    ]
    before = BEFORE + "rule r2: define Z() from Temp()"
    later = LATER + "rule r1: define Z() from Smoke() as s and last Temp() as t within 5 min from s"
    files = {
        "s0.jsonl": events("Smoke", 0.0, 32.0, 80.0),
        "s2.jsonl": events("Temp", 1.0, 33.0, 75.0),
    }
    text = network(name, "n0", *changes)
    outcome = run(written(text, before, **files, **{"later.tesla": later}))
    reason = "broker n2 is out of reach, which has published Temp"
    refused = [[(one.code, one.reason) for one in m.refusals] for m in outcome.experiment.managers]
    assert refused == [[], [(Code.SILENT, reason)], [(Code.SILENT, reason)], [], []]
    assert check(outcome) == []
    held = [one.rule.name for one in outcome.experiment.book.held if one.until is None]
    assert held == ["r0", "r1"]


@pytest.mark.parametrize("name", strategy.names())
@pytest.mark.parametrize("change", ['remove = "r0"', 'rules = "later.tesla"'])
def test_who_was_apart_when_a_rule_ended_gets_all_that_it_has_found(
    written, name: str, change: str
) -> None:
    """Nobody knew what a broker out of reach lacked, and the rule was let go."""
    later = LATER + "rule r0: define Z() from Smoke() as s and last Smoke() within 9 s from s"
    files = {"s0.jsonl": events("Smoke", 0.0, 32.0, 34.0, 80.0), "s2.jsonl": events("Temp", 1.0)}
    text = network(name, "n2", f'at_s = 45.0\nbroker = "n1"\n{change}')
    outcome = run(written(text, BEFORE, **files, **{"later.tesla": later}))
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 3


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_waits_for_what_those_above_it_need(written, name: str) -> None:
    """A rule above it went on elsewhere without it."""
    change = 'at_s = 35.0\nbroker = "n0"\nrules = "later.tesla"'
    before = LATER + "rule r0: define Y() from Temp()\nrule r2: define Z() from Y()"
    later = LATER + "rule r1: define Y() from Smoke()"
    files = {"s0.jsonl": events("Smoke", 0.0, 80.0), "s2.jsonl": events("Temp", 1.0, 40.0, 75.0)}
    outcome = run(written(network(name, "n2", change), before, **files, **{"later.tesla": later}))
    assert check(outcome) == []
    assert [len(one.refusals) for one in outcome.experiment.managers] == [0, 1]


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_holds_from_beyond_what_was_evaluated_above_it(written, name: str) -> None:
    """Also where all is connected: what it found was too early for a rule above it."""
    change = 'at_s = 40.0\nbroker = "n0"\nrules = "later.tesla"'
    before = LATER + "rule r0: define Y() from Temp()\nrule r2: define Z() from Y()"
    later = LATER + "rule r1: define Y() from Smoke()"
    files = {"s0.jsonl": events("Smoke", 0.0, 10.0, 80.0)}
    files |= {"s2.jsonl": events("Temp", 1.0, 39.0, 75.0)}
    text = network(name, "n0", change).replace(
        "at_s = 20.0\nfor_s = 40.0", "at_s = 90.0\nfor_s = 1.0"
    )
    outcome = run(written(text, before, **files, **{"later.tesla": later}))
    assert check(outcome) == []
    held = {one.rule.name: one.since for one in outcome.experiment.book.held}
    assert held["r1"] is not None
    assert held["r1"] > 39_000_000


@pytest.mark.parametrize("name", strategy.names())
def test_what_goes_by_the_clock_ends_nowhere_while_somebody_is_out_of_reach(
    written, name: str
) -> None:
    """It went on in the other part, beyond its end."""
    change = 'at_s = 35.0\nbroker = "n0"\nremove = "r1"'
    rules = BEFORE + "rule r1: define Z() from Timer(S = 0)"
    files = {"s0.jsonl": events("Smoke", 0.0, 200.0), "s2.jsonl": events("Temp", 1.0, 200.0)}
    outcome = run(written(network(name, "n2", change), rules, **files))
    assert check(outcome) == []
    assert [len(one.refusals) for one in outcome.experiment.managers] == [0, 1]


@pytest.mark.parametrize("name", strategy.names())
def test_what_was_asked_over_a_link_that_is_lost_is_not_done(written, name: str) -> None:
    """Whoever asked is told that no answer came, and may have asked again since. The removal was
    done when the link was whole again; and what was published over it meanwhile, whose source has
    closed, was lost for its subscribers (both found by the fuzz, where rules end).
    """
    text = f"""
strategy = "{name}"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
[[source]]
name = "s0"
broker = "n0"
events = "s0.jsonl"
[[source]]
name = "s1"
broker = "n1"
events = "s1.jsonl"
[[sink]]
name = "k"
broker = "n1"
subscribe = ["Smoke"]
[[change]]
at_s = 13.0
broker = "n1"
remove = "r0"
[[fault]]
kind = "cut"
at_s = 12.0
for_s = 54.0
"""
    files = {"s0.jsonl": events("Smoke", 1.0, 15.0), "s1.jsonl": events("Temp", 15.0)}
    before = BEFORE.replace("Smoke()", "Smoke() as s and last Temp() as t within 9 s from s")
    outcome = run(written(text + overlay({"n0 n1": 400}), before, **files))
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 2
    assert [len(one.refusals) for one in outcome.experiment.managers] == [0, 1]
    assert len(outcome.experiment.brokers["n0"].broker.context.deployments.in_force) == 1


@pytest.mark.parametrize(
    ("name", "at_s"), some_of_each(strategy.names(), [one / 4 for one in range(142, 150)])
)
def test_a_rule_that_ends_as_the_tree_changes_has_held_as_far_as_it_had_come(
    written, name: str, at_s: float
) -> None:
    """It begins anew in the new tree, whose root knows nothing of how far it had come: it ended
    before what a sink had got of it.
    """
    links = {"b1 b2": 0.5, "b1 b3": 400.0, "b2 b3": 0.5}
    head, _ = SMALL.split("[[broker]]", 1)
    text = f"""{head}strategy = "{name}"
{overlay(links)}
[protocol]
heartbeat_s = 2.0
lead_s = 60.0
[[source]]
name = "s1"
broker = "b2"
events = "temps.jsonl"
[[sink]]
name = "k1"
broker = "b1"
subscribe = ["Hot()"]
[[change]]
at_s = {at_s}
broker = "b2"
remove = "hot"
[[fault]]
kind = "cut"
at_s = 29.861
for_s = 23.97
links = [["b2", "b3"]]
"""
    rules = "event Temp(area: string, value: float)\nrule hot: define Hot() from Temp()\n"
    outcome = run(written(text, rules, **{"temps.jsonl": events("Temp", 16.0)}))
    assert check(outcome) == []


@pytest.mark.parametrize("name", strategy.names())
def test_what_rules_had_gone_on_without_is_late_under_another_root_too(written, name: str) -> None:
    """Which knows nothing of how far they had come, where others had evaluated them: it was taken,
    and what a sink had got was no longer what the rules say.
    """
    head, tail = TWO.split("[[source]]", 1)
    at_b2 = tail.replace('"b1"', '"b2"').replace(
        'name = "k1"\nbroker = "b2"', 'name = "k1"\nbroker = "b1"'
    )
    text = f"""{head}
[protocol]
heartbeat_s = 2.0
lead_s = 60.0
[[source]]{at_b2}
[[fault]]
kind = "cut"
at_s = 5.554
for_s = 18.794
links = [["b1", "b2"]]
"""
    text = text.replace(
        'name = "s1"\n', 'name = "s1"\nmoves = [{ at_s = 0.0, broker = "b2", away_s = 8.221 }]\n'
    )
    temps, smokes = events("Temp", 3.5, 25.0), events("Smoke", 2.0, *range(4, 40))
    outcome = run(
        written(f'strategy = "{name}"\n{text}', **{"s1.jsonl": temps, "s2.jsonl": smokes})
    )
    assert outcome.settled
    assert check(outcome) == []
    assert [one.sequences for one in outcome.experiment.sources[0].refusals] == [((1, 1),)]
