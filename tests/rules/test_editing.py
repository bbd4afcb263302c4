"""Editors hear what is wrong, what words mean, and which may stand at a place."""

import pytest

from rules.editing import meaning, remarks, suggestions
from rules.syntax.meanings import MEANINGS
from rules.syntax.tokens import WORDS
from rules.syntax.words import RESERVED

DECLARED = "event Temp(room: string, value: float?)\nevent Smoke(area: string)\n"
RULE = """rule hot: define Hot(room: string, by: float)
from Smoke(area = $a) as smoke and
     last Temp(room = $a, value > (2 * 3)) as temp within 5 min from smoke
where room = temp.room, by = Max(Temp(room = $a).value within 5 min from smoke)
"""
TEXT = DECLARED + RULE


def offset_of(text, marked="|"):
    """A text without its mark, and the place of it."""
    return text.replace(marked, ""), text.index(marked)


def suggested(text, kind=None):
    found = suggestions(*offset_of(DECLARED + text))
    return [one.text for one in found if kind in (None, one.kind)]


def test_every_word_of_the_language_has_a_meaning():
    assert set(MEANINGS) == {*RESERVED, *WORDS}


def test_what_is_wrong_is_told_with_its_place():
    (remark,) = remarks(TEXT.replace("temp.room", "temp.rum"))
    assert remark.is_error
    assert remark.message.startswith("Temp has no attribute rum")
    span = remark.span
    assert TEXT.replace("temp.room", "temp.rum")[span.start : span.end].endswith("rum")


def test_a_type_that_events_may_bring_is_a_warning():
    (remark,) = remarks("define Hot(v) from Heat(v > 1) where v = Heat.v")
    assert remark.message.startswith("unknown event type Heat")
    assert not remark.is_error


def test_what_a_rule_may_mean_otherwise_is_a_warning():
    rule = "define Sums(n) from Timer(M % 5 = 0) as t where n = Count(T() within 5 min from t)"
    text = f"event T(v: int) {rule}"
    (remark,) = remarks(text)
    assert not remark.is_error


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("temp.room", "event Temp(room: string, value: float?)"),
        ("smoke and", "event Smoke(area: string)"),
        ("Hot(room", "event Hot(room: string, by: float)"),
        ("last Temp", MEANINGS["last"]),
        ("Max(", MEANINGS["max"]),
        ("by = ", None),
        ("5 min", None),
    ],
)
def test_words_have_meanings(place, said):
    assert meaning(TEXT, TEXT.index(place) + 1) == said


def test_behind_a_dot_stand_attributes_alone():
    written = RULE.partition("temp.room")[0]
    assert suggested(f"{written}temp.|") == ["room", "value"]
    assert suggested(f"{written}smoke.ar|") == ["area"]
    assert suggested(f"{written}nobody.|") == []


def test_in_parentheses_stand_the_attributes_of_the_event_first():
    assert suggested("define X() from Smoke() and last Temp(ro|")[:2] == ["room", "value"]
    assert suggested("define X() from Temp(value > (2 * |")[:2] == ["room", "value"]
    assert "room" not in suggested("define X() from Temp() and |")


def test_types_names_and_words_may_stand_anywhere():
    found = suggested("define X() from Smoke() as s and last Temp() within 5 min from |")
    assert {"Temp", "Smoke", "s", "within"} <= {*found}
    assert suggested("define X() from Smoke() as s define Y() from |", "name") == []


def test_a_text_may_end_anywhere():
    for length in range(len(TEXT)):
        text = TEXT[:length]
        assert isinstance(suggestions(text, length), list)
        assert meaning(text, length) != ""
        for remark in remarks(text):
            assert 0 <= remark.span.start <= remark.span.end <= length + 1
