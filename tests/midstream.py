"""Rules that are deployed when events have come already, without a word on when they begin (S15).

Example: a B at 5 has come when ``late`` is deployed, be it evaluated by then or not; so ``late``
holds from 6 on, and the B at 7 is the first that it sees.
"""

from collections.abc import Sequence

import rules
from matcher.model import TIME_MAX, EventType
from matcher.rows import batch_of
from rules.engine.engine import Detector

TYPES = {name: EventType.of(name, k="int") for name in "ABC"}
EARLY = "rule early: define Early(n: int) from A() as a and each B(k > 0) as b within 9 s from a"
LATE = "rule late: define Late(n: int) from A() as a and each B(k > 0) as b within 9 s from a"
OTHER = "rule other: define Other(n: int) from A() as a and each C(k > 0) as b within 9 s from a"
EXPECTED = [("Late", 4), ("Other", 2)]
"""What ``late`` and ``other`` find in any engine, beside ``early`` and without it."""
BEFORE = [("Early", 1), ("Early", 3), ("Early", 2), ("Early", 4)]
"""What ``early`` finds, in the order of its B."""


def found_in_midstream(engine: Detector, *, beside_early: bool) -> Sequence[tuple[str, int]]:
    """The types of the composite events, with the number of the B or C that each has."""
    if beside_early:
        _deploy(engine, EARLY)
    _push(engine, B={1: 1, 5: 2}, C={2: 1})
    found = list(engine.advance(3).events())  # the B at 5 waits
    _deploy(engine, LATE, OTHER)
    _push(engine, B={4: 3}, C={3: 7})  # these come late
    _push(engine, B={7: 4}, C={8: 2})
    _push(engine, A={9: 0})
    found += engine.advance(9).events()
    found += engine.advance(TIME_MAX).events()
    return [(event.type, int(str(event.data["n"]))) for event in found]


def _deploy(engine: Detector, *texts: str) -> None:
    text = "\n".join(f"{text} where n = b.k" for text in texts)
    engine.deploy(rules.load(text, known=TYPES))


def _push(engine: Detector, **numbers: dict[int, int]) -> None:
    """Push events of types, given by their times."""
    for name, by_time in numbers.items():
        rows = [{"k": number} for number in by_time.values()]
        times = [*by_time]
        ids = [f"{name}{time}" for time in times]
        first = times[0]
        batch = batch_of(TYPES[name], rows, source="s", first_sequence=first, times=times, ids=ids)
        engine.push(batch)
