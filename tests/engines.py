"""The engines that every test of meaning runs over."""

import rules.engine
from matcher.gpu.device import device, is_there
from rules.engine.engine import Detector

NAMES = ("naive", "cdp", "aip")
PLACED = ("gpu",) if is_there() else ()
"""That of a device beside the processor, where there is one; the simulator has time for few cases
only (tests/device)."""
IS_SLOW = bool(PLACED) and device().simulated


def make(name: str = "auto") -> Detector:
    """An engine by its name, or for a device; which then must not fail."""
    if name in PLACED:
        return rules.engine.make("auto", device=name, tell=_unexpected)
    return rules.engine.make(name)


def _unexpected(what: str, why: str) -> None:
    raise AssertionError(f"{what}: {why}")
