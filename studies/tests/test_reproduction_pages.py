"""The pages of reproduction say what the rule makes of the tables beside them."""

import math
import re

import pytest

from studies.reproduction import headlines, judging, writing
from studies.reproduction.registry import EXPERIMENTS, PAGES
from studies.reproduction.verdicts import Verdict

TABLES = [
    name
    for name, one in EXPERIMENTS.items()
    if one.judge is not None and (judging.FOLDER / f"{one.stem}.csv").is_file()
]


@pytest.mark.parametrize("name", TABLES)
def test_a_page_says_what_its_tables_bear_out(name: str) -> None:
    one = EXPERIMENTS[name]
    assert one.judge is not None
    table = judging.read(judging.FOLDER / f"{one.stem}.csv")
    if one.page == "matching" and "threads" in " ".join(table.columns):
        cores = pytest.importorskip("studies.reproduction.methods").OCM
        if f"{cores} [ms]" not in table.columns:
            pytest.skip("measured with another number of threads")
    section = writing.sections_of((judging.FOLDER / f"{one.page}.md").read_text())[name]
    for claim in one.judge(table).claims:
        cells = (claim.published, claim.measured, claim.decided, claim.verdict)
        assert f"| {' | '.join(cells)} |" in section


DECIDED = re.compile(
    r"(?P<value>[-+.e\d]+|inf)"
    r"(?: \((?P<low>\S+) to (?P<high>\S+)\)| (?P<exact>exactly)| \(one run\))"
    r"; claimed (?:above (?P<above>\S+)|below (?P<below>\S+)|(?P<least>\S+) to (?P<most>\S+)|none)$"
)


def judged_again(cell: str) -> Verdict:
    """The verdict that a reader comes to by what a cell of the column *decided by* has."""
    found = DECIDED.search(cell)
    assert found is not None, cell
    told = {name: float(one) for name, one in found.groupdict().items() if one and name != "exact"}
    least = told.get("above", told.get("least", -math.inf))
    most = told.get("below", told.get("most", math.inf if "above" in told else 5e-324))
    ends = (told.get("low", told["value"]), told.get("high", told["value"]))
    is_within, is_once = ends[0] > least and ends[1] < most, "(one run)" in cell
    if is_once:
        return Verdict.ONCE_WITHIN if is_within else Verdict.ONCE_OUTSIDE
    if ends[1] <= least or ends[0] >= most:
        return Verdict.FAILS
    return Verdict.HOLDS if is_within else Verdict.OPEN


@pytest.mark.parametrize("page", PAGES)
def test_the_printed_interval_gives_the_printed_verdict(page: str) -> None:
    seen = 0
    for line in (judging.FOLDER / f"{page}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for at, verdict in enumerate(cells):
            if verdict in set(Verdict) and verdict != Verdict.UNMEASURED:
                assert judged_again(cells[at - 1]) == verdict, line
                seen += 1
    assert seen > 5


@pytest.mark.parametrize("page", PAGES)
def test_a_page_counts_its_verdicts_and_has_no_cell_that_nobody_reads(page: str) -> None:
    text = (judging.FOLDER / f"{page}.md").read_text()
    sections = writing.sections_of(text)
    ordered = [sections[name] for name in EXPERIMENTS if name in sections]
    assert all(line in text for line in writing.tally(ordered))
    assert any(verdict in text for verdict in Verdict)
    cells = [cell for line in text.splitlines() if line[:1] == "|" for cell in line.split("|")]
    assert max(map(len, cells)) < 500


def test_the_headlines_are_those_of_the_pages() -> None:
    assert headlines.PAGE.read_text() == headlines.written()
