"""Each kind of clause as a rule, and what numpy says of it.

Events of three types, A(k, v, s), B(k, v, s) and C(k, v, s), come one a microsecond, each with a
key ``k`` of ``KEYS``, whose text is ``s``, and a value ``v``. What a clause gives is the values of
its composite events, in the order of their terminators.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Values = list[tuple[object, ...]]
SCHEMAS = "".join(f"event {name}(k: int, v: int, s: string)\n" for name in "ABC")
TICK_US = 1_000_000


class Table(NamedTuple):
    """The events of one type, in the order of time."""

    time: Ints  # microseconds
    k: Ints
    v: Ints

    def text(self) -> list[str]:
        return [f"Key {key}" for key in self.k.tolist()]

    def rows(self, order: Ints) -> list[dict[str, object]]:
        columns = (self.time, self.k, self.v)
        times, keys, values = (column[order].tolist() for column in columns)
        return [
            {"time": time, "k": key, "v": value, "s": f"Key {key}"}
            for time, key, value in zip(times, keys, values, strict=True)
        ]


class Events(NamedTuple):
    """The events of one case, by type, and the width of its windows."""

    a: Table
    b: Table
    c: Table
    window: int  # microseconds

    @classmethod
    def drawn(cls, seed: int, count: int, keys: int, window: int, step: int = 1) -> "Events":
        random = np.random.default_rng(seed)
        kinds, times = random.integers(0, 3, count), np.arange(count) * step
        k, v = random.integers(0, keys, count), random.integers(-1000, 1000, count)
        tables = (Table(times[of], k[of], v[of]) for of in (kinds == kind for kind in range(3)))
        return cls(*tables, window)


class Spans(NamedTuple):
    """For each event of one table, which of another's it sees: those of its key in the window, as
    places in ``order``, from ``low`` on, ``high`` excluded.
    """

    order: Ints
    low: Ints
    high: Ints

    @classmethod
    def of(cls, seeing: Table, seen: Table, window: int, keyed: bool = True) -> "Spans":
        scale = int(max(seeing.time.max(initial=0), seen.time.max(initial=0))) + window + 2
        key = seen.k * scale if keyed else 0 * seen.k
        order = np.argsort(key + seen.time, kind="stable")
        sought = seeing.k * scale if keyed else 0 * seeing.k
        stamps = (key + seen.time)[order]
        early = np.maximum(seeing.time - window, -1)  # no event of another key
        low = np.searchsorted(stamps, sought + early, "left")
        return cls(order, low, np.searchsorted(stamps, sought + seeing.time, "right"))

    @property
    def counts(self) -> Ints:
        return self.high - self.low

    def sums(self, words: Ints) -> Ints:
        """The sum of words of the seen over each span."""
        summed = np.concatenate([[0], np.cumsum(words[self.order])])
        return summed[self.high] - summed[self.low]

    def best(self, words: Ints, of: np.ufunc) -> Ints:
        """The least or greatest of words over each span that is not empty."""
        some = self.counts > 0
        bounds = np.stack([self.low[some], self.high[some]], 1).ravel()
        padded = np.append(words[self.order], 0)
        return of.reduceat(padded, bounds)[::2]


class Clause(NamedTuple):
    """A kind of clause: its rules, and what they are to give."""

    rules: str
    expected: Callable[[Events], Values]
    step: int = 1  # microseconds between two events
    is_chain: bool = False  # whether hybrid parallelism takes such a rule


def rows(*columns: object) -> Values:
    return list(zip(*(np.asarray(one).tolist() for one in columns), strict=True))


# --- selections ---


def chosen(number: int, from_the_end: bool) -> Callable[[Events], Values]:
    """The so manieth event of a key in the window."""

    def expected(events: Events) -> Values:
        spans = Spans.of(events.a, events.b, events.window)
        some = spans.counts >= number
        place = spans.high - number if from_the_end else spans.low + number - 1
        value = events.b.v[spans.order[place[some]]]
        return rows(events.a.k[some], value)

    return expected


def each(events: Events) -> Values:
    spans = Spans.of(events.a, events.b, events.window)
    owners = np.repeat(np.arange(len(events.a.k)), spans.counts)
    starts = np.repeat(spans.low - np.cumsum(spans.counts) + spans.counts, spans.counts)
    return rows(events.a.k[owners], events.b.v[spans.order[starts + np.arange(len(owners))]])


def of_text(events: Events) -> Values:
    spans = Spans.of(events.a, events.b, events.window)
    some = spans.counts > 0
    value = events.b.v[spans.order[spans.high[some] - 1]]
    return [(f"key {key}", v) for key, v in rows(events.a.k[some], value)]


def below(events: Events) -> Values:
    """The last B of the window whose value is less than that of A by 1,900: few are."""
    a, b, found = events.a, events.b, []
    for time, key, value in rows(a.time, a.k, a.v):
        high = np.searchsorted(b.time, time, "right")
        low = np.searchsorted(b.time, time - events.window, "left")
        fits = np.flatnonzero(b.v[low:high] < value - 1900)
        if len(fits):
            found.append((key, int(b.v[low + fits[-1]])))
    return found


def either(events: Events) -> Values:
    """The last of B and C."""
    b, c = events.b, events.c
    order = np.argsort(np.concatenate([b.time, c.time]), kind="stable")
    both = Table(*(np.concatenate(columns)[order] for columns in zip(b, c, strict=True)))
    return chosen(1, True)(events._replace(b=both))


def in_any_order(events: Events) -> Values:
    """Pairs of A and B of one key, by the later one."""
    a, b, found = events.a, events.b, []
    for later, earlier, is_a in ((a, b, True), (b, a, False)):
        spans = Spans.of(later, earlier, events.window)
        for place in range(len(later.k)):
            for other in spans.order[spans.low[place] : spans.high[place]].tolist():
                values = (int(later.v[place]), int(earlier.v[other]))
                pair = values if is_a else values[::-1]
                found.append((int(later.time[place]), int(later.k[place]), *pair))
    found.sort(key=lambda one: one[0])
    return [one[1:] for one in found]


# --- negations ---


def absent(events: Events) -> Values:
    spans = Spans.of(events.a, events.b, events.window)
    return rows(events.a.k[spans.counts == 0])


def unbroken(events: Events) -> Values:
    """The last B of A's key in the window, without a C of the key between them."""
    spans = Spans.of(events.a, events.b, events.window)
    some = spans.counts > 0
    a = Table(*(column[some] for column in events.a))
    b = spans.order[spans.high[some] - 1]
    between = Spans.of(a, events.c, events.window)
    seen = np.append(events.c.time[between.order], 0)[np.maximum(between.high - 1, 0)]
    whole = (between.counts == 0) | (seen <= events.b.time[b])
    return rows(a.k[whole], events.b.v[b][whole])


# --- aggregates ---


def aggregates(keyed: bool) -> Callable[[Events], Values]:
    """Count, sum, average, least, greatest and deviation where there is an event."""

    def expected(events: Events) -> Values:
        spans = Spans.of(events.a, events.b, events.window, keyed)
        some, v = spans.counts > 0, events.b.v
        count, total = spans.counts[some], spans.sums(v)[some]
        squares = spans.sums(v * v)[some]
        spread = np.sqrt((count * squares - total * total) / (count * count))
        least, most = spans.best(v, np.minimum), spans.best(v, np.maximum)
        return rows(events.a.k[some], count, total, total / count, least, most, spread)

    return expected


def of_expression(events: Events) -> Values:
    spans = Spans.of(events.a, events.b, events.window)
    return rows(events.a.k, spans.sums(2 * events.b.v + 1), spans.counts)


def summed(events: Events) -> Values:
    """The sum of the C of A's key, which may be of none, for each A with a B of it."""
    some = Spans.of(events.a, events.b, events.window).counts > 0
    spans = Spans.of(events.a, events.c, events.window)
    return rows(events.a.k[some], spans.sums(events.c.v)[some])


def by_ticks(events: Events) -> Values:
    """Sum and count of B in each second that is over."""
    end = max(int(table.time[-1]) for table in events[:3])
    ticks = np.arange(0, end + 1, TICK_US)
    window = Spans.of(Table(ticks, 0 * ticks, 0 * ticks), events.b, TICK_US, keyed=False)
    some = window.counts > 0
    return rows(window.sums(events.b.v)[some], window.counts[some])


# --- what goes on from event to event ---


def runs(events: Events) -> Values:
    """The last run of two and more rising values: its length, and its last value."""
    spans, v, found = Spans.of(events.a, events.b, events.window), events.b.v, []
    for key, low, high in rows(events.a.k, spans.low, spans.high):
        values = v[spans.order[low:high]].tolist()
        end = len(values)
        while end > 0:
            start = end - 1
            while start > 0 and values[start] > values[start - 1]:
                start -= 1
            if end - start > 1:
                found.append((key, end - start, values[end - 1]))
                break
            end = start
    return found


def in_turn(events: Events) -> Iterator[tuple[int, str, int, int]]:
    """Time, type, key and value of all events of A and B."""
    both = [
        *((*row, "A") for row in rows(*events.a)),
        *((*row, "B") for row in rows(*events.b)),
    ]
    for time, key, value, kind in sorted(both):
        yield time, kind, key, value  # type: ignore[misc]


def consumed(events: Events) -> Values:
    """The last B of A's key that no A before has consumed."""
    left: dict[int, list[tuple[int, int]]] = defaultdict(list)
    found: Values = []
    for time, kind, key, value in in_turn(events):
        if kind == "B":
            left[key].append((time, value))
        elif left[key] and left[key][-1][0] >= time - events.window:
            found.append((key, left[key].pop()[1]))
    return found


def consumed_runs(events: Events) -> Values:
    """How many B of A's key no A before has consumed, and the last of them."""
    left: dict[int, list[tuple[int, int]]] = defaultdict(list)
    found: Values = []
    for time, kind, key, value in in_turn(events):
        if kind == "B":
            left[key].append((time, value))
        elif run := [v for at, v in left.pop(key, []) if at >= time - events.window]:
            found.append((key, len(run), run[-1]))
    return found


def chains(events: Events) -> Values:
    """How many B of one key have followed one another, none later than a window behind."""
    last: dict[int, tuple[int, int]] = {}
    found: Values = []
    for time, key in rows(events.b.time, events.b.k):
        found.append((key, 1))
        before, length = last.get(key, (time - events.window - 1, 0))
        if time - before <= events.window:
            found.append((key, length + 1))
            last[key] = time, length + 1
        else:
            last[key] = time, 1
    return found


def selection(policy: str) -> str:
    return (
        f"define CE(k, v) from A(k = $k) and {policy} B(k = $k) within W us from A "
        "where k = $k, v = B.v"
    )


def aggregated(condition: str) -> str:
    parts = {"count": "Count", "total": "Sum", "mean": "Avg", "least": "Min", "most": "Max"}
    named = {**parts, "spread": "StdDev"}
    values = ", ".join(f"{n} = {f}(B({condition}).v within W us from A)" for n, f in named.items())
    return (
        "define CE(k, count, total, mean, least, most, spread) from A(k = $k) and "
        f"Count(B({condition}) within W us from A) > 0 where k = $k, {values}"
    )


CLAUSES = {
    "last": Clause(selection("last"), chosen(1, True)),
    "first": Clause(selection("first"), chosen(1, False)),
    "third from the end": Clause(selection("3-last"), chosen(3, True)),
    "second": Clause(selection("2-first"), chosen(2, False)),
    "each": Clause(selection("each"), each, is_chain=True),
    "last of a text": Clause(
        "define CE(s, v) from A(s = $s) and last B(s = $s) within W us from A "
        "where s = lower($s), v = B.v",
        of_text,
    ),
    "last below": Clause(
        "define CE(k, v) from A(k = $k, v = $v) and last B(v < $v - 1900) within W us from A "
        "where k = $k, v = B.v",
        below,
    ),
    "either": Clause(
        "define CE(k, v) from A(k = $k) and last B(k = $k) or C(k = $k) as e within W us from A "
        "where k = $k, v = e.v",
        either,
    ),
    "any order": Clause(
        "define CE(k, a, b) from all A(k = $k) as a, B(k = $k) as b within W us "
        "where k = $k, a = a.v, b = b.v",
        in_any_order,
    ),
    "absent": Clause(
        "define CE(k) from A(k = $k) and not B(k = $k) within W us from A where k = $k", absent
    ),
    "none between": Clause(
        "define CE(k, v) from A(k = $k) as a and last B(k = $k) as b within W us from a and "
        "not C(k = $k) between b and a where k = $k, v = b.v",
        unbroken,
    ),
    "aggregates": Clause(aggregated(""), aggregates(keyed=False)),
    "aggregates by key": Clause(aggregated("k = $k"), aggregates(keyed=True)),
    "sum of an expression": Clause(
        "define CE(k, total, n) from A(k = $k) where k = $k, "
        "total = Sum(B(k = $k).v * 2 + 1 within W us from A), "
        "n = Count(B(k = $k) within W us from A)",
        of_expression,
    ),
    "sum of none": Clause(
        "define CE(k, total) from A(k = $k) and last B(k = $k) within W us from A and "
        "$t = Sum(C(k = $k).v within W us from A) where k = $k, total = $t",
        summed,
    ),
    "timer": Clause(
        f"define CE(total, n) from Timer(S % 1 = 0) as t and $n = Count(B() within {TICK_US} us "
        f"from t) and $n > 0 where total = Sum(B().v within {TICK_US} us from t), n = $n",
        by_ticks,
        step=5_000,
    ),
    "runs": Clause(
        "define CE(k, n, v) from A(k = $k) and last 2.. B(k = $k, v > previous.v) as run "
        "within W us from A where k = $k, n = Count(run), v = run.v",
        runs,
    ),
    "consumed": Clause(selection("last") + " consuming B", consumed),
    "consumed runs": Clause(
        "define CE(k, n, v) from A(k = $k) and last 1.. B(k = $k) as run within W us from A "
        "where k = $k, n = Count(run), v = run.v consuming run",
        consumed_runs,
    ),
    "chains": Clause(
        "define CE(k, n) from B(k = $k) where k = $k, n = 1\n"
        "define CE(k, n) from B(k = $k) and last CE(k = $k) within W us from B "
        "where k = $k, n = CE.n + 1",
        chains,
    ),
}
