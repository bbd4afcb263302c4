"""Brokers that stop without a word and go on with all that they knew, and their clients."""

import pytest
from networks import run
from simulator_text import HEAD, SMALL, at, lines, overlay

from routing.network import strategy
from simulator.checkers import check
from simulator.faults import FAILURES
from simulator.oracle import in_order
from simulator.scenario import ScenarioError

RULES = "event A(n: int)\nevent B(n: int)\nrule r: define Z(n: int) from A() as a where n = a.n"


@pytest.mark.parametrize("name", strategy.names())
def test_a_source_that_comes_back_to_its_broker_goes_on_where_it_stood(written, name: str) -> None:
    """Its promise has counted all along. It was refused as late what it brought before the instant
    up to which another source of its type had promised (found by the fuzz when brokers stopped).
    """
    text = HEAD.format(name=name)
    text += at("source", "s0", "b2", 'events = "s0.jsonl"')
    text += at("source", "s1", "b1", 'events = "s1.jsonl"')
    text += at("sink", "k", "b0", 'subscribe = ["Z", "A"]')
    text += '[[fault]]\nkind = "stop"\nat_s = 2.5\nfor_s = 2.0\nbrokers = ["b1"]\n'
    text += overlay({"b0 b1": 5.0, "b0 b2": 5.0})
    files = {"s0.jsonl": lines("s0", "A", 0, 2, 10), "s1.jsonl": lines("s1", "A", 3, 12)}
    outcome = run(written(text, RULES, **files))
    assert check(outcome) == []
    assert [one.losses for one in outcome.experiment.sources] == [0, 1]
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 10


@pytest.mark.parametrize("name", strategy.names())
def test_what_was_asked_in_an_earlier_tree_is_not_done_when_a_link_is_back(
    written, name: str
) -> None:
    """A broker that goes on asks along the tree that it knows, over a link that is cut. Long after
    the source has closed, when that is whole again, the root let it publish (found by the fuzz).
    """
    text = HEAD.format(name=name)
    text += at("source", "s0", "b0", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    text += at("sink", "k", "b0", 'subscribe = ["Z", "A"]')
    text += '[[fault]]\nkind = "stop"\nat_s = 4.5\nfor_s = 14.99\nbrokers = ["b2"]\n'
    text += '[[fault]]\nkind = "cut"\nat_s = 5.0\nfor_s = 60.0\nlinks = [["b0", "b2"]]\n'
    text += overlay({"b0 b1": 1.0, "b0 b2": 5.0, "b1 b2": 5.0, "b0 b3": 1.0, "b0 b4": 1.0})
    files = {"s0.jsonl": lines("s0", "B", 0, 90), "s1.jsonl": lines("s1", "A", 1, 21)}
    outcome = run(written(text, RULES, **files))
    assert check(outcome) == []
    root = outcome.experiment.brokers["b0"].broker.context
    assert root.router.is_root
    assert "s1" not in root.remote_sources


@pytest.mark.parametrize(("kind", "fires"), [("stop", 1), ("crash", 0)])
def test_a_broker_that_goes_on_knows_what_it_knew(written, kind: str, fires: int) -> None:
    """What it had of the first Temp, and of whoever published and subscribed."""
    text = SMALL.replace('name = "k1"\nbroker = "b1"', 'name = "k1"\nbroker = "b2"')
    text += f'[[fault]]\nkind = "{kind}"\nat_s = 1.5\nfor_s = 0.1\nbrokers = ["b1"]\n'
    outcome = run(written(text))
    host = outcome.experiment.brokers["b1"]
    assert (host.starts, len(host.failures)) == (1 + (kind == "crash"), 1)
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    came = [event.type for one in sink.arrivals for event in in_order(one.delivery)]
    assert came.count("Fire") == fires


@pytest.mark.parametrize("kind", FAILURES)
def test_a_sink_may_leave_while_its_broker_is_not_there(written, kind: str) -> None:
    """It tried to connect once more, and the simulation ended with an error."""
    text = HEAD.format(name="centralized")
    text += at("source", "s0", "b0", 'events = "s0.jsonl"')
    text += at("sink", "k", "b0", 'at_s = 1.0\nfor_s = 4.0\nsubscribe = ["A"]')
    text += f'[[fault]]\nkind = "{kind}"\nat_s = 4.0\nfor_s = 3.0\nbrokers = ["b0"]\n'
    text += "value = 0.004\n" if kind in ("restart", "backup") else ""
    text += overlay({"b0 b1": 5.0})
    assert check(run(written(text, RULES, **{"s0.jsonl": lines("s0", "A", 0, 2, 10)}))) == []


def test_a_broker_that_has_stopped_cannot_crash(written) -> None:
    """The one that came second did nothing, and the trace said that it had."""
    text = HEAD.format(name="centralized") + at("source", "s0", "b0", 'events = "s0.jsonl"')
    text += overlay({"b0 b1": 5.0})
    for kind, at_s in (("stop", 1.0), ("crash", 2.0)):
        text += f'[[fault]]\nkind = "{kind}"\nat_s = {at_s}\nfor_s = 3.0\nbrokers = ["b0"]\n'
    with pytest.raises(ScenarioError, match=r"fault\[2\]: begins or ends while fault\[1\]"):
        run(written(text, RULES, **{"s0.jsonl": lines("s0", "A", 0)}))


@pytest.mark.parametrize("name", strategy.names())
def test_who_subscribes_anew_while_a_broker_is_out_of_reach_gets_what_is_found_later(
    written, name: str
) -> None:
    """No tree had the rule meanwhile, and its sink's began where the source that was there had
    promised to be, beyond what the other one brought (found by a review, with trees of sinks).
    """
    rules = "event A(n: int)\nevent B(n: int)\nrule q: define Y(n: int) from A() as a"
    rules += " and last B() within 4 sec from a where n = a.n"
    text = HEAD.format(name=name).replace("2.0", "1.0").replace("60.0", "20.0")
    text += at("source", "s0", "b2", 'events = "s0.jsonl"')
    text += at("source", "s1", "b3", 'events = "s1.jsonl"')
    text += at("sink", "k1", "b4", 'subscribe = ["Y"]')
    for at_s, for_s, broker in ((12.005, 11.894, "b2"), (16.5, 0.3, "b4")):
        text += f'[[fault]]\nkind = "stop"\nat_s = {at_s}\nfor_s = {for_s}\n'
        text += f'brokers = ["{broker}"]\n'
    text += overlay({"b0 b1": 5.0, "b0 b2": 40.0, "b1 b3": 5.0, "b1 b4": 40.0})
    files = {"s0.jsonl": lines("s0", "A", 1.01, 18.77), "s1.jsonl": lines("s1", "B", 14.81, 29.49)}
    outcome = run(written(text, rules, **files))
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 1


@pytest.mark.parametrize("name", strategy.names())
def test_who_subscribes_where_a_broker_comes_back_gets_what_others_have_yet_to_bring(
    written, name: str
) -> None:
    """For a while the broker is alone, and its own source has promised more than the one out of
    reach: the rule, which no tree had, was due from there (found by a review, ``push-pull-mt``).
    """
    text = HEAD.format(name=name).replace("2.0", "0.5").replace("60.0", "20.0")
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s3", "b0", 'events = "s3.jsonl"')
    text += at("sink", "k2", "b0", 'at_s = 7.107\nsubscribe = ["Z"]')
    text += '[[fault]]\nkind = "stop"\nat_s = 2.002\nfor_s = 8.44\nbrokers = ["b0"]\n'
    text += overlay({"b0 b1": 400.0})
    files = {"s0.jsonl": lines("s0", "A", 0.72, 11.35), "s3.jsonl": lines("s3", "A", 10.24, 11.76)}
    assert check(run(written(text, RULES, **files))) == []
