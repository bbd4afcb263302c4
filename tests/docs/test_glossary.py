"""The glossary names modules that are there, and names that these define."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"
PLACE = re.compile(r"\[(\w+)\]\((\.\./[\w/]+\.py)\): ((?:`\w+`(?:, )?)+)")


def rows() -> Iterator[list[str]]:
    """The cells of each line of its tables but their heads."""
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] != "term" and not cells[0].startswith("---"):
            yield cells


def defined_in(path: Path) -> set[str]:
    """The names that a module defines at its top level."""
    body = ast.parse(path.read_text("utf-8")).body
    return {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def test_glossary_is_one_to_read() -> None:
    words = [cells[0] for cells in rows()]
    assert 40 <= len(words) <= 45
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("cells", list(rows()), ids=lambda cells: cells[0])
def test_words_live_where_the_glossary_says(cells: list[str]) -> None:
    place = PLACE.fullmatch(cells[3])
    assert place, "[module](../path.py): `Name`"
    path = (PAGE.parent / place[2]).resolve()
    assert path.stem == place[1]
    assert set(re.findall(r"`(\w+)`", place[3])) <= defined_in(path)
