"""A folder of rules beside those that are deployed: what is to change, as one request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broker.cli.outcome import UsageError
from broker.documents import text_of
from rules.syntax import ast
from rules.syntax.printer import print_statement
from rules.syntax.together import read_together

if TYPE_CHECKING:
    from broker import RuleManager

ENDING = ".tesla"


def texts_in(folder: Path) -> Sequence[tuple[str, str]]:
    """The names and texts of a folder's files, in order. UsageError where there are none, OSError
    and ConfigurationError for what cannot be read: rules that it may hold are not to be removed.
    """
    files = sorted(_files(folder))
    if not files:
        raise UsageError(f"{folder}: expected a folder with files *{ENDING}")
    return [(str(one), text_of(one)) for one in files]


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder and those within, without hidden ones: there Kubernetes has copies."""

    def fail(error: OSError) -> None:
        raise error

    for place, within, names in os.walk(folder, onerror=fail):
        within[:] = [name for name in within if not name.startswith(".")]
        shown = (name for name in (*names, *within) if not name.startswith("."))
        yield from (Path(place, name) for name in shown if name.endswith(ENDING))


@dataclass(frozen=True, slots=True)
class Application:
    """The changes to be made: a ``text`` of the rules that are ``added`` or ``replaced``, and the
    names of those ``removed``; ``same`` counts the others of the folder.
    """

    text: str
    added: Sequence[str]
    replaced: Sequence[str]
    removed: Sequence[str]
    same: int

    @classmethod
    def of(
        cls, files: Sequence[tuple[str, str]], manager: RuleManager, *, prune: bool
    ) -> Application:
        """Compare files with the rules of a network. RuleErrors for what cannot be read, UsageError
        for a rule that stands there twice. A rule is the same where its canonical text is: another
        comment changes nothing.
        """
        statements = read_together(files).file.statements
        wanted = _rules_of(statements)
        present = [str(one["name"]) for one in manager.list()]
        added = [name for name in wanted if name not in present]
        shared = [name for name in wanted if name in present]
        replaced = [one for one in shared if str(manager.show(one)["text"]).strip() != wanted[one]]
        removed = [name for name in present if name not in wanted] if prune else []
        declared = dict.fromkeys(map(print_statement, _schemas_of(statements)))
        changed = [*added, *replaced]
        texts = [*declared, *(text for name, text in wanted.items() if name in changed)]
        text = "\n".join(texts) if changed else ""
        return cls(text, added, replaced, removed, len(shared) - len(replaced))

    @property
    def changes(self) -> Sequence[str]:
        """The changes, one a line."""
        marked = ("+", self.added), ("~", self.replaced), ("-", self.removed)
        return [f"{mark} {name}" for mark, names in marked for name in names]

    @property
    def summary(self) -> str:
        """The changes in a line."""
        counts = len(self.added), len(self.replaced), len(self.removed), self.same
        return "{} added, {} replaced, {} removed, {} as they were".format(*counts)


def _schemas_of(statements: Sequence[ast.Statement]) -> Sequence[ast.Schema]:
    return [one for one in statements if isinstance(one, ast.Schema)]


def _rules_of(statements: Sequence[ast.Statement]) -> Mapping[str, str]:
    """The canonical texts of rules by name; one without a name is called as what it defines."""
    found: dict[str, str] = {}
    for one in statements:
        if isinstance(one, ast.Rule):
            name = (one.name or one.type).text
            if name in found:
                raise UsageError(f"rule {name} stands in the folder twice")
            found[name] = print_statement(one)
    return found
