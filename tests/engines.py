"""The engines that every test of meaning runs over."""

from rules.engine import make

NAMES = ("naive", "cdp")

__all__ = ["NAMES", "make"]
