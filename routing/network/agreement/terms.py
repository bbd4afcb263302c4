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
        said = [self.strategy, self.ordering.value]
        if self.forget_s != FORGET_S:
            said.append(f"forget_s {self.forget_s:.3f}")
        return ", ".join(said)


def read_terms(text: str) -> Terms:
    """The terms that a greeting names; Refusal for what is not known here."""
    name, *others = text.split(", ")
    ordering, *others = others or [""]
    if name not in strategy.names():
        raise Refusal(Code.TERMS, f"no strategy is called {name!r} here")
    if ordering not in {one.value for one in Ordering}:
        raise Refusal(Code.TERMS, f"no ordering is called {ordering!r} here")
    forget_s = FORGET_S
    for other in others:
        key, _, value = other.partition(" ")
        if key == "forget_s" and _SECONDS.fullmatch(value) and float(value) > 0:
            forget_s = float(value)
        else:
            expected = "expected forget_s and a number of seconds"
            raise Refusal(Code.TERMS, f"{expected}, found {other!r}")
    return Terms(name, Ordering(ordering), forget_s)


_SECONDS = re.compile(r"\d{1,9}\.\d{3}")
