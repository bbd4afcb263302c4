"""Strategies that installed packages bring (docs/strategies.md): hosts load them alone."""

from __future__ import annotations

from importlib.metadata import entry_points

from routing.network import strategy

GROUP = "rexmq.strategies"


def installed() -> tuple[str, ...]:
    """The names of the strategies that packages bring, loaded or not. Packages name them as entry
    points of GROUP.
    """
    return tuple(entry.name for entry in entry_points(group=GROUP))


def load_installed() -> None:
    """Make them known, each once. ValueError for what is no strategy of that name."""
    for entry in entry_points(group=GROUP):
        place = f"the strategy {entry.name!r} of {entry.value}"
        try:
            found = entry.load()
        except Exception as error:  # whatever the package's own code raises
            raise ValueError(f"{place} cannot be loaded: {error!r}") from error
        name = getattr(found, "name", None)
        if name != entry.name:
            raise ValueError(f"{place}: expected a class whose name is that, found {name!r}")
        strategy.register(found)
