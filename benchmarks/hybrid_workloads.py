"""Streams for :mod:`benchmarks.hybrid`: random walks, sensors, keys, a condition between distant
events, and the OpenCEP ticks.

A stock has one tick a minute, with its last 20 prices and its last change. Prices are random walks
with a common part, all from one seed, of as many stocks as the paper's data have (SYMBOLS). Each is
a type, as there; the rule names some of them, and engines drop the ticks of the others as they
come. The rules are the paper's: a sequence of ``length`` stocks within a window, neighbours related
by their price changes, or by the correlation of their histories (its square against a square,
without a root).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.detection_workloads import batch_of
from matcher.model import MICROSECONDS, EventBatch, EventType

MINUTE = 60 * MICROSECONDS
HISTORY = 20
SYMBOLS = 2_100
CHUNK_MINUTES = 600
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
    symbols: int | None = None,
) -> Stream:
    """Stocks that are correlated random walks, one tick a minute, and a sequence of ``length`` of
    them, some of which may be ``runs``.

    There are as many ``symbols`` as the rule names, or more: then those at equal distances are
    named. Of 2,100 the rule names S0, S350, and so on to S1750.
    """
    symbols = symbols or length
    types = _stocks(symbols)
    named = [type_.name for type_ in types[:: symbols // length]][:length]
    reach = 2 * window if runs else window  # the first events of a run are not bound to the whole
    schemas = "\n".join(f"event {type_}" for type_ in types if type_.name in named)
    text = f"{schemas}\n{sequence(named[::-1], conditions, f'{window} min', runs)}"
    chunks = list(_ticks(types, minutes, seed))
    if runs:  # of which more is asked than conditions between neighbours
        return Stream(name, text, chunks, reach * MINUTE)
    return Stream(name, text, chunks, window * MINUTE, places=named, conditions=conditions)


def _stocks(count: int) -> list[EventType]:
    kinds = {"change": "float", **{f"p{one}": "float" for one in range(HISTORY)}}
    return [EventType.of(f"S{number}", **kinds) for number in range(count)]


def _ticks(types: Sequence[EventType], minutes: int, seed: int) -> Iterator[list[EventBatch]]:
    """A chunk of ticks for every CHUNK_MINUTES, one batch a stock.

    Histories overlap, so they are views of the prices, a row of which is one stock's: all ticks of
    2,100 stocks over 3,000 minutes take 250 MB, and not the gigabyte of their columns.
    """
    rng, symbols = np.random.default_rng(seed), len(types)
    common = rng.normal(size=(minutes + HISTORY, 1))
    steps = 0.7 * common + rng.normal(size=(minutes + HISTORY, symbols))
    prices = np.ascontiguousarray((100 + 0.05 * np.cumsum(steps, axis=0)).T)
    changes = prices[:, HISTORY:] - prices[:, HISTORY - 1 : -1]
    for start in range(0, minutes, CHUNK_MINUTES):
        end = min(start + CHUNK_MINUTES, minutes)
        ticks = np.arange(start, end, dtype=np.int64)
        chunk = []
        for number, type_ in enumerate(types):
            own = prices[number, start:]
            history = [own[one + 1 : one + 1 + len(ticks)] for one in range(HISTORY)]
            times = ticks * MINUTE + number * MINUTE // symbols
            columns = (changes[number, start:end], *history)
            chunk.append(batch_of(type_, times, ticks * symbols + number, columns))
        yield chunk


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


def distant(events: int, window: int, more: float = 3.0) -> Stream:
    """Events of four types, one a second: of each match the earliest exceeds the third by ``more``.

    From the last event back, all pairs of the two events before have to be tried each time; from
    the first one on, few are left once the third has come.
    """
    rng = np.random.default_rng(SEED)
    names = ["S0", "S1", "S2", "S3"]
    types = [EventType.of(one, value="float") for one in names]
    kind, value = rng.integers(0, 4, events), rng.normal(size=events)
    at = np.arange(events, dtype=np.int64) * MICROSECONDS
    chunks = []
    for start in range(0, events, 4_096):
        part = np.arange(start, min(start + 4_096, events))
        by_type = [part[kind[part] == number] for number in range(4)]
        some = [(type_, one) for type_, one in zip(types, by_type, strict=True) if len(one)]
        chunks.append([batch_of(type_, at[one], one, (value[one],)) for type_, one in some])
    schemas = "\n".join(f"event {type_}" for type_ in types)
    within = f"within {window} s from"
    rule = (
        f"rule s: define Found() from S3() as e0 and each S2() as e1 {within} e0 and "
        f"each S1() as e2 {within} e1 and each S0(value > e1.value + {more}) as e3 {within} e2"
    )
    return Stream("distant", f"{schemas}\n{rule}", chunks, 3 * window * MICROSECONDS)


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
    market = partial(walks, minutes=3_000 // scale, symbols=SYMBOLS)
    rising = ["change < later.change"]
    yield market("changes, 6 states", rising, window=20)
    yield market("correlation, 6 states", [correlated(0.8)], window=14)
    yield market("a run, 6 states", rising, window=20, runs=(2,))
    yield market("runs, 4 states", rising, window=20, length=4, runs=(1, 2))
    yield sensors(40_000 // scale, 120)
    yield keyed(60_000 // scale, 8, 600)
    yield distant(60_000 // scale, 60)
    if TICKS.exists():
        yield opencep(20 if quick else 60)
