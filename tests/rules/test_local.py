"""The engine in process (thesis 5.5)."""

import doctest
from collections import Counter
from random import Random

import pytest

import rules.local
from matcher.errors import BadEvent
from rules import Engine, RuleErrors, TooManyComposites
from rules.engine import Detections
from rules.engine.results.taken import Taken

RULES = """
event A(x: int)
event B(x: int)
rule pair: define P(x: int) from A(x = $x) and each B(x = $x) within 10 s from A where x = $x
"""
LATER = "rule last: define L(x: int) from A(x = $x) and last B() within 10 s from A where x = $x"


def test_the_documented_example():
    found = doctest.testmod(rules.local)
    assert found.attempted >= 4
    assert found.failed == 0


@pytest.mark.parametrize("engine", ["auto", "naive"])
def test_an_instant_waits_for_a_later_event(engine):
    local = Engine(RULES, engine=engine)
    assert local.publish("B", time=1, x=1) == []
    assert local.publish("A", time=2, x=1) == []
    assert local.publish("B", time=2, x=1) == []  # simultaneous: both orders count (S4)
    found = local.publish("B", time=3, x=1)
    assert [event.cause for event in found] == [("2", "1"), ("2", "3")]
    assert local.finish() == []


def test_an_attribute_that_a_type_lacks_is_refused_beside_one_that_may_be_left_out():
    local = Engine("event A(x: int?) define P(x: int?) from A() where x = A.x")
    with pytest.raises(BadEvent, match="event type A has no attribute xx; it has: x"):
        local.publish("A", time=1, xx=2)
    assert local.publish("A", time=1) == local.finish()[:0]


def test_rows_and_advance():
    local = Engine(RULES)
    local.push([{"time": 1, "x": 1}, {"time": 2, "x": 2}], type="B")
    local.push([{"time": 3, "x": 2}], type="A")
    assert len(local.advance(3_000_000)) == 0
    assert [event.data for event in local.advance(3_000_001).events()] == [{"x": 2}]


def test_a_rule_deployed_later_sees_later_events_alone():
    local = Engine(RULES)
    local.publish("B", time=1, x=1)
    local.deploy(LATER)
    local.publish("A", time=2, x=1)
    local.publish("B", time=3, x=5)
    local.publish("A", time=4, x=7)
    assert [event.type for event in local.finish()] == ["L"]
    assert [rule.name for rule in local.rules] == ["pair", "last"]


def test_replacing_a_rule_changes_its_ids():
    ids = []
    for replace in (False, True):
        local = Engine(RULES)
        if replace:
            local.deploy(RULES, replace=True)
        local.publish("B", time=1, x=1)
        local.publish("A", time=2, x=1)
        ids.append(local.finish()[0].id)
    assert ids[0] != ids[1]


@pytest.mark.parametrize("engine", ["auto", "naive"])
def test_what_was_published_before_a_rule_is_removed_is_still_found(engine):
    """As in a broker: it holds up to the instant beyond all of that."""
    local = Engine(
        f"{RULES}\nrule upper: define U(x: int) from P() as p where x = 1", engine=engine
    )
    local.publish("B", time=1, x=1)
    local.publish("A", time=2, x=1)
    local.deploy(RULES, replace=True)
    found = local.publish("A", time=3, x=1)
    assert [(one.type, one.source) for one in found] == [
        ("P", "rexmq/rule/pair"),
        ("U", "rexmq/rule/upper"),
    ]
    local.publish("B", time=4, x=1)
    local.remove("pair")
    local.publish("A", time=5, x=1)
    found = local.finish()
    assert [(one.time, one.source) for one in found if one.type == "P"] == []
    assert [rule.name for rule in local.rules] == ["upper"]


def test_what_a_refused_text_was_to_replace_stays():
    local = Engine(
        "event A(x: int)\n"
        "rule c: define C(x: int) from A() where x = A.x\n"
        "rule d: define D(x: int) from C() where x = C.x\n"
    )
    with pytest.raises(RuleErrors, match="could never fire"):
        local.deploy("rule c: define C(x: int) from D() where x = D.x", replace=True)
    local.publish("A", time=1, x=1)
    assert [event.type for event in local.finish()] == ["C", "D"]


def test_attributes_called_as_arguments_are_given_in_a_dict():
    engine = Engine("event Probe(n: int, time: float, id: string)")
    with pytest.raises(BadEvent, match=r"time=... was taken for the event's time; .* in a dict"):
        engine.publish("Probe", n=1, time=2.0, id="x")
    engine.publish("Probe", {"time": 2.0, "id": "x"}, n=1, time=2.0)


def test_refusals_name_what_is_wrong():
    local = Engine(RULES)
    with pytest.raises(RuleErrors, match="already deployed"):
        local.deploy(RULES)
    with pytest.raises(BadEvent, match="no event type is called C; known are: A, B, P"):
        local.publish("C", time=1)
    with pytest.raises(BadEvent, match="attribute x"):
        local.publish("A", time=1, x="one")
    local.publish("A", time=5, x=1)
    with pytest.raises(BadEvent, match="earlier"):
        local.publish("A", time=4, x=1)
    with pytest.raises(ValueError, match="type="):
        local.push([{"time": 1, "x": 1}])
    with pytest.raises(KeyError):
        local.remove("none")


@pytest.mark.parametrize("engine", ["auto", "naive"])
def test_what_is_refused_changes_nothing(engine):
    local = Engine(RULES, engine=engine)
    local.publish("B", time=1, x=1)
    with pytest.raises(BadEvent, match="finer than a microsecond"):
        local.publish("A", time="1e-99999999999999999999", x=1)
    with pytest.raises(BadEvent, match="none of the years 1 to 9999"):
        local.publish("A", time="1e99999999999999999999", x=1)
    for name in ("id", "source"):
        with pytest.raises(BadEvent, match=f"{name}: text that UTF-8 cannot hold"):
            local.publish("A", time=2, x=1, **{name: "\ud800"})
    with pytest.raises(BadEvent, match="row 2: id: text"):
        local.push([{"time": 2, "x": 1, "id": "a"}, {"time": 2, "x": 1, "id": "\ud800"}], type="A")
    for mark in (2**63, 2**70, -(2**70)):
        with pytest.raises(ValueError, match=f"mark {mark} is beyond 64 bits"):
            local.advance(mark)
    local.publish("A", time=2, x=1)
    assert [event.cause for event in local.finish()] == [("2", "1")]


def test_the_id_of_another_event_is_refused_and_the_same_event_again_counted():
    engine = Engine("event Reading(v: float)\ndefine Hot(t) from Reading() as r where t = r.v")
    engine.publish("Reading", time=1, v=20, id="1")  # the number that it has anyway
    with pytest.raises(BadEvent, match="id 1 of source local names Reading at 1970"):
        engine.publish("Reading", time=2, v=50, id="1")
    engine.publish("Reading", time=1, v=20, id="1")
    assert engine.duplicates == 1
    with pytest.raises(BadEvent, match="id x"):
        engine.push(
            [{"time": 3, "v": 1, "id": "x"}, {"time": 4, "v": 1, "id": "x"}], type="Reading"
        )
    assert [event.data["t"] for event in engine.finish()] == [20.0, 1.0]


def test_a_rule_with_too_many_composite_events_is_removed_and_the_others_go_on():
    text = """
        event A(x: int) event B(y: int)
        define Pair(y: int) from A() and each B() within 10 s from A where y = B.y
        define Seen() from Pair() and last A() within 1 s from Pair
    """
    engine = Engine(text, composites_per_instant_max=2)
    for y in range(3):
        engine.publish("B", time=0, y=y)
    engine.publish("A", time=1, x=1)
    with pytest.raises(TooManyComposites, match="rule Pair has more than 2 composite") as caught:
        engine.publish("A", time=2, x=1)
    found = [event.type for event in caught.value.detections.events()]
    assert found == ["Pair", "Pair", "Seen", "Seen"]
    assert [rule.name for rule in engine.rules] == ["Seen"]
    engine.deploy(text.partition("define Seen")[0])
    engine.publish("B", time=3, y=7)
    engine.publish("A", time=4, x=1)
    assert [event.data for event in engine.finish() if event.type == "Pair"] == [{"y": 7}]


def test_a_bound_of_composite_events_is_a_number_or_none():
    with pytest.raises(ValueError, match="composites_per_instant_max must be at least 1"):
        Engine(composites_per_instant_max=0)
    assert Engine(composites_per_instant_max=None).finish() == []


def test_attributes_that_a_type_lacks_are_refused():
    local = Engine(RULES)
    with pytest.raises(BadEvent, match="event type B has no attribute colour; it has: x"):
        local.publish("B", time=1, x=1, colour="red")
    with pytest.raises(BadEvent, match="event type B has no attribute colour; it has: x"):
        local.push([{"time": 1, "x": 1}, {"time": 2, "x": 1, "colour": "red"}], type="B")
    local.publish("B", time=0.5, x=1)  # nothing was taken


def test_the_clock_is_a_time():
    local = Engine(RULES)
    for clock in (1_764_404_412.123_456_7, 1_764_404_412.123_458_2):
        local.publish("B", time=clock, x=1)


@pytest.mark.parametrize("seed", range(6))
def test_events_that_come_alone_are_those_of_the_columns(seed, monkeypatch):
    """Of ids that are texts and of rules over rules, whatever comes out together."""
    alone, numbers = Taken.events, []

    def both(detections):
        rows, others = [*alone(detections)], [*Detections.events(detections)]
        assert rows == others, seed
        assert [row.cause_full for row in rows] == [row.cause_full for row in others], seed
        numbers.append(len(rows))
        return iter(rows)

    monkeypatch.setattr(Taken, "events", both)
    engine = Engine("""
        event A(area: string, value: float?, far: bool)
        event B(area: string)
        define First(area: string, value: float?, far: bool)
        from B(area = $a) and last A(area = $a) within 5 s from B
        where area = $a, value = A.value, far = A.far
        define Second(number: int)
        from First() as first where number = Count(A() within 3 s from first)
        define Third(area: string)
        from Second() and each First(area = $a) within 2 s from Second where area = $a
    """)
    random, types = Random(seed), Counter()
    for number in range(200):
        area, name = random.choice("xyz"), random.choice([None, f"e{number}"])
        kind, data = "B", {"area": area}
        if random.random() < 0.6:
            value = random.choice([None, 1.5, -0.0, 7])
            kind, data = "A", {"area": area, "value": value, "far": number % 3 == 0}
        found = engine.publish(kind, data, time=number // 2, id=name)
        types.update(event.type for event in found)
    engine.finish()
    assert types.keys() == {"First", "Second", "Third"}, seed
    assert {3, 4} < {*numbers}, seed
