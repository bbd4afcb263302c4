"""A broker that detects on several threads: what comes out, its order, and what it tells."""

import re
from pathlib import Path

import pytest
from live_hosts import Hosts

import rules
from broker import Publisher, RuleManager, Subscriber
from broker.cli import main
from broker.configuration import load
from broker.network import Member
from broker.parallel import deployed, engine_of
from broker.warmup import warm_up
from matcher.model import Event, EventBatch, EventType
from matcher.rows import batch_of
from rules.engine.cdp import CdpEngine
from rules.engine.threads.parts import PartedEngine

A, B = EventType.of("A", n="int"), EventType.of("B", n="int")
RULES = """
event A(n: int) event B(n: int)
rule x: define X(n: int) from A() as a and last B() as b within 90 us from a where n = b.n
rule y: define Y(n: int) from B() as b and each A(n < 3) as a within 50 us from b where n = a.n
rule z: define Z(n: int) from A(n < 9) as a where n = a.n
rule end: define End(n: int) from A(n = 999999) as a where n = a.n
"""
LATER = """
rule both: define Both(n: int) from X() as x and last Y() as y within 90 us from x where n = y.n
"""
EVENTS, ROUNDS = 400, 4
"""In each round, enough of them for threads to be woken."""


def batches(number: int) -> list[EventBatch]:
    """Events of both types, one a microsecond."""
    first = 1 + number * EVENTS
    rows = [{"n": place * place % 40} for place in range(EVENTS)]
    return [
        batch_of(
            type_,
            rows[start::2],
            source="p",
            times=range(first + start, first + EVENTS, 2),
        )
        for start, type_ in enumerate((A, B))
    ]


def conversation(
    folder: Path, threads: int, capsys: pytest.CaptureFixture[str]
) -> tuple[list[Event], list[int], str]:
    """What a subscriber gets of all rules, in order; how many rules there are in each part of the
    engine, and the page of the status.
    """
    folder.mkdir()
    with Hosts(folder, (Member("b"),), engine="cdp", threads=threads) as hosts:
        at = hosts.endpoint("b")
        with RuleManager(at) as manager, Publisher(at, name="p", types=[A, B]) as publisher:
            manager.add(RULES)
            with Subscriber(at, "X", "Y", "Z", "End") as subscriber:
                for number in range(ROUNDS):
                    publisher.publish_batch(batches(number), promise=1 + (number + 1) * EVENTS)
                    if number == ROUNDS // 2:
                        publisher.wait(60)
                        manager.add(LATER)
                        subscriber.subscribe("Both")
                parts = manager.status()["parts"]
                assert main(["status", "--broker", at]) == 0
                publisher.publish("A", n=999999, at=2 + ROUNDS * EVENTS)
                publisher.promise(10 + ROUNDS * EVENTS)
                events = [subscriber.receive(timeout_s=60)]
                while events[-1].type != "End":
                    events.append(subscriber.receive(timeout_s=60))
    return events, parts, capsys.readouterr().out


def test_threads_change_nothing_but_the_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warm_up("cdp")  # as a broker does that is a process, before it serves
    alone, parts, page = conversation(tmp_path / "one", 1, capsys)
    assert {event.type for event in alone} == {"X", "Y", "Z", "Both", "End"}
    assert len(alone) > ROUNDS * EVENTS / 2
    assert parts == [5]
    assert "threads" not in page
    assert re.search(r"^kept: .*entries [1-9].*, heap [\d,]+, lists [\d,]+", page, re.MULTILINE)
    together, parts, page = conversation(tmp_path / "three", 3, capsys)
    assert together == alone
    assert sorted(parts) == [0, 2, 3], "both has joined what x and y stood in"
    assert f"rules by threads: {', '.join(map(str, parts))}" in page


def test_threads_are_a_key_like_others(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text("[broker]\nthreads = 2\n")
    assert load(file, {}, {}).threads == 2
    assert load(file, {"REXMQ_THREADS": "3"}, {}).threads == 3
    assert load(file, {"REXMQ_THREADS": "3"}, {"threads": "4"}).threads == 4
    assert load(None, {}, {}).threads == 1


def test_engines_of_several_threads_are_in_parts() -> None:
    assert isinstance(engine_of("auto", 2), PartedEngine)
    assert not isinstance(engine_of("auto", 1), PartedEngine)
    assert not isinstance(engine_of("naive", 2), PartedEngine)


def test_what_fails_on_a_thread_fails_for_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: CdpEngine) -> None:
        raise MemoryError("no room")

    engine = deployed("cdp", rules.load(RULES), 2)
    for number in range(2):
        for batch in batches(number):
            engine.push(batch)
    monkeypatch.setattr(CdpEngine, "evaluate", fail)
    with pytest.raises(MemoryError, match="no room"):
        engine.advance(1 + 2 * EVENTS)
