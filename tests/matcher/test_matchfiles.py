"""Events that need no type are read as they stand, whatever their values (formats.matchfiles)."""

import json
import random
from pathlib import Path

import pytest

from matcher.filters.mixed import MixedEvents
from matcher.formats import matchfiles
from matcher.model import Datum, Value

VALUES: list[Value] = [
    *(0, -1, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 0.1, 1.0, 1e308, 5e-324),
    *(True, False, "", "1", "\u00e9", "\U0001f600", "a\u0000b"),
]
GIVEN: list[Datum] = [*VALUES, None]
SEED = 8


def test_values_are_read_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matchfiles, "EVENTS", 7)
    rng = random.Random(SEED)
    rows = [
        {f"n{name}": rng.choice(GIVEN) for name in rng.sample(range(5), rng.randrange(5))}
        for _ in range(100)
    ]
    path = tmp_path / "events.jsonl"
    lines = [json.dumps({"id": place, "data": row}) for place, row in enumerate(rows)]
    path.write_text("\n\n".join(lines))
    ids, found = [], []
    for some, events in matchfiles.read_events(path):
        ids += some
        found += [events.data(place) for place in range(len(events))]
    assert ids == list(range(100))
    # By their text, in which 1, 1.0 and true differ, and 0.0 and -0.0; a null is no attribute.
    there = [{name: one for name, one in row.items() if one is not None} for row in rows]
    assert list(map(repr, found)) == list(map(repr, there))


def test_an_int_beyond_64_bits_is_refused_by_its_value() -> None:
    with pytest.raises(ValueError, match="an int beyond 64 bits: 9223372036854775808"):
        MixedEvents.of([{"a": 1, "b": 2**63}])
