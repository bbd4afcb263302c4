"""Terms: what all brokers of a network must share, as their greetings say it."""

from __future__ import annotations

from routing.config import Ordering
from routing.overlay.config import FORGET_S
from rules.overrun import COMPOSITES_MAX


def terms_of(strategy: str, ordering: Ordering, forget_s: float, composites_max: int) -> str:
    """The terms of a network; bounds and times are said where they are not as in most."""
    said = [strategy, ordering.value]
    if forget_s != FORGET_S:
        said.append(f"forget_s {forget_s:.3f}")
    if composites_max != COMPOSITES_MAX:
        said.append(f"composites_per_instant_max {composites_max}")
    return ", ".join(said)
