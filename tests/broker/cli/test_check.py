"""``rexmq check`` and ``rexmq format``: output and exit status (docs/cli.md)."""

from pathlib import Path

import pytest

from broker.cli import main

GOOD = """event Temp(value: float)
event Smoke()
define Hot(v) from Temp(value>45) where v=Temp.value
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.tesla"
    file.write_text(GOOD)
    return file


def test_what_is_right_is_counted(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(good)]) == 0
    assert capsys.readouterr().out == "1 rule, 2 schemas: ok\n"
    assert main(["check", str(good), str(good)]) == 0
    assert capsys.readouterr().out == "2 rules, 4 schemas: ok\n"


def test_a_type_that_is_declared_twice_is_one_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same twice is no error (E5): texts that declare what they use may be joined."""
    file = tmp_path / "twice.tesla"
    file.write_text("event Temp(value: float)\nevent Temp(value: double)\n")
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out == "0 rules, 1 schema: ok\n"


def test_every_error_of_every_file_is_printed(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.tesla", tmp_path / "b.tesla"
    first.write_text("event Temp(value float)\ndefine A() form Temp()\n")
    second.write_bytes(b"# \xff")
    assert main(["check", str(first), str(good), str(second)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    for place in ("a.tesla:1:18: expected", "a.tesla:2:12: expected", "b.tesla:1:3: not UTF-8"):
        assert place in captured.err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nowhere.tesla"]) == 1
    assert "nowhere.tesla" in capsys.readouterr().err


def test_format_prints_the_canonical_form(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", str(good)]) == 0
    assert capsys.readouterr().out == (
        "event Temp(value: float)\nevent Smoke()\n\n"
        "define Hot(v)\nfrom Temp(value > 45)\nwhere v = Temp.value\n"
    )


def test_format_refuses_what_it_cannot_parse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.tesla"
    bad.write_text("define")
    assert main(["format", str(bad)]) == 1
    assert "bad.tesla:1:7: expected the type" in capsys.readouterr().err


def test_what_may_mean_something_else_than_it_seems_to_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sum.tesla"
    file.write_text(
        "event T(v: int) define Out(n) from Timer(M = 0) as t "
        "where n = Sum(T().v within 1 h from t)"
    )
    assert main(["check", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out == "1 rule, 1 schema: ok\n"
    assert err.startswith(f"warning: {file}: rule Out: a T at a tick is in two windows of 1 h")
