"""The command: exit statuses, tables, deliveries (docs/scenarios.md)."""

import json
from pathlib import Path

import pytest
from command import run as rexmq
from simulator_text import SMALL

from broker.cli import main

ROOT = Path(__file__).parents[2]


def test_a_scenario_is_run_checked_and_told(written, tmp_path: Path) -> None:
    got, out, trace = tmp_path / "got.jsonl", tmp_path / "out", tmp_path / "trace.txt"
    path = written()
    done = rexmq("simulate", path, "--check", "--deliveries", got, "--out", out, "--trace", trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "events delivered          3" in done.stdout
    assert "as the oracle" in done.stdout
    events = [json.loads(line) for line in got.read_text().splitlines()]
    assert [(one["sink"], one["at"], one["type"]) for one in events] == [
        ("k1", 10.0, "Temp"),
        ("k1", 11.0, "Temp"),
        ("k1", 12.0, "Fire"),
    ]
    assert events[2]["cause"] == ["3", "2"]
    assert (out / "sinks.csv").read_text().splitlines()[1].startswith("k1,b1,3,")
    assert (out / "lanes.csv").read_text().splitlines()[0] == "from,to,messages,bytes,lost"
    for name in ("delays.png", "traffic.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    assert len(trace.read_text().splitlines()) > 20


def test_what_a_duration_cuts_off_is_no_difference(written, capsys) -> None:
    """Told and traced is the run up to there; compared is what comes of it in the end."""
    path = written("duration_s = 1.5\n" + SMALL)  # Fire is found half a second later
    trace = path.parent / "trace.txt"
    assert main(["simulate", str(path), "--check", "--trace", str(trace)]) == 0
    told = capsys.readouterr().out
    assert "settled                   no" in told
    assert "events delivered          2" in told
    assert "as the oracle" in told
    assert main(["simulate", str(path), "--check", "--replay", str(trace)]) == 0
    assert main(["simulate", str(path), "--replay", str(trace)]) == 0


def test_without_matplotlib_there_are_tables_and_no_figures(written, capsys, monkeypatch) -> None:
    monkeypatch.setattr("simulator.figures.find_spec", lambda name: None)
    out = written().parent / "out"
    assert main(["simulate", str(out.parent / "scenario.toml"), "--out", str(out)]) == 0
    assert "no figures: they need matplotlib" in capsys.readouterr().err
    assert sorted(one.name for one in out.iterdir()) == ["lanes.csv", "sinks.csv"]


def test_figures_of_a_run_in_which_nothing_is_delivered(written, capsys) -> None:
    path = written(SMALL.replace('"Fire(temp > 45)", "Temp()"', '"Never()"'))
    assert main(["simulate", str(path), "--out", str(path.parent / "out")]) == 0
    assert (path.parent / "out" / "delays.png").is_file()


def test_a_difference_exits_1(written) -> None:
    crash = '[[fault]]\nkind = "crash"\nat_s = 1.5\nfor_s = 0.1\n'
    done = rexmq("simulate", written(SMALL + crash), "--check")
    assert done.returncode == 1
    assert "rule fire, version 0, is deployed, and not known" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 'x'", "scenario.toml: seed: expected `int`, got `str`"),
        (SMALL.replace("rules.tesla", "none.tesla"), "none.tesla: No such file"),
        (SMALL.replace("s1.jsonl", "s2.jsonl"), "s2.jsonl: No such file"),
        ('strategy = "steam"\n' + SMALL, "strategy: expected one of centralized"),
    ],
)
def test_a_bad_scenario_exits_1_with_its_place(written, text: str, message: str) -> None:
    done = rexmq("simulate", written(text))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_rules_are_shown_at_their_place(written) -> None:
    done = rexmq("simulate", written(rules="define X( from"))
    assert done.returncode == 1
    assert "rules.tesla" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        ("Fire(temp > 'x')", "sink[1].subscribe[1]:1:"),
        ("Temp(value > ", "sink[1].subscribe[1]:1:"),
        ("Temp(smell > 1)", "no attribute smell"),
        ("Later(", "sink[1].subscribe[1]:1:"),
        ("Later(area = $a)", "sink[1].subscribe[1]:1:14: a subscription has no parameters"),
    ],
)
def test_a_bad_filter_is_shown_at_its_place_before_anything_runs(written, filter_, message) -> None:
    done = rexmq("simulate", written(SMALL.replace("Fire(temp > 45)", filter_)))
    assert done.returncode == 1
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_filter_of_later_on_is_shown_before_anything_runs(written) -> None:
    filters = 'subscribe = ["Fire(temp > 45)", "Temp()"]\n'
    assert filters in SMALL
    turn = 'then = [{ at_s = 1.0, subscribe = ["Later(x > $y)"] }]\n'
    text = SMALL.replace(filters, filters + turn)
    done = rexmq("simulate", written(text))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "sink[1].then[1].subscribe[1]:1:11: a subscription has no parameters" in done.stderr


def test_what_brokers_refuse_on_the_way_is_said_without_a_check_too(written) -> None:
    later = "define Later(area: string) from Smoke() as s where area = s.area"
    change = '[[change]]\nat_s = 1.0\nbroker = "b2"\nrules = "later.tesla"\n'
    text = SMALL.replace("Fire(temp > 45)", "Later(area > 3)") + change
    done = rexmq("simulate", written(text, **{"later.tesla": later}))
    assert done.returncode == 0
    assert "rexmq: k1: subscription 1 is paused: a string against an int" in done.stderr


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--draw", "network.gif", "expected a name that ends in .png, .svg, .pdf"),
        ("--draw", "none/network.png", "there is no folder"),
        ("--deliveries", "none/got.jsonl", "No such file"),
        ("--out", "scenario.toml", "File exists"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_run(written, option, name, message) -> None:
    path = written()
    done = rexmq("simulate", path, option, path.parent / name)
    assert done.returncode == 1
    assert done.stdout == ""
    assert message in done.stderr


def test_the_documented_scenario_runs(written) -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text()
    text = page.split("```toml\n")[1].split("```")[0]
    done = rexmq("simulate", written('engine = "naive"\n' + text), "--check")
    assert (done.returncode, done.stderr) == (0, "")
