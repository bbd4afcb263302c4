"""``rexmq explain``: output, forms and exit status (docs/explain.md)."""

import json
from pathlib import Path

import pytest

from broker.cli import main

RULES = """
event A(x: int)
rule pair: define P(x, q) from A(x > 0) as one and each A(x = one.x) as two within 9 s from one
where x = one.x, q = 1 / (two.x - 2)
rule above: define Q() from P()
"""
EVENTS = "".join(
    json.dumps({"type": "A", "time": time, "source": "s", "id": f"a{time}", "data": {"x": x}})
    + "\n"
    for time, x in ((1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 0))
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules.tesla").write_text(RULES)
    (tmp_path / "events.jsonl").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    files = ["--rules", "rules.tesla", "--events", "events.jsonl", "--engine", "naive"]
    status = main(["explain", *files, *options])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_every_branch_is_told(capsys):
    status, out, err = explain(capsys, "--rule", "pair", "--event", "a3")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "rule pair at A s#a3 of 1970-01-01T00:00:03Z"
    assert "    with s#a1, 1 of 2:" in lines
    assert "    with s#a2, 2 of 2:" in lines
    assert "It fires: 2 matches." in lines
    assert "    one s#a3, two s#a1 -> x = 1, q = -1.0" in lines


def test_branches_beyond_the_bound_are_counted(capsys):
    _, out, _ = explain(capsys, "--rule", "pair", "--event", "a3", "--branches", "1")
    assert "    and 1 more, with 1 match" in out.splitlines()
    assert "It fires: 2 matches." in out


def test_an_undefined_value_says_why(capsys):
    _, out, _ = explain(capsys, "--rule", "pair", "--event", "s#a5")
    assert "q = 1 / (two.x - 2) is undefined (division by zero in 1 / (two.x - 2))" in out
    assert out.splitlines()[-1] == "It does not fire."


def test_json_holds_the_same(capsys):
    _, out, _ = explain(capsys, "--rule", "pair", "--event", "a3", "--format", "json")
    told = json.loads(out)
    assert (told["rule"], told["fired"], told["count"]) == ("pair", True, 2)
    assert told["event"] == {
        "type": "A",
        "time": "1970-01-01T00:00:03Z",
        "source": "s",
        "id": "a3",
        "data": {"x": 1},
    }
    assert [match["events"]["two"]["id"] for match in told["matches"]] == ["a1", "a2"]
    assert told["matches"][0]["data"] == {"x": 1, "q": -1.0}
    step = told["branch"]["steps"][1]
    assert (step["clause"], step["passed"]) == (1, True)
    assert step["considered"]["counts"] == {
        "chosen": 2,
        "outside the window": 3,
        "already in the match": 1,
    }
    assert step["considered"]["end"] == "1970-01-01T00:00:03Z"
    assert [one["chosen"]["id"] for one in told["branch"]["branches"]] == ["a1", "a2"]


def test_a_composite_event_of_the_recording_can_be_explained(capsys):
    _, out, _ = explain(capsys, "--rule", "pair", "--event", "a2", "--format", "json")
    from_engine = main(["detect", "--rules", "rules.tesla", "--events", "events.jsonl"])
    assert from_engine == 0
    composite = json.loads(capsys.readouterr().out.splitlines()[0])
    assert json.loads(out)["count"] == 1
    _, out, _ = explain(capsys, "--rule", "above", "--event", composite["id"])
    assert out.splitlines()[0] == (
        f"rule above at P rexmq/rule/pair#{composite['id']} of 1970-01-01T00:00:02Z"
    )
    assert "It fires: 1 match." in out


def test_a_summary_in_both_forms(capsys):
    _, out, _ = explain(capsys, "--rule", "pair", "--summary")
    assert "5 of 6  from A(x > 0) as one" in out
    assert "        1 failed: x > 0 is false, as at s#a6" in out
    assert out.splitlines()[-1] == "2 terminators fired: 3 composite events"
    _, out, _ = explain(capsys, "--rule", "pair", "--summary", "--format", "json")
    told = json.loads(out)
    assert (told["terminators"], told["fired"], told["composites"]) == (6, 2, 3)
    assert [stage["passed"] for stage in told["stages"]] == [5, 3, 2]


def test_a_summary_of_a_rule_without_any_terminator_says_what_is_missing(here, capsys):
    rules = "event B(x: int)\nrule never: define N(x) from B(x > 0) as b where x = b.x\n"
    (here / "rules.tesla").write_text(RULES + rules)
    _, out, _ = explain(capsys, "--rule", "never", "--summary")
    assert "0 of 0  from B(x > 0) as b" in out
    assert out.splitlines()[-1] == "no terminator: the recording has no B"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--rule", "pear", "--event", "a1"], 1, "rules.tesla: no rule is called pear\n"),
        (["--rule", "pear", "--event", "a1"], 1, "hint: did you mean pair?"),
        (["--rule", "pair", "--event", "a11"], 1, "no event has the id a11; did you mean a1?"),
        (["--rule", "pair"], 2, "explain: give --event ID, or --summary"),
        (["--rule", "pair", "--event", "a1", "--summary"], 2, "give --event ID, or --summary"),
        (["--rule", "pair", "--summary", "--format", "xml"], 2, "expected text or json"),
    ],
)
def test_refusals(capsys, options: list[str], status: int, message: str):
    found, out, err = explain(capsys, *options)
    assert (found, out) == (status, "")
    assert message in err
    assert "Traceback" not in err
