"""Clients that come in mid-stream, and sinks that go: what they miss, and what nobody does."""

import json

import pytest
from networks import run
from pairs import every_pair, some_of_each
from simulator_text import RULES, SMALL, TWO, events, overlay

from routing.messages import Code
from routing.network import strategy
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Outcome
from simulator.oracle import delivered
from simulator.scenario import ScenarioError


def coming(text: str, name: str, at_s: float, lasts: str = "") -> str:
    """The scenario with a client that comes so late."""
    return text.replace(f'name = "{name}"\n', f'name = "{name}"\nat_s = {at_s}\n{lasts}')


def came(outcome: Outcome, sink: str = "k1") -> list[tuple[str, float]]:
    """Types and times, in seconds, of what was delivered."""
    found = delivered(outcome.experiment.sinks[sink].arrivals)
    return [(one.type, one.time / 1e6) for one in (*found.composite, *found.published)]


@pytest.mark.parametrize("late", ["Temp", "Smoke"])
@pytest.mark.parametrize("name", strategy.names())
def test_rules_wait_for_a_source_that_comes_later(written, name: str, late: str) -> None:
    """Nothing that it brings is late, however long ago that was: no rule has gone on without it,
    though it is certain that none fires before the first Smoke.
    """
    text = f'strategy = "{name}"\n{coming(TWO, "s2", 30.0)}'
    temps, smokes = events("Temp", 10.0, 14.0), events("Smoke", 12.0, 13.0)
    early, later = (smokes, temps) if late == "Temp" else (temps, smokes)
    outcome = run(written(text, **{"s1.jsonl": early, "s2.jsonl": later}))
    assert outcome.settled
    assert check(outcome) == []
    assert came(outcome)[:2] == [("Fire", 12.0), ("Fire", 13.0)]
    assert outcome.experiment.sources[1].refusals == []


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_that_waits_for_a_type_keeps_all_for_a_sink_that_comes(written, name: str) -> None:
    """With trees of sinks, whoever subscribed while it waited got it from where the sources of its
    other types had promised to be, and missed what was from just before.
    """
    text = f'strategy = "{name}"\n{coming(coming(TWO, "s2", 21.0), "k1", 20.0)}'
    temps, smokes = events("Temp", 10.0, 14.0, 19.9, 400.0), events("Smoke", 31.0)
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    assert outcome.settled
    assert check(outcome) == []
    assert came(outcome)[0] == ("Fire", 31.0)


@pytest.mark.parametrize("closed", ["Temp", "both"])
@pytest.mark.parametrize("name", strategy.names())
def test_a_sink_that_comes_gets_nothing_of_before(written, name: str, closed: str) -> None:
    """With trees of sinks, where nobody had wanted the rule, it got all since the first of the
    sources had closed.
    """
    text = f'strategy = "{name}"\n{coming(TWO, "k1", 40.5)}'
    text = text.replace('"Fire(temp > 45)", "Temp()"', '"Fire"')
    smokes = range(12, 60 if closed == "Temp" else 31)
    text += '[[source]]\nname = "s3"\nbroker = "b1"\nevents = "s3.jsonl"\n'
    files = {
        "s1.jsonl": events("Temp", 10.0, 14.0),
        "s2.jsonl": events("Smoke", *map(float, smokes)),
        "s3.jsonl": events("Other", 10.0, 60.0),
    }
    rules = RULES + "event Other(area: string)\n"
    outcome = run(written(text, rules, **files))
    assert outcome.settled
    assert check(outcome) == []
    assert [time for _, time in came(outcome)] == [time for time in smokes if time > 50.5]


@pytest.mark.parametrize("name", strategy.names())
def test_what_a_source_brings_too_late_for_others_of_its_types_is_left_out(
    written, name: str
) -> None:
    """It is refused by name, nothing comes of it, and it is no difference."""
    text = f'strategy = "{name}"\n{coming(TWO, "s2", 20.0)}'
    temps = events("Temp", 10.0) + events("Smoke", 12.0, 25.0)
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": events("Smoke", 11.0, 26.0)}))
    assert check(outcome) == []
    assert [time for type_name, time in came(outcome) if type_name == "Fire"] == [12.0, 25.0, 26.0]
    (refusal,) = outcome.experiment.sources[1].refusals
    assert "late" in refusal.reason


def test_what_is_late_for_no_others_is_a_difference(written) -> None:
    """Were a source refused that alone has its type, or that was there from the first."""
    text = coming(TWO, "s2", 20.0)
    temps, both = events("Temp", 10.0), events("Temp", 10.0) + events("Smoke", 12.0, 40.0)
    files = {"s1.jsonl": both, "s2.jsonl": events("Smoke", 11.0)}
    for others in ({"s1.jsonl": temps}, {"scenario.toml": TWO}):
        late = run(written(text, **files)).experiment.sources[1].refusals
        assert len(late) == 1
        outcome = run(written(**{"text": text, **files, **others}))
        assert check(outcome) == []
        outcome.experiment.sources[1].refusals += late
        assert any("rejected: 1 late Smoke" in line for line in check(outcome))


@pytest.mark.parametrize("name", strategy.names())
def test_a_sink_gets_what_is_found_once_its_subscriptions_are_in_force(written, name: str) -> None:
    text = f'strategy = "{name}"\n{coming(TWO, "k1", 6.0)}'
    files = {"s1.jsonl": events("Temp", 10.0, 14.0), "s2.jsonl": events("Smoke", 12.0, 20.0)}
    outcome = run(written(text, **files))
    assert check(outcome) == []
    assert [one for one in came(outcome) if one[0] == "Fire"] == [("Fire", 20.0)]
    outcome.experiment.sinks["k1"].arrivals.clear()
    assert any("missing: Fire" in line for line in check(outcome))


def test_a_sink_that_goes_gets_nothing_any_more_and_misses_nothing_before(written) -> None:
    text = coming(TWO, "k1", 1.0, "for_s = 9.0\n")
    smokes = events("Smoke", 12.0, 14.0, 16.0, 24.0)
    outcome = run(written(text, **{"s1.jsonl": events("Temp", 10.0), "s2.jsonl": smokes}))
    assert outcome.settled
    assert check(outcome) == []
    fires = [time for type_name, time in came(outcome) if type_name == "Fire"]
    assert fires == [12.0, 14.0, 16.0]
    sink = outcome.experiment.sinks["k1"]
    first = next(one for one in sink.arrivals if "Fire" in str(delivered([one]).composite))
    sink.arrivals.remove(first)
    assert any("missing: Fire" in line for line in check(outcome))


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        ("s1", "at_s = -1.0", "source[1].at_s: expected 0 or more, found -1"),
        ("s1", 'at_s = "now"', "source[1].at_s: expected `float | null`"),
        ("k1", "at_s = -0.5", "sink[1].at_s: expected 0 or more, found -0.5"),
        ("k1", "at_s = 1.0\nfor_s = 0.0", "sink[1].for_s: expected a positive number, found 0"),
        ("k1", "for_s = 2.0", "sink[1].for_s: expected at_s beside it"),
    ],
)
def test_bad_times_are_refused(written, name: str, keys: str, message: str) -> None:
    text = SMALL.replace(f'name = "{name}"\n', f'name = "{name}"\n{keys}\n')
    with pytest.raises(ScenarioError) as caught:
        scenario.read(written(text))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_that_waits_for_a_type_holds_up_no_other(written, name: str) -> None:
    """It had a master that nobody publishes, and what it would have been sent around that waited
    below for ever, for all other rules too (found by the fuzz).
    """
    rules = """
event A(p: int)
event B(p: int)
event C(p: int)
event D(p: int)
event X(p: int)
rule r0: define Z() from D() as d and last C() as c within 4 s from d and last A() as a within 2 s
 from c and each B() as b within 5 s from a
rule r1: define Y() from X() as x and 2-last C() or Y() as c within 3 s from x
"""
    text = f"""
strategy = "{name}"
rules = "rules.tesla"
[[sink]]
name = "k"
broker = "n2"
subscribe = ["Z"]
"""
    text += overlay({"n2 n4": 5})
    files = {}
    for source, broker, times in (
        ("A", "n4", (5.5,)),
        ("B", "n2", (5.0,)),
        ("C", "n4", (2.0, 7.0)),
        ("D", "n4", (7.0,)),
    ):
        text += f'[[source]]\nname = "{source}0"\nbroker = "{broker}"\nevents = "{source}.jsonl"\n'
        files[f"{source}.jsonl"] = "".join(
            json.dumps({"type": source, "time": time, "data": {"p": 0}}) + "\n" for time in times
        )
    outcome = run(written(text, rules, **files))
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 1


@pytest.mark.parametrize(("name", "comes_s"), some_of_each(strategy.names(), [5.1, 5.4, 5.7]))
def test_who_wants_what_another_gave_up_just_before_is_told_when_it_comes(
    written, name: str, comes_s: float
) -> None:
    """The plan in force had it; the one on its way, made for the sink that went, had not, and what
    was found meanwhile never came, though the subscription was confirmed (found by the fuzz).
    """
    text = f'strategy = "{name}"\n' + coming(TWO, "k1", 1.0, "for_s = 4.0\n")
    text += '[[broker]]\nname = "b3"\n[[link]]\nbetween = ["b2", "b3"]\ndelay_ms = 400.0\n'
    text += '[[sink]]\nname = "k0"\nbroker = "b2"\nsubscribe = ["Fire"]\n'
    text += f'[[sink]]\nname = "k2"\nbroker = "b1"\nat_s = {comes_s}\nsubscribe = ["Fire"]\n'
    smokes = events("Smoke", *(10 + tenth / 10 for tenth in range(150)))
    outcome = run(written(text, **{"s1.jsonl": events("Temp", 10.0), "s2.jsonl": smokes}))
    assert outcome.settled
    assert check(outcome) == []
    assert len(came(outcome, "k2")) > 50


@pytest.mark.parametrize("name", strategy.names())
@pytest.mark.parametrize("to", ["b1", "b2"], ids=["where it was", "another"])
def test_a_source_goes_on_at_another_broker(written, name: str, to: str) -> None:
    """Under its name and with its numbers. What it brings too late for rules that have gone on
    without it is refused, and no difference; all else is found.
    """
    moves = f'moves = [{{ at_s = 3.0, broker = "{to}" }}, {{ at_s = 9.5, broker = "b1" }}]'
    moving = TWO.replace('events = "s1.jsonl"', f'events = "s1.jsonl"\n{moves}')
    text = f'strategy = "{name}"\n{moving}'
    halves = [second + 0.5 for second in range(1, 21)]
    temps, smokes = events("Temp", *map(float, range(1, 21))), events("Smoke", *halves)
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    assert outcome.settled
    assert check(outcome) == []
    source, other = outcome.experiment.sources
    assert source.published == 20
    assert [time for type_name, time in came(outcome) if type_name == "Fire"] == halves
    assert 1 <= len(source.refusals) <= 4
    assert other.refusals == []


@pytest.mark.parametrize("name", strategy.names())
def test_one_that_goes_on_there_since_its_link_broke_is_late_with_nothing(
    written, name: str
) -> None:
    """Rules wait for it where it stood, and it begins there, though another source of its type at
    that broker is ahead.
    """
    turns = (3.0, "b2"), (9.5, "b1")
    moves = [
        f'{{ at_s = {at}, broker = "{to}", goodbye = false, away_s = 0.7 }}' for at, to in turns
    ]
    moving = TWO.replace(
        'events = "s1.jsonl"', f'events = "s1.jsonl"\nmoves = [{", ".join(moves)}]'
    )
    rules = """
    event Temp(area: string, value: float)
    rule hot: define Fire(area: string, temp: float) from Temp() as t
    where area = t.area, temp = t.value
    """
    temps, halves = range(1, 21), [second + 0.5 for second in range(1, 21)]
    files = {"s1.jsonl": events("Temp", *map(float, temps)), "s2.jsonl": events("Temp", *halves)}
    outcome = run(written(f'strategy = "{name}"\n{moving}', rules, **files))
    assert outcome.settled
    assert check(outcome) == []
    assert [one.refusals for one in outcome.experiment.sources] == [[], []]
    found = [time for type_name, time in came(outcome) if type_name == "Fire"]
    assert found == sorted([*map(float, temps), *halves])


def test_timers_tick_no_longer_than_for_what_was_taken(written) -> None:
    """What is refused as late is no part of the input, and so not the end of the oracle's time."""
    moves = 'moves = [{ at_s = 2.0, broker = "b1", away_s = 9.0 }]'
    moving = TWO.replace('events = "s1.jsonl"', f'events = "s1.jsonl"\n{moves}')
    rules = """
    event Temp(area: string, value: float)
    event Smoke(area: string)
    rule on:
    define Fire(area: string, temp: float)
    from Timer() as t and each Temp() or Smoke() as e within 6 s from t
    where area = "", temp = 50
    """
    files = {"s1.jsonl": events("Temp", 0.0, 4.0), "s2.jsonl": events("Smoke", 1.0)}
    outcome = run(written(moving, **{"rules.tesla": rules}, **files))
    assert outcome.settled
    assert [one.code for one in outcome.experiment.sources[0].refusals] == [Code.LATE]
    assert {("Fire", 1.0), ("Fire", 4.0)} <= set(came(outcome))
    assert check(outcome) == []


@pytest.mark.parametrize("name", strategy.names())
def test_rules_go_on_without_a_source_that_rests(written, name: str) -> None:
    """It un-advertises its types; what it has for that time is late when it advertises them."""
    source = 'name = "s2"\n'
    resting = TWO.replace(source, f"{source}moves = [{{ at_s = 3.0, away_s = 6.0 }}]\n")
    text = f'strategy = "{name}"\n{resting}'
    temps = events("Temp", *range(10, 30))
    smokes = events("Smoke", 12.5, 15.5, 20.5, 25.5)
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    assert check(outcome) == []
    assert [time for type_name, time in came(outcome) if type_name == "Fire"] == [12.5, 20.5, 25.5]
    assert [one.sequences for one in outcome.experiment.sources[1].refusals] == [((2, 2),)]


def test_a_sink_turns_to_what_it_wants_then(written) -> None:
    """What it gives up comes no more, what it asks for comes from then on."""
    then = 'then = [{ at_s = 3.2, subscribe = ["Temp()"], unsubscribe = ["Fire()"] }]'
    text = TWO.replace(
        'subscribe = ["Fire(temp > 45)", "Temp()"]', f'subscribe = ["Fire()"]\n{then}'
    )
    temps, smokes = events("Temp", *range(10, 16)), events("Smoke", 11.5, 12.5, 13.5, 14.5)
    outcome = run(written(text, **{"s1.jsonl": temps, "s2.jsonl": smokes}))
    assert check(outcome) == []
    assert came(outcome) == [("Fire", 11.5), ("Fire", 12.5), ("Temp", 14.0), ("Temp", 15.0)]


@pytest.mark.parametrize("at_s", [one / 4 for one in range(10, 22)])
def test_who_closes_as_the_tree_changes_is_at_home_where_it_has_gone(written, at_s: float) -> None:
    """The root heard that it had closed after it had come to another broker, and took that for its
    end there: its name was free, and its type published by nobody.
    """
    links = {"b1 b2": 5.0, "b1 b4": 5.0, "b2 b3": 400.0, "b4 b3": 400.0, "b1 b5": 5.0}
    head, _ = SMALL.split("[[broker]]", 1)
    text = f"""{head}{overlay(links)}
[[source]]
name = "s1"
broker = "b3"
events = "temps.jsonl"
moves = [{{ at_s = {at_s}, broker = "b5", away_s = 0.0 }}]
[[sink]]
name = "k1"
broker = "b1"
subscribe = ["Fire()"]
[[fault]]
kind = "crash"
at_s = 0.5
brokers = ["b2"]
"""
    outcome = run(written(text, **{"temps.jsonl": events("Temp", 10.0, 11.0, 30.0, 40.0)}))
    assert check(outcome) == []


@pytest.mark.parametrize(
    ("name", "away_s", "at_s"), every_pair(strategy.names(), [0.0, 3.0], [1.05, 1.3, 1.6, 1.9])
)
def test_what_was_published_before_a_type_was_un_advertised_comes(
    written, name: str, at_s: float, away_s: float
) -> None:
    """Also where the tree pauses just then, and holds it: what was asked went before it, and it was
    of a type that nobody knew any more.
    """
    head, _ = SMALL.split("[[broker]]", 1)
    text = f"""{head}strategy = "{name}"
{overlay({"b1 b2": 5.0, "b2 b3": 400.0})}
[[source]]
name = "s1"
broker = "b1"
events = "others.jsonl"
moves = [{{ at_s = {at_s}, away_s = {away_s} }}]
[[source]]
name = "s2"
broker = "b2"
events = "s1.jsonl"
[[sink]]
name = "k1"
broker = "b3"
subscribe = ["Other()"]
[[change]]
at_s = 1.0
broker = "b2"
rules = "more.tesla"
"""
    times = [10.0, *(11.0 + one / 20 for one in range(20)), 20.0]
    lines = [json.dumps({"type": "Other", "time": at, "data": {"n": 1}}) + "\n" for at in times]
    more = "event Temp(area: string, value: float)\nrule hot: define Hot() from Temp()\n"
    files = {"others.jsonl": "".join(lines), "more.tesla": more}
    outcome = run(written(text, **files))
    assert check(outcome) == []
    assert [time for _, time in came(outcome)] == times


@pytest.mark.parametrize("name", strategy.names())
def test_what_rules_above_had_gone_on_without_is_late(written, name: str) -> None:
    """The broker of a source that had closed evaluates the rule over it; another the one above,
    which was further, and what came of it then was missing.
    """
    head, _ = SMALL.split("[[broker]]", 1)
    text = f"""{head}strategy = "{name}"
{overlay({"b1 b2": 5.0})}
[[source]]
name = "s1"
broker = "b2"
events = "smokes.jsonl"
moves = [{{ at_s = 1.163, broker = "b1", away_s = 8.482 }}]
[[source]]
name = "s2"
broker = "b2"
events = "temps.jsonl"
[[source]]
name = "s3"
broker = "b1"
events = "others.jsonl"
[[sink]]
name = "k1"
broker = "b1"
subscribe = ["Both()"]
"""
    rules = """
event Temp(area: string, value: float)
event Smoke(area: string)
rule one: define One() from Smoke()
rule both: define Both() from all One() as e0, Temp() as e1 within 1 s
"""
    files = {
        "smokes.jsonl": events("Smoke", 11.0, 14.0),
        "temps.jsonl": events("Temp", 14.0),
        "others.jsonl": events("Temp", 13.999999),
    }
    outcome = run(written(text, rules, **files))
    assert check(outcome) == []
    assert [one.code for one in outcome.experiment.sources[0].refusals] == [Code.LATE]


@pytest.mark.parametrize("name", ["distributed-st", "distributed-mt"])
def test_nor_does_one_that_wants_what_goes_by_the_clock_alone(written, name: str) -> None:
    text = f'strategy = "{name}"\n{coming(TWO, "k1", 20.5)}'
    text = text.replace('"Fire(temp > 45)", "Temp()"', '"Tick"')
    rules = RULES + "rule tick: define Tick() from Timer()\n"
    files = {"s1.jsonl": events("Temp", 10.0, 40.0), "s2.jsonl": events("Smoke", 12.0)}
    outcome = run(written(text, rules, **files))
    assert check(outcome) == []
    assert min(time for _, time in came(outcome)) == 31
