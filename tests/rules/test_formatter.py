"""The canonical form of a file, comments included."""

import pytest

from rules.errors import RuleErrors
from rules.syntax.formatter import format_text
from rules.syntax.parser import parse

TEXT = """# What is read
event   Temp(area:string, value :double) # in degrees
event Smoke( area : string )

// When it burns

define Fire(area, x)
from Smoke(area=$a) and  # the terminator
  last Temp(area=$a and value>45) within 300 s from Smoke
where area=$a and x="# none"  # the end of the rule
# the end"""
CANONICAL = """# What is read
# in degrees
event Temp(area: string, value: float)
event Smoke(area: string)

// When it burns
# the terminator
# the end of the rule
define Fire(area, x)
from Smoke(area = $a) and
     last Temp(area = $a, value > 45) within 5 min from Smoke
where area = $a, x = "# none"

# the end
"""


def test_comments_stand_before_their_statements() -> None:
    assert format_text(TEXT) == CANONICAL


def test_formatting_twice_changes_nothing_and_keeps_the_meaning() -> None:
    assert format_text(CANONICAL) == CANONICAL
    assert parse(CANONICAL) == parse(TEXT)


@pytest.mark.parametrize("text", ["", "\n\n", "  "])
def test_nothing_formats_to_nothing(text: str) -> None:
    assert format_text(text) == ""


def test_comments_alone_are_kept() -> None:
    assert format_text("  # one\n\n//two") == "# one\n//two\n"


def test_what_cannot_be_parsed_is_refused_whole() -> None:
    with pytest.raises(RuleErrors, match=r"f\.tesla:1:9"):
        format_text("event A(", file="f.tesla")
