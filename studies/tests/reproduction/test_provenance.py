"""No table stands on a page without saying where it comes from, and none that is stale without a
mark."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from studies.reproduction import judging, provenance, writing
from studies.reproduction.distribution import FULL_PAGE
from studies.reproduction.experiment import Experiment
from studies.reproduction.provenance import OLD_ROWS, STALE, UNKNOWN, Provenance
from studies.reproduction.registry import EXPERIMENTS

KEPT = provenance.read(judging.FOLDER)


def told(stem: str) -> tuple[Experiment, str]:
    """The experiment of a table, and the page that tells of it."""
    is_full = stem.endswith("-full")
    experiment = EXPERIMENTS[stem.removesuffix("-full")]
    return experiment, FULL_PAGE if is_full else experiment.page


def line_of(stem: str) -> str:
    experiment, page = told(stem)
    text = (judging.FOLDER / f"{page}.md").read_text()
    section = writing.sections_of(text)[experiment.name]
    return next(line for line in section.splitlines() if line.startswith(f"[{stem}.csv]"))


def test_every_table_says_where_it_comes_from() -> None:
    assert {file.stem for file in judging.FOLDER.glob("*.csv")} == set(KEPT)
    for stem, made in KEPT.items():
        assert line_of(stem) == f"[{stem}.csv]({stem}.csv): {made}"


def test_timed_tables_of_code_that_has_changed_are_marked() -> None:
    seen = 0
    for stem, made in KEPT.items():
        changed = provenance.has_changed(told(stem)[1], made.commit)
        if changed is not None:
            assert (STALE in line_of(stem)) is changed, f"{stem}: judge it again (judging)"
            seen += 1
    if not seen:
        pytest.skip("git has none of the commits here")


def test_rows_of_code_that_sends_something_else_are_marked() -> None:
    seen = 0
    for stem, made in KEPT.items():
        mine = [one for one in made.digests if one.startswith("centralized watermark")]
        if not all(map(provenance.is_current, mine)):
            assert made.is_stale, f"{stem}: judge it again (judging)"
            assert OLD_ROWS in line_of(stem)
            seen += 1
    assert seen or any(not made.is_stale for made in KEPT.values() if made.digests)


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    assert str(Provenance(commit="1234abcd")).count(UNKNOWN) == 6


def test_a_table_that_is_measured_says_how(tmp_path: Path) -> None:
    made = provenance.now("1 to 3", 90.0)
    assert made.duration == "1.5 min"
    assert "made with --quick: at a small size" in str(provenance.now("1 to 3", 9.0, quick=True))
    provenance.keep(tmp_path, "thesis-5.13", made)
    provenance.keep(tmp_path, "thesis-4.7", replace(made, digests=("a b c",), is_stale=True))
    again = provenance.read(tmp_path)
    assert list(json.loads((tmp_path / provenance.FILE).read_text())) == list(again)
    assert again["thesis-5.13"] == made
    assert str(again["thesis-4.7"]).endswith(OLD_ROWS)
