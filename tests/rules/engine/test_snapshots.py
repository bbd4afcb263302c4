"""An engine that is given another's snapshot goes on as that one would have (snapshots)."""

import os
import pickle
from random import Random

import pytest
from agreement import row
from cut_cases import Cut, cut_case, found_in_whole, identity
from rule_texts import SCHEMAS
from timeline import batches, detect, history

import rules
from matcher.model import TIME_MAX, TIME_MIN, Event
from rules.engine import make
from rules.engine.cdp import CdpEngine

CASES, FIRST = int(os.environ.get("REXMQ_CASES", "12")), int(os.environ.get("REXMQ_SEED", "0"))


def new(cut: Cut) -> CdpEngine:
    engine = make("cdp")
    assert isinstance(engine, CdpEngine)
    engine.deploy(cut.ruleset)
    return engine


def found_in_stretches(cut: Cut, random: Random) -> list[Event]:
    """Each stretch of time by an engine of its own, that is given the snapshot of the last."""
    times = sorted({event.time for event in cut.events})
    marks = sorted(random.sample(times, random.randint(1, min(6, len(times)))))
    engine, begin = new(cut), TIME_MIN
    found: list[Event] = []
    for mark in (*marks, TIME_MAX):
        fresh = [event for event in cut.events if begin <= event.time < mark]
        random.shuffle(fresh)
        for batch in batches(fresh, SCHEMAS.values()):
            engine.push(batch)
        found += engine.advance(mark).events()
        begin, kept = mark, pickle.dumps(engine.snapshot())
        engine = new(cut)
        engine.resume(pickle.loads(kept))
    return found


def test_engines_that_follow_one_another_find_what_one_finds() -> None:
    fired = consuming = 0
    for seed in range(FIRST, FIRST + CASES):
        cut = cut_case(seed)
        ours = sorted(found_in_stretches(cut, Random(seed)), key=identity)
        whole = sorted(found_in_whole(cut), key=identity)
        fired += len(whole) > 0
        consuming += len(whole) > 0 and any(rule.consuming for rule in cut.ruleset.rules)
        assert [*map(row, ours)] == [*map(row, whole)], (
            f"seed {seed}\n{cut.text}\n{[*map(row, ours)]}\nagainst\n{[*map(row, whole)]}"
        )
    assert fired > CASES // 3
    assert consuming > CASES // 20


RUN = """
event A(n: int)
rule first: define Run(n: int) from A(n = 1) as a where n = 1
rule more: define Run(n: int) from A() as a and last Run(n < a.n) as r within 5 s from a
where n = r.n + 1
rule paired: define Pair(n: int) from A() as a and last A(n < a.n) as b within 9 s from a
where n = b.n consuming b
"""
EVENTS = "A@1(1) A@2(3) A@3(2) A@4(3) A@5(4) A@8(9) A@20(1)"


def test_what_was_consumed_and_what_refers_to_itself_stays_known() -> None:
    ruleset = rules.load(RUN)
    whole = detect("naive", RUN, EVENTS)
    assert any(text.startswith("Run") for text in whole)
    assert any(text.startswith("Pair") for text in whole)
    engine = make("cdp")
    engine.deploy(ruleset)
    found = 0
    for event in history(EVENTS, ruleset):
        assert isinstance(engine, CdpEngine)
        for batch in batches([event], ruleset.schemas.values()):
            engine.push(batch)
        found += len(engine.advance(event.time + 1))
        kept, engine = engine.snapshot(), engine.fresh()
        engine.deploy(ruleset)
        engine.resume(kept)
    assert found == len(whole)


def test_repeats_stay_known() -> None:
    ruleset = rules.load(RUN)
    engine = make("cdp")
    engine.deploy(ruleset)
    assert isinstance(engine, CdpEngine)
    events = history("A@1(1) x=A@2(1)", ruleset)
    for again in range(2):
        for batch in batches(events, ruleset.schemas.values()):
            engine.push(batch)
        assert len(engine.advance(TIME_MAX if again else 3_000_000)) == 2 * (1 - again)
        assert engine.duplicates == 2 * again
        kept, engine = engine.snapshot(), engine.fresh()
        engine.deploy(ruleset)
        engine.resume(kept)


def test_a_snapshot_of_other_rules_or_of_waiting_events_is_refused() -> None:
    engine = make("cdp")
    engine.deploy(rules.load(RUN))
    assert isinstance(engine, CdpEngine)
    kept = engine.snapshot()
    for text in (RUN.replace("n < a.n", "n > a.n"), RUN.replace("9 s", "8 s"), RUN + "\n" + MORE):
        other = engine.fresh()
        other.deploy(rules.load(text))
        with pytest.raises(ValueError, match="of other rules, or of another version"):
            other.resume(kept)
    (batch,) = batches(history("A@1(1)", rules.load(RUN)), rules.load(RUN).schemas.values())
    engine.push(batch)
    with pytest.raises(ValueError, match="events wait in the engine"):
        engine.snapshot()


MORE = "rule other: define Other(n: int) from A() as a where n = a.n"
