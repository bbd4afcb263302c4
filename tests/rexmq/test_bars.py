"""A bar is shown to people who wait, and to nobody else."""

import pandas as pd

import rexmq
from rexmq import bars
from rexmq.bars import bar

RULES = "define High(v: int) from R(v > 1) where v = R.v"


def test_work_that_is_short_shows_none(capsys):
    rexmq.detect(RULES, {"R": pd.DataFrame({"time": [1], "v": [2]})}, progress=True)
    assert capsys.readouterr() == ("", "")


def test_work_that_is_long_shows_one_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE_S", 0.0)
    with bar(10, wanted=True) as tell:
        tell(5)
        tell(5)
    told = capsys.readouterr()
    assert told.out == ""
    assert "events" in told.err
    assert "100%" in told.err


def test_what_is_no_screen_is_shown_none(capsys, monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE_S", 0.0)
    with bar(10, wanted=None) as tell:
        tell(10)
    assert capsys.readouterr() == ("", "")
