"""The recipes for fleets find what a few lines of plain Python find, over histories at random."""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from pairs import seeds
from timeline import batches

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event
from rules.engine import make
from tests.docs.test_tesla import examples

MINUTE, HOUR = 60 * MICROSECONDS, 3_600 * MICROSECONDS
KEYS = ("a", "b", "c")
LIMIT, LOW = 8, 6
VALUES = (5.0, 5.9, 6.0, 7.0, 8.0, 8.5, 9.0)


class Row(NamedTuple):
    """An event of a history, and whether the clock of the minutes ticks (no key)."""

    at: int
    key: str = ""
    value: float = 0.0
    type: str = "Reading"


Found = tuple[Any, ...]
Recipe = Callable[[Sequence[Row]], Iterator[Found]]


def with_ticks(history: Sequence[Row]) -> list[Row]:
    """The events with the full minutes among them, each behind the events of its instant."""
    first, last = history[0].at, history[-1].at
    ticks = [Row(at) for at in range(-(-first // MINUTE) * MINUTE, last + 1, MINUTE)]
    return sorted([*history, *ticks], key=lambda row: (row.at, row.key == ""))


def silent(history: Sequence[Row]) -> Iterator[Found]:
    last, alarms = dict[str, int](), dict[str, int]()
    for row in with_ticks(history):
        if row.key:
            if row.key in alarms:
                del alarms[row.key]
                yield "Back", row.at, row.key, (row.at - last[row.key]) / MINUTE
            last[row.key] = row.at
            continue
        for key, at in last.items():
            if key not in alarms and row.at - at >= 5 * MINUTE:
                alarms[key] = row.at
                yield "Silent", row.at, key, at
            elif key in alarms and row.at > alarms[key] and not (row.at - alarms[key]) % HOUR:
                yield "StillSilent", row.at, key, (row.at - alarms[key]) / HOUR


def never_seen(history: Sequence[Row]) -> Iterator[Found]:
    waiting: list[Row] = []
    for row in with_ticks(history):
        if row.type == "Installed":
            waiting.append(row)
        elif row.key:
            waiting = [one for one in waiting if one.key != row.key]
        else:
            due = [one for one in waiting if row.at - one.at >= 30 * MINUTE]
            waiting = [one for one in waiting if one not in due]
            yield from (("NeverSeen", row.at, one.key) for one in due)


def first_seen(history: Sequence[Row]) -> Iterator[Found]:
    known = set[str]()
    for row in history:
        if row.key not in known:
            yield "FirstSeen", row.at, row.key, row.value
        known.add(row.key)


def rose(history: Sequence[Row]) -> Iterator[Found]:
    before, begun = dict[str, Row](), dict[str, int]()
    for row in history:
        last = before.get(row.key)
        is_new = last is None or row.at - last.at > HOUR
        if row.value > LIMIT and (is_new or (last and last.value <= LIMIT)):
            begun[row.key] = row.at
            yield "Over", row.at, row.key, row.value
        elif row.value <= LIMIT and row.key in begun:
            yield "Normal", row.at, row.key, (row.at - begun.pop(row.key)) / MINUTE
        before[row.key] = row


def alert(history: Sequence[Row]) -> Iterator[Found]:
    told = dict[str, int]()
    for row in history:
        if row.value > LIMIT and row.at - told.get(row.key, -2 * HOUR) > HOUR:
            told[row.key] = row.at
            yield "Alert", row.at, row.key, row.value


def on(history: Sequence[Row]) -> Iterator[Found]:
    hot = dict[str, bool]()
    for row in history:
        was = hot.get(row.key)
        now = row.value > LIMIT or (was is True and row.value >= LOW)
        if now is not was:
            hot[row.key] = now
            yield "Mode", row.at, row.key, now


def held(history: Sequence[Row]) -> Iterator[Found]:
    last, begun, told = dict[str, Row](), dict[str, int](), dict[str, int]()
    for row in with_ticks(history):
        if not row.key:
            for key, at in begun.items():
                is_due = 30 * MINUTE <= row.at - at < 31 * MINUTE
                if is_due and row.at - last[key].at <= 10 * MINUTE:
                    told[key] = at
                    yield "Held", row.at, key, at
            continue
        before = last.get(row.key)
        is_new = before is None or row.at - before.at > HOUR
        if row.value <= LIMIT:
            begun.pop(row.key, None)
            if row.key in told:
                yield "Released", row.at, row.key, (row.at - told.pop(row.key)) / MINUTE
        elif is_new or (before and before.value <= LIMIT):
            begun[row.key] = row.at
            yield "Over", row.at, row.key
        last[row.key] = row


def trip_began(history: Sequence[Row]) -> Iterator[Found]:
    trips: dict[str, list[Row]] = defaultdict(list)

    def ended(key: str, at: int) -> Iterator[Found]:
        fixes = trips.pop(key, [])
        if fixes:
            first, last = fixes[0], fixes[-1]
            minutes = (last.at - first.at) / MINUTE
            yield "Trip", at, key, len(fixes), minutes, last.value - first.value

    for row in with_ticks(history):
        for key in [row.key] if row.key else list(trips):
            if trips[key] and row.at - trips[key][-1].at > 10 * MINUTE:
                yield from ended(key, row.at)
        if row.key:
            if not trips[row.key]:
                yield "TripBegan", row.at, row.key, row.value
            trips[row.key].append(row)


def hourly(history: Sequence[Row]) -> Iterator[Found]:
    hours: dict[tuple[int, str], list[float]] = defaultdict(list)
    for row in history:
        hours[row.at // HOUR * HOUR + HOUR, row.key].append(row.value)
    for (at, key), values in hours.items():
        if at <= history[-1].at:
            yield "Hourly", at, key, sum(values) / len(values), len(values)


RECIPES: dict[str, tuple[Recipe, str]] = {
    "back": (silent, "Reading"),
    "never_seen": (never_seen, "Reading or Installed"),
    "first_seen": (first_seen, "Reading"),
    "fell": (rose, "Reading"),
    "alert": (alert, "Reading"),
    "off_at_first": (on, "Reading"),
    "released": (held, "Reading"),
    "trip_before_the_next": (trip_began, "Fix"),
    "hourly": (hourly, "Reading"),
}
"""By the last rule of each: what finds the same, and the types of events that it looks at."""
EXAMPLES = [
    (re.findall(r"^rule (\w+)", one.text, re.MULTILINE)[-1], one.text)
    for one in examples("detected", ["fleets.md"])
]


def drawn(rng: random.Random, types: str) -> list[Row]:
    """A history of four hours in half minutes, with pauses; of one key one event an instant."""
    rows = []
    for key in KEYS:
        at = rng.randrange(60) * MINUTE // 2
        while at < 4 * HOUR:
            rows.append(Row(at, key, rng.choice(VALUES), rng.choice(types.split(" or "))))
            high = rng.choice((4, 20, 24, 80, 200))
            at += rng.randrange(1, high) * MINUTE // 2
            if rng.random() < 0.6:  # a spell
                rows += [
                    Row(at + n * 8 * MINUTE, key, 9.0, rows[-1].type)
                    for n in range(rng.choice((3, 5)))
                ]
                at = rows[-1].at + MINUTE // 2
    return sorted(rows)


def detected(text: str, history: Sequence[Row]) -> list[Found]:
    """The composite events of a recipe's rules: type, time and values, rounded."""
    ruleset = rules.load(text)
    events = []
    for number, row in enumerate(history, 1):
        named = {"Installed": {"device": row.key}, "Fix": {"vehicle": row.key, "km": row.value}}
        data = named.get(row.type, {"device": row.key, "value": row.value})
        events.append(Event(row.type, row.at, "fleet", str(number), data, number))
    engine = make("cdp")
    engine.deploy(ruleset)
    for batch in batches(events, ruleset.schemas.values()):
        engine.push(batch)
    found = engine.advance(TIME_MAX).events()
    return rounded((one.type, one.time, *one.data.values()) for one in found)


def rounded(found: Any) -> list[Found]:
    return sorted(tuple(round(v, 6) if isinstance(v, float) else v for v in one) for one in found)


@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=lambda one: one.partition(" ")[0])
def test_a_recipe_finds_what_plain_python_finds(seed: int, name: str, text: str) -> None:
    find, types = RECIPES[name]
    history = drawn(random.Random(seed), types)
    found = detected(text, history)
    assert found == rounded(find(history))
    assert len(found) > 2


def test_every_recipe_is_compared() -> None:
    assert [name for name, _ in EXAMPLES] == list(RECIPES)
