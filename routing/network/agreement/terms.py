"""What all brokers of a network must share, as their greetings say it."""

from __future__ import annotations

from routing.config import Ordering
from routing.errors import Refusal
from routing.messages import Code
from routing.network import strategy


def terms_of(strategy_name: str, ordering: Ordering) -> str:
    """The terms of a network with this strategy and ordering."""
    return f"{strategy_name}, {ordering.value}"


def read_terms(terms: str) -> tuple[str, Ordering]:
    """The strategy and the ordering that terms name; Refusal for what is not known here."""
    name, _, ordering = terms.partition(", ")
    if name not in strategy.names():
        raise Refusal(Code.TERMS, f"no strategy is called {name!r} here")
    if ordering not in {one.value for one in Ordering}:
        raise Refusal(Code.TERMS, f"no ordering is called {ordering!r} here")
    return name, Ordering(ordering)
