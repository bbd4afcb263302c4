"""Link states of the whole network, and what of them each neighbour has to hear."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from msgspec.structs import replace

from routing.messages import LinkState
from routing.overlay.config import OverlayConfig


class LinkStateDatabase:
    """The known link states, and the news for each neighbour.

    Of each broker the state with the greatest version counts. What is new to this broker goes on to
    all its neighbours but those that are known to have it; who tells something old is told the
    newer. News wait a moment (``flood_s``) and travel together. A broker's versions start from its
    incarnation, its starting time, and count up, so a restarted broker is believed; one that meets
    a greater version of itself goes on above that. At most ``nodes_max`` brokers are remembered;
    states of further ones are dropped, counted.
    """

    def __init__(self, config: OverlayConfig) -> None:
        self._config = config
        self._states = {config.name: LinkState(config.name, config.incarnation)}
        self._news: dict[str, dict[str, None]] = {}
        self._missed: dict[str, float] = {}
        """Since when a broker has been out of reach, in seconds."""
        self.changes = 0
        """How often what it has of others has changed."""
        self.refused = 0
        self.surpassed = 0
        """The greatest version or epoch of its own that it has met, of an earlier incarnation."""
        self.surpasses = 0
        """How often that was; again and again, and it is another broker that speaks."""

    def __iter__(self) -> Iterator[LinkState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    @property
    def own(self) -> LinkState:
        """The link state that this broker tells of itself."""
        return self._states[self._config.name]

    @property
    def has_news(self) -> bool:
        """Whether some neighbour has something to hear."""
        return any(self._news.values())

    def find(self, name: str) -> LinkState | None:
        """The state of a broker, if it is known."""
        return self._states.get(name)

    def next_epoch(self) -> int:
        """An epoch beyond all that this broker has heard of."""
        return 1 + max(self.own.version, self.surpassed, *(one.epoch for one in self))

    def say(self, state: LinkState) -> bool:
        """Say something else of this broker, whatever the version; whether it is news."""
        own = self.own
        if replace(state, version=own.version) == own:
            return False
        self._renew(state, own.version)
        return True

    def take(self, teller: str, states: Iterable[LinkState]) -> list[LinkState]:
        """Hear what a neighbour tells; gives what was news, in order."""
        news = []
        for state in states:
            known = self._states.get(state.origin)
            if known is not None and state.version <= known.version:
                if state.version < known.version:
                    self._tell(teller, state.origin)
                elif teller in self._news:
                    self._news[teller].pop(state.origin, None)
            elif state.origin == self._config.name:
                self.surpassed = max(state.version, state.epoch)
                self.surpasses += 1
                self._renew(self.own, state.version)
            elif known is None and len(self._states) >= self._config.nodes_max:
                self.refused += 1
            else:
                self._states[state.origin] = _known_once(state)
                self.changes += 1
                self._spread(state.origin, teller)
                news.append(state)
        return news

    def forget(self, reachable: Collection[str], now: float) -> list[str]:
        """Forget who has been out of reach for too long; gives their names.

        There may be news for neighbours then, of who is back: they may have forgotten it.
        """
        for name in [one for one in self._missed if one in reachable]:
            del self._missed[name]
            self._spread(name)
        for name in self._states.keys() - reachable:
            self._missed.setdefault(name, now)
        gone = {one: at for one, at in self._missed.items() if at + self._config.forget_s <= now}
        for name in gone:
            del self._states[name], self._missed[name]
            self.changes += 1
        return list(gone)

    @property
    def forgets_at(self) -> float | None:
        """When somebody will have been out of reach for too long; None while all are there."""
        return min(self._missed.values()) + self._config.forget_s if self._missed else None

    def be_away(self) -> None:
        """All may have forgotten this broker, and one another beyond it: tell everything again,
        though nothing is new.
        """
        self._renew(self.own, self.own.version)
        for neighbour in self._news:
            self.join(neighbour)

    def join(self, neighbour: str) -> None:
        """A link is up: the neighbour has everything to hear."""
        self._news[neighbour] = dict.fromkeys(sorted(self._states))

    def leave(self, neighbour: str) -> None:
        """A link is down."""
        self._news.pop(neighbour, None)

    def take_news(self) -> Iterator[tuple[str, tuple[LinkState, ...]]]:
        """The link states that each neighbour has to hear, by its name."""
        for neighbour in sorted(self._news):
            names = self._news[neighbour]
            if names:
                self._news[neighbour] = {}
                yield neighbour, tuple(self._states[one] for one in names if one in self._states)

    def _renew(self, state: LinkState, above: int) -> None:
        self._states[state.origin] = replace(state, version=above + 1)
        self._spread(state.origin)

    def _spread(self, origin: str, teller: str = "") -> None:
        for neighbour in self._news:
            if neighbour != teller:
                self._news[neighbour][origin] = None
        if teller in self._news:
            self._news[teller].pop(origin, None)

    def _tell(self, neighbour: str, origin: str) -> None:
        if neighbour in self._news:
            self._news[neighbour][origin] = None


@lru_cache(maxsize=4_096)
def _known_once(state: LinkState) -> LinkState:
    """The same state. In a simulation all brokers then have one object, not one each."""
    return state
