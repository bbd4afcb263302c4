"""``ordering = "arrival"``: events have the times at which they come to where a rule is evaluated.

The law (routing.evaluation.arrival): the results are those of one engine for all events,
those that came at the times at which they came. Random rules made to be divided, random networks.
"""

from pathlib import Path

import pytest
from networks import run, sharp, write
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.model import TIME_MAX, Event, EventBatch
from routing.evaluation import arrival
from rules.engine import make
from simulator.checkers import check
from simulator.experiment import Experiment
from simulator.oracle import delivered

Came = dict[tuple[str, int], int]


@pytest.fixture
def came(monkeypatch: pytest.MonkeyPatch) -> Came:
    """The times at which events came, by source and number."""
    found: Came = {}
    stamp = arrival.stamped

    def note(own: list[EventBatch], first: int) -> list[EventBatch]:
        stamped = stamp(own, first)
        for event in (event for batch in stamped for event in batch.events()):
            assert (event.source, event.sequence) not in found, "it has come twice"
            found[event.source, event.sequence] = event.time
        return stamped

    monkeypatch.setattr(arrival, "stamped", note)
    return found


def composite(experiment: Experiment) -> dict[str, list[Event]]:
    return {
        name: sorted(delivered(sink.arrivals).composite, key=lambda one: (one.time, one.id))
        for name, sink in experiment.sinks.items()
        if "Z" in sink.filters
    }


@pytest.mark.parametrize("strategy", ["centralized", "distributed-st"])
@pytest.mark.parametrize("seed", [seed for seed in range(1, 10) if seed % 5])
def test_the_results_are_those_of_one_engine_for_what_came_when_it_came(
    tmp_path: Path, came: Came, seed: int, strategy: str
) -> None:
    found = sharp(seed)
    if found is None:
        return
    text, events = found
    path = write(tmp_path, seed, text, events, strategy)
    path.write_text(f'ordering = "arrival"\n{path.read_text()}')
    outcome = run(path)
    assert outcome.settled
    assert check(outcome) == [], "published events and the network"
    engine = make("naive")
    engine.deploy(rules.load(text, known=SCHEMAS))
    shown = [
        Event(
            one.type,
            came.get((one.source, one.sequence), one.time),
            one.source,
            one.id,
            one.data,
            one.sequence,
        )
        for one in events
    ]
    for batch in batches(shown, SCHEMAS.values()):
        engine.push(batch)
    expected = sorted(engine.advance(TIME_MAX).events(), key=lambda one: (one.time, one.id))
    for name, got in composite(outcome.experiment).items():
        assert got == expected, f"seed {seed}, {name}\n{text}"


def test_nothing_waits_for_who_says_nothing(tmp_path: Path) -> None:
    """Where a source is silent, the other ordering waits until it closes."""
    moments = {}
    for ordering in ("watermark", "arrival"):
        folder = tmp_path / ordering
        folder.mkdir()
        text = "rule r: define Z() from B() as b and last C() within 5 s from b"
        path = write(folder, 3, text, pulses())
        sink = '[[sink]]\nname = "z"\nbroker = "n0"\nsubscribe = ["Z"]\n'
        path.write_text(f'ordering = "{ordering}"\n{path.read_text()}{sink}')
        experiment = run(path).experiment
        moments[ordering] = [one.moment for one in experiment.sinks["z"].arrivals]
    assert len(moments["arrival"]) == len(moments["watermark"]) == 1
    assert moments["arrival"][0] < 4 < 30 < moments["watermark"][0]


def pulses() -> list[Event]:
    """C at 1 s and B at 2 s; another source of C is silent for half a minute."""
    data = {"C": {"p": 1, "v": 1.0, "s": ""}, "B": {"p": 1, "q": 1, "f": True}}
    times = ((1, "C", "c"), (2, "B", "b"), (31, "C", "d"))
    return [
        Event(name, second * 1_000_000, source, "1", data[name], 1)
        for second, name, source in times
    ]
