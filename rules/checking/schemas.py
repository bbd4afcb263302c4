"""Which event types a rules file declares, and with which attributes (tesla.md E5, S12).

A type may be declared by ``event``, given from outside, and defined by several rules: all that
is said of it must agree. ``define`` may leave types of attributes out; they come from whoever
says them, and where nobody does, from the ``where`` of the first rule that can be checked
without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matcher.model import ATTRIBUTES_MAX, Attribute, EventType, Kind
from rules.checking.scope import Report
from rules.pattern import TIMER
from rules.syntax import ast


@dataclass(slots=True)
class _Draft:
    """What has been said of one type: attributes with the kinds that are known, and by whom."""

    origin: str
    attributes: list[tuple[str, Kind | None]]

    @property
    def complete(self) -> bool:
        return all(kind is not None for _, kind in self.attributes)

    def __str__(self) -> str:
        said = (name if kind is None else f"{name}: {kind.value}" for name, kind in self.attributes)
        return f"({', '.join(said)})"


class Schemas:
    """The types of one file: ``known`` ones by name; ``lost`` ones, whose declaration is wrong."""

    def __init__(
        self, file: ast.File, given: Mapping[str, EventType], lost: set[str | None], report: Report
    ) -> None:
        self.report = report
        self.lost = lost
        given = {name: type_ for name, type_ in given.items() if name != TIMER.name}
        self.known: dict[str, EventType] = dict(given)
        self._drafts = {
            name: _Draft(f"{type_} is given", [(item.name, item.kind) for item in type_.attributes])
            for name, type_ in given.items()
        }
        for statement in file.statements:
            self._declare(statement, file)
        for name, draft in self._drafts.items():
            if draft.complete and name not in self.known:
                self.settle(EventType(name, tuple(_attributes(draft))))

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

    def drafted(self, name: str) -> Mapping[str, Kind | None]:
        """What is known of a type's attributes, in their order; once a rule has settled them, that
        is the same for all rules of the type.
        """
        settled = self.known.get(name)
        if settled is not None:
            return {one.name: one.kind for one in settled.attributes}
        draft = self._drafts.get(name)
        return {} if draft is None else dict(draft.attributes)

    def _declare(self, statement: ast.Statement, file: ast.File) -> None:
        name = statement.type
        word = "event" if isinstance(statement, ast.Schema) else "define"
        if name.text == TIMER.name:
            self.report(f"{TIMER.name} is built in and cannot be declared", name.span)
            return
        if len(statement.attributes) > ATTRIBUTES_MAX:
            self.report(f"{name.text} has more than {ATTRIBUTES_MAX} attributes", name.span)
            self.lost.add(name.text)
            return
        if not self._distinct(statement.attributes):
            self.lost.add(name.text)
            return
        said = _Draft(
            f"{file.line_of(name.span)} has {word} {name.text}",
            [(item.name.text, item.kind) for item in statement.attributes],
        )
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
        return len(names) == len(attributes)


def _tail(draft: _Draft) -> str:
    return "" if draft.origin.endswith("given") else str(draft)


def _merge(draft: _Draft, said: _Draft) -> bool:
    """Add what is said to what is known; False, and nothing added, when they disagree."""
    if len(draft.attributes) != len(said.attributes):
        return False
    merged: list[tuple[str, Kind | None]] = []
    for (name, kind), (other, other_kind) in zip(draft.attributes, said.attributes, strict=True):
        if name != other or (kind and other_kind and kind is not other_kind):
            return False
        merged.append((name, kind or other_kind))
    draft.attributes = merged
    return True


def _attributes(draft: _Draft) -> list[Attribute]:
    return [Attribute(name, kind) for name, kind in draft.attributes if kind is not None]
