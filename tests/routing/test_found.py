"""What an engine finds alone goes on as the bytes that its columns would give, in their order."""

from collections.abc import Iterator

import pytest
from cases import Case, Deploy, Push, Remove, random_case, with_conflicts
from engines import make
from timeline import batches

import rules
from matcher.model import TIME_MAX
from routing import wire
from routing.evaluation.found import as_found
from routing.messages import Flow
from routing.wire.composites import Encoded
from rules.engine.engine import Detections

SEEDS = range(40)


def one_by_one(case: Case) -> Iterator[Detections]:
    """The advances of an engine that is advanced behind each event."""
    engine = make("cdp")
    for step in case.steps:
        if isinstance(step, Deploy):
            ruleset = rules.load("\n\n".join(map(str, step.rules)), known=case.schemas)
            engine.deploy(ruleset, since=step.since, version=step.version)
        elif isinstance(step, Remove):
            engine.remove(step.name)
    pushed = [event for step in case.steps if isinstance(step, Push) for event in step.events]
    for event in sorted(pushed, key=lambda event: event.time):
        yield engine.advance(event.time)
        for batch in batches([event], case.schemas.values()):
            engine.push(batch)
    yield engine.advance(TIME_MAX)


def test_it_goes_on_as_the_bytes_that_columns_would_give() -> None:
    forms, named = list[bool](), set[tuple[bool, bool]]()
    for seed in SEEDS:
        for found in one_by_one(with_conflicts(random_case(seed, long=True))):
            if not len(found):
                continue
            given = as_found(found)
            assert given.order.tolist() == found.order.tolist()
            assert wire.encode(Flow(given.batches)) == wire.encode(Flow(found.batches)), seed
            assert repr(list(given.events())) == repr(list(found.events()))
            forms += [isinstance(batch, Encoded) for batch in given.batches]
            causes = [one.header.causes for one in given.batches if isinstance(one, Encoded)]
            named |= {(one.digest, one.texts is not None) for one in causes if one is not None}
    assert forms.count(True) > 100
    assert forms.count(False) > 10
    assert named >= {(False, False), (True, False), (False, True)}


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_in_numbers_stays_in_columns(seed: int) -> None:
    for found in one_by_one(random_case(seed, long=True)):
        if any(len(batch) > 1 for batch in found.batches):
            assert as_found(found) is found
