"""Pages lead to what is there: every relative link of a page, to a file or a heading of one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors_of(page: Path) -> set[str]:
    """The names of a page's headings, as its readers' links have them, and of its own anchors."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one).lower() for one in headings)
    own = set(re.findall(r'<a id="([\w-]+)"></a>', text))
    return own | {re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for link in LINK.findall(page.read_text()):
        name, _, anchor = link.partition("#")
        if ":" in name:
            continue  # somewhere else in the world
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and anchor not in anchors_of(there)):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_merged(page: Path) -> None:
    marks = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
    assert marks.search(page.read_text()) is None
