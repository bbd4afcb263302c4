"""How the protocols were built: interpreted, or compiled to C (docs/decisions/0018)."""

from __future__ import annotations

from importlib.util import find_spec


def is_compiled() -> bool:
    """Whether the modules that every message passes through are compiled; loads none of them."""
    found = find_spec("routing.node")
    return found is not None and not (found.origin or ".py").endswith(".py")
