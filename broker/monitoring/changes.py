"""Checks and changes of rules that the page asks for, and the texts of rules that are deployed.

Law: nothing is deployed that the broker does not take. The check as one types is the compiler's,
with the types that the broker knows; what is deployed is checked by the broker once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.client.address import Address
from broker.client.manager import AsyncRuleManager
from broker.schemas import type_of
from matcher.model import EventType
from rules.errors import Problem, RuleErrors
from rules.language import declared_in, load
from rules.syntax.parser import read

ANSWER_S = 10.0
PROBLEMS_MAX = 50
TEXTS_MAX = 200
"""Deployed rules beside which others are tried; with more of them, others are tried alone."""


def checked(text: str, schemas: Iterable[str]) -> dict[str, Any]:
    """Problems of a text, by places in UTF-16, as scripts count them; and its rules."""
    try:
        known = {one.name: one for one in map(type_of, schemas)}
        rules = load(text, known=_undeclared(text, known))
    except RuleErrors as error:
        shown = error.problems[:PROBLEMS_MAX]
        return {"problems": [_problem(one, text) for one in shown], "rules": []}
    return {"problems": [], "rules": [rule.name for rule in rules.rules]}


def _undeclared(text: str, known: Mapping[str, EventType]) -> dict[str, EventType]:
    declared = declared_in(read(text).file)
    return {name: one for name, one in known.items() if name not in declared}


def _problem(problem: Problem, text: str) -> dict[str, Any]:
    span = problem.span
    if span is None:
        return {"message": problem.message, "hint": problem.hint, "line": None}
    return {
        "message": problem.message,
        "hint": problem.hint,
        "line": span.line,
        "column": span.column,
        "start": _units(text[: span.start]),
        "end": _units(text[: span.end]),
    }


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Changes:
    """Changes of the rules of the broker at ``address``; each raises what a RuleManager does."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def manager(self) -> AsyncRuleManager:
        """A manager that is not connected yet."""
        return AsyncRuleManager(self.address, timeout_s=ANSWER_S, connect_timeout_s=ANSWER_S)

    async def deploy(self, text: str, *, replace: bool) -> Mapping[str, Any]:
        """Deploy the rules of a text, all or none."""
        async with self.manager() as manager:
            return await (manager.replace if replace else manager.add)(text, file="rules")

    async def remove(self, name: str) -> Mapping[str, Any]:
        """Remove a rule."""
        async with self.manager() as manager:
            return await manager.remove(name)

    async def text(self, name: str) -> Mapping[str, Any]:
        """A rule, with its text."""
        async with self.manager() as manager:
            return await manager.show(name)

    async def texts(self, but: Iterable[str]) -> tuple[str, dict[str, int]]:
        """The texts of the deployed rules that are not called so, and since when they hold."""
        async with self.manager() as manager:
            left_out = set(but)
            rules: Sequence[Mapping[str, Any]] = await manager.list()
            rules = [rule for rule in rules if rule["name"] not in left_out]
            if len(rules) > TEXTS_MAX:
                return "", {}
            shown = [await manager.show(rule["name"]) for rule in rules]
            return (
                "\n\n".join(rule["text"] for rule in shown),
                {rule["name"]: rule["since"] for rule in shown if rule["since"] is not None},
            )
