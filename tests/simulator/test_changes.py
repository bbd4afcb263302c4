"""Rules that change in mid-stream: what brokers confirm holds, and the oracle goes by it."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulator_text import EVENTS, SMALL

import rules
from routing.deployment import Deployed
from routing.messages import Confirmed
from routing.network import strategy
from simulator import scenario
from simulator.changes import Held, RuleBook
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.oracle import Oracle, delivered
from simulator.scenario import ScenarioError

SECOND = 1_000_000
LATER = """
rule fire:
define Fire(area: string, temp: float)
from Smoke(area=$a) and last Temp(area=$a and value>45) within 5 min from Smoke
where area=Smoke.area, temp=-Temp.value
"""
MORE = "".join(
    f'{{"type": "{name}", "time": {at}, "data": {{"area": "a"{data}}}}}\n'
    for at in range(20, 40)
    for name, data in (("Temp", f', "value": {at + 30}'), ("Smoke", ""))
)
CHANGES = """
[[change]]
at_s = 20.5
broker = "b2"
remove = "fire"
[[change]]
at_s = 15.5
broker = "b2"
rules = "later.tesla"
"""


def run(path: Path, name: str = "centralized") -> Outcome:
    path.with_name("later.tesla").write_text(LATER)
    path.with_name("s1.jsonl").write_text(EVENTS + MORE)
    return Experiment(replace(scenario.read(path), strategy=name)).run()


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_is_replaced_and_removed_while_events_come(written, name: str) -> None:
    """Sources begin at 10 s, so rules change at 25.5 and 30.5; a source tells its next event."""
    outcome = run(
        written(SMALL.replace('broker = "b1"\nsub', 'broker = "b2"\nsub') + CHANGES), name
    )
    assert outcome.settled
    assert check(outcome) == []
    held = [(one.since, one.until, one.version) for one in outcome.experiment.book.held]
    assert held == [(None, 26 * SECOND, 0), (26 * SECOND, 31 * SECOND, 1)]
    got = delivered(outcome.experiment.sinks["k1"].arrivals).composite
    assert [one.time // SECOND for one in got] == [12, *range(20, 26)]  # the new ones are below 45


def test_the_oracle_goes_by_the_instants_at_which_rules_begin_and_end(written) -> None:
    outcome = run(written())
    (whole,), batches = outcome.experiment.book.held, outcome.experiment.batches

    def found(*held: Held) -> list[tuple[int, int]]:
        """When what was detected, and whether that is found without changes, too."""
        detected = Oracle(held, batches).answer(["Fire"]).composite
        return [(one.time // SECOND, one.id in known) for one in detected]

    known = {one.id for one in Oracle([whole], batches).answer(["Fire"]).composite}
    everything = found(whole)
    assert [time for time, _ in everything] == [12, *range(20, 40)]
    first = replace(whole, until=22 * SECOND)
    assert found(first) == [(12, True), (20, True), (21, True)]
    second = replace(whole, since=38 * SECOND, version=1)
    assert found(first, second) == [*found(first), (38, False), (39, False)]
    assert found() == []


def test_what_is_asked_after_another_waits_for_its_answer(written) -> None:
    """The replacement is asked first, by a broker far away; the removal comes to the centre."""
    path = written(SMALL.replace('"b2"]\n', '"b2"]\ndelay_ms = 900.0\n', 1) + CHANGES)
    path.write_text(
        path.read_text().replace('at_s = 20.5\nbroker = "b2"', 'at_s = 15.6\nbroker = "b1"')
    )
    outcome = run(path)
    assert check(outcome) == []
    assert [one.version for one in outcome.experiment.book.held] == [0, 1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('broker = "b9"\nremove = "fire"', "change[1].broker: there is no broker 'b9'"),
        ('broker = "b1"', "change[1]: expected either rules or remove"),
        (
            'broker = "b1"\nremove = "fire"\nrules = "x"',
            "change[1]: expected either rules or remove",
        ),
        ('broker = "b1"\nremove = 1', "change[1].remove: expected `str | null`, got `int`"),
    ],
)
def test_a_bad_change_is_refused(written, table: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.read(written(f"{SMALL}\n[[change]]\nat_s = 1.0\n{table}\n"))
    assert message in str(caught.value)


def test_a_change_that_is_refused_is_a_difference(written) -> None:
    outcome = run(written(f'{SMALL}\n[[change]]\nat_s = 1.0\nbroker = "b1"\nremove = "no"\n'))
    assert outcome.settled
    assert [line for line in check(outcome) if "no rule is named no" in line]


def test_by_arrival_what_cannot_be_is_a_difference(written) -> None:
    path = written(f'ordering = "arrival"\n{SMALL}')
    outcome = run(path)
    assert check(outcome) == []
    arrivals = outcome.experiment.sinks["k1"].arrivals
    arrivals.append(next(one for one in arrivals if one.delivery.batches[0].is_composite))
    assert any("twice: Fire of rexmq/rule/fire" in line for line in check(outcome))
    outcome.experiment.book.names.clear()
    assert any("of no rule: Fire" in line for line in check(outcome))
    for _, recording in outcome.experiment.recordings:
        object.__setattr__(recording, "batches", recording.batches[:1])
    assert any("which nobody published: Fire" in line for line in check(outcome))


# --- what campaigns have found -----------------------------------------------------------------


def network(folder: Path, rules: str, later: str, events: dict[str, str], name: str) -> Outcome:
    """A line of brokers, n0 to n2, and other rules after 2.6 s. ``events``: by source, which is
    called as its type and a broker's number, the times of its events, all alike but for that.
    """
    declared = "event A(p: int)\nevent B(p: int)\nevent C(p: int)\n"
    folder.joinpath("rules.tesla").write_text(declared + rules)
    folder.joinpath("later.tesla").write_text(declared + later)
    text = f'strategy = "{name}"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += "".join(f'[[broker]]\nname = "n{place}"\n' for place in range(3))
    text += '[[link]]\nbetween = ["n0", "n1"]\ndelay_ms = 40.0\n'
    text += '[[link]]\nbetween = ["n1", "n2"]\ndelay_ms = 400.0\n'
    for source, times in events.items():
        line = '{{"type": "{}", "time": {}, "source": "{}", "data": {{"p": 1}}}}\n'
        lines = (line.format(source[0], time, source) for time in times.split())
        folder.joinpath(f"{source}.jsonl").write_text("".join(lines))
        text += f'[[source]]\nname = "{source}"\nbroker = "n{source[1]}"\n'
        text += f'events = "{source}.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "n0"\nsubscribe = ["Z"]\n'
    text += '[[change]]\nat_s = 2.6\nbroker = "n1"\nrules = "later.tesla"\n'
    file = folder / "scenario.toml"
    file.write_text(text)
    return Experiment(scenario.read(file)).run()


def test_fragments_do_not_count_what_came_before_their_rule_holds(tmp_path: Path) -> None:
    """The C at 4 s was before the rule held, and kept the last two of three from going up."""
    later = "rule r: define Z() from B() as b and 2-last A() as a within 3 s from b\n"
    later += "and 2-first C() as c within 6 s from a"
    events = {"A0": "8 9", "B1": "4 10", "C0": "1 4 5 8"}
    outcome = network(tmp_path, "rule r: define Z() from A()", later, events, "distributed-st")
    assert check(outcome) == []
    (held,) = outcome.experiment.book.held
    assert held.since == 4 * SECOND + 1
    assert len(delivered(outcome.experiment.sinks["k"].arrivals).composite) == 1


FORGOTTEN = """
seed = 7
engine = "naive"
rules = "rules.tesla"
[[broker]]
name = "b1"
[[source]]
name = "tick"
broker = "b1"
events = "tick.jsonl"
[[source]]
name = "temp"
broker = "b1"
events = "temp.jsonl"
[[source]]
name = "smoke"
broker = "b1"
events = "smoke.jsonl"
[[sink]]
name = "k1"
broker = "b1"
subscribe = ["Fire"]
[[change]]
at_s = 1.656
broker = "b1"
rules = "later.tesla"
"""
TYPES = "event Tick()\nevent Temp(area: string, value: float)\nevent Smoke(area: string)\n"


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_may_be_the_first_to_use_a_type_whose_source_has_gone(
    tmp_path: Path, name: str
) -> None:
    """Its events are gone, so the rule holds from after them (fuzz seed 5016)."""
    data = {"tick": "{}", "temp": '{"area": "a", "value": 50}', "smoke": '{"area": "a"}'}
    for time, (source, values) in enumerate(data.items()):
        event = f'{{"type": "{source.title()}", "time": {time}, "data": {values}}}\n'
        (tmp_path / f"{source}.jsonl").write_text(event)
    (tmp_path / "rules.tesla").write_text(f"{TYPES}rule r: define Z() from Tick()")
    (tmp_path / "later.tesla").write_text(TYPES + LATER)
    path = tmp_path / "scenario.toml"
    path.write_text(FORGOTTEN)
    outcome = Experiment(replace(scenario.read(path), strategy=name)).run()
    assert check(outcome) == []
    (_, fire) = outcome.experiment.book.held
    assert fire.since is not None
    assert fire.since > SECOND


def outcome_of(path: Path, name: str, network: str, files: dict[str, str]) -> Outcome:
    """Write a scenario with its rules and events, and run it by a strategy."""
    for file, text in files.items():
        rules = "event A(p: int)\nevent B(p: int)\nevent C(p: int)\nevent D(p: int)\n"
        (path / file).write_text(rules + text if file.endswith(".tesla") else text)
    (path / "scenario.toml").write_text(network)
    return Experiment(replace(scenario.read(path / "scenario.toml"), strategy=name)).run()


def events(name: str, *times: float) -> str:
    """Lines of a source's events."""
    return "".join(f'{{"type": "{name}", "time": {at}, "data": {{"p": 1}}}}\n' for at in times)


REPLACED = """
seed = 9033
strategy = "centralized"
engine = "naive"
rules = "rules.tesla"
broker = [{name = "n0"}, {name = "n1"}, {name = "n2"}, {name = "n4"}, {name = "n5"}]
link = [
    {between = ["n0", "n1"], delay_ms = 5.0},
    {between = ["n0", "n2"], delay_ms = 5.0},
    {between = ["n1", "n4"], delay_ms = 5.0},
    {between = ["n2", "n5"], delay_ms = 40.0},
]
source = [
    {name = "A0", broker = "n2", events = "A0.jsonl"},
    {name = "B1", broker = "n2", events = "B1.jsonl"},
    {name = "C0", broker = "n4", events = "C0.jsonl"},
]
sink = [{name = "k3", broker = "n5", subscribe = ["Z"]}]
change = [
    {at_s = 12.3, broker = "n0", rules = "first.tesla"},
    {at_s = 35.976, broker = "n4", rules = "second.tesla"},
]
[protocol]
heartbeat_s = 20.0
lead_s = 60.0
message_cost_us = 0.0
"""


@pytest.mark.parametrize("name", strategy.names())
def test_what_a_rule_has_found_on_a_tree_of_sinks_outlasts_it(tmp_path: Path, name: str) -> None:
    """It comes to the tree's root while that pauses for the plan that replaces the rule, and begins
    the tree anew (fuzz seed 9033)."""
    files = {
        "rules.tesla": "rule r0: define Z() from B()",
        "first.tesla": "rule r2: define Z() from B() as b and 2-last A() as a within 3 s from b "
        "and each C() as c within 2 s from a",
        "second.tesla": "rule r2: define Z() from A()",
        "A0.jsonl": events("A", 3.0, 36.0, 38.0, 39.0),
        "B1.jsonl": events("B", 39.0),
        "C0.jsonl": events("C", 36.000001, 39.0),
    }
    outcome = outcome_of(tmp_path, name, REPLACED, files)
    assert check(outcome) == []
    if not name.startswith("push-pull"):  # there the rule ends before it has looked so far
        assert len(delivered(outcome.experiment.sinks["k3"].arrivals).composite) == 2


REMOVED = """
seed = 6404
strategy = "centralized"
engine = "naive"
rules = "rules.tesla"
broker = [{name = "n2"}, {name = "n3"}, {name = "n4"}]
link = [
    {between = ["n3", "n4"], delay_ms = 400.0},
    {between = ["n2", "n3"], delay_ms = 5.0},
]
source = [
    {name = "A0", broker = "n4", events = "A0.jsonl"},
    {name = "D0", broker = "n2", events = "D0.jsonl"},
]
sink = [{name = "k3", broker = "n2", subscribe = ["Y"]}]
change = [
    {at_s = 0.342, broker = "n2", rules = "first.tesla"},
    {at_s = 1.567, broker = "n4", rules = "second.tesla"},
    {at_s = 2.676, broker = "n4", remove = "r2"},
]
[protocol]
heartbeat_s = 20.0
lead_s = 60.0
message_cost_us = 0.0
"""


@pytest.mark.parametrize("name", strategy.names())
def test_what_comes_during_a_pause_is_delivered_before_its_type_is_forgotten(
    tmp_path: Path, name: str
) -> None:
    """The rule that is removed is the last that mentions it (fuzz seed 6404)."""
    files = {
        "rules.tesla": "rule r0: define X(n: int) from D() as d and last A() as a "
        "within 2500 ms from d where n = 1",
        "first.tesla": "rule r1: define X(n: int) from A() as a and last X() within 6 s from a "
        "where n = 1",
        "second.tesla": "rule r2: define Y() from D(p = $p) or A(p = $p) as e consuming e",
        "A0.jsonl": events("A", 1.0),
        "D0.jsonl": events("D", 4.0),
    }
    outcome = outcome_of(tmp_path, name, REMOVED, files)
    assert check(outcome) == []
    assert len(delivered(outcome.experiment.sinks["k3"].arrivals).composite) == 1


REROUTED = """
seed = 12023
strategy = "centralized"
engine = "naive"
rules = "rules.tesla"
broker = [{name = "n0"}, {name = "n1"}, {name = "n2"}]
link = [
    {between = ["n0", "n1"], delay_ms = 5.0},
    {between = ["n1", "n2"], delay_ms = 400.0},
]
source = [
    {name = "A0", broker = "n2", events = "A0.jsonl"},
    {name = "B0", broker = "n1", events = "B0.jsonl"},
]
sink = [
    {name = "near", broker = "n1", subscribe = ["X", "Z"]},
    {name = "far", broker = "n2", subscribe = ["X", "Z"]},
]
change = [
    {at_s = 3.5, broker = "n1", rules = "above.tesla"},
    {at_s = 3.6, broker = "n1", rules = "beside.tesla"},
]
[protocol]
heartbeat_s = 20.0
lead_s = 60.0
"""


@pytest.mark.parametrize("name", strategy.names())
def test_what_a_tree_of_sinks_lacks_comes_along_the_single_tree(tmp_path: Path, name: str) -> None:
    """Because of the first change the rule is evaluated on the single tree, too, because of the
    second there alone; the far sink's own tree has not seen the B at 5 s then (fuzz seed 12023).
    """
    files = {
        "rules.tesla": "rule r0: define X() from B() as b and each A() as a within 9 s from b",
        "above.tesla": "rule r1: define Z() from X() as x consuming x",
        "beside.tesla": "rule r2: define X() from A() as a consuming a",
        "A0.jsonl": events("A", 1.0),
        "B0.jsonl": events("B", 3.0, 5.0, 9.0),
    }
    outcome = outcome_of(tmp_path, name, REROUTED, files)
    assert check(outcome) == []
    for sink in ("near", "far"):
        found = delivered(outcome.experiment.sinks[sink].arrivals).composite
        assert [one.time // SECOND for one in found if one.type == "X"] == [3, 5, 9]


HELD = REROUTED.replace(
    "]\nsink",
    """    {name = "C0", broker = "n1", events = "C0.jsonl"},
    {name = "D0", broker = "n1", events = "D0.jsonl"},
]
fault = [{kind = "skew", at_s = -60.0, value = -4.0, sources = ["D0"]}]
sink""",
).replace('"n2", subscribe = ["X", "Z"]', '"n2", subscribe = ["X", "Y"]')


@pytest.mark.parametrize("name", strategy.names())
def test_what_a_tree_of_sinks_has_is_held_while_the_single_tree_begins_anew(
    tmp_path: Path, name: str
) -> None:
    """The near sink's X at 5 s waits for a D that comes late, when the second change moves another
    rule there; the far sink's own tree begins anew with the first, and is behind.
    """
    files = {
        "rules.tesla": "rule r0: define X() from B() as b and each A() as a within 9 s from b\n"
        "rule r1: define Z() from X() as x and last D() as d within 9 s from x consuming d",
        "above.tesla": "rule r2: define Y() from C()",
        "beside.tesla": "rule r3: define Y() from C(p = 2) as c consuming c",
        "A0.jsonl": events("A", 1.0),
        "B0.jsonl": events("B", 3.0, 5.0, 9.0),
        "C0.jsonl": events("C", 2.0, 8.0),
        "D0.jsonl": events("D", 1.0, 4.0, 9.0),
    }
    outcome = outcome_of(tmp_path, name, HELD, files)
    assert check(outcome) == []
    found = delivered(outcome.experiment.sinks["near"].arrivals).composite
    assert [one.time // SECOND for one in found if one.type == "X"] == [3, 5, 9]


RENEWED = """
seed = 54507
engine = "naive"
rules = "rules.tesla"
broker = [{name = "n1"}, {name = "n2"}, {name = "n3"}]
link = [
    {between = ["n1", "n2"], delay_ms = 40.0},
    {between = ["n2", "n3"], delay_ms = 40.0},
]
source = [
    {name = "A0", broker = "n1", events = "A0.jsonl"},
    {name = "B0", broker = "n3", events = "B0.jsonl"},
    {name = "C0", broker = "n1", events = "C0.jsonl"},
]
sink = [
    {name = "near", broker = "n1", subscribe = ["Y", "Z"]},
    {name = "far", broker = "n3", subscribe = ["Y", "Z"]},
]
change = [
    %s
    {at_s = 4.0, broker = "n1", rules = "later.tesla"},
]
[protocol]
lead_s = 60.0
"""


@pytest.mark.parametrize("name", strategy.names())
@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "replaced"])
def test_a_rule_is_not_taken_for_its_namesake_of_before(
    tmp_path: Path, name: str, is_removed: bool
) -> None:
    """That one would have found nothing before the next B, which is promised. With the new one s
    moves, so rules begin anew (fuzz seed 54507).
    """
    first = '{at_s = 2.0, broker = "n1", remove = "r"},' if is_removed else ""
    files = {
        "rules.tesla": "rule r: define Y() from B() as b and last C() as c within 2 s from b\n"
        "rule s: define Z() from A()",
        "later.tesla": "rule r: define Z() from A() as a consuming a",
        "A0.jsonl": events("A", 6.0),
        "B0.jsonl": events("B", 0.0, 20.0),
        "C0.jsonl": events("C", 1.0, 5.0),
    }
    outcome = outcome_of(tmp_path, name, RENEWED % first, files)
    assert check(outcome) == []
    if is_removed or not name.startswith("push-pull"):  # there it ends where it finds no more
        for sink in outcome.experiment.sinks.values():
            found = [one for one in delivered(sink.arrivals).composite if one.source[-2:] == "/r"]
            assert [one.time for one in found] == [6 * SECOND]


@pytest.mark.parametrize("name", strategy.names())
def test_what_is_held_of_a_rule_does_not_come_again_with_its_namesake(
    tmp_path: Path, name: str
) -> None:
    """What r found before it was removed waits for w; then s moves, and another r begins anew."""
    changes = '{at_s = 2.0, broker = "n1", remove = "r"},\n'
    changes += '{at_s = 3.0, broker = "n3", rules = "again.tesla"},'
    network = RENEWED.replace('"Y", "Z"', '"W", "Y", "Z"') % changes
    network = network.replace(
        "source = [", 'source = [\n{name = "D0", broker = "n2", events = "D0.jsonl"},'
    )
    files = {
        "rules.tesla": "rule r: define Y() from B()\nrule s: define Z() from A()\n"
        "rule w: define W() from D()",
        "again.tesla": "rule r: define Y() from A()",
        "later.tesla": "rule t: define Z() from A() as a consuming a",
        "A0.jsonl": events("A", 6.0),
        "B0.jsonl": events("B", 0.0, 1.0, 20.0),
        "C0.jsonl": events("C", 1.0, 5.0),
        "D0.jsonl": events("D", 30.0),
    }
    outcome = outcome_of(tmp_path, name, network, files)
    assert check(outcome) == []
    for sink in outcome.experiment.sinks.values():
        found = [one for one in delivered(sink.arrivals).composite if one.source[-2:] == "/r"]
        assert [one.time // SECOND for one in found] == [0, 1, 6]


CUT = """
heartbeat_s = 0.2
[[fault]]
kind = "cut"
at_s = 2.0
for_s = 4.0
links = [["n2", "n3"]]
"""


@pytest.mark.parametrize("name", strategy.names())
@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "replaced"])
def test_who_was_away_does_not_take_a_rule_for_its_namesake(
    tmp_path: Path, name: str, is_removed: bool
) -> None:
    """As above, where all who want either one do not hear of it before they are back. When q comes,
    they are told that r will find nothing before the next B.
    """
    first = '{at_s = 1.3, broker = "n1", rules = "more.tesla"},'
    first += '{at_s = 3.5, broker = "n1", remove = "r"},' if is_removed else ""
    network = (RENEWED % first).replace('name = "near", broker = "n1"', 'name = "k", broker = "n3"')
    network = network.replace('broker = "n3", events', 'broker = "n2", events')
    files = {
        "rules.tesla": "rule r: define Y() from B() as b and last C() as c within 2 s from b\n"
        "rule s: define Z() from A()",
        "more.tesla": "rule q: define X() from D()",
        "later.tesla": "rule r: define Z() from A() as a consuming a",
        "A0.jsonl": events("A", 5.0),
        "B0.jsonl": events("B", 0.0, 20.0),
        "C0.jsonl": events("C", 1.0, 4.5),
    }
    outcome = outcome_of(tmp_path, name, network + CUT, files)
    assert check(outcome) == []
    if is_removed or not name.startswith("push-pull"):
        for sink in outcome.experiment.sinks.values():
            found = [one for one in delivered(sink.arrivals).composite if one.source[-2:] == "/r"]
            assert [one.time // SECOND for one in found] == [5]


@pytest.mark.parametrize("name", strategy.names())
def test_a_type_that_a_rule_has_waited_for_in_vain_may_be_defined_later(
    tmp_path: Path, name: str
) -> None:
    """First by s, where A comes from, which has none yet; then where r has waited for that (fuzz
    seed 54507).
    """
    changes = '{at_s = 1.0, broker = "n1", remove = "r"},'
    changes += '{at_s = 2.0, broker = "n1", rules = "more.tesla"},'
    files = {
        "rules.tesla": "rule s: define D(p: int) from A() as a where p = 1\n"
        "rule r: define Y() from B() as b and last C() as c within 2 s from b "
        "and last D() as d within 4 s from b",
        "more.tesla": "rule s: define X() from C()",
        "later.tesla": "rule q: define D(p: int) from A() as a and each A() as e within 5 s from a "
        "and not D() between e and a where p = 1 consuming a",
        "A0.jsonl": events("A", 7.0, 8.0),
        "B0.jsonl": events("B", 0.0),
        "C0.jsonl": events("C", 0.0),
    }
    outcome = outcome_of(tmp_path, name, RENEWED.replace('"Y", "Z"', '"D"') % changes, files)
    assert check(outcome) == []
    for sink in outcome.experiment.sinks.values():
        assert [one.time // SECOND for one in delivered(sink.arrivals).composite] == [8]


ANEW = """
broker = [{name = "n0"}, {name = "n1"}, {name = "n3"}]
link = [
    {between = ["n0", "n1"], delay_ms = 5.0},
    {between = ["n0", "n3"], delay_ms = 400.0},
]
source = [
    {name = "A1", broker = "n1", events = "A1.jsonl"},
    {name = "B0", broker = "n0", events = "B0.jsonl"},
    {name = "B1", broker = "n0", events = "B1.jsonl"},
    {name = "C0", broker = "n1", events = "C0.jsonl"},
]
sink = [{name = "k", broker = "n0", subscribe = ["Z"]}]
change = [
    {at_s = 6.079, broker = "n3", rules = "more.tesla"},
    {at_s = 6.136, broker = "n3", rules = "later.tesla"},
]
"""


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_over_a_type_that_had_ended_holds_from_some_time_on(
    tmp_path: Path, name: str
) -> None:
    """A type that had ended, and began anew, counted for a moment as having come to the end of
    time, beyond which the next rules over it held: never (fuzz seed 80481).
    """
    files = {
        "more.tesla": "rule r1: define X() from C()",
        "later.tesla": "rule r1: define D(p: int) from all A() as a, C() as c within 1 s where p=1",
        "A1.jsonl": events("A", 5.0),
        "B0.jsonl": events("B", 0.0),
        "B1.jsonl": events("B", 7.000001),
        "C0.jsonl": events("C", 17.0),
    }
    outcome = outcome_of(tmp_path, name, ANEW, files)
    assert check(outcome) == []
    assert all((one.since or 0) < 20 * SECOND for one in outcome.experiment.book.held)


WARM = "event Temp(area: string)\nrule warm: define Warm() from Temp()"


def told(version: int, *replaced: dict[str, object]) -> Confirmed:
    """The answer to who deploys WARM from 5 us on."""
    one = {"name": "warm", "since": 5, "version": version}
    return Confirmed(1, {"rules": [one], "replaced": list(replaced)})


def nothing_of(rule: str, before: int) -> None:
    return None


def test_a_change_without_an_answer_counts_by_what_brokers_have_in_the_end() -> None:
    asked = rules.load(WARM)
    (rule,) = asked.rules
    book = RuleBook()
    assert book.conclude(asked, (), nothing_of)
    assert book.held == []
    for _ in range(2):  # it says nothing new a second time
        assert book.conclude(asked, [Deployed(rule, 5, 0, 1)], nothing_of)
        assert book.held == [Held(rule, 5, None, 0)]


@pytest.mark.parametrize(("last", "before"), [(7, [(5, 8, 0)]), (None, [])])
def test_what_was_replaced_without_an_answer_held_up_to_the_last_of_it(
    last: int | None, before: list[tuple[int, int, int]]
) -> None:
    asked = rules.load(WARM)
    (rule,) = asked.rules
    book = RuleBook()
    book.note(asked, told(0), 0.0)
    asked_for = []

    def last_of(rule: str, before: int) -> int | None:
        asked_for.append((rule, before))
        return last

    assert book.conclude(asked, [Deployed(rule, 20, 1, 1)], last_of)
    found = [(one.since, one.until, one.version) for one in book.held]
    assert found == [*before, (20, None, 1)]
    assert asked_for == [("warm", 20)]


def test_of_a_name_that_was_changed_once_more_nothing_can_be_told() -> None:
    """The version that was replaced is none that anybody was told of, so one came in between."""
    asked = rules.load(WARM)
    (rule,) = asked.rules
    book = RuleBook()
    book.note(asked, told(0), 0.0)
    book.note(asked, told(2, {"name": "warm", "version": 1, "until": 9}), 0.0)
    assert not book.conclude(asked, [Deployed(rule, 5, 2, 1)], nothing_of)
    assert not book.conclude_removal("warm", [], nothing_of)


def test_a_removal_without_an_answer_counts_if_brokers_have_the_rule_no_more() -> None:
    """It held up to the last that anybody got of it; for nothing, where nobody got anything."""
    asked = rules.load(WARM)
    (rule,) = asked.rules
    for in_force, last, held in (
        ([Deployed(rule, 5, 0, 0)], 7, [Held(rule, 5, None, 0)]),
        ([], 7, [Held(rule, 5, 8, 0)]),
        ([], None, []),
    ):
        book = RuleBook()
        book.note(asked, told(0), 0.0)
        assert book.conclude_removal("warm", in_force, lambda rule, before, last=last: last)
        assert book.held == held


ALARMS = """event Gate(id: string)
event Siren(id: string)
rule gates: define Alarm(id: string) from Gate() as g where id = g.id
"""
SIRENS = """event Siren(id: string)
rule sirens: define Alarm(id: string) from Siren() as s where id = s.id
"""


def late_sirens(written) -> Outcome:
    """A rule comes after its sink has got what another finds at 5 s; sirens say nothing before."""
    line = '{{"type": "{}", "time": {}, "source": "{}", "data": {{"id": "a"}}}}\n'
    text = (
        'rules = "rules.tesla"\n'
        '[[broker]]\nname = "b1"\n[[broker]]\nname = "b2"\n[[link]]\nbetween = ["b1", "b2"]\n'
        '[[source]]\nname = "gates"\nbroker = "b1"\nevents = "gates.jsonl"\n'
        '[[source]]\nname = "sirens"\nbroker = "b2"\nevents = "sirens.jsonl"\nat_s = 14.0\n'
        '[[sink]]\nname = "k"\nbroker = "b2"\nsubscribe = ["Alarm"]\n'
        '[[change]]\nat_s = 14.05\nbroker = "b2"\nrules = "sirens.tesla"\n'
        '[[fault]]\nkind = "skew"\nat_s = 0.0\nfor_s = 60.0\nvalue = -20.0\nsources = ["sirens"]\n'
    )
    gates = "".join(line.format("Gate", at, "gates") for at in (1.0, 5.0))
    files = {"gates.jsonl": gates, "sirens.jsonl": line.format("Siren", 4.0, "sirens")}
    path = written(text, ALARMS, **files)
    path.with_name("sirens.tesla").write_text(SIRENS)
    return Experiment(scenario.read(path)).run()


def test_what_a_rule_finds_of_before_it_came_may_come_behind_what_others_found(written) -> None:
    """Nothing that it needs had been published, so it holds from the beginning."""
    outcome = late_sirens(written)
    came = delivered(outcome.experiment.sinks["k"].arrivals).composite
    assert [one.time for one in came] == [SECOND, 5 * SECOND, 4 * SECOND]
    assert check(outcome) == []
    (behind,) = outcome.experiment.sinks["k"].arrivals[-1:]
    assert behind.moment > outcome.experiment.book.confirmed_at["sirens", 0]


def test_nothing_else_may(written, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same, but that it had been there from the first."""
    outcome = late_sirens(written)
    begun = dict.fromkeys(outcome.experiment.book.confirmed_at, 0.0)
    monkeypatch.setattr(outcome.experiment.book, "confirmed_at", begun)
    (_, out_of_order) = check(outcome)
    assert "out of order: Alarm of rexmq/rule/gates" in out_of_order


CYCLE = """event A(n: int)
event B(n: int)
event C(n: int)
event D(n: int)
rule x: define X(n: int) from C() as c and each Z() within 2 s from c where n = 1
rule z: define Z(n: int) from A() as a where n = 1
rule back: define Z(n: int) from B() as b and not X() within 5 s from b where n = 2
rule above: define W(n: int) from D() as d and not X() within 5 s from d where n = 3
"""


def cyclic(written, name: str, more: str) -> Outcome:
    """Three brokers, the sink at the root; Z is found together with what X ends with, or before."""
    times = {"A": (2, 6, 8, 12, 15, 18, 25), "B": (1, 7, 30), "C": (2, 6, 8, 12, 15, 18, 25)}
    text = f'strategy = "{name}"\nrules = "rules.tesla"\n[protocol]\n'
    text += f"heartbeat_s = 0.2\nlead_s = 60.0\n{more}"
    files = {}
    for place, (type_name, own) in enumerate(times.items()):
        source = f"s{type_name.lower()}"
        text += f'[[source]]\nname = "{source}"\nbroker = "b{place}"\nevents = "{source}.jsonl"\n'
        files[f"{source}.jsonl"] = "".join(
            f'{{"type": "{type_name}", "time": {at}.0, "source": "{source}", "data": {{"n": 1}}}}\n'
            for at in own
        )
    text += '[[sink]]\nname = "k"\nbroker = "b0"\nsubscribe = ["X", "Z"]\n'
    text += "".join(f'[[broker]]\nname = "b{place}"\n' for place in range(3))
    text += "".join(
        f'[[link]]\nbetween = ["b0", "{other}"]\ndelay_ms = 5.0\n' for other in ("b1", "b2")
    )
    return Experiment(scenario.read(written(text, CYCLE, **files))).run()


@pytest.mark.parametrize("after_s", [1.0, 3.1])
@pytest.mark.parametrize("name", strategy.names())
def test_a_cycle_that_is_opened_is_open_from_there_on(written, name: str, after_s: float) -> None:
    """The rule that closed it is removed; then a link is cut, so all is evaluated once more."""
    more = '[[change]]\nat_s = 10.5\nbroker = "b1"\nremove = "back"\n'
    more += f'[[fault]]\nkind = "cut"\nat_s = {10.5 + after_s}\nfor_s = 4.0\n'
    outcome = cyclic(written, name, more + 'links = [["b0", "b2"]]\n')
    assert outcome.settled
    assert check(outcome) == []
    came = delivered(outcome.experiment.sinks["k"].arrivals).composite
    found = [one.time // SECOND for one in came if one.type == "X"]
    assert found == [2, 8, 12, 15, 18, 25]  # by Z a second before, and then by Z of the instant
