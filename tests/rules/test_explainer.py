"""``explain`` against the engines, and what it says of each clause (tesla.md S1 to S15)."""

import os
from collections import Counter
from dataclasses import replace

import pytest
from cases import Case, Deploy, Push, random_case, run
from engines import make
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MIN, Event, Value
from rules.explainer import Explainer
from rules.pattern import Rule
from rules.recording import Recording

COUNT = int(os.environ.get("REXMQ_CASES", "160"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PARTS = 4
ALL = 1_000_000

Found = tuple[str, tuple[str, ...], tuple[tuple[str, Value], ...]]
"""A rule, the causes of a firing, terminator first, and the values of its composite event."""


def recording_of(case: Case, engine: str = "naive") -> Recording:
    """A case's events, all at once, and its rules with the instants from which they hold."""
    texts, since, events = [], {}, []
    for step in case.steps:
        if isinstance(step, Deploy):
            texts += step.rules
            for text in step.rules:
                since[text.name] = TIME_MIN if step.since is None else step.since
        if isinstance(step, Push):
            events += step.events
    ruleset = rules.load("\n\n".join(map(str, texts)), known=SCHEMAS)
    pushed = batches(events, SCHEMAS.values())
    return Recording(ruleset, pushed, since=since, engine=engine)


def plain(case: Case) -> Case:
    """The case in as few steps as will do, and without versions, which enter the ids (S15)."""
    steps = case.at_once().steps
    return replace(
        case,
        steps=tuple(replace(one, version=0) if isinstance(one, Deploy) else one for one in steps),
    )


def detected(case: Case) -> Counter[Found]:
    """What the oracle detects."""
    found: list[Event] = list(run(case, make("naive")).events())
    return Counter(
        (event.source.removeprefix(RULE_SOURCE), event.cause_full, tuple(event.data.items()))
        for event in found
    )


def explained(recording: Recording, rule: Rule) -> Counter[Found]:
    """What the explanations of all terminators tell of."""
    explainer = Explainer(recording, rule, candidates=3, branches=ALL)
    found: Counter[Found] = Counter()
    for terminator in recording.terminators(rule):
        explanation = explainer.explain(terminator)
        assert explanation.count == len(explanation.matches)
        found.update(
            (rule.name, match.cause, tuple(match.data.items())) for match in explanation.matches
        )
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_explanations_tell_of_exactly_what_is_detected(part: int):
    for seed in range(FIRST + part * COUNT // PARTS, FIRST + (part + 1) * COUNT // PARTS):
        case = random_case(seed)
        if not case.is_orderly:
            continue
        case = plain(case)
        recording = recording_of(case)
        told: Counter[Found] = Counter()
        for rule in recording.rules.values():
            told += explained(recording, rule)
        assert told == detected(case), f"seed {seed}\n{case}"
