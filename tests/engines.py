"""The engines that every test of meaning runs over."""

import pytest

import rules.engine
from matcher.gpu.device import device, is_there
from rules.engine.chains.published import AipPublished
from rules.engine.engine import Detector
from rules.errors import RuleErrors
from rules.pattern import RuleSet

NAMES = ("naive", "cdp", "aip")
PUBLISHED = "aip-published"
OF_MEANING = (*NAMES, PUBLISHED)
"""Those of tests that are skipped where an engine refuses the rules."""
PLACED = ("gpu",) if is_there() else ()
"""That of a device beside the processor, where there is one; the simulator has time for few cases
only (tests/device)."""
IS_SLOW = bool(PLACED) and device().simulated


def make(name: str = "auto") -> Detector:
    """An engine by its name, or for a device; which then must not fail."""
    if name in PLACED:
        return rules.engine.make("auto", device=name, tell=_unexpected)
    return Reference() if name == PUBLISHED else rules.engine.make(name)


class Reference(AipPublished):
    """AIP as published; a test whose rules it refuses is skipped."""

    def fresh(self) -> "Reference":
        return Reference()

    def refuse(self, rules: RuleSet) -> None:
        try:
            super().refuse(rules)
        except RuleErrors:
            pytest.skip("AIP as published refuses these rules")


def _unexpected(what: str, why: str) -> None:
    raise AssertionError(f"{what}: {why}")
