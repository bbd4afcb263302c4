"""The rights of users by name, and what they do not allow any more when they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from routing.deployment import Deployed
from routing.errors import Refusal
from routing.messages import EVERYTHING, Rights
from routing.messages.rights import is_named
from routing.permission import check_owner
from routing.serving.link import Link

KeptUsers: TypeAlias = tuple[Mapping[str, Rights], dict[str, str]]


class UserRights:
    """The rights of users, as they are and as they were before."""

    def __init__(self) -> None:
        self.rights: Mapping[str, Rights] = {}
        """The rights of users by name, as they are."""
        self._former: Mapping[str, Rights] = {}
        self._binding: dict[tuple[bool, int], dict[str, list[str]]] = {}
        """Patterns of sources' names by how they begin, or else end: with so many characters."""
        self.leaving: dict[str, str] = {}
        """Rules that are to go, their owners having lost the right to them: names by id."""

    @property
    def kept(self) -> KeptUsers:
        """The state that the next run goes on from: rights that go in between are lost, too."""
        return self.rights, dict(self.leaving)

    def recall(self, kept: KeptUsers) -> None:
        """Go on from what was kept, until they ``change``."""
        self.rights, self.leaving = kept

    def change(self, rights: Mapping[str, Rights]) -> None:
        """Let these hold from now on."""
        self._former, self.rights = self.rights, rights
        self._binding = {}
        for pattern in {name for one in rights.values() for name in one.sources or ()}:
            head, tail = pattern.partition("*")[0], pattern.rpartition("*")[2]
            key = (True, len(head)) if head else (False, len(tail))
            self._binding.setdefault(key, {}).setdefault(head or tail, []).append(pattern)

    def binds(self, name: str) -> bool:
        """Whether the access file binds a source's name to any user: it is compared with the
        patterns alone that begin, or end, as it does.
        """
        for (is_head, length), patterns in self._binding.items():
            end = name[:length] if is_head else name[max(0, len(name) - length) :]
            if any(is_named(one, name) for one in patterns.get(end, ())):
                return True
        return False

    def changed(self, links: Iterable[Link]) -> Iterator[Link]:
        """The links of users who have other rights than before, with these."""
        for link in links:
            rights = self.rights.get(link.rights.user, link.rights)
            if rights != link.rights:
                link.rights = rights
                link.publishable.clear()
                yield link

    def lost(self, rules: Iterable[Deployed]) -> Iterator[tuple[Deployed, str]]:
        """The rules whose owners may not have them any more, and why. A rule ends with the right of
        its owner to have it, at the broker that gave that right. Alice may read Temp no more by the
        file of b2: b2 has ``fire`` removed, for which it has let her read Temp. A broker whose file
        never allowed her that leaves the rule alone.
        """
        for one in rules:
            before = self._former.get(one.owner)
            if before is None or _objection(before, one) is not None:
                continue  # another broker has allowed it
            reason = _objection(self._rights_of_owner(one.owner), one)
            if reason is not None:
                self.leaving[one.rule.name] = one.name
                yield one, reason

    def _rights_of_owner(self, name: str) -> Rights:
        """The rights of a user, of one who has gone, too: none where anybody's are limited."""
        are_limited = any(one.grants is not None for one in self.rights.values())
        gone = Rights(name, (), "the access file") if are_limited else EVERYTHING
        return self.rights.get(name, gone)


def _objection(rights: Rights, one: Deployed) -> str | None:
    try:
        check_owner(rights, one.rule)
    except Refusal as refusal:
        return str(refusal)
    return None
