"""What is printed loses or doubles something, and one engine, tickets and slices do not."""

import re
from pathlib import Path

import pytest

from studies import counterexamples
from studies.counterexamples import COUNTEREXAMPLES, joined

PAGE = Path(__file__).parents[2] / "docs" / "spec" / "exactness.md"


@pytest.mark.parametrize("name", [name for name in COUNTEREXAMPLES if name[0] in "r"] + ["pull"])
def test_printed_rules_detect_what_never_happened(name: str) -> None:
    shown = COUNTEREXAMPLES[name]()
    assert shown.truth == []
    assert len(shown.printed) == 1


def test_a_pair_is_tried_once_by_tickets_and_twice_in_some_orders_without() -> None:
    shown = COUNTEREXAMPLES["pairing"]()
    assert (shown.truth, shown.printed) == ([1], [1, 2])


def test_a_purge_by_the_newest_event_loses_a_match_in_some_orders() -> None:
    shown = COUNTEREXAMPLES["purge"]()
    assert (shown.truth, shown.printed) == ([1], [0, 1])


def test_a_join_by_batches_finds_all_only_if_batches_have_one_event() -> None:
    events = [("left", 7), ("right", 7), ("left", 7)]
    assert joined(events, 1, is_printed=True) == joined(events, 3, is_printed=False) == 2
    assert joined(events, 3, is_printed=True) == 0


def test_each_is_a_command_that_the_page_names(capsys: pytest.CaptureFixture[str]) -> None:
    named = re.findall(r"`python -m studies\.counterexamples (\S+)`", PAGE.read_text())
    assert [name for name in named if name != "NAME"] == list(COUNTEREXAMPLES)
    assert counterexamples.main(["r12b", "join"]) == 0
    told = capsys.readouterr().out
    assert told.count("as printed:") == 2
    assert counterexamples.main(["r99"]) == 2
    assert "there is no 'r99'" in capsys.readouterr().err
