"""Rules are divided by another strategy in mid-stream: nothing is lost or doubled by that.

Here the root chooses by chance, every second or so. Then by what it measures.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from networks import FORGETFUL, apart, faulty, local, run, sharp, usable, write

from routing.network.brokers import measurements
from routing.network.strategy import Choice
from simulator.checkers import check
from simulator.experiment import Outcome


class Chance:
    """Chooses strategies by chance; ``chosen`` has what they were."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"strategies {seed}")
        self.chosen: set[str] = set()

    def prefer(self, costs: Mapping[Choice, float], now: Choice) -> Choice:
        assert all(cost >= 0 for cost in costs.values())
        found = self.random.choice([one for one in costs if one.candidate != now.candidate])
        self.chosen.add(found.candidate)
        return found


def but_for_rest(told: list[str]) -> list[str]:
    """With another strategy every other second a network need never come to rest."""
    return [line for line in told if not line.endswith("it does not come to rest")]


def by_chance(monkeypatch: pytest.MonkeyPatch, seed: int) -> Chance:
    chance = Chance(seed)
    monkeypatch.setattr(measurements, "preferred", chance.prefer)
    monkeypatch.setattr(measurements, "ADAPT_AFTER_S", 0.7)
    monkeypatch.setattr(measurements, "ADAPT_EVERY_S", 1.5)
    return chance


CASES = [(1, "usable"), (4, "sharp"), (6, "sharp"), (41, "usable"), (159, "usable")]
"""The last two failed once: sources that closed while their events were held, at the root and
elsewhere, were forgotten before these had gone on.
"""


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_every_sink_gets_what_one_engine_finds_whatever_is_chosen(
    tmp_path: Path, seed: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = by_chance(monkeypatch, seed)
    found = usable(seed) if kind == "usable" else sharp(seed)
    assert found is not None
    text, events = found
    if kind == "usable":
        events = apart(seed, events)
    path = write(tmp_path, seed, text, events, "adaptive", FORGETFUL if seed % 2 else "")
    outcome = run(path)
    assert outcome.settled, path.read_text()
    assert but_for_rest(check(outcome)) == [], f"seed {seed}\n{path.read_text()}\n{text}"
    assert chance.chosen


@pytest.mark.parametrize("seed", [2, 5])
def test_and_where_links_break(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_chance(monkeypatch, seed)
    found = sharp(seed)
    assert found is not None
    seconds = max(event.time for event in found[1]) / 1e6
    written = write(tmp_path, seed, *found, "adaptive", FORGETFUL if seed % 2 else "")
    path = faulty(written, Random(f"faults {seed}"), seconds)
    outcome = run(path)
    outcome.experiment.simulation.run(outcome.ended_at + 60)
    assert outcome.settled, path.read_text()
    assert but_for_rest(check(outcome)) == [], f"seed {seed}\n{path.read_text()}\n{found[0]}"


def sent(outcome: Outcome) -> int:
    lanes = [lane for pair in outcome.experiment.lanes.values() for lane in pair]
    return sum(lane.bytes for lane in lanes)


def test_what_is_local_comes_to_stay_there(tmp_path: Path) -> None:
    """Sources and sink at one end of a line: no event has to go to the centre and back."""
    outcome = run(local(tmp_path, "adaptive"))
    assert check(outcome) == []
    (root,) = (
        host.broker
        for host in outcome.experiment.brokers.values()
        if host.broker.status(outcome.ended_at)["father"] is None
    )
    facts = root.status(outcome.ended_at)
    assert facts["evaluates"] == []
    assert sent(outcome) < 0.8 * sent(run(local(tmp_path, "centralized")))
