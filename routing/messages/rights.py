"""Rights of a user: what it may publish, read, define, deploy and ask for.

Law 1: rights are a value. A client's link has those of its user, and they go with a request to
the root, so one question is asked wherever the request is handled. Alice of b2 deploys ``fire``:
the root b1 asks the rights that b2 has sent with it.

Law 2: without grants (None) all is allowed, as at a broker without keys. With grants, be there
none, what no grant names is not. ``publish = ["Temp", "T*"]`` allows Temp and Tank, and no Smoke.

Law 3: a refusal names the line of the access file that does not say so, or the table that has none.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct

from routing.messages.values import ENTRIES_MAX, Name, Number, Sequence, Text


class Act(enum.Enum):
    """An act that a user may be allowed: of event types, of rules, or a command."""

    PUBLISH = "publish"  # of some events of a type alone where the line has a filter
    SUBSCRIBE = "subscribe"  # and have own rules read
    DEFINE = "define"  # have own rules publish
    DEPLOY = "deploy"
    REPLACE = "replace"
    REMOVE = "remove"
    COMMAND = "commands"


COMMANDS = ("status", "rule list", "rule show", "trace", "drain", "users", "log", "queue", "expel")
"""Commands that look at a broker, or have it or a client leave, by their names as rights."""


class Permit(Struct, array_like=True, frozen=True):
    """A line of the access file that allows an act on what ``name`` names, ``*`` for anything in
    it; of the events of a type, where there is a ``filter``, those alone that it matches.
    """

    act: Act
    name: Name
    line: Number
    filter: Text = ""


class Limits(Struct, array_like=True, frozen=True):
    """Bounds of what a user may take up at one broker; None for no other than the broker's own.

    ``rules_max`` and ``rule_bytes_max`` are of the whole network.
    """

    connections_max: Number | None = None
    subscriptions_max: Number | None = None
    rules_max: Number | None = None
    rule_bytes_max: Sequence | None = None
    batch_events_max: Number | None = None
    message_bytes_max: Sequence | None = None
    events_per_second_max: Number | None = None


UNLIMITED = Limits()


class Rights(Struct, array_like=True, frozen=True):
    """The rights of a user, by the tables of it and of its groups, of which each name is
    ``[user.alice]``, with their first lines.

    ``sources``: the names that its sources may bear, with ``*`` for anything; None for any that is
    no other user's (routing.serving.source_names).
    """

    user: Name = ""
    grants: Annotated[tuple[Permit, ...], Meta(max_length=ENTRIES_MAX)] | None = None
    file: Name = ""
    tables: tuple[Name, ...] = ()
    limits: Limits = UNLIMITED
    sources: Annotated[tuple[Name, ...], Meta(max_length=ENTRIES_MAX)] | None = None

    def may(self, act: Act, name: str) -> bool:
        """Whether an act on something of that name is allowed, if perhaps not of all its events."""
        return self.grants is None or any(True for _ in self._grants(act, name))

    def may_any(self, *acts: Act) -> bool:
        """Whether any of these acts is allowed on something, whatever its name."""
        return self.grants is None or any(one.act in acts for one in self.grants)

    def filters(self, type_name: str, act: Act = Act.SUBSCRIBE) -> tuple[str, ...] | None:
        """The filters of a type of which the user may read, or publish, what any of them matches;
        None for all events, () for none.
        """
        if self.grants is None:
            return None
        found = tuple(one.filter for one in self._grants(act, type_name))
        return None if "" in found else found

    @property
    def is_narrowed(self) -> bool:
        """Whether the user may publish only some of the events of a type."""
        return any(one.filter for one in self.grants or () if one.act is Act.PUBLISH)

    def names(self, source: str) -> bool:
        """Whether the access file says that a source of the user may bear this name."""
        return any(is_named(name, source) for name in self.sources or ())

    def why_not(self, act: Act, name: str) -> str:
        """The reason why an act is not allowed (Law 3); on nothing at all, of the name ""."""
        verb = "run" if act is Act.COMMAND else "read" if act is Act.SUBSCRIBE else act.value
        said = sorted({one.line for one in self.grants or () if one.act is act})
        if said and name:
            lines = f"line{'s' if len(said) > 1 else ''} {', '.join(map(str, said))}"
            why = f"{lines} ({act.value}) of {self.file} does not name it"
        else:
            tables = " or ".join(self.tables) or f"[user.{self.user}]"
            why = f"{self.file} has no {act.value} in {tables}"
        return f"user {self.user!r} may not {verb} {repr(name) if name else 'anything'}: {why}"

    def beyond(self, what: str, limit: str) -> str:
        """The reason why ``what`` is too much, for a limit by its name."""
        most = getattr(self.limits, limit)
        return f"user {self.user!r} has {what}: more than {most} ({limit} of {self.file})"

    def lines(self, type_name: str, act: Act = Act.SUBSCRIBE) -> str:
        """In words, the lines that allow some events of a type."""
        said = sorted({one.line for one in self._grants(act, type_name)})
        return f"{self.file}, line{'s' if len(said) > 1 else ''} {', '.join(map(str, said))}"

    def _grants(self, act: Act, name: str) -> list[Permit]:
        return [one for one in self.grants or () if one.act is act and is_named(one.name, name)]


EVERYTHING = Rights()
"""The rights of whoever comes to a broker without keys."""


def is_named(pattern: str, name: str) -> bool:
    """Whether a name is one of those that a line of the access file names, with ``*``."""
    return _pattern(pattern).fullmatch(name) is not None


@lru_cache(maxsize=4_096)
def _pattern(name: str) -> re.Pattern[str]:
    """The pattern of a name. Each part is found where it comes first, for good: a name with many
    stars takes no longer than one with few.
    """
    first, *rest = map(re.escape, name.split("*"))
    found = "".join(f"(?>.*?{part})" for part in rest[:-1]) + (f".*{rest[-1]}" if rest else "")
    return re.compile(first + found, re.DOTALL)
