"""Where what is printed in the papers loses or doubles something: each a command that shows it.

    python -m studies.counterexamples [NAME...]

prints for each name the smallest history, what one engine finds over all events, and what comes of
it as printed. docs/spec/exactness.md has the proofs of what is done instead.

Law: a counterexample takes the printed text at its word. Where threads are concerned, all ways are
tried in which their steps can follow one another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rexmq import Engine

LETTERS = " ".join(f"event {letter}(v: int)" for letter in "ABCDE")
MINUTE_S = 60
Happened = Sequence[tuple[str, float, int]]
"""Types, instants and values, in the order of time."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a counterexample comes to: the truth, and what is printed instead."""

    what: str
    truth: object
    printed: object

    def __str__(self) -> str:
        return f"{self.what}\n  over all events: {self.truth}\n  as printed:      {self.printed}"


# --- derived rules (thesis 7.3.5) -----------------------------------------------------------------


def found(rule: str, events: Happened, unit_s: float = MINUTE_S) -> list[tuple[str, ...]]:
    """The causes of each composite event that one engine finds, ``B9`` for B at 9."""
    engine = Engine(f"{LETTERS}\n{rule}")
    out = []
    for type_, at, value in events:
        name = f"{type_}{at:g}"
        out += engine.publish(type_, time=at * unit_s, id=name, v=value)
    out += engine.finish()
    return [tuple(one.cause) for one in out]


def from_derived(rule: str, derived: Mapping[str, str], events: Happened) -> list[tuple[str, ...]]:
    """The same of what printed derived rules send: of each pattern, the types it is about."""
    sent: set[str] = set()
    for pattern, types in derived.items():
        of_types = [one for one in events if one[0] in types]
        for cause in found(f"define Sent() from {pattern}", of_types):
            sent.update(cause)
    return found(rule, [one for one in events if f"{one[0]}{one[1]:g}" in sent])


R11 = (
    "define CompEvent() from A() and last B() within 5 min from A and last C() within 5 min from B"
    " and last D() within 5 min from C and last E() within 5 min from D"
)
R12 = (
    "define CompEvent() from A(v=$x) and last B(v=$x) within 5 min from A"
    " and last C() within 5 min from B"
)
R13 = (
    "define CompEvent() from A() and last B() within 5 min from A and last C() within 5 min from B"
    " and not D() between C and B"
)
AB, B_C = "A() and last B() within 5 min from A", "B() and last C() within 5 min from B"


def derived(
    label: str, rule: str, patterns: Mapping[str, str], events: Happened
) -> Callable[[], Shown]:
    """A history over which the printed derived rules of a rule detect what never happened."""

    def show() -> Shown:
        told = " ".join(f"{type_}@{at:g}" for type_, at, _ in events)
        return Shown(f"{label}: {told}", found(rule, events), from_derived(rule, patterns, events))

    return show


# --- pulling (thesis 7.3.7) -----------------------------------------------------------------------

PULLED = "define X() from A() and last B() within 5 s from A and last C() within 3 s from B"


def pulling() -> Shown:
    """With master C the B of a match is at most 3 s after it; a later one may hide it."""
    events: Happened = [("C", 0, 0), ("B", 2, 0), ("B", 6, 0), ("A", 6.5, 0)]
    asked = [one for one in events if one[0] != "B" or one[1] <= 3]
    told = "master C, windows of the events of a match: C@0 B@2 B@6 A@6.5"
    return Shown(told, found(PULLED, events, 1.0), found(PULLED, asked, 1.0))


# --- two workers at one agent (hybrid parallelism, algorithm 1) -----------------------------------

Step = Callable[[], None]
Workers = Callable[[], tuple[Sequence[Step], Sequence[Step], Callable[[], int]]]


def interleaved(workers: Workers) -> Iterator[int]:
    """What comes of each way in which two workers' steps can follow one another."""
    first, second, _ = workers()
    length = len(first) + len(second)
    for places in combinations(range(length), len(first)):
        ours, theirs, result = workers()
        left, right = iter(ours), iter(theirs)
        for place in range(length):
            (next(left) if place in places else next(right))()
        yield result()


def pair(has_tickets: bool) -> Workers:
    """An event and a partial match that come at once: each is stored, takes a ticket if there are
    some, and is tried with what is stored of the other kind. Counted is how often they meet.
    """

    def workers() -> tuple[Sequence[Step], Sequence[Step], Callable[[], int]]:
        stored: dict[str, int | None] = {}
        evaluated: list[tuple[str, str]] = []

        def store(own: str) -> None:
            stored[own] = None

        def take(own: str) -> None:
            if has_tickets:
                stored[own] = sum(ticket is not None for ticket in stored.values())

        def try_with(own: str, other: str) -> None:
            mine, theirs = stored[own], stored.get(other)
            is_before = mine is not None and theirs is not None and theirs < mine
            if other in stored and (is_before or not has_tickets):
                evaluated.append((own, other))

        def of(own: str, other: str) -> Sequence[Step]:
            return (lambda: store(own), lambda: take(own), lambda: try_with(own, other))

        return of("event", "match"), of("match", "event"), lambda: len(evaluated)

    return workers


def pairing() -> Shown:
    """Both are stored before either is tried: each finds the other."""
    told = "an event and a partial match at one agent: how often they are tried, over all orders"
    return Shown(told, sorted(set(interleaved(pair(True)))), sorted(set(interleaved(pair(False)))))


WINDOW_S = 20


def purging(in_slices: bool) -> Workers:
    """Two event workers: one has taken the event of 5 s, the other that of 30 s; a match of 1 s is
    stored. Counted are the matches found: that of 1 s with the event of 5 s belongs together.
    """

    def workers() -> tuple[Sequence[Step], Sequence[Step], Callable[[], int]]:
        events: list[int] = []
        matches = [1]
        pairs: list[tuple[int, int]] = []

        def try_with(event: int) -> None:
            pairs.extend((one, event) for one in matches if one < event <= one + WINDOW_S)

        def purge() -> None:  # "the current time from the timestamp of the latest event in the IB"
            if not in_slices:
                matches[:] = [one for one in matches if one + WINDOW_S > max(events)]

        def of(event: int) -> Sequence[Step]:
            return (lambda: events.append(event), lambda: try_with(event), purge)

        return of(5), of(30), lambda: len(pairs)

    return workers


def purge() -> Shown:
    """The worker with the later event is done first, and purges what the other's event needs."""
    told = "events of 5 and 30 s, a partial match of 1 s, window 20 s: matches found, all orders"
    printed = sorted(set(interleaved(purging(False))))
    return Shown(told, sorted(set(interleaved(purging(True)))), printed)


# --- a join by batches (the dissertation, 4.4) ----------------------------------------------------

Rows = Sequence[tuple[str, int]]
"""Streams and keys of events, in order."""


def joined(events: Rows, batch: int, is_printed: bool) -> int:
    """How many pairs of events of two streams with equal keys a join over windows finds.

    As printed, a batch is tried with the other stream's window, which its own events enter after.
    """
    windows: dict[str, list[int]] = {"left": [], "right": []}
    other = {"left": "right", "right": "left"}
    pairs = 0
    for at in range(0, len(events), batch):
        chunk = events[at : at + batch]
        for stream, key in chunk:
            pairs += windows[other[stream]].count(key)
            if not is_printed:
                windows[stream].append(key)
        if is_printed:
            for stream, key in chunk:
                windows[stream].append(key)
    return pairs


def join() -> Shown:
    """Partners that come in one batch are in nobody's window yet."""
    events = [("left", 7), ("right", 7), ("left", 8), ("right", 9), ("right", 8)]
    told = "left 7, right 7, left 8, right 9, right 8 in one batch: pairs"
    return Shown(told, joined(events, 5, False), joined(events, 5, True))


COUNTEREXAMPLES: Mapping[str, Callable[[], Shown]] = {
    "r11": derived(
        "R11, figure 7.4",
        R11,
        {AB: "AB", "C() and each E() within 10 min from C": "CE", "D()": "D"},
        [("E", 0, 0), ("D", 4, 0), ("C", 6, 0), ("C", 11, 0), ("B", 11, 0), ("A", 12, 0)],
    ),
    "r11-sources": derived(
        "R11, figure 7.5",
        R11,
        {AB: "AB", "D() and last E() within 5 min from D": "DE", "C()": "C"},
        [("E", 0, 0), ("D", 4, 0), ("D", 8, 0), ("C", 8, 0), ("B", 9, 0), ("A", 9, 0)],
    ),
    "r12b": derived(
        "R12, figure 7.6 (b)",
        R12,
        {"A()": "A", B_C: "BC"},
        [("B", 2, 1), ("C", 5, 0), ("B", 9, 1), ("B", 12, 1), ("A", 13, 1)],
    ),
    "r13a": derived(
        "R13, figure 7.7 (a)",
        R13,
        {"A()": "A", f"{B_C} and not D() between C and B": "BCD"},
        [("C", 0, 0), ("B", 1, 0), ("C", 2, 0), ("D", 3, 0), ("B", 4, 0), ("A", 5, 0)],
    ),
    "pull": pulling,
    "pairing": pairing,
    "purge": purge,
    "join": join,
}


def main(names: Sequence[str]) -> int:
    """Print them; 2 for a name that is none."""
    unknown = [name for name in names if name not in COUNTEREXAMPLES]
    if unknown:
        there = ", ".join(COUNTEREXAMPLES)
        print(f"there is no {unknown[0]!r}; there are {there}", file=sys.stderr)
        return 2
    for name in names or COUNTEREXAMPLES:
        print(COUNTEREXAMPLES[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
