"""A bar is shown to people who wait, and to nobody else."""

import pty
import sys

import pandas as pd
import pytest

import rexmq
from broker import bars
from broker.bars import bar
from broker.cli import main

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


@pytest.mark.parametrize("options", [[], ["--no-progress"]])
def test_detect_shows_one_on_a_terminal(options, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE_S", 0.0)
    (tmp_path / "r.tesla").write_text(f"event R(v: int) {RULES}")
    (tmp_path / "e.csv").write_text("time,v\n1,2\n2,1\n")
    files = ["--rules", str(tmp_path / "r.tesla"), "--events", str(tmp_path / "e.csv")]
    master, slave = pty.openpty()
    with open(slave, "w") as terminal, open(master, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", terminal)
        main(["detect", *files, "--type", "R", "--engine", "naive", "--format", "count", *options])
        print("done", file=terminal, flush=True)
        shown = b""
        while not shown.endswith(b"done\r\n"):
            shown += screen.read(4096)
    assert (b"100%" in shown) == (not options)
    assert capfd.readouterr().out == "High\t1\ntotal\t1\n"
