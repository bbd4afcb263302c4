"""Store of a simulated broker: keeps what it is asked to, some time after it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from matcher.model import TIME_MIN
from routing import wire
from routing.effects import Store
from routing.messages import Flow
from routing.order import greatest_time, least_time
from routing.storage import (
    Append,
    Clear,
    Delete,
    Entry,
    Put,
    StoreChange,
    StoreContents,
    Stretch,
    Trim,
)
from simulator.due import Due
from simulator.simulation import Simulation

FOLLOWING, STRETCH = 3, 4
"""Records and entries that are read at a time."""


class SimulatedStore:
    """The store of the broker of a name. ``sync_s``: seconds that it takes to keep something.

    What was asked for is kept in order, the changes of one Store together or not at all, and all
    that waits at once. Events go through their frames, as in a store that is a file.
    """

    def __init__(self, simulation: Simulation, name: str, sync_s: float) -> None:
        self._simulation = simulation
        self._random = simulation.random(f"store {name}")
        self._sync_s = sync_s
        self._records: dict[str, dict[str, bytes]] = {}
        self._log: dict[int, list[bytes]] = {}
        self._position = self._reach = 0
        self._asked: list[Store] = []
        self._kept: list[tuple[float, Store]] = []
        """All that it was asked to keep, and has kept, with the seconds when it had."""
        self._lives = 0
        self.when_kept: Callable[[int], None] = lambda number: None
        """Told the number up to which all is kept."""

    def ask(self, store: Store) -> None:
        """Keep these changes."""
        self._asked.append(store)
        if len(self._asked) == 1:
            self._simulation.after(self._sync_s, self._keep, self._lives)

    def _keep(self, event: Due) -> None:
        if event.what != self._lives:
            return  # the broker has failed in between
        asked, self._asked = self._asked, []
        self._keep_all(asked)
        self.when_kept(asked[-1].number)

    def _keep_all(self, asked: Sequence[Store]) -> None:
        for store in asked:
            self._kept.append((self._simulation.now, store))
            for change in store.changes:
                self._change(change)

    def _change(self, change: StoreChange) -> None:
        if isinstance(change, Append):
            assert change.position == self._position + 1
            self._position = change.position
            self._log[change.position] = wire.encode(
                Flow(tuple(change.batches), traces=tuple(change.traces))
            )
        elif isinstance(change, Trim):
            self._reach = change.position
        elif isinstance(change, Put):
            self._records.setdefault(change.kind, {})[change.key] = change.value
        elif isinstance(change, Clear):
            self._records.pop(change.kind, None)
        else:
            assert isinstance(change, Delete)
            self._records.get(change.kind, {}).pop(change.key, None)

    def fail(self) -> None:
        """The broker has failed: of what was not kept yet the first may be, the rest is lost. With
        ``sync_s`` of 20 ms Temp 7, which came 15 ms before, is gone from the store, or is there and
        its source was not told so.
        """
        self._keep_all(self._asked[: self._random.randint(0, len(self._asked))])
        self._asked.clear()
        self._lives += 1

    def close(self) -> None:
        """The broker has stopped, and waits until all is kept."""
        self._keep_all(self._asked)
        self._asked.clear()
        self._lives += 1

    def set_back(self, moment: float) -> None:
        """Have what had been kept by a moment, in seconds, and nothing else."""
        kept, self._kept = self._kept, []
        self._records, self._log = {}, {}
        self._position = self._reach = 0
        self._keep_all([store for at, store in kept if at <= moment])

    def read(self) -> StoreContents:
        """All that is kept; of the log, what rules need."""
        entries = [one for one in self._entries(TIME_MIN) if one[0] >= self._reach]
        before = [one for one in self._entries(TIME_MIN) if one[0] < self._reach]
        let_go = [greatest_time(batch) + 1 for _, batches, _ in before for batch in batches]
        records = {kind: dict(kept) for kind, kept in self._records.items()}
        let_go_before = max(let_go, default=TIME_MIN)
        own = self._position, self, None, let_go_before, self._following
        return StoreContents(records, entries, *own)

    @property
    def whole_from(self) -> int:
        """The beginning: all that was ever kept still is."""
        return TIME_MIN

    def stretches(self, since: int) -> Iterator[Stretch]:
        """See KeptLog."""
        kept = list(self._entries(since))
        parts = (kept[place : place + STRETCH] for place in range(0, len(kept), STRETCH))
        return (_stretch(one) for one in parts)

    def events(self, stretch: Stretch, since: int) -> Iterator[Entry]:
        """See KeptLog."""
        return (one for one in self._entries(since) if stretch.first <= one[0] <= stretch.last)

    def _entries(self, since: int) -> Iterator[Entry]:
        """The entries that may hold events from a time on."""
        for position, frames in list(self._log.items()):  # some is kept while this is read
            flow = wire.decode(frames)
            assert isinstance(flow, Flow)
            if any(greatest_time(batch) >= since for batch in flow.batches):
                yield position, flow.batches, flow.traces

    def _following(self, kind: str, after: str) -> list[tuple[str, bytes]]:
        """The next few records of a kind, one at least, that come after a key."""
        kept = self._records.get(kind, {})
        return [(key, kept[key]) for key in sorted(kept) if key > after][:FOLLOWING]


def _stretch(entries: Sequence[Entry]) -> Stretch:
    least = min(least_time(one) for _, batches, _ in entries for one in batches)
    return Stretch(entries[0][0], entries[-1][0], least)
