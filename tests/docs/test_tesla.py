"""The examples of three pages: each rule detects, or is refused, as the page says."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines import OF_MEANING
from timeline import detect

import rules

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("tesla.md", "coming-from.md", "fleets.md")
MINUTE = 60


@dataclass(frozen=True)
class Example:
    text: str
    events: str = ""
    outcome: str = ""


def blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def examples(kind: str, pages: Iterable[str] = PAGES) -> list[Example]:
    """Rules followed by what is wrong with them, or by events and what is detected in them."""
    return [one for page in pages for one in _examples(kind, page)]


def _examples(kind: str, page: str) -> list[Example]:
    found, schemas, text, events = [], "", "", ""
    for name, block in blocks(page):
        if name == "schemas":
            schemas = block
        elif name == "tesla":
            text, events = schemas + block, ""
        elif name == "events":
            events = block
        elif name == kind:
            found.append(Example(text, events, block))
    return found


@pytest.mark.parametrize("engine", OF_MEANING)
@pytest.mark.parametrize("example", examples("detected"), ids=lambda one: one.outcome[:20])
def test_what_is_detected(engine: str, example: Example) -> None:
    found = detect(engine, example.text, example.events, unit=MINUTE)
    shown = [re.sub(r"\b[0-9a-f]{32}\b", "COMPOSITE", line) for line in found]
    expected = re.sub(r"(?<=[ ])\w+@[\d.]+", "COMPOSITE", example.outcome)
    assert shown == expected.splitlines()


@pytest.mark.parametrize("example", examples("error"), ids=lambda one: one.outcome[:20])
def test_what_is_refused(example: Example) -> None:
    with pytest.raises(rules.RuleErrors) as caught:
        rules.load(example.text)
    found = sorted(problem.message for problem in caught.value.problems)
    assert found == sorted(example.outcome.splitlines())


@pytest.mark.parametrize(("page", "least"), [(PAGES[0], 12), (PAGES[1], 10), (PAGES[2], 9)])
def test_every_rule_of_a_page_is_an_example(page: str, least: int) -> None:
    written = sum(name == "tesla" for name, _ in blocks(page))
    examples_of = len(examples("detected", [page])) + len(examples("error", [page]))
    assert written == examples_of >= least
