"""Marks of tests that need a server of another system."""

import pytest

from benchmarks.servers import program_of


def needs(name, package):
    """The mark of tests that need a program of a Debian package."""
    return pytest.mark.skipif(
        program_of(name) is None, reason=f"there is no {name}: apt-get install {package}"
    )
