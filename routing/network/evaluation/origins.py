"""Where what a broker below forwards of a type comes from, for who asks what a rule waits for.

The mark that a child has told is its type's, whoever holds it there. But the division says which
brokers' sources publish the type, or have published it, at which brokers the rules are that define
it, and who is beyond which child. So those are named that may hold it. The root of the single tree
knows the open sources of other brokers by name, as remote sources: there these are named, and
brokers whose sources of the type have all closed are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from routing.network.agreement.remote_sources import RemoteSources
from routing.partition.places import Division

Names = Mapping[str, Mapping[str, list[str]]]
"""By type and broker."""


def remote_names(remote_sources: RemoteSources) -> Names:
    """The open sources of other brokers, at the root of the single tree; nothing elsewhere."""
    found: dict[str, dict[str, list[str]]] = {}
    for source in remote_sources:
        if source.is_open:
            for name in source.floors:
                _note(found, name, source.home, source.name)
    return found


class Origins:
    """Origins by one division; made for one look at it, by the broker called ``own``."""

    def __init__(self, division: Division, own: str, sources: Names) -> None:
        self._division = division
        self._own = own
        self._sources = sources
        self._rules: dict[str, dict[str, list[str]]] = {}
        self._homes: dict[str, list[str]] = {}
        places = division.partition.places
        for one in division.rules:
            if one.rule.name in places:
                _note(self._rules, one.rule.defines.name, places[one.rule.name], one.name)
        for home, names in sorted(division.published.items()):
            for name in names:
                self._homes.setdefault(name, []).append(home)

    def of(self, types: Iterable[str], child: str) -> list[dict[str, Any]]:
        """Brokers beyond a child, with their sources that publish these types, as far as these are
        known by name, and the rules there that define them.
        """
        found: dict[str, dict[str, Any]] = {}
        for name in types:
            sources = self._beyond(self._sources.get(name, {}), child)
            rules = self._beyond(self._rules.get(name, {}), child)
            homes = sources or self._beyond(self._homes.get(name, ()), child)
            for home in (*homes, *rules):
                one = found.setdefault(home, {"broker": home, "sources": [], "rules": []})
                for what, names in (("sources", sources), ("rules", rules)):
                    one[what] = sorted({*one[what], *names.get(home, ())})
        return [found[home] for home in sorted(found)]

    def _beyond(self, homes: Iterable[str], child: str) -> dict[str, list[str]]:
        """The brokers beyond the child, each with what is named there."""
        named = homes if isinstance(homes, Mapping) else {}
        side, own = self._division.side, self._own
        return {home: named.get(home, []) for home in homes if side(own, home) == child}


def _note(found: dict[str, dict[str, list[str]]], name: str, broker: str, what: str) -> None:
    found.setdefault(name, {}).setdefault(broker, []).append(what)
