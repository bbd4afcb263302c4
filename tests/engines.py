"""The engines that every test of meaning runs over."""

import rules.engine
from rules.engine.engine import Detector


def _has(name: str) -> bool:
    try:
        rules.engine.make(name)
    except (AttributeError, ValueError, KeyError):
        return False
    return True


def make(name: str) -> Detector:
    """An engine by name."""
    if hasattr(rules.engine, "make"):
        return rules.engine.make(name)
    from rules.engine.naive import NaiveEngine

    return {"naive": NaiveEngine}[name]()


NAMES = ("naive", *(name for name in ("cdp",) if _has(name)))
