"""Where rules are evaluated, and what is asked of the brokers below: one class a strategy (7.3).

A strategy is registered by its name::

    class Mine(Centralized):
        name = "mine"

    register(Mine)

and chosen by that name for a whole network; all of its brokers must have the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from routing.advertisements import Advertisements
from routing.deployment import Deployments


class Strategy(Protocol):
    """What the root of a tree asks its subtrees for."""

    name: ClassVar[str]
    divides: ClassVar[bool]
    """Whether rules are divided over the tree (routing.network.dividing), not just evaluated at
    its root."""

    def asks_for(self, advertisements: Advertisements, deployments: Deployments) -> Iterable[str]:
        """The filters of the events that rules need at the root, whoever subscribes to what."""
        ...


class Centralized:
    """Every event goes to the centre, and rules are evaluated there (7.4, the baseline).

    Those that no rule needs go there too, as in the thesis. So the centre knows how far every
    source has come, and a rule deployed later holds from an instant beyond all of that.
    """

    name: ClassVar[str] = "centralized"
    divides: ClassVar[bool] = False

    def asks_for(self, advertisements: Advertisements, deployments: Deployments) -> Iterable[str]:
        """Every type that has advertisers."""
        return [known.schema.name for known in advertisements if known.advertisers]


class DistributedSingleTree:
    """Rules go to the deepest brokers of the single tree that see all they need (7.3.5).

    Brokers below send what fragments of the rules let pass, and nothing else.
    """

    name: ClassVar[str] = "distributed-st"
    divides: ClassVar[bool] = True

    def asks_for(self, advertisements: Advertisements, deployments: Deployments) -> Iterable[str]:
        """Nothing: what rules need comes of itself."""
        return ()


_STRATEGIES: dict[str, type[Strategy]] = {}


def register(strategy: type[Strategy]) -> None:
    """Make a strategy known by its name; ValueError when another one has that name."""
    if _STRATEGIES.setdefault(strategy.name, strategy) is not strategy:
        raise ValueError(f"a strategy named {strategy.name!r} is registered already")


def names() -> tuple[str, ...]:
    """The strategies that are known."""
    return tuple(_STRATEGIES)


def make(name: str) -> Strategy:
    """A new strategy of that name; ValueError for one that is not known."""
    if name not in _STRATEGIES:
        expected = ", ".join(names())
        raise ValueError(f"no strategy is called {name!r}; there are {expected}")
    return _STRATEGIES[name]()


register(Centralized)
register(DistributedSingleTree)
