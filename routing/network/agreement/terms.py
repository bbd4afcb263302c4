"""Terms: what all brokers of a network must share, as their greetings say it."""

from __future__ import annotations

from routing.config import Ordering
from routing.overlay.config import FORGET_S


def terms_of(strategy: str, ordering: Ordering, forget_s: float) -> str:
    """The terms of a network; ``forget_s``, as in OverlayConfig, where it is not as in most."""
    said = [strategy, ordering.value]
    if forget_s != FORGET_S:
        said.append(f"forget_s {forget_s:.3f}")
    return ", ".join(said)
