"""Streams for :mod:`benchmarks.hybrid`: random walks, sensors, keys, and the OpenCEP ticks.

A stock has one tick a minute, with its last 20 prices and its last change. Prices are random walks
with a common part, all from one seed; of the 2,100 stocks of the paper's data those alone are made
that the rule names, since all engines drop the others as they come. The rules are the paper's: a
sequence of ``length`` stocks within a window, neighbours related by their price changes, or by the
correlation of their histories (its square against a square, without a root).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.detection_workloads import batch_of
from matcher.model import MICROSECONDS, EventBatch, EventType

MINUTE = 60 * MICROSECONDS
HISTORY = 20
SEED = 11
TICKS = (
    Path(__file__).parents[2] / "shared/conformance/opencep/events/NASDAQ_RECON_200802011119.txt"
)


@dataclass(frozen=True, slots=True)
class Stream:
    """A rule, and its events in chunks, each a batch of every type, in order of time.

    ``window`` is that of a whole match, in microseconds; ``key`` the attribute that all events of a
    match have in common, if they do. ``places`` are the types of a sequence, the earliest first,
    and ``conditions`` what relates each to the ``later`` one, where that is arithmetic alone.
    """

    name: str
    rule: str
    chunks: Sequence[Sequence[EventBatch]]
    window: int
    key: str = ""
    places: Sequence[str] = ()
    conditions: Sequence[str] = ()

    @property
    def events(self) -> int:
        """How many events there are."""
        return sum(len(batch) for chunk in self.chunks for batch in chunk)


def sequence(
    types: Sequence[str], conditions: Sequence[str], window: str, runs: Collection[int] = ()
) -> str:
    """The rule of a sequence of types, the last one named first, all of it within a window.

    ``conditions`` are those between neighbours, of an event ``(...)`` and the one ``later``; of the
    types at ``runs`` a rising run of two events or more is meant, of which each fits these.
    """
    parts = [f"{types[0]}() as e0"]
    for place, type_ in enumerate(types[1:], 1):
        tests = ", ".join(one.replace("later.", f"e{place - 1}.") for one in conditions)
        if place in runs:
            tests += ", change > previous.change"
        each = "each 2.." if place in runs else "each"
        parts.append(f"{each} {type_}({tests}) as e{place} within {window} from e{place - 1}")
        if place > 1:
            parts.append(f"e{place} within {window} from e0")
    return f"rule s: define Found() from {' and '.join(parts)}"


def correlated(threshold: float) -> str:
    """That the histories of an event and the ``later`` one correlate by more than a threshold, or
    less than its negation.
    """
    numbers = range(HISTORY)
    both = " + ".join(f"p{one} * later.p{one}" for one in numbers)
    own = " + ".join(f"p{one}" for one in numbers)
    other = " + ".join(f"later.p{one}" for one in numbers)
    squares = " + ".join(f"p{one} * p{one}" for one in numbers)
    others = " + ".join(f"later.p{one} * later.p{one}" for one in numbers)
    product = f"({HISTORY} * ({both}) - ({own}) * ({other}))"
    variances = [
        f"({HISTORY} * ({one}) - ({two}) * ({two}))"
        for one, two in ((squares, own), (others, other))
    ]
    return f"{product} * {product} > {threshold * threshold} * {variances[0]} * {variances[1]}"


def walks(
    name: str,
    conditions: Sequence[str],
    minutes: int,
    window: int,
    length: int = 6,
    seed: int = SEED,
    runs: Collection[int] = (),
) -> Stream:
    """Stocks that are correlated random walks, one tick a minute, and a sequence of them all, some
    of which may be ``runs``.
    """
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(minutes + HISTORY, 1))
    steps = 0.7 * common + rng.normal(size=(minutes + HISTORY, length))
    prices = 100 + 0.05 * np.cumsum(steps, axis=0)
    names = [f"S{number}" for number in range(length)]
    kinds = {"change": "float", **{f"p{one}": "float" for one in range(HISTORY)}}
    types = [EventType.of(one, **kinds) for one in names]
    declared = ", ".join(f"{one}: {kind}" for one, kind in kinds.items())
    schemas = "\n".join(f"event {one}({declared})" for one in names)
    at = np.arange(minutes, dtype=np.int64) * MINUTE
    chunks = []
    for start in range(0, minutes, 600):
        chosen = np.arange(start, min(start + 600, minutes))
        chunk = []
        for number, type_ in enumerate(types):
            history = [prices[chosen + one + 1, number].copy() for one in range(HISTORY)]
            change = prices[chosen + HISTORY, number] - prices[chosen + HISTORY - 1, number]
            times = at[chosen] + number * MINUTE // length
            chunk.append(batch_of(type_, times, chosen * length + number, (change, *history)))
        chunks.append(chunk)
    reach = 2 * window if runs else window  # the first events of a run are not bound to the whole
    rule = sequence(names[::-1], conditions, f"{window} min", runs)
    text = f"{schemas}\n{rule}"
    if runs:  # of which more is asked than conditions between neighbours
        return Stream(name, text, chunks, reach * MINUTE)
    return Stream(name, text, chunks, window * MINUTE, places=names, conditions=conditions)


def keyed(events: int, keys: int, window: int) -> Stream:
    """A sequence of three types whose events have a key in common."""
    rng = np.random.default_rng(SEED)
    names = ["S0", "S1", "S2"]
    types = [EventType.of(one, key="int", value="float") for one in names]
    schemas = "\n".join(f"event {one}(key: int, value: float)" for one in names)
    kind, key = rng.integers(0, 3, events), rng.integers(0, keys, events)
    value, at = rng.normal(size=events), np.arange(events, dtype=np.int64) * MICROSECONDS
    chunks = []
    for start in range(0, events, 4_096):
        part = np.arange(start, min(start + 4_096, events))
        chunk = []
        for number, type_ in enumerate(types):
            chosen = part[kind[part] == number]
            if len(chosen):
                chunk.append(batch_of(type_, at[chosen], chosen, (key[chosen], value[chosen])))
        chunks.append(chunk)
    conditions = ["key = later.key", "value < later.value"]
    rule = sequence(names[::-1], conditions, f"{window} s")
    return Stream("keyed", f"{schemas}\n{rule}", chunks, window * MICROSECONDS, "key")


def sensors(
    events: int,
    window: int,
    length: int = 6,
    seed: int = SEED,
    mean: int = 10,
    signs: str = "<>",
) -> Stream:
    """A house's activities, each with the levels of 33 sensors: one lasts for some ten events
    (``mean``), a second apart, so that matches lie where activities follow one another quickly.
    ``signs``: how the first levels are related to those of the next activity.
    """
    rng = np.random.default_rng(seed)
    lasting = np.maximum(1, rng.geometric(1 / mean, events))
    kind = np.repeat(rng.integers(0, length, events), lasting)[:events]
    at = np.arange(events, dtype=np.int64) * MICROSECONDS
    levels = np.cumsum(rng.normal(size=(events, 33)), axis=0)
    names = [f"Activity{number}" for number in range(length)]
    kinds = {f"s{number}": "float" for number in range(33)}
    declared = ", ".join(f"{one}: {kind}" for one, kind in kinds.items())
    schemas = "\n".join(f"event {one}({declared})" for one in names)
    chunks = []
    for start in range(0, events, 4_096):
        part = np.arange(start, min(start + 4_096, events))
        chunk = []
        for number, name in enumerate(names):
            chosen = part[kind[part] == number]
            if len(chosen):
                columns = tuple(levels[chosen, one].copy() for one in range(33))
                chunk.append(batch_of(EventType.of(name, **kinds), at[chosen], chosen, columns))
        chunks.append(chunk)
    changes = [f"s{one} {sign} later.s{one}" for one, sign in enumerate(signs)]
    rule = sequence(names[::-1], changes, f"{window} s")
    return Stream(
        f"sensors, {length} states",
        f"{schemas}\n{rule}",
        chunks,
        window * MICROSECONDS,
        places=names,
        conditions=changes,
    )


def opencep(window: int) -> Stream:
    """The ticks that lie beside the repository, and five of their stocks in sequence, rising."""
    attributes = ("open", "high", "low", "close")
    names = ["MSFT", "DRIV", "CBRL", "GOOG", "AAPL"]
    schemas = "\n".join(
        f"event {one}({', '.join(f'{name}: float' for name in attributes)})" for one in names
    )
    rows = [line.split(",") for line in TICKS.read_text().splitlines()]
    chunk = []
    for name in names:
        type_ = EventType.of(name, **dict.fromkeys(attributes, "float"))
        chosen = [(place, row) for place, row in enumerate(rows) if row[0] == name]
        times = [
            int(datetime.strptime(row[1], "%Y%m%d%H%M").replace(tzinfo=UTC).timestamp())
            for _, row in chosen
        ]
        columns = tuple(np.array([float(row[2 + one]) for _, row in chosen]) for one in range(4))
        numbers = np.array([place for place, _ in chosen])
        chunk.append(batch_of(type_, np.array(times) * MICROSECONDS, numbers, columns))
    rule = sequence(names[::-1], ["high - open <= later.high - later.open"], f"{window} min")
    return Stream("opencep", f"{schemas}\n{rule}", [chunk], window * MINUTE)


def streams(*, quick: bool) -> Iterator[Stream]:
    """The streams that are measured; with ``quick`` a small part of each."""
    scale = 10 if quick else 1
    yield walks("changes, 6 states", ["change < later.change"], 3_000 // scale, 20)
    yield walks("correlation, 6 states", [correlated(0.8)], 3_000 // scale, 14)
    yield walks("a run, 6 states", ["change < later.change"], 3_000 // scale, 20, 6, runs=(2,))
    yield walks("runs, 4 states", ["change < later.change"], 3_000 // scale, 20, 4, runs=(1, 2))
    yield sensors(40_000 // scale, 120)
    yield keyed(60_000 // scale, 8, 600)
    if TICKS.exists():
        yield opencep(20 if quick else 60)
