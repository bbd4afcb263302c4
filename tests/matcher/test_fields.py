"""Errors name fields of Layout in programs, where the command names its options."""

import doctest
from pathlib import Path

import pandas as pd
import pytest

import rexmq
from matcher.formats import fields
from matcher.formats.fields import in_fields

RULES = "define X() from T()"


def test_the_documented_example():
    assert doctest.testmod(fields) == (0, 1)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("say --time-unit ms", "say TimeForm(unit='ms')"),
        ("(--null NA makes it null)", "(Layout(nulls=('NA',)) makes it null)"),
        ("(--decimal , reads it)", "(Layout(decimal=',') reads it)"),
        ("--columns a=a makes it", "Layout(columns=(('a', 'a'),)) makes it"),
        ("(--time-cut cuts its digits)", "(TimeForm(cuts=True) cuts its digits)"),
        ("(--type), or the column (--type-column)", "(type=...), or the column (Layout(type=...))"),
        ("--time-zone: no time zone", "TimeForm(zone=...): no time zone"),
        ("a--type b", "a--type b"),
        ("--typewriter", "--typewriter"),
    ],
)
def test_options_are_told_as_fields(said: str, told: str):
    assert in_fields(said) == told


def test_errors_over_frames_and_files_name_fields(tmp_path: Path):
    frame = pd.DataFrame({"time": [1_541_000_542_290], "v": [1]})
    with pytest.raises(rexmq.BadEvent, match=r"frame T:row 1: .*say TimeForm\(unit='ms'\)"):
        rexmq.detect(RULES, {"T": frame})
    engine = rexmq.Engine("event T(v: int)" + RULES)
    with pytest.raises(rexmq.SchemaError, match=r"Layout\(time=\.\.\.\) says which"):
        engine.push(frame.rename(columns={"time": "at"}), type="T")
    (tmp_path / "t.csv").write_text("at,v\n1,1\n")
    with pytest.raises(rexmq.SchemaError, match=r"Layout\(time=\.\.\.\) says which"):
        rexmq.detect(RULES, tmp_path / "t.csv", type="T")
