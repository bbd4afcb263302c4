"""The pages of reproduction say what the rule makes of the tables beside them."""

import pytest

from studies.reproduction import judging, writing
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
        assert f"| {claim.published} | {claim.measured} | {claim.verdict} |" in section


@pytest.mark.parametrize("page", PAGES)
def test_a_page_counts_its_verdicts_and_has_no_cell_that_nobody_reads(page: str) -> None:
    text = (judging.FOLDER / f"{page}.md").read_text()
    sections = writing.sections_of(text)
    ordered = [sections[name] for name in EXPERIMENTS if name in sections]
    assert all(line in text for line in writing.tally(ordered))
    assert any(verdict in text for verdict in Verdict)
    cells = [cell for line in text.splitlines() if line[:1] == "|" for cell in line.split("|")]
    assert max(map(len, cells)) < 500
