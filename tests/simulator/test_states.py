"""Rules whose memory no window bounds, in networks that let go of what came long before: brokers go
on with them by their states, wherever they are evaluated next.
"""

import os
from pathlib import Path
from random import Random

import pytest
from networks import FORGETFUL, faulty, run, sharp, usable, write
from pairs import some_of
from simulator_text import HEAD, at, lines, overlay

from routing.network import strategy
from simulator.checkers import check
from simulator.experiment import Outcome

COUNT = int(os.environ.get("REXMQ_FAULTS", "4"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
RULES = """
event A(n: int)
event B(n: int)
rule pair: define Z(n: int) from B() as b and first A() as a within 3 s from b
where n = a.n consuming a
rule base: define R(n: int) from A() as a where n = a.n
rule more: define R(n: int) from B() as b and last R() as r within 2 s from b
where n = r.n + 1 consuming b
rule over: define Y(n: int) from B() as b and each R() as r within 2 s from b where n = r.n
"""
FILES = {
    "s0.jsonl": lines("s0", "A", *range(0, 60, 2)),
    "s1.jsonl": lines("s1", "B", *(at_ / 2 for at_ in range(1, 119))),
}
END_S = 60.0
KILLED = (("b0",), ("b1",), ("b2",), ("b0", "b1", "b2", "b3"))


def story(name: str, faults: str = "", *, durable: bool = True) -> str:
    text = HEAD.format(name=name) + "unasked_events_max = 3\n"
    text += at("source", "s0", "b1", 'events = "s0.jsonl"')
    text += at("source", "s1", "b2", 'events = "s1.jsonl"')
    kept = "\ndurable = true" if durable else ""
    text += at("sink", "k0", "b0", f'subscribe = ["Z", "R", "Y"]{kept}')
    text += at("sink", "k1", "b1", f'subscribe = ["Z()", "R(n > 2)"]{kept}')
    return text + faults + overlay({"b0 b1": 5.0, "b0 b2": 5.0, "b0 b3": 5.0, "b3 b1": 5.0})


def fault(kind: str, at_s: float, for_s: float, *brokers: str, value: float | None = None) -> str:
    names = ", ".join(f'"{one}"' for one in brokers)
    text = f'[[fault]]\nkind = "{kind}"\nat_s = {at_s}\nfor_s = {for_s}\nbrokers = [{names}]\n'
    return text if value is None else f"{text}value = {value}\n"


def kept(outcome: Outcome) -> dict[str, int]:
    """How many events of their own sources brokers still have."""
    hosts = outcome.experiment.brokers
    return {name: len(host.broker.context.detection.replay_buffer) for name, host in hosts.items()}


@pytest.mark.parametrize("name", strategy.names())
def test_events_are_let_go_of_beyond_the_windows(written, name: str) -> None:
    outcome = run(written(story(name), RULES, **FILES))
    assert check(outcome) == []
    assert max(kept(outcome).values()) < 40, "of 118, of which windows reach 6"


@pytest.mark.parametrize("name", strategy.names())
@pytest.mark.parametrize("brokers", some_of(KILLED, 1, 3))
def test_brokers_that_are_killed_go_on(written, name: str, brokers: tuple[str, ...]) -> None:
    """With their stores: nothing is missing, and nothing comes twice."""
    killed = fault("restart", 33.3, 3.0, *brokers, value=0.004)
    again = fault("restart", 45.1, 2.0, *brokers, value=0.004)
    outcome = run(written(story(name, killed + again), RULES, **FILES))
    assert check(outcome) == []
    assert {host.starts for host in outcome.experiment.brokers.values()} >= {3}
    assert max(kept(outcome).values()) < 60


@pytest.mark.parametrize("name", strategy.names())
def test_others_go_on_where_a_broker_without_a_store_ends(written, name: str) -> None:
    """b3, and b0 where no sinks are: others have the states of what these evaluated."""
    faults = fault("crash", 25.0, 4.0, "b3") + fault("crash", 40.0, 5.0, "b0")
    text = story(name, faults, durable=False).replace('broker = "b0"', 'broker = "b2"')
    outcome = run(written(text, RULES, **FILES))
    assert check(outcome) == []


CYCLE = """
event A(n: int)
event B(n: int)
rule base: define R(n: int) from A() as a where n = a.n
rule more: define R(n: int) from B() as b and first R() as r within 6 s from b where n = r.n + 1
"""


@pytest.mark.parametrize("name", strategy.names())
def test_of_a_cycle_stays_what_any_of_its_rules_sees(written, name: str) -> None:
    """``base`` reaches nowhere, and ``more`` 6 s: the R of 30 s is the first of all to 36 s, though
    ``base`` has long come further. Its state let go of it, by its own reach (fuzz seed 301).
    """
    files = {
        "s0.jsonl": lines("s0", "A", 30, 59),
        "s1.jsonl": lines("s1", "B", *(at_ / 2 for at_ in range(61, 119))),
    }
    killed = fault("restart", 4.3, 0.5, *KILLED[-1], value=0.004)
    outcome = run(written(story(name, killed), CYCLE, **files))
    assert check(outcome) == []


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_nothing_is_lost_or_doubled_with_any_rules(tmp_path: Path, seed: int) -> None:
    """As tests/simulator/test_faults.py, of rules that consume or are part of a cycle."""
    found = sharp(seed) if seed % 2 else usable(seed)
    if found is None or "consuming" not in found[0]:
        return
    text, events = found
    seconds = max(event.time for event in events) / 1e6
    name = Random(f"states {seed}").choice(strategy.names())
    written = write(tmp_path, seed, text, events, name, FORGETFUL)
    path = faulty(written, Random(f"faults {seed}"), seconds)
    outcome = run(path)
    outcome.experiment.simulation.run(outcome.ended_at + 60)
    assert outcome.settled, f"seed {seed}\n{path.read_text()}"
    assert check(outcome) == [], f"seed {seed}\n{path.read_text()}\n{text}"
