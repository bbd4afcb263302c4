"""Every clause, section, decision and page that the repository cites is there to be looked up.

The forms of a citation are those of docs/spec/README.md. Collected are the comments, docstrings and
messages of Python files, the prose of pages (blocks of code are left out: ``S1`` names an event in
the histories there), and the whole of other texts. A label as bare as ``S1`` counts as a citation
in comments, docstrings and prose; in a message, or any other string, where it follows ``tesla.md``
or stands in parentheses, since tests have events of that name.
"""

import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SPECIFICATION = ROOT / "docs" / "spec" / "tesla.md"
DOCS = ROOT / "docs"
NUMBERED = {
    "tesla": SPECIFICATION,
    "protocol": DOCS / "protocol.md",
    "brokers": DOCS / "brokers.md",
}
"""The pages that are cited by the numbers of their sections."""

LABEL = re.compile(r"(?<![\w.$-])[ESX]\d{1,2}(?![\w=@#-])")
LABEL_OF_STRING = re.compile(r"(?:tesla\.md |\((?:[ESX]\d{1,2}, )*)([ESX]\d{1,2})(?=[,;:)\s]|$)")
NUMBERS = r"\d[\d.]*(?:(?:, | and | to )\d[\d.]*)*"
SECTION = re.compile(rf"(?<![\w-])([\w-]+)\.md,? (?:sections? )?({NUMBERS})")
NAMED = re.compile(r"(?<![\w-])[\w-]+\.md, (?:[Ss]ection|[A-Z])\w+")
DECISION = re.compile(r"\bdecisions? (\d+)")
PAGE = re.compile(r"(?<![\w/.-])((?:docs/[\w/-]+|ARCHITECTURE)\.md)")


class Prose(NamedTuple):
    """A stretch of a file that may cite; ``line`` is its first, ``is_string`` is of code."""

    line: int
    text: str
    is_string: bool


def prose_of(path: Path) -> Iterator[Prose]:
    """Where a file may cite something."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        yield from python_prose(text)
    elif path.suffix == ".md":
        yield Prose(1, re.sub(r"^ *```.*?^ *```$", emptied, text, flags=re.M | re.S), False)
    else:
        yield Prose(1, text, False)


def emptied(block: re.Match[str]) -> str:
    """A block of code without its text, so that lines keep their numbers."""
    return "\n" * block.group().count("\n")


def python_prose(text: str) -> Iterator[Prose]:
    """Comments, docstrings and other strings."""
    between = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    opens_statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Prose(token.start[0], token.string, False)
        elif token.type == tokenize.STRING:
            yield Prose(token.start[0], token.string, not opens_statement)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            opens_statement = token.type in between


def clauses() -> set[str]:
    """The labels that the specification defines, each with its anchor."""
    defined = re.findall(r'^- <a id="(\w+)"></a>\*\*(\w+)\b', SPECIFICATION.read_text(), re.M)
    assert all(anchor.upper() == label for anchor, label in defined)
    return {label for _, label in defined}


def sections_of(page: str) -> set[str]:
    """The numbers of a page's sections; none where it has no numbers, or is not there."""
    path = NUMBERED.get(page)
    return set(re.findall(r"^## (\d+)\.", path.read_text(), re.M)) if path else set()


CLAUSES = clauses()
SECTIONS = {page: sections_of(page) for page in NUMBERED}
DECISIONS = {int(path.name[:4]) for path in ROOT.glob("docs/decisions/*.md")}


def unknown_label(found: re.Match[str]) -> bool:
    return found[found.lastindex or 0] not in CLAUSES


def unknown_section(found: re.Match[str]) -> bool:
    return not set(re.split(r", | and | to ", found[2].rstrip("."))) <= SECTIONS.get(
        found[1], set()
    )


def unknown_decision(found: re.Match[str]) -> bool:
    return int(found[1]) not in DECISIONS


def unknown_page(found: re.Match[str]) -> bool:
    return not (ROOT / found[1]).exists()


Forms = tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bool]], ...]
FORMS: Forms = (
    (SECTION, unknown_section),
    (NAMED, lambda found: True),  # a section is cited by its number
    (DECISION, unknown_decision),
)
PAGES: Forms = ((PAGE, unknown_page),)


def unknown_in(prose: Prose, suffix: str) -> Iterator[tuple[int, str]]:
    """Line and text of each citation that leads nowhere (links of pages: ``test_links``)."""
    labels = LABEL_OF_STRING if prose.is_string else LABEL
    forms = FORMS if suffix == ".md" else FORMS + PAGES
    for pattern, is_unknown in ((labels, unknown_label), *forms):
        for found in pattern.finditer(prose.text):
            if is_unknown(found):
                yield prose.line + prose.text.count("\n", 0, found.start()), found.group()


def cited_files() -> list[Path]:
    """All texts of the repository but lists of packages, tables and the licence."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("no checkout")  # a copy of the sources alone
    suffixes = {".py", ".md", ".txt", ".lark", ".tesla", ".toml"}
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def unknown_of(path: Path) -> list[tuple[int, str]]:
    """Line and text of each citation of a file that leads nowhere."""
    # Taken for prose as a whole, a text cites no less: where all of that is known, so are its
    # comments and strings, and need not be looked for.
    if not any(unknown_in(Prose(1, path.read_text("utf-8"), False), path.suffix)):
        return []
    return [one for prose in prose_of(path) for one in unknown_in(prose, path.suffix)]


def test_citations_lead_somewhere() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in cited_files()
        if path != Path(__file__)
        for line, text in unknown_of(path)
    ]
    assert missing == []


USER_PAGES = [*sorted(ROOT.glob("docs/*.md")), ROOT / "ARCHITECTURE.md", ROOT / "README.md"]
NO_PROSE = re.compile(r"^ *```.*?^ *```[^\n]*$|`[^`\n]*`|\[[^\]]*\]\([^)]*\)", re.M | re.S)
"""Blocks of code, code within a line, and links."""


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda page: page.name)
def test_pages_link_the_clauses_that_they_cite(page: Path) -> None:
    assert LABEL.findall(NO_PROSE.sub("", page.read_text("utf-8"))) == []


def test_specification_has_all_clauses() -> None:
    expected = {
        f"{kind}{n}" for kind, last in (("E", 5), ("S", 15), ("X", 4)) for n in range(1, last + 1)
    }
    assert expected == CLAUSES


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ('"""Title.\n\nRule (S12, S16): so.\n"""', [(3, "S16")]),
        ("x = 1  # S9, E6", [(1, "E6")]),
        ('fail("a cycle (tesla.md S21)")', [(1, "tesla.md S21")]),
        ('fail("consumed (S1, S17)")', [(1, "(S1, S17")]),
        ('detect("E6=E@1 S16=Smoke@2 <- E6 S16")', []),
        ("# tesla.md sections 2, 3 and 8", [(1, "tesla.md sections 2, 3 and 8")]),
        ("# architecture.md 4.2", [(1, "architecture.md 4.2")]),
        ("# cli.md, Files", [(1, "cli.md, Files")]),
        ("# docs/nowhere.md, decision 99", [(1, "decision 99"), (1, "docs/nowhere.md")]),
        ("# thesis 7.3.5; docs/files.md; decision 15; protocol.md section 4", []),
    ],
)
def test_unknown_citations_are_found(source: str, unknown: list[tuple[int, str]]) -> None:
    found = [one for prose in python_prose(source) for one in unknown_in(prose, ".py")]
    assert found == unknown


def test_blocks_of_code_cite_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("A rule (S1).\n```events\nS99=Smoke@1\n```\nUnknown (S99).\n")
    found = [one for prose in prose_of(page) for one in unknown_in(prose, ".md")]
    assert found == [(5, "S99")]
