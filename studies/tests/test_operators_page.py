"""The examples of docs/operators.md are run as they stand, on the processor."""

import doctest
from pathlib import Path

import pytest

from matcher.gpu.device import NoDevice

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoDevice("none here")

    monkeypatch.setattr("matcher.gpu.device.device", none)
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert found.attempted >= 20
    assert found.failed == 0
