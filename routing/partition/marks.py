"""The marks of one forwarder: of types, of the groups that fragments bind, and those that go up.

Law 1: a type's mark goes up as it is where its events pass by themselves; where they wait for
others, once all that these fragments look at has come as far (forwarder, Law 2). What has gone up
never goes back, but for types that are released (``arrange``).

Law 2: what is given is what working everything out anew would give, but only what a mark that rises
bears on is looked at. A mark rises with nearly every message, and there may be thousands of types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from matcher.model import TIME_MAX, TIME_MIN

Group = frozenset[str]
"""The types that a fragment looks at together."""


class Marks:
    """Owner of these marks; ``types`` and ``groups`` have those that came in, ``up`` the others."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.groups: dict[Group, int] = {}
        self.up: dict[str, int] = {}
        self._given: dict[str, int] = {}
        """All that ever went up."""
        self._company: Mapping[str, Collection[Group]] = {}
        self._groups_of: dict[str, list[Group]] = {}
        self._led_by: dict[Group, list[str]] = {}
        """By group, the types that go up with it."""
        self._is_new = True

    def arrange(
        self,
        types: Iterable[str],
        groups: Iterable[Group],
        company: Mapping[str, Collection[Group]],
        released: Collection[str] = (),
    ) -> None:
        """Fragments look at these types, bind these groups, and forward the types of ``company``,
        each with the groups whose marks it has to wait for. Marks that are known stay, but for
        those of types that were not forwarded before: they speak of local sources alone, since
        what those below keep until it is asked for has no mark (forwarder, Law 5). So do those of
        types that are ``released``: a rule that kept them until it asked wants all of them from now
        on, and it may be for what others have asked alone that they have come so far.
        """
        begun = {*(company.keys() - self._company.keys()), *released}
        for name in released:
            self._given.pop(name, None)
        self.types = {
            name: TIME_MIN if name in begun else self.types.get(name, TIME_MIN) for name in types
        }
        self.groups = {group: self.least(group) for group in groups}
        self._company = company
        self._groups_of, self._led_by = {}, {}
        for group in self.groups:
            for name in group:
                self._groups_of.setdefault(name, []).append(group)
        for name, led in company.items():
            for group in led:
                self._led_by.setdefault(group, []).append(name)
        self.up = {}
        for name in company:
            self._raise(name)
        self._is_new = True

    def least(self, names: Iterable[str]) -> int:
        """The least mark of some types."""
        return min([self.types.get(name, TIME_MIN) for name in names], default=TIME_MIN)

    def rise(self, marks: int | Mapping[str, int]) -> dict[str, int]:
        """Take in marks, one for all types or one for each; gives those that go up and have risen.

        After ``arrange`` these are all. An older mark changes nothing.
        """
        given = dict.fromkeys(self.types, marks) if isinstance(marks, int) else marks
        types, company, groups_of = self.types, self._company, self._groups_of
        moved: set[str] = set()
        groups: set[Group] = set()
        for name, mark in given.items():
            if mark > types.get(name, TIME_MAX):
                types[name] = mark
                if name in company:
                    moved.add(name)
                if name in groups_of:
                    groups.update(groups_of[name])
        for group in groups:
            mark = self.least(group)
            if mark != self.groups[group]:
                self.groups[group] = mark
                moved.update(self._led_by.get(group, ()))
        news = {name: self.up[name] for name in moved if self._raise(name)}
        if self._is_new:
            self._is_new = False
            return dict(self.up)
        return news

    def _raise(self, name: str) -> bool:
        """Work out what goes up of a type; whether it is news."""
        mark = self.types[name]
        for group in self._company[name]:
            mark = min(mark, self.groups[group])
        mark = max(mark, self._given.get(name, TIME_MIN))
        is_news = mark != self.up.get(name)
        self.up[name] = self._given[name] = mark
        return is_news
