"""What all brokers of a network must share, as their greetings say it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from routing.config import Ordering
from routing.errors import Refusal
from routing.messages import Code
from routing.network import strategy
from routing.overlay.config import FORGET_S


@dataclass(frozen=True, slots=True)
class Terms:
    """Of a network with this strategy, by name, and ordering; ``forget_s`` as in OverlayConfig."""

    strategy: str
    ordering: Ordering
    forget_s: float = FORGET_S

    def __str__(self) -> str:
        """As greetings have it: what is as in most networks goes without saying."""
        forgets = "" if self.forget_s == FORGET_S else f", forget_s {self.forget_s:.3f}"
        return f"{self.strategy}, {self.ordering.value}{forgets}"


def read_terms(text: str) -> Terms:
    """The terms that a greeting names; Refusal for what is not known here."""
    name, _, others = text.partition(", ")
    ordering, _, forgets = others.partition(", ")
    if name not in strategy.names():
        raise Refusal(Code.TERMS, f"no strategy is called {name!r} here")
    if ordering not in {one.value for one in Ordering}:
        raise Refusal(Code.TERMS, f"no ordering is called {ordering!r} here")
    if not forgets:
        return Terms(name, Ordering(ordering))
    found = _FORGETS.fullmatch(forgets)
    if found is None or float(found[1]) <= 0:
        raise Refusal(Code.TERMS, f"expected forget_s and a number of seconds, found {forgets!r}")
    return Terms(name, Ordering(ordering), float(found[1]))


_FORGETS = re.compile(r"forget_s (\d{1,9}\.\d{3})")
