"""Accounts of sources: at which broker each is, or was last, and up to which number it is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from matcher.model import MICROSECONDS
from routing.messages import Stay
from routing.names import whole_of


class Accounts:
    """The accounts that one broker knows, by source.

    The root decides that a source begins a stay, and that one is over since the source goes on
    elsewhere; a source's broker, that it has closed.
    """

    def __init__(self, sources_max: int) -> None:
        self._stays: dict[str, Stay] = {}
        self._parts: defaultdict[str, set[str]] = defaultdict(set)
        """Names of parts, by the source that they are parts of."""
        self._sources_max = sources_max
        self._untold: dict[str, Stay] = {}
        self._unkept: dict[str, Stay | None] = {}

    def __iter__(self) -> Iterator[Stay]:
        return iter(self._stays.values())

    def find(self, name: str) -> Stay | None:
        """The account of a source, if any is known."""
        return self._stays.get(name)

    def taken(self, name: str) -> int:
        """The number up to which brokers have taken events of a source where it was before."""
        stay = self._stays.get(name)
        return 0 if stay is None else stay.taken

    def last(self, name: str) -> int:
        """The greatest number of an event of a source that anybody has heard of."""
        stay = self._stays.get(name)
        return 0 if stay is None else stay.last

    def is_at(self, name: str, broker: str) -> bool:
        """Whether a source is at that broker, or may come back to it."""
        stay = self._stays.get(name)
        return stay is not None and stay.home == broker and not stay.is_over

    def owner(self, name: str) -> str:
        """The user whose a source's name is; "" while it is nobody's. A name is the user's who has
        used it first, and so are those of its parts, for as long as it is remembered. If two users
        have used a name at brokers that did not hear of each other, the first one has it, and the
        other one's account counts for nothing.
        """
        return self._first_use(name)[1]

    def _first_use(self, name: str) -> tuple[int, str]:
        """When and by whom a source's name was first used."""
        whole = whole_of(name) or name
        names = (whole, *self._parts.get(whole, ()))
        owned = (stay for one in names if (stay := self._stays.get(one)) and stay.owner)
        return min(((stay.since, stay.owner) for stay in owned), default=(0, ""))

    def begin(self, name: str, home: str, types: Iterable[str], now: float, user: str = "") -> None:
        """A source of a user publishes these types at a broker: it goes on there, or begins another
        stay.
        """
        before = self._stays.get(name) or Stay(0, home, True, name)
        at = round(now * MICROSECONDS)
        since, owner = self._first_use(name)
        if user and user != owner:  # the file may bind a name to another user than the first one
            since, owner = since - 1 if owner else at, user
        if before.is_over or before.home != home or before.owner != owner:
            number = max(before.number + 1, at)
            stay = replace(before, number=number, home=home, is_over=False)
            before = replace(stay, types=(), owner=owner, since=since)
        self._note(replace(before, types=tuple(sorted({*before.types, *types}))))

    def record(self, names: Iterable[str], home: str, now: float, user: str) -> None:
        """A user publishes events as those of other sources: names that are nobody's are the
        user's from now on, for the numbers of such events are used up.
        """
        for name in names:
            if user and not self.owner(name):
                self.begin(name, home, (), now, user)
                self.end(name, home, 0)

    def end(self, name: str, home: str, number: int) -> None:
        """A source has closed at a broker, which has taken all up to this number, or goes on
        elsewhere.
        """
        stay = self._stays.get(name)
        if stay is not None and stay.home == home:
            taken, last = max(stay.taken, number), max(stay.last, number)
            self._note(replace(stay, is_over=True, taken=taken, last=last))

    def with_numbers(
        self, heard_of: Mapping[str, int], taken: Callable[[str], int]
    ) -> tuple[Stay, ...]:
        """All of them, with the greatest numbers that have been heard of, or taken, here."""
        return tuple(
            replace(stay, last=max(stay.last, heard_of.get(stay.name, 0), taken(stay.name)))
            for stay in self._stays.values()
        )

    def learn(self, stays: Iterable[Stay]) -> Sequence[Stay]:
        """Others know these accounts; gives those that are others from now on."""
        return [found for one in stays if (found := self._note(one)) is not None]

    def _note(self, stay: Stay) -> Stay | None:
        name = stay.name
        before = self._stays.get(name)
        if before is not None:
            stay = _joined(before, stay)
            if stay == before:
                return None
        else:
            if len(self._stays) >= self._sources_max:
                self._make_room()
            if (whole := whole_of(name)) is not None:
                self._parts[whole].add(name)
        self._stays[name] = self._untold[name] = self._unkept[name] = stay
        return stay

    def _make_room(self) -> None:
        """Forget the sources that have closed the longest ago, those of the user that has the most
        of them first: so nobody makes others' names free by using many.
        """
        over = [stay for stay in self._stays.values() if stay.is_over]
        (most, _), *_ = Counter(stay.owner for stay in over).most_common(1) or [("", 0)]
        over = sorted(stay for stay in over if stay.owner == most)
        for stay in over[: 1 + len(over) // 8]:  # many at once: to look for them takes long
            del self._stays[stay.name]
            if (whole := whole_of(stay.name)) is not None:
                self._parts[whole].discard(stay.name)
                if not self._parts[whole]:
                    del self._parts[whole]
            self._untold.pop(stay.name, None)
            self._unkept[stay.name] = None

    @property
    def has_news(self) -> bool:
        """Whether there are accounts that ``take_news`` has not given."""
        return bool(self._untold)

    def take_news(self) -> tuple[Stay, ...]:
        """The accounts that are others since the last call."""
        news, self._untold = tuple(self._untold.values()), {}
        return news

    def recall(self, stays: Iterable[Stay]) -> None:
        """Know these, which are kept."""
        self.learn(stays)
        self._unkept.clear()

    def take_changes(self) -> Iterable[tuple[str, Stay | None]]:
        """The accounts that are yet to be kept, by source; None: that is forgotten."""
        changes, self._unkept = self._unkept, {}
        return changes.items()


def put_together(stays: Iterable[Stay]) -> tuple[Stay, ...]:
    """The accounts that follow from what several brokers know, whatever the order: of two stays the
    one with the greater number counts, and of one stay the end. s was at b1, which was killed, went
    on at b2 and has closed there at 90: b1 is back, has s as it was, and hears that stay 2 is over.
    It waits for s no longer.
    """
    found: dict[str, Stay] = {}
    for stay in stays:
        before = found.get(stay.name)
        found[stay.name] = stay if before is None else _joined(before, stay)
    return tuple(found.values())


def _joined(one: Stay, other: Stay) -> Stay:
    if one.owner and other.owner and one.owner != other.owner:
        return min(one, other, key=lambda stay: (stay.since, stay.owner))
    last, taken = max(one.last, other.last), max(one.taken, other.taken)
    later = max(one, other)
    types = later.types
    if (one.number, one.home) == (other.number, other.home):
        types = tuple(sorted({*one.types, *other.types}))
    since, owner = min(
        ((stay.since, stay.owner) for stay in (one, other) if stay.owner), default=(0, "")
    )
    return replace(later, types=types, last=last, taken=taken, owner=owner, since=since)
