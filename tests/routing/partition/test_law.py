"""The law of the project for a tree: what its nodes detect together is what one engine detects.

Random rules and events (tests/cases.py), trees of 1 to 12 nodes, sources anywhere, links that
deliver when they like. REXMQ_TREES sets how many cases are tried and REXMQ_SEED where they begin.
"""

import os

import pytest
from tree_cases import TreeCase

from matcher.model import Event
from routing.partition.forwarder import Forwarder
from routing.partition.naive import NaiveForwarder

COUNT = int(os.environ.get("REXMQ_TREES", "300"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PARTS = 6


def rows(events: list[Event]) -> list[tuple]:
    return sorted(
        (one.time, one.type, one.source, one.id, one.cause_full, tuple(one.data.items()))
        for one in events
    )


def seeds(part: int, count: int = COUNT) -> range:
    return range(FIRST + part * count // PARTS, FIRST + (part + 1) * count // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("forwarder", [NaiveForwarder, Forwarder])
@pytest.mark.timeout(3600)
def test_a_tree_detects_what_one_engine_does(forwarder: type, part: int):
    for seed in seeds(part, COUNT if forwarder is Forwarder else COUNT // 3):
        case = TreeCase(seed)
        network = case.distributed(forwarder)
        got, expected = rows(network.run()), rows(case.centralised())
        assert got == expected, f"seed {seed}\n{case}\n{network.partition}"


def test_less_is_forwarded_than_everything():
    carried = hops = 0
    for seed in range(FIRST, FIRST + 100):
        case = TreeCase(seed)
        network = case.distributed()
        network.run()
        carried, hops = carried + network.carried, hops + case.hops
    assert carried < 0.95 * hops, f"{carried} of {hops}"
