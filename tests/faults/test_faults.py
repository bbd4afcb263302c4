"""Brokers with stores and whatever may befall them, each kind once: nothing is lost, nothing twice.

Three brokers are processes, with links that can be cut, disks that can be filled and clocks that
can be set: four kinds, one after the other, and all of them with ``make combinations``. Campaigns
of five, and of hundreds of faults: ``python -m benchmarks.campaign faults``.
"""

from pathlib import Path

import pytest
from pairs import WHOLE

from benchmarks.faults import Campaign, Pace
from benchmarks.faulty import FaultyNetwork

LINKS = {"b1": (), "b3": ("b1",), "b5": ("b1", "b3")}
PACE = Pace(calm=(0.3, 0.6), dead=(0.0, 0.5), spoilt=(1.0, 2.0), full=(1.5, 2.0))
KINDS = {
    "some": ("kill root", "kill subscriber", "garbled store", "full disk"),
    "processes": ("kill root", "kill leaf", "kill all", "stop", "kill subscriber"),
    "links": ("cut", "stall", "drop", "cut"),
    "stores": ("full disk", "garbled store", "truncated store", "full disk"),
    "clocks": ("clock ahead", "clock behind"),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", KINDS if WHOLE else ("some",))
def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path, what: str) -> None:
    seed = sorted(KINDS).index(what)
    network = FaultyNetwork("distributed-mt", tmp_path, LINKS)
    campaign = Campaign(network, tmp_path, rate=100.0, seed=seed, pace=PACE)
    assert campaign.run(len(KINDS[what]), KINDS[what]).faults == []
    assert [one.kind for one in campaign.happened if one.waited_s >= 60.0] == []
