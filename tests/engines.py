"""The engines that every test of meaning runs over."""

from rules.engine import make

NAMES = ("naive", "cdp", "aip")

__all__ = ["NAMES", "make"]
