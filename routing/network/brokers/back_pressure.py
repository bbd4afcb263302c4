"""Back-pressure across the network: whose sources get no credit, since something is full elsewhere.

Law 1: each broker tells its neighbours in the single tree what is full here or beyond its other
neighbours, by the types of the sources that feed it. A tree has one way between any two brokers, so
nobody hears of what it has said itself, and what is over is over everywhere. A sink of Fire at b3
is full: b3 tells b2 of Temp and Smoke, and b2 tells b1.

Law 2: where messages for a neighbour pile up, what goes there is held up: all, if it goes on to be
evaluated, else what is wanted there. It comes from the other neighbours, or, along trees of sinks,
from anywhere. A link empties by itself, whoever publishes, so holding up cannot keep it full. Too
much waits at b2 for b3, which wants Temp: sources of Temp get no more credit.

What else holds up: a sink that is full and chose to block, as at its own broker (serving.credit);
what lags here, own sources too (evaluation.skew); what the root has found and no state tells of
(partition.rule_states, Law 4); and events that are yet to be sent again (evaluation.replay): what
sources elsewhere went on to publish would wait for these all the same.

Law 3: what was said holds for as long as the incarnations of both ends of a link. It is said again
when it is another, and counts while the neighbour is one in the tree. The link is back, and b2 has
started anew: what it said before counts no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from matcher.model import TIME_MAX, TIME_MIN
from routing.delivery.sink import Sink
from routing.effects import Peer
from routing.evaluation.skew import SkewLimit
from routing.messages import ANY_TYPE, Hold
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.update_timer import UpdateTimer
from routing.overlay.ends import Down, Piling, Up
from routing.serving.credit import NOTHING_HELD, Held, held_by_all

EVERYTHING_HELD: Held = {ANY_TYPE: TIME_MIN}
"""No source gets credit."""


class BackPressure:
    """Tells what is full, and hears what is full elsewhere."""

    def __init__(self, context: BrokerContext, timer: UpdateTimer) -> None:
        self._context = context
        self._router = context.router
        self._timer = timer
        self._tree_table = context.detection.tree_table
        self._heard: dict[str, Held] = {}
        self._told: dict[str, Held] = {}
        """By neighbour; those who said, or were told, that nothing is full are left out."""
        self._piling: list[str] = []
        self._full: dict[Peer, Sink] = {}
        self._seen_full: list[tuple[int | None, frozenset[str]]] = []
        """From when on sinks were full, and what feeds them, when this last looked."""
        self._by_sinks = self._by_lags = NOTHING_HELD
        self._by_replay = NOTHING_HELD

    @property
    def told(self) -> frozenset[str]:
        """The neighbours that were told that something is full."""
        return frozenset(self._told)

    # --- what is full ---

    def note(self, change: Up | Down | Piling) -> None:
        """A neighbour is there, or gone, or messages for it pile up, or do so no longer."""
        if isinstance(change, Up) and change.fresh:  # Law 3
            self._heard.pop(change.name, None)
            self._told.pop(change.name, None)
        self.follow_tree()

    def follow_tree(self) -> None:
        """Other neighbours may be there, or in the tree."""
        if self._heard:
            remembered = {state.origin for state in self._context.overlay.topology.states}
            self._heard = {name: held for name, held in self._heard.items() if name in remembered}
        if self._heard or self._told or self._by_sinks or self._by_lags or self._piling:
            self._look()
        else:
            self.look_at_links()

    def look_at_links(self) -> None:
        """Messages may pile up for neighbours for whom they did not, or the other way round; and
        what is sent again may have begun, or ended.
        """
        if self._piling != self._found_piling() or self._by_replay != self._held_by_replay():
            self._look()

    def _held_by_replay(self) -> Held:
        return EVERYTHING_HELD if self._context.detection.is_sending_again else NOTHING_HELD

    def _found_piling(self) -> list[str]:
        neighbours = self._context.overlay.neighbours
        return [name for name, one in neighbours.items() if one.piles_up]

    def hear(self, neighbour: str, hold: Hold) -> None:
        """A neighbour says what is full with it."""
        _put(self._heard, neighbour, dict(hold.types))
        self._look()

    def note_sink(self, sink: Sink) -> bool:
        """Something has come for a sink, or was sent to it; whether it is full, and blocks."""
        is_full = sink.full_from is not None
        if is_full:
            self._full[sink.peer] = sink
        else:
            self._full.pop(sink.peer, None)
        return is_full

    def look_at_sinks(self) -> None:
        """Sinks that were full may have less to hold up, or nothing."""
        if not self._full and not self._by_sinks:
            return
        sinks = self._context.sinks
        self._full = {peer: one for peer, one in self._full.items() if sinks.find(peer) is one}
        full = [(sink.full_from, sink.feeds) for sink in self._full.values()]
        if full == self._seen_full:  # mostly the same objects
            return
        self._seen_full = full
        by_sinks = held_by_all(_held_by(*one) for one in full)
        if by_sinks != self._by_sinks:
            self._by_sinks = by_sinks
            self._timer.tell_soon()

    def look_at_lags(self) -> None:
        """Others may lag, or what they wait for has come further."""
        by_lags = held_by_all(self._held_by_lags(self._context.detection.skew_limit))
        if by_lags != self._by_lags:
            self._by_lags = by_lags
            self._look()

    def _held_by_lags(self, skew_limit: SkewLimit) -> Iterator[Held]:
        for name, come_to in skew_limit.come_to().items():
            limit = min(come_to + skew_limit.lead_max_us, TIME_MAX)
            yield dict.fromkeys(self._context.deployments.published_below(name), limit)
        yield self._fed_by(self._context.detection.evaluator.full_types)

    def _look(self) -> None:
        """Something else is full than before: hold up own sources at once, and tell of it soon."""
        self._piling, self._by_replay = self._found_piling(), self._held_by_replay()
        self._hold_own()
        self._timer.tell_soon()

    def _hold_own(self) -> None:
        elsewhere = (held for _, held in self._held_elsewhere())
        self._context.credit.hold(held_by_all((self._by_lags, *elsewhere)))

    # --- what is told ---

    def tell(self) -> None:
        """Tell neighbours what is another than they were told. What is wanted where something piles
        up may be another by now, so own sources are looked at once more.
        """
        if self._piling:
            self._hold_own()
        branches = self._router.branches
        for neighbour in sorted({*self._told, *branches}):
            held = self._held_beyond(neighbour) if neighbour in branches else NOTHING_HELD
            is_news = held != self._told.get(neighbour, NOTHING_HELD)
            if is_news and neighbour in self._context.overlay.neighbours:
                _put(self._told, neighbour, held)
                self._context.send(neighbour, Hold(tuple(sorted(held.items()))))

    def _held_beyond(self, neighbour: str) -> Held:
        """The types that something full holds here or, seen from that neighbour, beyond (Law 1)."""
        others = (held for towards, held in self._held_elsewhere() if towards != neighbour)
        return held_by_all((self._by_sinks, self._by_lags, self._by_replay, *others))

    def _held_elsewhere(self) -> Iterator[tuple[str | None, Held]]:
        """Holds but those of own sinks, each with the neighbour that it is beyond, or None."""
        for neighbour in self._piling:
            towards = None if neighbour in self._tree_table.fathers else neighbour
            yield towards, self._held_by_pile(neighbour)
        for neighbour in self._router.branches:
            if neighbour in self._heard:
                yield neighbour, self._heard[neighbour]

    def _held_by_pile(self, neighbour: str) -> Held:
        """Law 2."""
        if neighbour == self._router.father or neighbour in self._tree_table.fathers:
            return EVERYTHING_HELD
        branch = self._router.branches.get(neighbour)
        return NOTHING_HELD if branch is None else self._fed_by(branch.types)

    def _fed_by(self, names: Iterable[str]) -> Held:
        below = map(self._context.deployments.published_below, names)
        return dict.fromkeys(set[str]().union(*below), TIME_MIN)


def _put(said: dict[str, Held], neighbour: str, held: Held) -> None:
    said.pop(neighbour, None)
    if held:
        said[neighbour] = held


def _held_by(since: int | None, feeds: frozenset[str]) -> Held:
    """Types that a sink holds up which is full from then on."""
    return NOTHING_HELD if since is None else dict.fromkeys(feeds, since)
