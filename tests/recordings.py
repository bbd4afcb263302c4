"""Random cases (``cases``) as recordings to be explained."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cases import Case, Deploy, Push, random_case
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.model import TIME_MIN
from rules.explaining.recording import Recording


def plain_cases(
    seeds: Iterable[int], case_of: Callable[[int], Case] = random_case
) -> Iterator[Case]:
    """The cases of seeds in which rules neither come nor go, in their plainest form."""
    return (plain(case) for case in map(case_of, seeds) if case.is_orderly)


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
