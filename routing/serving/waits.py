"""The bound of how long rules wait for a source that lags: its clock stands, or its process hangs.

If a type has a limit, each open source of it counts as having promised the broker's clock less the
limit, or what it has promised itself if that is more. Its events before that are late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from routing.serving.sources import Source


def overtake(
    sources: Iterable[Source], limits: Mapping[str, int], now: int
) -> Iterator[tuple[Source, list[str]]]:
    """Raise what sources are taken to have promised; gives each source that is behind with its
    types that were not before. ``limits`` by type and ``now`` are in microseconds.
    """
    for source in sources:
        is_recorded = source.replays or source.whole is not None
        if source.home or is_recorded or not source.is_open:
            continue
        least = {name: now - limits[name] for name in source.floors.keys() & limits.keys()}
        behind = {name for name, time in least.items() if source.mark(name) < time}
        news, source.overtaken = sorted(behind - source.overtaken), behind
        if behind:
            source.floors.update((name, least[name]) for name in behind)
            yield source, news
