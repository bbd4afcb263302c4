"""Rules in parts detect what they detect together, in the same order (rules.engine.parts)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agreement import row
from cases import random_case, run

import rules
from broker.cli import main
from matcher.rows import batch_of
from rules.engine.cdp import CdpEngine
from rules.engine.parts import AtOnce, PartedEngine
from rules.errors import RuleErrors

CASES = 300


def in_parts(at_once: AtOnce = map, count: int = 3) -> PartedEngine:
    return PartedEngine([CdpEngine() for _ in range(count)], at_once)


def test_parts_agree_with_the_whole() -> None:
    compared = refused = spread = changing = 0
    with ThreadPoolExecutor(3) as pool:
        for seed in range(CASES):
            case = random_case(seed)
            engine = in_parts(pool.map)
            try:
                parts = run(case, engine)
            except RuleErrors:
                refused += 1
                continue
            whole = run(case, CdpEngine())
            ours = [[row(event) for event in events] for events in whole.advances]
            theirs = [[row(event) for event in events] for events in parts.advances]
            assert theirs == ours, case
            assert parts.marks == whole.marks, case
            assert parts.duplicates == whole.duplicates, case
            compared += 1
            spread += sum(map(bool, engine.parts)) > 1
            changing += not case.is_orderly
    assert compared > CASES / 2, compared
    assert refused < CASES / 10, refused
    assert spread > CASES / 25, spread
    assert changing > CASES / 10, changing


RULES = """event A(n: int) event B(n: int) event C(n: int)
rule b: define X(n: int) from A() as a and each B() as b within 9 s from a where n = b.n
rule a: define Y(n: int) from A() as a and each B() as b within 9 s from a where n = b.n
rule x: define Z(n: int) from X() as x where n = x.n
rule c: define Y(n: int) from C() as c where n = c.n
"""


def groups(count: int) -> list[list[str]]:
    engine = in_parts(count=count)
    engine.deploy(rules.load(RULES))
    return sorted(sorted(names) for names in engine.parts if names)


def test_rules_that_have_to_do_with_each_other_stay_together() -> None:
    assert groups(1) == [["a", "b", "c", "x"]]
    assert groups(2) == groups(5) == [["a", "c"], ["b", "x"]]


def deploy(engine: PartedEngine, text: str) -> None:
    known = {name: rules.load(RULES).schemas[name] for name in "ABCXYZ"}
    engine.deploy(rules.load(text, known=known), since=5)


def test_a_rule_goes_to_the_part_that_it_has_to_do_with() -> None:
    engine = in_parts(count=2)
    engine.deploy(rules.load(RULES))
    deploy(engine, "rule over: define W(n: int) from Y() as y where n = y.n")
    deploy(engine, "rule alone: define V(n: int) from A() as a where n = a.n")
    deploy(engine, "rule under: define C(n: int) from B() as b where n = b.n")
    parts = {frozenset(names) for names in engine.parts}
    assert parts == {frozenset({"b", "x", "alone"}), frozenset({"a", "c", "over", "under"})}


def test_rules_of_the_clock_alone_are_together() -> None:
    engine = in_parts(count=3)
    text = "".join(f"rule r{hour}: define T{hour}() from Timer(H = {hour})\n" for hour in range(5))
    engine.deploy(rules.load(text))
    assert [len(names) for names in engine.parts] == [5, 0, 0]


BOTH = """rule both: define W(n: int) from X() as x and last Y() as y within 3 s from x
where n = y.n"""


def test_what_brings_parts_together_is_refused_and_changes_nothing() -> None:
    engine = in_parts(count=2)
    engine.deploy(rules.load(RULES))
    before = engine.parts
    with pytest.raises(RuleErrors, match=r"both: it has to do with .* threads of their own"):
        deploy(engine, BOTH)
    assert engine.parts == before
    assert "both" not in engine.marks
    checked = rules.load(RULES + BOTH)
    assert engine.refusals(checked, without=("a", "b", "c", "x")) == ()
    for name in "abcx":
        engine.remove(name)
    engine.deploy(checked)
    assert sorted(map(len, engine.parts)) == [0, 5]


def test_pending_events_reach_a_part_that_had_no_use_for_them() -> None:
    engine = in_parts(count=2)
    ruleset = rules.load(RULES)
    engine.deploy(ruleset)
    engine.push(batch_of(ruleset.schemas["C"], [{"n": 1}, {"n": 2}], source="s", times=[4, 9]))
    engine.advance(5)
    deploy(engine, "rule new: define U(n: int) from C() as c where n = c.n")
    found = [(event.type, event.time) for event in engine.advance(20).events()]
    assert found == [("Y", 9), ("U", 9)]


def test_the_order_of_one_instant_is_that_of_the_file() -> None:
    text = "event A(n: int)\n" + "\n".join(
        f"rule r{number}: define T{number % 3}(n: int) from A() as a where n = {number}"
        for number in (4, 1, 3, 0, 2)
    )
    ruleset = rules.load(text)
    engine = in_parts()
    engine.deploy(ruleset)
    engine.push(batch_of(ruleset.schemas["A"], [{"n": 1}], source="s", times=[7]))
    found = engine.advance(8)
    assert [event.data["n"] for event in found.events()] == [4, 1, 3, 0, 2]


@pytest.mark.parametrize("engine", ["cdp", "aip", "naive"])
def test_detect_on_threads(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.tesla").write_text(RULES)
    events = [
        f'{{"type":"{"ABC"[number % 3]}","time":{number},"source":"s","id":{number},'
        f'"data":{{"n":{number}}}}}\n'
        for number in range(60)
    ]
    (tmp_path / "events.jsonl").write_text("".join(events))
    words = ["detect", "--rules", str(tmp_path / "rules.tesla"), "--engine", engine]
    words += ["--events", str(tmp_path / "events.jsonl")]
    assert main(words) == 0
    alone = capsys.readouterr().out
    assert main([*words, "--threads", "4"]) == 0
    assert capsys.readouterr().out == alone
    assert alone.count("\n") > 100
