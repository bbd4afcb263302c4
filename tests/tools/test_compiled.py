"""What is compiled to C where somebody asks for it: no module that msgspec or a base forbids."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.building import is_compiled
from tools.compiled import COMPILED, REFUSED, ROOT, chosen


@pytest.mark.parametrize("pattern", COMPILED)
def test_every_pattern_names_modules_of_the_tree(pattern: str) -> None:
    assert list(ROOT.glob(pattern))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_there_and_would_be_compiled_else(name: str) -> None:
    assert (ROOT / name).is_file()
    assert any((ROOT / name) in ROOT.glob(pattern) for pattern in COMPILED)


def test_modules_with_records_are_left_as_they_are() -> None:
    names = list(chosen(ROOT))
    assert "routing/node.py" in names
    assert "routing/wire/headers.py" not in names
    assert not set(names) & REFUSED.keys()


def test_a_build_says_what_it_is() -> None:
    origin = Path(__import__("routing.node", fromlist=["node"]).__file__ or "")
    assert is_compiled() == (origin.suffix == ".so")
