"""The pages show the state diagrams that follow from the code's tables."""

import enum
from pathlib import Path

import pytest

from tools.diagrams import Diagram, diagrams, drawn

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("diagram", diagrams(), ids=lambda diagram: diagram.page)
def test_pages_show_what_the_code_goes_by(diagram: Diagram) -> None:
    page = (DOCS / diagram.page).read_text("utf-8")
    assert diagram.text in page, "print it with: python tools/diagrams.py"


def test_tables_are_drawn() -> None:
    class Lamp(enum.Enum):
        OFF = 0
        LIT_UP = 1
        BROKEN = 2

    moves = {Lamp.OFF: {Lamp.LIT_UP: "switch"}, Lamp.LIT_UP: {Lamp.BROKEN: "fall"}, Lamp.BROKEN: {}}
    assert drawn(moves).splitlines()[2:-1] == [
        "    [*] --> Off",
        "    Off --> LitUp: switch",
        "    LitUp --> Broken: fall",
        "    Broken --> [*]",
    ]
