"""A broker that works alone against the oracle, while rules, sources and sinks
come and go in mid-stream: the networks of the fuzz with all their clients at one broker.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pairs import seeds

import rules.engine
from routing.config import NodeConfig, Ordering
from routing.network.brokers.broker import Broker
from routing.overlay.config import OverlayConfig
from simulator import scenario
from simulator.checkers import check_results
from simulator.experiment import Experiment
from simulator.fuzzing import making
from simulator.fuzzing.case import Case

SEEDS = len(seeds(20, 120))
PARTS = 4


class AloneExperiment(Experiment):
    """An experiment whose brokers work alone."""

    def _making(self, name: str) -> Callable[[float], Broker]:
        read = self.scenario
        config = NodeConfig(
            name=name, heartbeat_s=read.heartbeat_s, ordering=Ordering(read.ordering)
        )
        overlay, engine = OverlayConfig(name), rules.engine.make(read.engine)
        return lambda now: Broker(config, overlay, engine, None, now)


def at_one_broker(case: Case) -> Case:
    """The same with all clients at one broker, and no faults, which are mostly those of links."""
    one = case.brokers[0]
    return replace(
        case,
        brokers=(one,),
        links=(),
        homes=tuple((source, one) for source, _ in case.homes),
        sinks=tuple(replace(sink, broker=one) for sink in case.sinks),
        changes=tuple(replace(change, broker=one) for change in case.changes),
        moves=tuple(replace(one_move, broker=one_move.broker and one) for one_move in case.moves),
        faults=(),
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_a_broker_that_works_alone_gives_what_the_oracle_says(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for share, value in {"RESTLESS": 0.5, "OPEN": 0.5, "TORN": 0.0}.items():
        monkeypatch.setattr(making, share, value)
    found = 0
    for seed in range(part, SEEDS, PARTS):
        case = at_one_broker(making.random_case(seed, "centralized"))
        read = scenario.read(case.write(tmp_path / str(seed)))
        outcome = AloneExperiment(read, is_watched=False).run()
        assert outcome.settled, f"seed {seed}"
        assert list(check_results(outcome)) == [], f"seed {seed}"
        found += any(sink.arrivals for sink in outcome.experiment.sinks.values())
    assert found > SEEDS / PARTS / 2
