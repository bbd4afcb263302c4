"""The law of the project for a tree: what its nodes detect together is what one engine detects.

Random rules and events (tests/cases.py, tests/sharp_cases.py), trees of 1 to 12 nodes, sources
anywhere, links that deliver when they like. REXMQ_TREES sets how many cases are tried and
REXMQ_SEED where they begin.
"""

import os

import pytest
from naive_forwarder import NaiveForwarder
from pairs import WHOLE
from sharp_cases import SharpCase
from tree_cases import TreeCase, rows

from routing.partition.forwarder import Forwarder

COUNT = int(os.environ.get("REXMQ_TREES", "40"))
FIRST = int(os.environ.get("REXMQ_SEED", "0" if WHOLE else "20"))
"""The first seeds have cases that take seconds."""
SHARP_FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PARTS = 6


def seeds(part: int, count: int = COUNT, first: int = FIRST) -> range:
    return range(first + part * count // PARTS, first + (part + 1) * count // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("forwarder", [NaiveForwarder, Forwarder])
@pytest.mark.timeout(3600)
def test_a_tree_detects_what_one_engine_does(forwarder: type, part: int):
    for seed in seeds(part, COUNT if forwarder is Forwarder else COUNT // 4):
        case = TreeCase(seed)
        network = case.distributed(forwarder)
        got, expected = rows(network.run()), rows(case.centralised())
        assert got == expected, f"seed {seed}\n{case}\n{network.partition}"


def test_less_is_forwarded_than_everything():
    carried = hops = 0
    for seed in range(FIRST, FIRST + COUNT // 2):
        case = TreeCase(seed)
        network = case.distributed()
        network.run()
        carried, hops = carried + network.carried, hops + case.hops
    assert carried < 0.95 * hops, f"{carried} of {hops}"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_a_tree_detects_what_one_engine_does_where_every_event_counts(part: int):
    """Rules made to be divided (tests/sharp_cases.py): they fire often, and much is left out."""
    fired = carried = hops = 0
    for seed in seeds(part, 4 * COUNT, SHARP_FIRST):
        case = SharpCase(seed)
        network = case.distributed()
        got, expected = rows(network.run()), rows(case.centralised())
        assert got == expected, f"seed {seed}\n{case}\n{network.partition}"
        fired, carried, hops = fired + bool(expected), carried + network.carried, hops + case.hops
    assert fired > 0.4 * 4 * COUNT / PARTS
    assert carried < 0.6 * hops, f"{carried} of {hops}"


@pytest.mark.timeout(3600)
def test_nodes_may_run_the_other_engine():
    for seed in range(FIRST, FIRST + COUNT // 5):
        case = TreeCase(seed)
        got, expected = rows(case.distributed(engine="cdp").run()), rows(case.centralised())
        assert got == expected, f"seed {seed}\n{case}"
