"""The examples of docs/dataframes.md and of README.md are run as they stand."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "least"), [("docs/dataframes.md", 20), ("README.md", 6)])
def test_the_examples_run(page, least):
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    results = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=options)
    assert results.attempted >= least
    assert results.failed == 0
