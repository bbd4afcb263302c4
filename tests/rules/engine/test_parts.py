"""Rules in parts detect what they detect together, in the same order (rules.engine.parts)."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agreement import row
from cases import Advance, Case, Deploy, Push, random_case, run

import rules
from broker.cli import main
from matcher.model import EventBatch
from matcher.rows import batch_of
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections
from rules.engine.parts import PartedEngine, parted
from rules.pattern import RuleSet

CASES = 500


class InParts:
    """An engine for ``cases.run``, its parts at once on threads of their own."""

    def __init__(self, count: int, pool: ThreadPoolExecutor) -> None:
        self._count, self._pool = count, pool
        self.marks: Mapping[str, int] = {}

    def deploy(self, ruleset: RuleSet, *, since: int | None, version: int) -> None:
        assert (since, version) == (None, 0)
        engines = [CdpEngine() for _ in range(self._count)]
        self.engine = PartedEngine(ruleset, engines, self._pool.map)

    def push(self, batch: EventBatch) -> None:
        self.engine.push(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        return self.engine.advance(marks)

    @property
    def duplicates(self) -> int:
        return self.engine.duplicates


def fits(case: Case) -> bool:
    """Whether all rules come first and stay."""
    first, *others = case.steps
    return (
        isinstance(first, Deploy)
        and first.since is None
        and first.version == 0
        and all(isinstance(step, Push | Advance) for step in others)
    )


def test_parts_agree_with_the_whole() -> None:
    compared = in_parts = 0
    with ThreadPoolExecutor(3) as pool:
        for seed in range(CASES):
            case = random_case(seed)
            if not fits(case):
                continue
            whole = run(case, CdpEngine())
            engine = InParts(3, pool)
            parts = run(case, engine)
            ours = [[row(event) for event in events] for events in whole.advances]
            theirs = [[row(event) for event in events] for events in parts.advances]
            assert theirs == ours, case
            assert parts.duplicates == whole.duplicates, case
            compared += 1
            in_parts += len(engine.engine._parts) > 1
    assert compared > CASES / 4, compared
    assert in_parts > CASES / 25, in_parts


RULES = """event A(n: int) event B(n: int) event C(n: int)
rule b: define X(n: int) from A() as a and each B() as b within 9 s from a where n = b.n
rule a: define Y(n: int) from A() as a and each B() as b within 9 s from a where n = b.n
rule x: define Z(n: int) from X() as x where n = x.n
rule c: define Y(n: int) from C() as c where n = c.n
"""


def groups(count: int) -> list[list[str]]:
    return [[rule.name for rule in group] for group in parted(rules.load(RULES).rules, count)]


def test_rules_that_have_to_do_with_each_other_stay_together() -> None:
    assert groups(1) == [["b", "a", "x", "c"]]
    assert sorted(groups(2)) == sorted(groups(5)) == [["a", "c"], ["b", "x"]]


def test_the_order_of_one_instant_is_that_of_the_file() -> None:
    text = "event A(n: int)\n" + "\n".join(
        f"rule r{number}: define T{number % 3}(n: int) from A() as a where n = {number}"
        for number in (4, 1, 3, 0, 2)
    )
    ruleset = rules.load(text)
    engine = PartedEngine(ruleset, [CdpEngine(), CdpEngine(), CdpEngine()], map)
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
