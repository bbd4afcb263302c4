"""What the thesis says of figures 7.9 to 7.18, and whether the figures measured bear it out.

A claim about a strategy that is not registered is not measured, and says so. "Not influenced" is
taken as: within a fifth; "significantly" as: by a fifth at least. Each is judged by results in
order, which is how this project detects, and once more by results as they arrive, which is how the
thesis did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.reproduction.experiment import Claim, Figure, Table

CENTRAL, ST, MT = "centralized", "distributed-st", "distributed-mt"
PULL_ST, PULL_MT = "push-pull-st", "push-pull-mt"
FIFTH = 1.2


class Readings:
    """The lines of a figure, by strategy; one that lacks a place has no line."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.places = table.column(table.columns[0])
        delays = (name.partition(" delay [ms]") for name in table.columns)
        self.strategies = tuple(
            name
            for name, is_one, _ in delays
            if is_one and None not in table.column(f"{name} traffic [kB/s]")
        )

    def delay(self, strategy: str) -> list[float]:
        """Milliseconds at each place; what was not measured is left out."""
        return _known(self._table.column(f"{strategy} delay [ms]"))

    def traffic(self, strategy: str) -> list[float]:
        """Kilobytes a second at each place."""
        return _known(self._table.column(f"{strategy} traffic [kB/s]"))


def _known(figures: Sequence[Figure]) -> list[float]:
    return [float(one) for one in figures if one is not None]


def judged_both_ways(exact: Iterable[Claim], by_arrival: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims by results in order, each with the same one by results as they arrive."""
    pairs = zip(exact, by_arrival, strict=True)
    return tuple(replace(one, otherwise=other) for one, other in pairs)


Among = Callable[[str, str], Table]
"""The table by which two strategies are compared."""


def default(table: Table, among: Among | None = None) -> Iterator[Claim]:
    """7.9; a row a strategy, whose second column says how much has been run. ``among``: of what
    both have run, where that is less than what each has; the table itself, if None.
    """
    names = [str(name) for name in table.column("strategy")]

    def judge(
        text: str, column: str, one: str, other: str, holds: Callable[[float], bool]
    ) -> Claim:
        missing = [name for name in (one, other) if name not in names]
        if missing:
            return _missing(text, missing)
        own = table if among is None else among(one, other)
        rows = {str(row[0]): row for row in own.rows}
        idle = [name for name in (one, other) if not rows[name][1]]
        if idle:
            return Claim(text, f"not run: {', '.join(idle)}", None)
        place = own.columns.index(column)
        left, right = rows[one][place], rows[other][place]
        if not isinstance(left, float) or not isinstance(right, float) or not right:
            return Claim(text, "nothing was delivered", None)
        return Claim(text, f"{one} {left:.4g}, {other} {right:.4g}", holds(left / right))

    yield judge(
        "Delays with multiple trees are lower than with one",
        *("delay [ms]", MT, ST, lambda ratio: ratio < 1),
    )
    yield judge(
        "Delays of Centralized and Distributed (ST) are almost the same",
        *("delay [ms]", ST, CENTRAL, lambda ratio: 1 / 1.1 < ratio < 1.1),
    )
    yield judge(
        "Push-Pull (ST) has a slightly higher delay than Distributed (ST)",
        *("delay [ms]", PULL_ST, ST, lambda ratio: 1 < ratio < 2),
    )
    yield judge(
        "Push-Pull (MT) has a higher delay than Distributed (MT)",
        *("delay [ms]", PULL_MT, MT, lambda ratio: ratio > 1),
    )
    yield judge(
        "Centralized generates significantly more traffic than Distributed (ST)",
        *("traffic [kB/s]", CENTRAL, ST, lambda ratio: ratio > FIFTH),
    )
    yield judge(
        "Distributed (MT) generates more traffic than Distributed (ST)",
        *("traffic [kB/s]", MT, ST, lambda ratio: ratio > 1),
    )
    yield judge(
        "Push-Pull (ST) has a very small benefit over Distributed (ST) in traffic",
        *("traffic [kB/s]", PULL_ST, ST, lambda ratio: 0.9 < ratio < 1),
    )


def _missing(text: str, names: Sequence[str]) -> Claim:
    return Claim(text, f"there is no {' or '.join(names)} yet", None)


def _steady_delay(readings: Readings, text: str) -> Claim:
    """That the delays of no strategy change."""
    ratios = {
        name: max(found) / min(found)
        for name in readings.strategies
        if (found := readings.delay(name))
    }
    told = ", ".join(f"{name} by {ratio - 1:.0%}" for name, ratio in ratios.items())
    holds = max(ratios.values()) < FIFTH if ratios else None
    return Claim(text, f"at most, {told}" if told else "nothing was delivered", holds)


def _first_rises(readings: Readings, text: str) -> Claim:
    """That the delays of all strategies rise from the first place to the second, and from there to
    the last by less than a fifth.
    """
    delays = {name: found for name in readings.strategies if (found := readings.delay(name))}
    told = "; ".join(
        f"{name} {', '.join(f'{one:.3g}' for one in found)} ms" for name, found in delays.items()
    )
    holds = all(
        len(found) > 1 and found[0] < found[1] and found[-1] < FIFTH * found[1]
        for found in delays.values()
    )
    return Claim(text, told or "nothing was delivered", holds if delays else None)


def _growth(
    readings: Readings, text: str, names: Sequence[str], holds: Callable[[float], bool]
) -> Claim:
    """How the traffic at the last place compares with that at the first, for each strategy."""
    missing = [name for name in names if name not in readings.strategies]
    if missing:
        return _missing(text, missing)
    if not names:
        return Claim(text, "nothing has been run yet", None)
    ratios = {name: readings.traffic(name)[-1] / readings.traffic(name)[0] for name in names}
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Claim(text, f"times the traffic: {told}", all(map(holds, ratios.values())))


def _shares(readings: Readings, one: str, other: str) -> list[float]:
    """One strategy's traffic as a share of another's, at each place."""
    pairs = zip(readings.traffic(one), readings.traffic(other), strict=True)
    return [mine / theirs for mine, theirs in pairs]


def _against(
    readings: Readings, text: str, one: str, other: str, holds: Callable[[list[float]], bool]
) -> Claim:
    """How two strategies' traffic compares at each place."""
    missing = [name for name in (one, other) if name not in readings.strategies]
    if missing:
        return _missing(text, missing)
    shares = _shares(readings, one, other)
    told = ", ".join(f"{share:.2f}" for share in shares)
    return Claim(text, f"{one} over {other}: {told}", holds(shares))


def _rises(ratio: float) -> bool:
    return ratio > 1


def _falls(ratio: float) -> bool:
    return ratio < 1


def composites(readings: Readings) -> Iterator[Claim]:
    """7.10."""
    yield _steady_delay(readings, "Delays do not change significantly with the number of rules")
    yield _growth(
        readings, "Traffic increases with the number of rules", readings.strategies, _rises
    )
    yield _against(
        readings,
        "Differences stay: the single tree with less traffic than Centralized",
        *(ST, CENTRAL, lambda shares: max(shares) < 1),
    )
    yield _against(
        readings,
        "Differences stay: the single tree with less traffic than multiple trees",
        *(ST, MT, lambda shares: max(shares) < 1),
    )


def subscriptions(readings: Readings) -> Iterator[Claim]:
    """7.11."""
    yield _steady_delay(readings, "Delays are not influenced by the number of subscriptions")
    yield _growth(
        readings, "Traffic increases with the number of subscriptions", readings.strategies, _rises
    )
    yield _against(
        readings,
        "Multiple trees have less traffic than one below 5 subscriptions a node, more above",
        *(MT, ST, lambda shares: shares[0] < 1 < shares[-1]),
    )
    yield _against(
        readings,
        "Many subscriptions make pulling over multiple trees useless",
        *(PULL_MT, MT, lambda shares: shares[-1] > 0.95),
    )


def selection(readings: Readings) -> Iterator[Claim]:
    """7.12."""
    yield _steady_delay(readings, "Delays remain constant")
    single = [name for name in (CENTRAL, ST, PULL_ST) if name in readings.strategies]
    yield _growth(
        readings,
        "Traffic of single-tree strategies increases significantly with each",
        *(single, lambda ratio: ratio > FIFTH),
    )
    yield _growth(
        readings,
        "Traffic of multiple-tree strategies increases little",
        *((MT,), lambda ratio: ratio < FIFTH),
    )


def windows(readings: Readings) -> Iterator[Claim]:
    """7.13."""
    yield _steady_delay(readings, "Delays do not change significantly with windows")
    yield _growth(readings, "Traffic is higher with larger windows", readings.strategies, _rises)
    yield _against(
        readings,
        "The difference of Distributed (ST) and Centralized slightly decreases with windows",
        *(ST, CENTRAL, lambda shares: shares[0] < shares[-1] < 1),
    )
    yield _against(
        readings,
        "Pulling is more efficient with small windows",
        *(PULL_ST, ST, lambda shares: shares[0] < 0.98 * min(1, shares[-1])),
    )


def filtering(readings: Readings) -> Iterator[Claim]:
    """7.14."""
    yield _steady_delay(readings, "Delays are not influenced by filtering")
    yield _growth(
        readings, "Traffic of all strategies falls with filtering", readings.strategies, _falls
    )
    yield _against(
        readings,
        "Distributed (ST) has much less traffic than Centralized, the less the more is filtered",
        *(ST, CENTRAL, lambda shares: shares[-1] < min(shares[0], 1 / FIFTH)),
    )


def nodes(readings: Readings) -> Iterator[Claim]:
    """7.15."""
    yield _first_rises(
        readings, "Delays increase from 5 to 10 nodes, and show no clear trend beyond"
    )
    yield _growth(
        readings, "Traffic increases with the network", readings.strategies, lambda ratio: ratio > 1
    )
    yield _against(
        readings,
        "Without locality, multiple trees lose to one as the network grows",
        *(MT, ST, lambda shares: shares[-1] > max(1, shares[0])),
    )


def locality(readings: Readings) -> Iterator[Claim]:
    """7.16."""
    yield _against(
        readings,
        "With locality, Distributed (ST) has significantly less traffic than Centralized",
        *(ST, CENTRAL, lambda shares: shares[-1] < 1 / FIFTH),
    )
    yield _against(
        readings,
        "With locality, Distributed (MT) has significantly less traffic than Centralized",
        *(MT, CENTRAL, lambda shares: shares[-1] < 1 / FIFTH),
    )
    yield _against(
        readings,
        "Single trees are still more efficient than multiple ones, which come near",
        *(MT, ST, lambda shares: 1 < shares[-1] < 1.5),
    )


def nodes_filtered(readings: Readings) -> Iterator[Claim]:
    """7.17."""
    yield _against(
        readings,
        "With 90 % filtered, Distributed (ST) has significantly less traffic than Centralized",
        *(ST, CENTRAL, lambda shares: shares[-1] < 1 / FIFTH),
    )
    yield _against(
        readings,
        "Pulling gains, above all in large networks",
        *(PULL_ST, ST, lambda shares: shares[-1] < min(1, shares[0])),
    )


def rates(readings: Readings) -> Iterator[Claim]:
    """7.18."""
    yield _steady_delay(readings, "Delays are not influenced by the publication rate")
    yield _growth(
        readings, "Traffic falls as the rarest events get rarer", readings.strategies, _falls
    )
    yield _against(
        readings,
        "The advantage of Distributed (ST) over Centralized increases",
        *(ST, CENTRAL, lambda shares: shares[-1] < min(1, shares[0])),
    )
    yield _against(
        readings,
        "Pulling does not pay where rates differ little",
        *(PULL_ST, ST, lambda shares: shares[0] > 1),
    )
