"""Rules in parts detect what they detect together, in the same order (threads.parts)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from agreement import row
from cases import Advance, Case, Deploy, ForgetMarks, Push, Step, random_case, random_events, run
from pairs import seeds
from rule_texts import COMPOSITE, PRIMITIVE, SCHEMAS, RuleText, RuleWriter

import rules
from broker.cli import main
from matcher.model import MICROSECONDS, TIME_MAX, Event
from matcher.rows import batch_of
from rules.engine.cdp import CdpEngine
from rules.engine.order.catalogue import Deployed
from rules.engine.threads.part import Part
from rules.engine.threads.parts import AtOnce, PartedEngine
from rules.errors import RuleErrors

CASES = len(seeds(100, 150))
JOINING_CASES = len(seeds(20, 60))


def in_parts(at_once: AtOnce = map, count: int = 3) -> PartedEngine:
    return PartedEngine([CdpEngine() for _ in range(count)], at_once)


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rules an engine had each time that it was joined with another."""
    counts: list[int] = []
    original = CdpEngine.joined

    def counted(
        engine: CdpEngine, others: Sequence[CdpEngine], moved: Iterable[Deployed]
    ) -> CdpEngine:
        kept = list(moved)
        counts.append(len(kept))
        return original(engine, others, kept)

    monkeypatch.setattr(CdpEngine, "joined", counted)
    return counts


def agree(case: Case, parts: PartedEngine, whole: CdpEngine) -> None:
    """Hold parts to the whole: every advance, all marks, the repeats."""
    theirs, ours = run(case, parts), run(case, whole)
    for place, (found, expected) in enumerate(zip(theirs.advances, ours.advances, strict=True)):
        assert list(map(row, found)) == list(map(row, expected)), (place, str(case))
    assert theirs.marks == ours.marks, case
    assert theirs.duplicates == ours.duplicates, case


def test_parts_agree_with_the_whole() -> None:
    spread = changing = 0
    with ThreadPoolExecutor(3) as pool:
        for seed in range(CASES):
            case = random_case(seed)
            engine = in_parts(pool.map)
            agree(case, engine, CdpEngine())
            spread += sum(map(bool, engine.parts)) > 1
            changing += not case.is_orderly
    assert spread > CASES / 25, spread
    assert changing > CASES / 10, changing


def test_parts_that_are_joined_in_mid_stream_agree_with_the_whole(joins: list[int]) -> None:
    cases = filter(None, map(joining_case, range(JOINING_CASES)))
    for number, case in enumerate(cases):
        incremental = number % 2 == 1
        parts = [CdpEngine(incremental=incremental) for _ in range(3)]
        agree(case, PartedEngine(parts, map), CdpEngine(incremental=incremental))
    assert len(joins) > JOINING_CASES / 3, joins
    assert sum(joins) > 2 * len(joins), joins


def joining_case(seed: int) -> Case | None:
    """Three rules of a type each, in parts of their own; then some that bring these together.

    None where these would wait for each other as terminators (S12).
    """
    random = Random(seed)
    primitives, types = random.sample(list(PRIMITIVE), 2), random.sample(list(COMPOSITE), 3)
    writers = [RuleWriter(random, primitives, [name]).write for name in types]
    texts = [write(f"r{place}", types[place]) for place, write in enumerate(writers)]
    for place in range(3, random.randint(5, 6)):
        writer = RuleWriter(random, random.sample(types, 2), types)
        texts.append(writer.write(f"r{place}", random.choice(types)))
    try:
        rules.load("\n\n".join(map(str, texts)), known=SCHEMAS)
    except RuleErrors:
        return None
    events = random_events(random, primitives, random.randint(24, 40), 10)
    return Case(seed, tuple(_steps(random, texts, events)), is_orderly=False)


def _steps(random: Random, texts: list[RuleText], events: list[Event]) -> Iterator[Step]:
    """The first three rules at once, the others one by one while events flow, some of them late."""
    yield Deploy(tuple(texts[:3]))
    waiting, late, done = texts[3:], list[Event](), 0
    while done < len(events):
        some = events[done : done + random.randint(1, 6)]
        done += len(some)
        kept = [event for event in some if random.random() < 0.9]
        late += [event for event in some if event not in kept]
        yield Push(tuple(kept))
        mark = random.choice((events[done].time if done < len(events) else TIME_MAX, some[-1].time))
        if waiting and random.random() < 0.4:
            greatest = max(event.time for event in events[:done])
            yield Deploy((waiting.pop(0),), greatest + random.randint(1, MICROSECONDS), done)
        if random.random() < 0.8:
            # By one type alone: rules that use another stay behind, with terminators that wait.
            name = random.choice(sorted({event.type for event in events}))
            yield Advance(mark if random.random() < 0.4 else {name: mark})
        if random.random() < 0.2:
            yield ForgetMarks()
        if late and random.random() < 0.3:
            yield Push((late.pop(),))
    yield Advance(TIME_MAX)


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


def test_parts_tell_what_they_keep_together() -> None:
    """And the batches kept for rules to come, while their types' marks have not passed them."""
    text = "event A(n: int) event B(n: int)\n" + "\n".join(
        f"rule r{name}: define X{name}() from {name}() as a and last {name}() within 9 us from a"
        for name in "AB"
    )
    parts, whole = in_parts(), CdpEngine()
    for engine in (parts, whole):
        ruleset = rules.load(text)
        engine.deploy(ruleset)
        for name in "AB":
            rows = [{"n": number} for number in range(4)]
            engine.push(batch_of(ruleset.schemas[name], rows, source=name, times=[1, 2, 3, 9]))
        engine.advance({"A": 9, "B": 2})
    kept, expected = parts.memory(), whole.memory()
    assert kept["entries"] == expected["entries"] > 0
    assert kept["pending"] == expected["pending"] > 0
    assert kept["waiting"] >= kept["pending"]
    parts.advance(20)
    assert parts.memory()["waiting"] == 0


def test_rules_of_the_clock_alone_are_together() -> None:
    engine = in_parts(count=3)
    text = "".join(f"rule r{hour}: define T{hour}() from Timer(H = {hour})\n" for hour in range(5))
    engine.deploy(rules.load(text))
    assert [len(names) for names in engine.parts] == [5, 0, 0]


def test_rules_that_look_at_the_same_events_are_together_while_that_leaves_parts_even() -> None:
    text = "".join(f"event {name}(n: int)\n" for name in "ABCD") + "".join(
        f"rule r{place}: define T{place}(n: int) from {first}() as a"
        f" and each {second}() as b within {place + 1} s from a where n = b.n\n"
        for place, (first, second) in enumerate(["AB", "CD"] * 2 + ["AB"] * 4)
    )
    engine = in_parts(count=2)
    engine.deploy(rules.load(text))
    assert list(map(set, engine.parts)) == [{"r0", "r2", "r4", "r5", "r6", "r7"}, {"r1", "r3"}]
    more = "".join(f"event {name}(n: int)\n" for name in "EF") + "".join(
        f"rule s{place}: define S{place}(n: int) from E() as a"
        f" and each F() as b within {place + 1} s from a where n = b.n\n"
        for place in range(14)
    )
    engine.deploy(rules.load(more))
    assert [len(names) for names in engine.parts] == [11, 11]


@pytest.mark.parametrize(("count", "woken"), [(10, 0), (3_000, 1)])
def test_nobody_is_woken_for_few_events(count: int, woken: int) -> None:
    calls: list[int] = []

    def at_once(work: Callable[[Part], None], parts: Sequence[Part]) -> Iterable[None]:
        calls.append(len(parts))
        return map(work, parts)

    engine = in_parts(at_once, count=2)
    ruleset = rules.load(RULES)
    engine.deploy(ruleset)
    rows = [{"n": number} for number in range(count)]
    engine.push(batch_of(ruleset.schemas["A"], rows, source="s", times=range(count)))
    assert len(engine.advance(count)) == 0
    assert calls == [2] * woken


BOTH = """rule both: define W(n: int) from X() as x and last Y() as y within 3 s from x
where n = y.n"""


def test_what_brings_parts_together_moves_into_the_one_with_most_to_do(joins: list[int]) -> None:
    engine = in_parts(count=2)
    engine.deploy(rules.load(RULES))
    for name in "UV":
        deploy(engine, f"rule {name}: define {name}(n: int) from A() as a where n = a.n")
    assert sorted(map(len, engine.parts)) == [3, 3]
    deploy(engine, BOTH)
    assert joins == [5]
    assert sorted(map(len, engine.parts)) == [1, 6]
    assert {"a", "b", "both", "c", "x"} < set(max(engine.parts, key=len))
    for name in "abcx":
        engine.remove(name)
    assert sorted(map(sorted, engine.parts)) in ([["U"], ["V", "both"]], [["U", "both"], ["V"]])


CONSUMING = """event A(n: int) event B(n: int)
rule x: define X(n: int) from A() as a and last B() as b within 90 s from a where n = b.n
consuming b
rule y: define Y(n: int) from B() as b where n = b.n
"""


def test_what_a_rule_has_consumed_stays_consumed_when_it_moves(joins: list[int]) -> None:
    engine = in_parts(count=2)
    ruleset = rules.load(CONSUMING)
    engine.deploy(ruleset)
    a, b = (ruleset.schemas[name] for name in "AB")
    engine.push(batch_of(b, [{"n": 1}, {"n": 2}], source="s", times=[1, 2]))
    engine.push(batch_of(a, [{"n": 0}, {"n": 0}], source="t", times=[3, 8]))
    assert [event.data["n"] for event in engine.advance(5).events() if event.type == "X"] == [2]
    known = {**ruleset.schemas}
    text = "rule z: define Z(n: int) from X() as x and last Y() as y within 90 s from x"
    engine.deploy(rules.load(f"{text} where n = y.n", known=known), since=6)
    assert joins == [2]
    found = [(event.type, event.data["n"]) for event in engine.advance(20).events()]
    assert found == [("X", 1)]


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


def test_the_order_is_that_of_the_file_where_one_part_alone_detects() -> None:
    text = """event A(n: int) event B(n: int)
rule light: define X(n: int) from A() as a where n = a.n
rule heavy: define Y(n: int) from A() as a and each B() as b within 9 s from a where n = b.n
"""
    ruleset = rules.load(text)
    engine = in_parts(count=1)
    engine.deploy(ruleset)
    engine.push(batch_of(ruleset.schemas["B"], [{"n": 1}], source="s", times=[3]))
    engine.push(batch_of(ruleset.schemas["A"], [{"n": 2}], source="t", times=[5]))
    assert [event.type for event in engine.advance(10).events()] == ["X", "Y"]


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
