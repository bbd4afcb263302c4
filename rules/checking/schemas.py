"""Event types that a rules file declares, with their attributes (tesla.md E5, S12).

A type may be declared by ``event``, given from outside, and defined by several rules: all that
is said of it must agree. ``define`` may leave types of attributes out; they come from whoever
says them, and where nobody does, from the ``where`` of the first rule that can be checked
without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matcher.model import ATTRIBUTES_MAX, OPTIONAL, Attribute, EventType, Kind, with_presences
from matcher.spelling import spelled
from rules.checking.scope import Report
from rules.pattern import TIMER
from rules.syntax import ast


class Said(NamedTuple):
    """An attribute as far as it is known: its kind (None: unknown), and whether it is optional."""

    kind: Kind | None
    is_optional: bool = False


@dataclass(slots=True)
class _Draft:
    """A type as far as it has been described: attributes with the kinds that are known, and by
    whom.
    """

    origin: str
    attributes: list[tuple[str, Said]]

    @property
    def complete(self) -> bool:
        return all(said.kind is not None for _, said in self.attributes)

    def __str__(self) -> str:
        return f"({', '.join(_shown(name, *said) for name, said in self.attributes)})"


class Schemas:
    """The types of one file: ``known`` ones by name; ``lost`` ones, whose declaration is wrong."""

    def __init__(
        self, file: ast.File, given: Mapping[str, EventType], lost: set[str | None], report: Report
    ) -> None:
        self.report = report
        self.lost = lost
        given = {name: type_ for name, type_ in given.items() if name != TIMER.name}
        self.known: dict[str, EventType] = dict(given)
        self._given = given
        self._drafts: dict[str, _Draft] = {}
        """The types that the file describes."""
        for statement in file.statements:
            self._declare(statement, file)
        for name, draft in self._drafts.items():
            if draft.complete and name not in self.known:
                self.settle(made(name, draft.attributes))

    def settle(self, type_: EventType) -> None:
        """A type is known from here on."""
        self.known[type_.name] = type_

    @property
    def open(self) -> frozenset[str]:
        """The types whose attributes are not all known yet."""
        return frozenset(self._drafts.keys() - self.known.keys() - self.lost)

    def is_open(self, name: str) -> bool:
        """Whether the attributes of a type are not all known yet."""
        return name in self._drafts and name not in self.known and name not in self.lost

    def drafted(self, name: str) -> Mapping[str, Said]:
        """A type's attributes as far as they are known, in their order; once a rule has settled
        them, that is the same for all rules of the type.
        """
        settled = self.known.get(name)
        if settled is not None:
            return dict(_said_by(settled))
        draft = self._drafts.get(name)
        return {} if draft is None else dict(draft.attributes)

    def _declare(self, statement: ast.Statement, file: ast.File) -> None:
        name = statement.type
        word = "event" if isinstance(statement, ast.Schema) else "define"
        if name.text == TIMER.name:
            self.report(f"{TIMER.name} is built in and cannot be declared", name.span)
            return
        if len(statement.attributes) + sum(one.optional for one in statement.attributes) > (
            ATTRIBUTES_MAX
        ):
            self.report(f"{name.text} has more than {ATTRIBUTES_MAX} attributes", name.span)
            self.lost.add(name.text)
            return
        if not self._distinct(statement.attributes):
            self.lost.add(name.text)
            return
        said = _Draft(
            f"{file.line_of(name.span)} has {word} {name.text}",
            [(item.name.text, Said(item.kind, item.optional)) for item in statement.attributes],
        )
        given = self._given.get(name.text)
        if given is not None and name.text not in self._drafts:
            self._drafts[name.text] = _Draft(f"{given} is given", _said_by(given))
        draft = self._drafts.setdefault(name.text, said)
        if draft is not said and not _merge(draft, said):
            self.report(
                f"another schema for {name.text}", name.span, f"{draft.origin}{_tail(draft)}"
            )

    def _distinct(self, attributes: Sequence[ast.Declared]) -> bool:
        names: set[str] = set()
        for declared in attributes:
            if declared.name.text in names:
                self.report(f"attribute {declared.name.text} is declared twice", declared.span)
            names.add(declared.name.text)
        for declared in attributes:
            if declared.name.text.removesuffix(OPTIONAL) in names - {declared.name.text}:
                self.report(
                    f"attribute {spelled(declared.name.text)} is called as what tells whether "
                    f"{spelled(declared.name.text.removesuffix(OPTIONAL))} is there",
                    declared.span,
                    "give it another name",
                )
                return False
        return len(names) == len(attributes)


def _tail(draft: _Draft) -> str:
    return "" if draft.origin.endswith("given") else str(draft)


def _merge(draft: _Draft, said: _Draft) -> bool:
    """Add what is said to what is known; False, and nothing added, when they disagree."""
    if len(draft.attributes) != len(said.attributes):
        return False
    merged: list[tuple[str, Said]] = []
    for (name, known), (other, also) in zip(draft.attributes, said.attributes, strict=True):
        if name != other or (known.kind and also.kind and known != also):
            return False
        merged.append((name, known if known.kind else also))
    draft.attributes = merged
    return True


def made(name: str, attributes: Iterable[tuple[str, Said]]) -> EventType:
    """The type with these attributes, of which all is known."""
    said = list(attributes)
    declared = [Attribute(own, kind) for own, (kind, _) in said if kind is not None]
    optional = [own for own, (_, is_optional) in said if is_optional]
    return EventType(name, with_presences(declared, optional))


def _said_by(type_: EventType) -> list[tuple[str, Said]]:
    pairs = zip(type_.declared, type_.presences, strict=True)
    return [(one.name, Said(one.kind, presence >= 0)) for one, presence in pairs]


def _shown(name: str, kind: Kind | None, is_optional: bool) -> str:
    return name if kind is None else f"{name}: {kind.value}{OPTIONAL if is_optional else ''}"
