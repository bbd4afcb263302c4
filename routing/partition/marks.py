"""The marks of one forwarder: of types, of the groups that fragments bind, and those that go up.

Law 1: a type's mark goes up as it is where its events pass by themselves; where they wait for
others, once all that these fragments look at has come as far (forwarder, Law 2). What has gone up
never goes back, but for types that are released (``arrange``).

Law 2: what is given is what working everything out anew would give, but only what a mark that rises
bears on is looked at. A mark rises with nearly every message, and there may be thousands of types:
so all that bears on one stands in one record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from matcher.model import TIME_MIN

Group = frozenset[str]
"""The types that a fragment looks at together."""


class Marks:
    """Owner of these marks."""

    def __init__(self) -> None:
        self._types: dict[str, _Type] = {}
        self._groups: dict[Group, _Group] = {}
        self._forwarded: list[_Type] = []
        """The types of which marks go up."""
        self._given: dict[str, int] = {}
        """Of types that were forwarded before the last ``arrange``, what went up."""
        self._is_new = True

    @property
    def up(self) -> Mapping[str, int]:
        """The marks that have gone up, of all types that are forwarded."""
        return {one.name: one.up for one in self._forwarded}

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
        self._given.update(self.up)
        for name in released:
            self._given.pop(name, None)
        begun = {*released, *(company.keys() - {one.name for one in self._forwarded})}
        marks = {name: TIME_MIN if name in begun else self.least([name]) for name in types}
        self._types = {name: _Type(name, mark) for name, mark in marks.items()}
        self._groups = {group: _Group(self._of(group)) for group in groups}
        self._forwarded = self._of(company)
        for one in self._forwarded:
            one.wait_for([self._groups[group] for group in company[one.name]])
            one.up = self._given.get(one.name, TIME_MIN)
            one.rise()
        self._is_new = True

    def _of(self, names: Iterable[str]) -> list[_Type]:
        return [self._types[name] for name in names]

    def least(self, names: Iterable[str]) -> int:
        """The least mark of some types; TIME_MIN for one that is not looked at, and for none."""
        found = [self._types.get(name) for name in names]
        return min([TIME_MIN if one is None else one.mark for one in found], default=TIME_MIN)

    def least_of(self, group: Group) -> int:
        """The same for a group that a fragment binds."""
        found = self._groups.get(group)
        return TIME_MIN if found is None else found.mark

    def rise(self, marks: int | Mapping[str, int]) -> Mapping[str, int]:
        """Take in marks, one for all types or one for each; gives those that go up and have risen.

        After ``arrange`` these are all. An older mark changes nothing.
        """
        types = self._types
        given = dict.fromkeys(types, marks) if isinstance(marks, int) else marks
        moved: set[_Type] = set()
        groups: set[_Group] = set()
        news: dict[str, int] = {}
        for name, mark in given.items():  # comprehensions would cost a call each
            one = types.get(name)
            if one is not None and mark > one.mark:
                one.mark = mark
                groups.update(one.groups)
                if one.is_forwarded:
                    moved.add(one)
        for group in groups:
            if group.rise():
                moved.update(group.led)
        for type_ in moved:
            if type_.rise():
                news[type_.name] = type_.up
        if self._is_new:
            self._is_new = False
            return self.up
        return news


class _Type:
    """One type: its mark, what has gone up of it, and the groups that it bears on."""

    def __init__(self, name: str, mark: int) -> None:
        self.name = name
        self.mark = mark
        self.up = TIME_MIN
        self.is_forwarded = False
        self.groups: list[_Group] = []
        self._company: list[_Group] = []

    def wait_for(self, company: list[_Group]) -> None:
        """The type is forwarded, once these groups have come as far."""
        self.is_forwarded, self._company = True, company
        for group in company:
            group.led.append(self)

    def rise(self) -> bool:
        """Work out what goes up (Law 1); whether it is more than before."""
        mark = self.mark
        for group in self._company:
            if group.mark < mark:
                mark = group.mark
        if mark <= self.up:
            return False
        self.up = mark
        return True


class _Group:
    """Types that a fragment looks at together, the least of their marks, and what goes up by it."""

    def __init__(self, types: list[_Type]) -> None:
        self._types = types
        self.mark = TIME_MIN
        self.led: list[_Type] = []
        for one in types:
            one.groups.append(self)
        self.rise()

    def rise(self) -> bool:
        """Work out the mark; whether it is another than before."""
        mark = min([one.mark for one in self._types], default=TIME_MIN)
        if mark == self.mark:
            return False
        self.mark = mark
        return True
