"""Changes of rules that the page asks for, and the texts of rules that are deployed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.client.address import Address
from broker.client.manager import AsyncRuleManager

ANSWER_S = 10.0
TEXTS_MAX = 200
"""Deployed rules beside which others are tried; with more of them, others are tried alone."""


class Changes:
    """Changes of the rules of the broker at ``address``; each raises what a RuleManager does."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def manager(self) -> AsyncRuleManager:
        """A manager that is not connected yet."""
        return AsyncRuleManager(self.address, timeout_s=ANSWER_S, connect_timeout_s=ANSWER_S)

    async def deploy(self, text: str, *, replace: bool) -> Mapping[str, Any]:
        """Deploy the rules of a text, all or none. What was checked as somebody typed
        (broker.monitoring.checks) is checked by the broker once more.
        """
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
