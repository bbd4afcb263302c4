"""Rules whose memory no window bounds, from a state on (routing.partition.rule_states)."""

import os
from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest
from cases import Case, Deploy, Push, random_case
from engines import make
from iteration_cases import iteration_case
from pairs import WHOLE
from timeline import batches

import rules
from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, Event, EventType
from routing.deployment import Deployed
from routing.durability.state_table import StateTable
from routing.messages import RuleState
from routing.partition.replay_starts import replay_starts
from routing.partition.rule_states import StateNotes, groups_of, resume
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector
from rules.engine.order.intervals import Intervals
from rules.engine.threads.parts import PartedEngine
from rules.pattern import RuleSet

COUNT = int(os.environ.get("REXMQ_STATES", "60" if WHOLE else "10"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
ENGINES = ("naive", "cdp", "aip", "auto", "aip-published", "parts")


def unbounded(
    seed: int, make_case: Callable[..., Case]
) -> tuple[RuleSet, tuple[Event, ...], Mapping[str, EventType]] | None:
    """Rules, some of which no window bounds, and events; None where the seed has none."""
    case = make_case(seed, long=seed % 4 == 0)
    texts = [text for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    events = [event for step in case.steps if isinstance(step, Push) for event in step.events]
    if len({text.name for text in texts}) < len(texts) or not events:
        return None
    ruleset = rules.load("\n\n".join(map(str, texts)), known=case.schemas)
    if not groups_of(ruleset.rules):
        return None
    return ruleset, tuple(sorted(events, key=lambda one: one.time)), case.schemas


def engine_of(name: str) -> Detector:
    return PartedEngine([CdpEngine(), CdpEngine()], map) if name == "parts" else make(name)


def names_of(events: Sequence[Event]) -> list[object]:
    return [(one, one.cause_full) for one in events]


@pytest.mark.parametrize("make_case", [random_case, iteration_case])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_rule_finds_from_a_state_what_it_would_have_found(
    engine: str, seed: int, make_case: Callable[..., Case]
) -> None:
    """With the events that its windows reach back to, and older ones; in one advance or many."""
    found = unbounded(seed, make_case)
    if found is None or (engine == "aip-published" and make_case is iteration_case):
        return
    ruleset, events, schemas = found
    random, oracle = Random(f"states {seed}"), Intervals(make("naive"))
    oracle.deploy(ruleset)
    for batch in batches(events, schemas.values()):
        oracle.push(batch)
    whole = oracle.advance(TIME_MAX)

    deployed = [Deployed(rule, None, 0, place) for place, rule in enumerate(ruleset.rules)]
    middle = random.choice(events).time + random.choice((-1, 0, 1))
    due = {one.rule.name: middle + random.choice((0, 0, MICROSECONDS)) for one in deployed}
    ideal = replay_starts(deployed, due, None)
    table, notes = StateTable(), StateNotes()
    by_name = {one.rule.name: one for one in deployed}
    notes.follow(by_name, by_name, oracle)
    for batch in whole.batches:
        notes.take(batch)
    for name, mark in ideal.marks.items():
        table.take(RuleState(name, TIME_MIN, mark, tuple(notes.take_until(name, mark))))
    left = len(notes)
    assert left == sum(len(one) for name in by_name for one in notes.take_until(name, TIME_MAX))
    assert len(notes) == 0

    engine_ = Intervals(engine_of(engine))
    engine_.deploy(ruleset)
    origin = replay_starts(deployed, due, table.marks)
    assert origin == ideal
    used = {type_.name for rule in ruleset.rules for type_ in rule.used_types}
    for name, state in table.resumed(origin.marks).items():
        rule = by_name[name].rule
        rank = list(by_name).index(name) if rule.defines.name in used else None
        resume(engine_, rule, state, rank)
    needed = origin.horizons
    kept = [
        one
        for place, one in enumerate(events)
        if place == 0  # from where timers tick
        or one.time >= needed.get(one.type, TIME_MAX)
        or random.random() < 0.1
    ]
    got: list[Event] = []
    for step in steps(random, kept):
        for batch in batches(step, schemas.values()):
            engine_.push(batch)
        if random.random() < 0.7 and step[-1].time < kept[-1].time:
            got += engine_.advance(step[-1].time).events()
    got += engine_.advance(TIME_MAX).events()

    def is_due(one: Event) -> bool:
        return one.time >= due[one.source.removeprefix(RULE_SOURCE)]

    expected = [one for one in whole.events() if is_due(one)]
    assert names_of([one for one in got if is_due(one)]) == names_of(expected), (
        f"due {due}, starts {origin}\n" + "\n".join(rule.text for rule in ruleset.rules)
    )


def steps(random: Random, events: Sequence[Event]) -> list[Sequence[Event]]:
    found, rest = [], list(events)
    while rest:
        count = random.choice((1, 3, 10, len(rest)))
        found.append(rest[:count])
        rest = rest[count:]
    return found


def test_a_cycle_goes_on_with_whoever_defines_a_type_of_it() -> None:
    text = """
    event A(n: int)
    event B(n: int)
    rule base: define X(n: int) from A() as a where n = a.n
    rule more: define X(n: int) from B() as b and last X() as x within 5 s from b where n = x.n
    rule uses: define Y(n: int) from X() as x where n = x.n
    rule eats: define Z(n: int) from A() as a and last B() as b within 5 s from a
               where n = b.n consuming b
    """
    cycle = frozenset(("base", "more"))
    groups = groups_of(rules.load(text).rules)
    assert groups == {"base": cycle, "more": cycle, "eats": frozenset(("eats",))}
