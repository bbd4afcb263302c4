"""The examples of docs/in-process.md are run as they stand."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "in-process.md"


def test_the_examples_run():
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert found.attempted >= 9
    assert found.failed == 0
