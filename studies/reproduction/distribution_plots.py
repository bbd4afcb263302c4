"""The figures of the simulation study: what varies in each, and what its runs come to.

Law 1: a figure's table has a row for each place and strategy, with what exactness costs there:
results in order beside those by arrival, over the seeds that have been run both ways.

Law 2: charts go by the exact runs, which all figures share where scenarios are alike. Claims go by
these too, and once more by the runs by arrival, seed by seed (distribution_claims, Law 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from studies.reproduction import distribution_claims as claims
from studies.reproduction.distribution_runs import (
    QUICK,
    THESIS,
    WHOLE,
    Settings,
    Size,
    Spread,
    Study,
    scenario,
)
from studies.reproduction.experiment import Chart, Figure, Outcome, Table
from studies.reproduction.gathering import Row

SMALL = {"rules": 6, "subscriptions": 3, "rates": [0.5, 10.0]}
"""What a quick run has less of, and more: so something is detected."""
DEFAULT = Size(brokers=10)
"""That of figure 7.9."""
LINES = ("delay [ms]", "delay ±", "traffic [kB/s]", "traffic ±")
FIGURES = (*LINES, "messages [1/s]")
MEMORY = ("memory [MB]",)
COSTS = ("both ways", "exactness [ms]", "exactness [kB/s]")
"""What results in order cost: how much later they come than by arrival, how much more is sent; and
of how many seeds that is."""
BAR_COLUMNS = ("strategy", "seeds", *FIGURES, *MEMORY)
BAR_CHARTS = (
    Chart(("delay [ms]",), "delay to the sink [ms]"),
    Chart(("traffic [kB/s]",), "traffic between brokers [kB/s]"),
)
"""Those of a figure with a row a strategy."""
Found = Mapping[str, Sequence[Row]]
"""By strategy, its rows at one point, one a seed."""


def common(points: Sequence[Found]) -> list[Found]:
    """The rows of the seeds that have been run at all of these points, under every strategy."""
    seeds = set.intersection(
        *({row["seed"] for row in rows} for found in points for rows in found.values())
    )
    return [
        {name: [row for row in rows if row["seed"] in seeds] for name, rows in found.items()}
        for found in points
    ]


def readings_of(places: Sequence[float], found: Sequence[Found]) -> claims.Readings:
    """The rows at each place, by seed, as claims go by them."""
    by_seed = [
        {name: {row["seed"]: row for row in rows} for name, rows in one.items()} for one in found
    ]
    return claims.Readings.of(places, by_seed)


@dataclass(frozen=True, slots=True)
class Point:
    """Where on the x-axis, and how the default scenario is changed there."""

    place: float
    change: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure: what varies, its points, what the thesis says.

    ``whole``: the points where the default scenario is the thesis's. ``measured_s``: for how many
    seconds, where those of the other figures are too few for what varies to matter.
    """

    varied: str
    points: tuple[Point, ...]
    whole: tuple[Point, ...]
    claims: Callable[[claims.Readings], Iterator[claims.Claim]]
    has_memory: bool = False
    measured_s: float | None = None

    def settings(self, size: Size) -> list[Settings]:
        """The scenarios of its points, then the same by arrival."""
        return _both_ways(self.exact(size))

    def exact(self, size: Size) -> list[Settings]:
        """The scenarios of its points, results in order."""
        own = size
        if self.measured_s is not None and size is not QUICK:
            own = replace(size, measured_s=self.measured_s)
        return [scenario(own, **point.change) for point in self.points_of(size)]

    def points_of(self, size: Size) -> tuple[Point, ...]:
        """Its points, of which a quick run has the ends."""
        if size is QUICK:
            return tuple(_small(point) for point in (self.points[0], self.points[-1]))
        return self.whole if size is THESIS else self.points

    def outcome(self, study: Study) -> Outcome:
        """What the rows that are there come to."""
        places = [point.place for point in self.points_of(study.size)]
        found = study.found(self.settings(study.size))
        exact, by_arrival = found[: len(places)], found[len(places) :]
        names = study.strategies
        return Outcome(
            self._table(places, exact, by_arrival, names),
            _charts(names),
            claims.judged_both_ways(
                self.claims(readings_of(places, exact)),
                self.claims(readings_of(places, by_arrival)),
            ),
            _lines(self.varied, places, exact, names),
        )

    def _table(
        self,
        places: Sequence[float],
        exact: Sequence[Found],
        by_arrival: Sequence[Found],
        names: Sequence[str],
    ) -> Table:
        """A row for each place and strategy (Law 1)."""
        memory = MEMORY if self.has_memory else ()
        columns = (self.varied, "strategy", "seeds", "delivered [1/s]", *FIGURES, *memory, *COSTS)
        rows: list[tuple[Figure, ...]] = []
        for place, one, other in zip(places, exact, by_arrival, strict=True):
            for name in names:
                mine = one[name]
                told = (place, name, len(mine), _rate(mine, "delivered").mean)
                memory_of = _memory(mine) if self.has_memory else ()
                rows.append((*told, *_figures(mine), *memory_of, *_costs(mine, other[name])))
        return Table(columns, tuple(rows))


def _small(point: Point) -> Point:
    """The point in a network of three brokers, with fewer rules and subscriptions."""
    few = {name: 3 for name in ("brokers", "rules", "subscriptions") if name in point.change}
    return Point(point.place, {**SMALL, **point.change, **few, "classes": 1})


def _both_ways(exact: Sequence[Settings]) -> list[Settings]:
    """Scenarios, then the same by arrival; the default is not named, so that figures share them."""
    return [*exact, *({**one, "ordering": "arrival"} for one in exact)]


def _lines(
    varied: str, places: Sequence[float], exact: Sequence[Found], names: Sequence[str]
) -> Table:
    """What is drawn and judged: a row a place, with the delay and traffic of each strategy."""
    columns = [f"{name} {what}" for name in names for what in LINES]
    rows = [
        (place, *(figure for name in names for figure in _figures(found[name])[: len(LINES)]))
        for place, found in zip(places, exact, strict=True)
    ]
    return Table((varied, *columns), tuple(rows))


def _figures(rows: Sequence[Row]) -> tuple[Figure, ...]:
    """Those of FIGURES, of a strategy at a place."""
    delay = Spread.of([row["delay_ms_mean"] for row in rows if row["delay_ms_mean"] is not None])
    traffic = _rate(rows, "bytes", 1e3)
    return delay.mean, delay.half, traffic.mean, traffic.half, _rate(rows, "messages").mean


def _memory(rows: Sequence[Row]) -> tuple[Figure]:
    known = [row["memory_mb_node"] for row in rows if row["memory_mb_node"] is not None]
    return (Spread.of(known).mean,)


def _costs(exact: Sequence[Row], by_arrival: Sequence[Row]) -> tuple[Figure, ...]:
    """Those of COSTS: how much more, on average, where a seed has been run both ways."""
    others = {row["seed"]: row for row in by_arrival}
    pairs = [(row, others[row["seed"]]) for row in exact if row["seed"] in others]
    delays = [(one["delay_ms_mean"], other["delay_ms_mean"]) for one, other in pairs]
    late = [one - other for one, other in delays if one is not None and other is not None]
    bytes_s = [
        one["bytes"] / one["measured_s"] - other["bytes"] / other["measured_s"]
        for one, other in pairs
    ]
    return len(pairs), Spread.of(late).mean, Spread.of([one / 1e3 for one in bytes_s]).mean


def _rate(rows: Sequence[Row], name: str, unit: float = 1.0) -> Spread:
    return Spread.of([row[name] / row["measured_s"] / unit for row in rows])


def _charts(names: Sequence[str]) -> tuple[Chart, ...]:
    delay, late, traffic, more = LINES
    return tuple(
        Chart(
            tuple(f"{name} {what}" for name in names),
            label,
            intervals=tuple(f"{name} {half}" for name in names),
        )
        for what, half, label in (
            (delay, late, "delay to the sink [ms]"),
            (traffic, more, "traffic between brokers [kB/s]"),
        )
    )


@dataclass(frozen=True, slots=True)
class Bars:
    """Figure 7.9: a row a strategy, exact and by arrival.

    ``own``: the size that it has among figures of the WHOLE size.
    """

    own: Size

    def settings(self, size: Size) -> list[Settings]:
        """The default scenario, by arrival, and with processors that take time."""
        usual = scenario(size, **SMALL) if size is QUICK else scenario(self._size(size))
        return [*_both_ways([usual]), {**usual, "protocol": {"processing": "measured"}}]

    def _size(self, size: Size) -> Size:
        return self.own if size is WHOLE else size

    def outcome(self, study: Study) -> Outcome:
        """What the rows that are there come to."""
        exact, by_arrival, busy = ([one] for one in study.found(self.settings(study.size)))
        rows = list(_bars(exact[0], study.strategies).rows)
        for way, found in (("by arrival", by_arrival), ("processing measured", busy)):
            if any(found[0].values()):
                told = _bars(found[0], study.strategies).rows
                rows += [(f"{name}, {way}", *figures) for name, *figures in told]
        usual = readings_of([0], exact)
        judged = claims.judged_both_ways(
            claims.default(usual), claims.default(readings_of([0], by_arrival))
        )
        marginal = claims.processing(usual, readings_of([0], busy))
        return Outcome(Table(BAR_COLUMNS, tuple(rows)), BAR_CHARTS, (*judged, marginal))


@dataclass(frozen=True, slots=True)
class Final:
    """What the thesis concludes from all figures together: how many places bear each out."""

    def settings(self, size: Size) -> list[Settings]:
        """Those of all figures."""
        return [one for plot in PLOTS.values() for one in plot.settings(size)]

    def outcome(self, study: Study) -> Outcome:
        """What the rows that are there come to."""
        ways: tuple[dict[str, claims.Readings], ...] = ({}, {})
        for name, plot in PLOTS.items():
            places = [point.place for point in plot.points_of(study.size)]
            found = study.found(plot.settings(study.size))
            ways[0][name] = readings_of(places, found[: len(places)])
            ways[1][name] = readings_of(places, found[len(places) :])
        rows = tuple((name, len(one.places)) for name, one in ways[0].items())
        judged = claims.judged_both_ways(*(claims.final(one) for one in ways))
        return Outcome(Table(("figure", "places"), rows), (), judged)


def _bars(found: Found, names: Sequence[str]) -> Table:
    rows = (
        (name, len(found[name]), *_figures(found[name]), *_memory(found[name])) for name in names
    )
    return Table(BAR_COLUMNS, tuple(rows))


def _points(name: str, places: Sequence[float], **others: Any) -> tuple[Point, ...]:
    return tuple(Point(place, {name: place, **others}) for place in places)


def _shares(*shares: float) -> tuple[Point, ...]:
    return tuple(
        Point(share, {"selection": {"last": 1 - share / 100, "each": share / 100}})
        for share in shares
    )


def local(count: int) -> Point:
    """So many brokers, with locality of sources."""
    return Point(count, {"brokers": count, "classes": count // 2, "publisher_locality": 0.8})


def _located(counts: Sequence[int]) -> tuple[Point, ...]:
    return tuple(map(local, counts))


def _rates(*rates: float) -> tuple[Point, ...]:
    """Their least rate."""
    return tuple(Point(1 / least, {"rates": [least, 10.0]}) for least in rates)


NODES, NODES_WHOLE = (3, 6, 12), (5, 10, 20, 30, 50)
PLOTS = {
    "7.10": Plot(
        "rules",
        _points("rules", (15, 30, 60)),
        _points("rules", (50, 100, 150, 200)),
        claims.composites,
    ),
    "7.11": Plot(
        "subscriptions a broker",
        _points("subscriptions", (2, 10, 20)),
        _points("subscriptions", (2, 5, 10, 20)),
        claims.subscriptions,
    ),
    "7.12": Plot("share of each [%]", _shares(0, 30), _shares(0, 10, 20, 30), claims.selection),
    "7.13": Plot(
        "window [s]",
        _points("window_s", (30.0, 60.0, 120.0)),
        _points("window_s", (30.0, 60.0, 90.0, 120.0)),
        claims.windows,
        measured_s=120.0,  # no window that is longer than a run makes a difference
    ),
    "7.14": Plot(
        "values of an attribute",
        _points("values", (1, 3, 10)),
        _points("values", (1, 2, 5, 10)),
        claims.filtering,
    ),
    "7.15": Plot(
        "brokers",
        _points("brokers", NODES),
        _points("brokers", NODES_WHOLE),
        claims.nodes,
        has_memory=True,
    ),
    "7.16": Plot("brokers", _located(NODES[1:]), _located(NODES_WHOLE), claims.locality),
    "7.17": Plot(
        "brokers",
        _points("brokers", NODES[1:], values=10),
        _points("brokers", NODES_WHOLE, values=10),
        claims.nodes_filtered,
    ),
    "7.18": Plot(
        "seconds between the rarest events",
        _rates(0.2, 0.001, 0.0001),
        _rates(0.2, 0.01, 0.001, 0.0001),
        claims.rates,
    ),
}
DEFAULTS, FINAL = Bars(DEFAULT), Final()
