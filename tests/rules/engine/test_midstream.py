"""One answer to when a rule begins that comes in mid-stream, by all engines (S15)."""

from functools import partial

import pytest
from engines import OF_MEANING, PLACED, make
from midstream import BEFORE, EXPECTED, found_in_midstream
from pretended import Restless

import rules.engine
from rules.engine.cdp import CdpEngine
from rules.engine.threads.parts import PartedEngine

MAKERS = {name: partial(make, name) for name in (*OF_MEANING, *PLACED)} | {
    "auto": make,
    "hybrid": partial(rules.engine.make, "hybrid"),
    "parted": lambda: PartedEngine([CdpEngine(), CdpEngine()], map),
    "placed": Restless,
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_rule_without_a_beginning_sees_nothing_that_came_before_it(name: str) -> None:
    """Beside a rule that looks at the same events as without one."""
    assert found_in_midstream(MAKERS[name](), beside_early=False) == EXPECTED
    assert found_in_midstream(MAKERS[name](), beside_early=True) == [*BEFORE, *EXPECTED]
