"""The costs of ``auto`` in a file: found, read, written, refused; and the fit of the trials."""

from pathlib import Path

import numpy as np
import pytest

from broker import calibration
from broker.cli import main
from broker.costs import of_this_machine, place, read, write
from broker.errors import ConfigurationError
from broker.variables import COSTS_VARIABLE
from rules.engine import Costs

SOUND = "[nanoseconds]\nprobe = 1\ncandidate = 2.5\ninstance = 3\nlink = 4\n"


def test_the_file_is_where_the_environment_says(tmp_path: Path):
    named = tmp_path / "elsewhere.toml"
    assert place({COSTS_VARIABLE: str(named), "XDG_CONFIG_HOME": str(tmp_path)}) == named
    assert place({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "rexmq" / "costs.toml"
    for home in ({}, {"XDG_CONFIG_HOME": "not/absolute"}):
        assert place(home) == Path.home() / ".config" / "rexmq" / "costs.toml"


def test_what_is_written_is_read(tmp_path: Path):
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert of_this_machine(environment) == Costs()
    costs = Costs(probe=12.5, candidate=3.0, instance=456.7, link=0.1)
    write(place(environment), costs, "by a test")
    assert of_this_machine(environment) == costs


def test_a_file_that_is_named_must_be_there(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"no\.toml: No such file"):
        of_this_machine({COSTS_VARIABLE: str(tmp_path / "no.toml")})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("probe = ", "Invalid value"),
        ("\xff", "can't decode|Invalid"),
        ("", r"expected one table \[nanoseconds\] with probe, candidate, instance, link"),
        (SOUND + "more = 1\n", "expected one table"),
        (SOUND + "[more]\n", "expected one table"),
        (SOUND.replace("2.5", '"2.5"'), "candidate: expected a number, found '2.5'"),
        (SOUND.replace("2.5", "true"), "candidate: expected a number, found True"),
        (SOUND.replace("2.5", "-1"), "candidate: expected 0 or more, found -1"),
        (SOUND.replace("2.5", "nan"), "candidate: expected 0 or more, found nan"),
    ],
)
def test_a_bad_file_is_refused_in_words(tmp_path: Path, text: str, words: str):
    file = tmp_path / "costs.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=words) as refused:
        read(file)
    assert str(file) in str(refused.value)


def test_detect_refuses_a_bad_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    rules, events, costs = (tmp_path / name for name in ("r.tesla", "e.jsonl", "c.toml"))
    rules.write_text("event A(x: int) define B() from A()")
    events.write_text('{"type": "A", "time": 1, "data": {"x": 1}}\n')
    costs.write_text("[nanoseconds]\n")
    monkeypatch.setenv(COSTS_VARIABLE, str(costs))
    assert main(["detect", "--rules", str(rules), "--events", str(events)]) == 1
    assert f"{costs}: expected one table" in capfd.readouterr().err


def test_the_fit_finds_the_costs_that_made_the_times():
    costs = Costs(probe=70.0, candidate=9.0, instance=200.0, link=90.0)
    measured = []
    for trial in calibration.TRIALS:
        expected = calibration._estimated(trial, costs)
        both = [one * 1_000 for one in (expected.columns, expected.automaton)]
        measured.append(calibration.Measured(trial, 500 + both[0], 500 + both[1]))
    found = calibration.fitted(measured)
    for name in ("candidate", "instance"):
        assert getattr(found, name) == pytest.approx(getattr(costs, name), rel=0.2)
    assert all(calibration.loss(one, found) < 1.05 for one in measured)


def test_least_squares_has_no_negative_parts():
    rng = np.random.default_rng(5)
    matrix = rng.random((20, 3))
    assert calibration.least_squares(matrix, matrix @ [2.0, 0.0, 1.0]) == pytest.approx([2, 0, 1])
    found = calibration.least_squares(matrix, matrix @ [2.0, -0.5, 1.0])
    assert found.min() >= 0
    assert found[1] == 0


def test_calibrate_writes_what_it_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    file = tmp_path / "deep" / "costs.toml"
    assert main(["bench", "calibrate", "--quick", "--costs", str(file)]) == 0
    assert min(vars_of(read(file))) >= calibration.COST_MIN
    printed = capfd.readouterr().out
    assert printed.splitlines()[0].split() == ["cost", "nanoseconds", "shipped"]
    assert printed.splitlines()[-1] == f"written to {file}"


def vars_of(costs: Costs) -> list[float]:
    return [costs.probe, costs.candidate, costs.instance, costs.link]


def test_calibrate_runs_by_itself(capfd: pytest.CaptureFixture[str]):
    assert main(["bench", "calibrate", "files"]) == 2
    assert main(["bench", "files", "--costs", "x.toml"]) == 2
    assert "calibrate runs by itself" in capfd.readouterr().err
