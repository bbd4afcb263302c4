"""AIP as published: which sequences there are, when they are made and deleted, what is refused.

That it detects what the other engines do is tried in ``tests/conformance``.
"""

import pytest
from event_batches import batch_of_events

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventType
from rules.engine import make
from rules.engine.chains.published import AipPublished
from rules.errors import RuleErrors

SECOND = MICROSECONDS
TYPES = {name: EventType.of(name, k="int", v="int") for name in "ABCN"}
SCHEMAS = " ".join(f"event {name}(k: int, v: int)" for name in TYPES)
CHAIN = """ rule chain: define Chain() from C() as c and each B(k = c.k) as b within 2 s from c
    and each A(k = c.k, v > b.v) as a within 2 s from b"""


def engine_of(text: str) -> AipPublished:
    engine = make("aip-published")
    assert isinstance(engine, AipPublished)
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


def event(name: str, seconds: float, number: int, k: int = 0, v: int = 0) -> Event:
    return Event(name, int(seconds * SECOND), name, str(number), {"k": k, "v": v}, number)


def push(engine: AipPublished, *events: Event) -> None:
    for name, schema in TYPES.items():
        chosen = [one for one in events if one.type == name]
        if chosen:
            engine.push(batch_of_events(schema, chosen))


def causes(engine: AipPublished, marks: int = TIME_MAX) -> list[str]:
    return [" ".join(one.cause_full) for one in engine.advance(marks).events()]


def sequences(engine: AipPublished) -> list[int]:
    """How many sequences wait in each state, model by model, the earliest state first."""
    automata = engine._linker._automata._automata.array
    pools = engine._linker._automata._pools.array
    count = sum(1 for one in pools if one["width"])
    assert len(automata)
    return [int(one["count"]) for one in pools[:count]]


def test_events_are_taken_in_as_they_come_whether_or_not_a_terminator_asks():
    engine = engine_of(CHAIN)
    push(engine, event("A", 1, 1, v=5), event("B", 2, 1, v=4), event("B", 2.5, 2, v=6))
    assert causes(engine, int(2.6 * SECOND)) == []
    assert sequences(engine) == [1, 1]  # A waits for B, and A B for C; B#2 has none to go with


def test_a_transition_duplicates_each_sequence_and_leaves_it_where_it_is():
    engine = engine_of(CHAIN)
    for number in range(3):
        push(engine, event("A", 1, number, v=5))
    for number in range(4):
        push(engine, event("B", 2, number))
    causes(engine, 3 * SECOND)
    assert sequences(engine) == [3, 12]
    push(engine, event("C", 3, 1), event("C", 3, 2))
    assert len(causes(engine, 4 * SECOND)) == 2 * 12
    assert sequences(engine) == [3, 12]


def test_two_states_wait_for_their_terminator_too():
    """Figure 5.3: R1 has an automaton, and sequences of the wrong area are left alone."""
    engine = engine_of(" define Fire() from B(k = $k) and each A(k = $k, v > 45) within 5 s from B")
    push(engine, event("A", 1, 1, 1, 50), event("A", 2, 2, 1, 40), event("A", 2, 3, 2, 50))
    causes(engine, 3 * SECOND)
    assert sequences(engine) == [2]
    push(engine, event("B", 4, 1, 1))
    assert causes(engine, 5 * SECOND) == ["B#1 A#1"]


def test_expired_sequences_are_deleted():
    engine = engine_of(CHAIN)
    for second in range(1, 100):
        push(engine, event("A", second, second, v=5), event("B", second + 0.5, second))
        causes(engine, (second + 1) * SECOND)
        assert sum(sequences(engine)) <= 3 + 6
    push(engine, event("C", 300, 1))
    assert causes(engine) == []
    assert sequences(engine)[1] == 0


def test_a_negation_between_two_events_of_a_sequence_deletes_it_as_its_event_comes():
    engine = engine_of(CHAIN + " and not N(k = $k) between a and c".replace("$k", "a.k"))
    push(engine, event("A", 1, 1, 1, 5), event("A", 1, 2, 2, 5), event("B", 1.5, 1, 1))
    causes(engine, 2 * SECOND)
    assert sequences(engine) == [2, 1]  # k is that of B, by way of C
    push(engine, event("N", 2, 1, 1))
    causes(engine, 3 * SECOND)
    assert sequences(engine) == [1, 0]
    push(engine, event("C", 3, 1, 1))
    assert causes(engine) == []


def test_a_negation_before_an_event_keeps_sequences_from_it():
    engine = engine_of(CHAIN + " and not N(v = b.v) within 1 s from b")
    push(engine, event("A", 1, 1, v=5), event("N", 1.5, 1, v=3))
    push(engine, event("B", 2, 1, v=3), event("B", 2, 2, v=4), event("C", 3, 1))
    assert causes(engine) == ["C#1 B#2 A#1"]
    assert sequences(engine) == [1, 1]


def test_a_newer_event_supersedes_older_ones_of_its_parameters_under_last():
    engine = engine_of(" define Fire() from B(k = $k) and last A(k = $k) within 9 s from B")
    push(engine, *(event("A", place / 10, place, k=place % 3) for place in range(30)))
    push(engine, event("B", 3, 1, k=1))
    assert causes(engine) == ["B#1 A#28"]
    assert sequences(engine) == [3]


def test_what_may_be_consumed_supersedes_nothing():
    """Thesis 5.3.2, R3: once T2 is consumed, T1 is the last."""
    engine = engine_of(
        " define Fire() from B(k = $k) and last A(k = $k) as a within 9 s from B consuming a"
    )
    push(engine, *(event("A", place, place) for place in range(3)))
    push(engine, event("B", 4, 1), event("B", 5, 2))
    assert causes(engine, 6 * SECOND) == ["B#1 A#2", "B#2 A#1"]
    assert sequences(engine) == [1]


def test_first_duplicates_the_sequences_of_the_first_event_alone():
    engine = engine_of(CHAIN.replace("each A(k = c.k, v > b.v)", "first A(v > b.v)"))
    push(engine, *(event("A", 1 + place / 10, place, v=place) for place in range(5)))
    push(engine, event("B", 2, 1, v=2))
    causes(engine, 3 * SECOND)
    assert sequences(engine) == [5, 1]
    push(engine, event("C", 3, 1))
    assert causes(engine) == ["C#1 B#1 A#3"]


def test_first_and_last_choose_whatever_becomes_of_the_sequence():
    """A departure from the thesis's words, which choose among sequences: tesla.md S3 chooses among
    events, and B#2 has nothing to go with.
    """
    engine = engine_of(CHAIN.replace("each B", "last B"))
    push(engine, event("A", 1, 1, v=5), event("B", 2, 1, v=4), event("B", 2.5, 2, v=6))
    push(engine, event("C", 3, 1))
    assert causes(engine) == []


def test_a_negation_of_a_type_of_the_match_is_looked_at_when_sequences_are_joined():
    """A departure: an event of the match is no event of the negation (S6), and which is of it is
    known at the terminator.
    """
    engine = engine_of(
        """ define X() from C() as c and each A() as a within 9 s from c
            and not A(v = 9) between a and c"""
    )
    push(engine, event("A", 1, 1), event("A", 2, 2, v=9))
    causes(engine, 3 * SECOND)
    assert sequences(engine) == [2]
    push(engine, event("C", 3, 1))
    assert causes(engine) == ["C#1 A#2"]


def test_aggregates_are_exact_over_stored_events():
    """Summed as floats, one after the other, these would give 0."""
    schemas = "event A(x: float) event B(x: float)"
    rule = "define X(s: float) from B() and $s = Sum(A().x within 9 s from B) where s = $s"
    engine = make("aip-published")
    engine.deploy(rules.load(f"{schemas} {rule}"))
    type_ = EventType.of("A", x="float")
    events = [
        Event("A", place * SECOND, "A", str(place), {"x": x}, place)
        for place, x in enumerate((1.0, 1e100, 1.0, -1e100))
    ]
    engine.push(batch_of_events(type_, events))
    last = Event("B", 5 * SECOND, "B", "1", {"x": 0.0}, 1)
    engine.push(batch_of_events(EventType.of("B", x="float"), [last]))
    assert [one.data for one in engine.advance(TIME_MAX).events()] == [{"s": 2.0}]


def test_no_sequence_comes_to_a_state_that_another_model_lacks():
    engine = engine_of(
        """ define X() from C() as c and each B() as b within 5 s from c
            and each A(v = 1) as a within 5 s from b and each A(v = 2) as d within 5 s from b"""
    )
    push(engine, event("A", 1, 1, v=1), event("B", 2, 1))
    causes(engine, 3 * SECOND)
    assert sequences(engine) == [1, 0, 0, 0]
    push(engine, event("A", 3, 2, v=2), event("B", 4, 2), event("C", 5, 1))
    assert causes(engine) == ["C#1 B#2 A#1 A#2"]
    assert sequences(engine) == [1, 1, 1, 1]


def test_a_late_event_has_the_sequences_made_again():
    engine = engine_of(CHAIN)
    push(engine, event("A", 1, 1, v=5), event("B", 2, 1))
    causes(engine, 3 * SECOND)
    push(engine, event("A", 1.5, 2, v=5), event("C", 3, 1))
    assert causes(engine) == ["C#1 B#1 A#1", "C#1 B#1 A#2"]


def test_sequences_survive_that_other_rules_come_and_go():
    engine = engine_of(CHAIN)
    push(engine, event("A", 1, 1, v=5), event("B", 2, 1))
    causes(engine, 3 * SECOND)
    other = " rule other: define Other() from C() and each B() within 9 s from C"
    engine.deploy(rules.load(SCHEMAS + other))
    push(engine, event("C", 3, 1))
    assert causes(engine, 4 * SECOND) == ["C#1 B#1 A#1"]  # the other began behind the B
    engine.remove("chain")
    push(engine, event("B", 5, 2), event("C", 6, 2))
    assert causes(engine) == ["C#2 B#2"]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("all A(), B() within 2 s", "events in any order"),
        ("A() or B()", "events of either type"),
    ],
)
def test_what_is_refused_is_named(pattern: str, reason: str):
    with pytest.raises(RuleErrors, match=f"rule X: {reason} .* form no sequence"):
        engine_of(f" define X() from {pattern}")
