"""Which way each rule goes: the ways that cost least, as far as a short search finds (7.3.8).

Law 1: the search begins where all rules go the same way, for every way that there is, so it never
finds worse than the best of these. From the cheapest of them it sends one type after another
another way, as long as that saves something, and for at most so many weighings that they look at
``PATHS_MAX`` paths in all: one for each broker and tree, each time. It does so twice, from the
cheapest that pushes and from the cheapest that pulls.

Law 2: what a change costs is a part of what other ways cost (repeating), so of ways that are nearly
as good those are found that move less. Ways are left for others only where that saves clearly, a
share of ``CLEARLY`` at least. Pulling has to save a share of ``FAR`` of what is sent of published
events and marks: it goes by how rare what was hardly seen will be. Composite events take the same.

Law 3: where ways change, rules that are pulled then are pushed over single links (frontiers) where
that costs less, tree by tree, and for as many weighings more. Whether to change, and whether to
pull at all, is decided without that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from routing.messages import Ways
from routing.network.ways.weighing import Weighing

PATHS_MAX = 60_000
CLEARLY = 0.05
FAR = 0.1
Cost = Callable[[Ways], float]


def prefer(weighing: Weighing, now: Ways) -> Ways:
    """The ways to go from now on: those of ``now``, unless others are clearly better."""

    def cost(ways: Ways) -> float:
        return weighing.cost(ways) + weighing.price(now, ways)

    pushed = _refined(weighing, cost, min(_pushing(weighing), key=cost))
    pulled = _refined(weighing, cost, min(_pulling(weighing), key=cost))
    saved = cost(pushed) - cost(pulled)
    found = pulled if saved > FAR * (cost(pushed) - weighing.composites(pushed)) else pushed
    if cost(found) < (1 - CLEARLY) * weighing.cost(now):
        return _by_link(weighing, cost, found)
    return now


def _pushing(weighing: Weighing) -> Iterator[Ways]:
    yield Ways()
    yield Ways(deep=weighing.movable)
    yield Ways(own=weighing.ownable)
    yield Ways(own=weighing.ownable, deep=weighing.movable)


def _pulling(weighing: Weighing) -> Iterator[Ways]:
    for found in (weighing.masters, weighing.rarest):
        masters = tuple(sorted(found.items()))
        yield Ways(deep=weighing.movable, masters=masters)
        yield Ways(own=weighing.ownable, deep=weighing.movable, masters=masters)


def _refined(weighing: Weighing, cost: Cost, start: Ways) -> Ways:
    best, least, looked_at = start, cost(start), 0
    is_better = True
    while is_better:
        is_better = False
        for name in weighing.types:
            for ways in _others(weighing, best, name):
                looked_at += weighing.paths
                if looked_at > PATHS_MAX:
                    return best
                if (found := cost(ways)) < least:
                    best, least, is_better = ways, found, True
    return best


def _by_link(weighing: Weighing, cost: Cost, ways: Ways) -> Ways:
    """The same, but that rules are pushed over some links, tree by tree (Law 3)."""
    best, least, looked_at = ways, cost(ways), 0
    for pushed in weighing.frontiers(ways):
        looked_at += weighing.paths
        if looked_at > PATHS_MAX:
            break
        if pushed:
            other = Ways(ways.own, ways.deep, ways.masters, tuple(sorted({*best.pushed, *pushed})))
            if (found := cost(other)) < least:
                best, least = other, found
    return best


def _others(weighing: Weighing, ways: Ways, name: str) -> Iterator[Ways]:
    """The same, but that a type goes another way."""
    own, deep = set(ways.own), set(ways.deep)
    unpulled = tuple(one for one in ways.masters if weighing.defined_by(one[0]) != name)
    if unpulled != ways.masters:
        yield Ways(ways.own, ways.deep, unpulled)
    if name in weighing.ownable:
        yield Ways(tuple(sorted(own ^ {name})), ways.deep, unpulled)
    if name in weighing.movable:
        yield Ways(ways.own, tuple(sorted(deep ^ {name})), unpulled)
