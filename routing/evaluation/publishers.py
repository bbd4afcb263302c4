"""The local sources of a broker that evaluates its part of the rules, by what they publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MIN
from routing.serving.sources import Source
from routing.watermarks.ends import CLOSED


class Publishers:
    """Owner of who publishes what here, and of what they have said of it."""

    def __init__(self) -> None:
        self.marks: Mapping[str, int] = {}
        """Of each type that local sources publish, or have published, what was last said."""
        self._of: dict[str, dict[str, Source]] = {}
        """The sources that publish a type, by name; none once all have gone."""
        self._asked = Counter[str]()
        """How many sources have asked to publish a type, and wait to be told."""
        self.waited_for: frozenset[str] = frozenset()
        """Types that somebody may come back to publish."""
        self.leaving: list[Source] = []
        """The sources that ``take_leaving`` has to look at."""
        self.forgets = False
        """Whether types that nobody here publishes any more are not told (brokers.inputs)."""
        self._is_said_anew = True
        """Whether they may say something else than ``marks``."""
        self._promised: dict[str, Source] = {}
        """The sources that alone may do so, else."""

    @property
    def types(self) -> Sequence[str]:
        """The types that they publish, or have published."""
        return sorted(name for name, own in self._of.items() if own or not self.forgets)

    def of(self, name: str) -> Iterable[Source]:
        """The sources that publish a type."""
        return self._of.get(name, {}).values()

    @property
    def all(self) -> Iterable[Source]:
        """All that publish something, by their names."""
        sources = {name: one for own in self._of.values() for name, one in own.items()}
        return [source for _, source in sorted(sources.items())]

    @property
    def open(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """The sources that publish, and their types."""
        for source in self.all:
            if source.is_open and source.floors:
                yield source.name, tuple(sorted(source.floors))

    def awaited(self, used: Collection[str]) -> list[str]:
        """Sources, and types of others, that rules wait for by the types that they use, and of
        which nothing has been heard here since the broker was started.
        """
        recalled = [one for one in self.all if one.is_recalled]
        found = [one.name for one in recalled if not one.floors.keys().isdisjoint(used)]
        return [*found, *sorted(self.waited_for.intersection(used))]

    # --- coming and going ---

    def expect(self, names: Sequence[str]) -> None:
        """A source has asked whether it may publish these types; until it is told, they wait."""
        self._asked.update(names)
        self.touch()

    def expect_no_more(self, names: Sequence[str]) -> None:
        """Take in that it was answered."""
        self._asked -= Counter(names)
        self.touch()

    def expect_nothing(self) -> None:
        """No answer will come."""
        self._asked.clear()
        self.touch()

    def follow(self, names: Iterable[str], waited_for: Iterable[str]) -> None:
        """By the plan these types are published here, and those waited for. A type that nobody here
        has published has been published before the broker lost its memory, or by others who are
        gone, and has closed. Of one that somebody may still come back to publish nothing is said,
        as if a source had lost its link.
        """
        for name in names:
            self._of.setdefault(name, {})
        self.waited_for = frozenset(waited_for)
        self.touch()

    def add(self, source: Source, names: Iterable[str]) -> None:
        """A source publishes these types from now on."""
        for name in names:
            self._of.setdefault(name, {})[source.name] = source
        self.touch()

    def has(self, source: Source) -> bool:
        """Whether a source is one that publishes something here."""
        return any(own.get(source.name) is source for own in self._of.values())

    def leave(self, source: Source) -> None:
        """A source has closed, which the root has to be told: unless it was refused there."""
        if self.drop(source):
            self.leaving.append(source)

    def drop(self, source: Source) -> bool:
        """Of a source that has closed, or has gone to another broker, its types are known alone;
        whether it was one here.
        """
        found = [one for one in self._of.values() if one.get(source.name) is source]
        for sources in found:
            del sources[source.name]
        return bool(found)

    def is_leaving(self, name: str) -> bool:
        """Whether a source of that name has closed, and ``take_leaving`` has not been asked since:
        nobody else knows it yet.
        """
        return any(one.name == name for one in self.leaving)

    def take_leaving(self) -> list[Source]:
        """Give the sources that have closed since the last call."""
        leaving, self.leaving = self.leaving, []
        return leaving

    def touch(self) -> None:
        """A source may say something else than before."""
        self._is_said_anew = True

    def note_promise(self, source: Source) -> None:
        """A source has promised more."""
        self._promised[source.name] = source

    # --- what they say ---

    def say(self) -> Mapping[str, int] | None:
        """The marks of types, where they may be news; None where they are not. A mark is the least
        promise of those who publish the type: CLOSED once nobody does, the beginning of time while
        somebody has asked whether they may. s1 promises Temp up to 40 s, s2 up to 35 s: b3 says 35
        s, and CLOSED when both have gone.
        """
        names: Collection[str]
        if self._is_said_anew:
            marks, names = dict[str, int](), (*self._of, *self._asked, *self.waited_for)
        elif self._promised:
            marks = dict(self.marks)
            promised = {name for source in self._promised.values() for name in source.floors}
            names = promised & marks.keys()  # of others nobody here publishes anything yet
        else:
            return None
        for name in names:
            marks[name] = self._said_of(name)
        self._is_said_anew, self.marks = False, marks
        self._promised.clear()
        return marks

    def _said_of(self, name: str) -> int:
        if name in self._asked or name in self.waited_for:
            return TIME_MIN
        least = CLOSED
        for one in self._of[name].values():
            floor = one.floors.get(name)
            if floor is not None and one.is_open:
                mark = one.promise if one.promise > floor else floor
                if mark < least:
                    least = mark
        return least
