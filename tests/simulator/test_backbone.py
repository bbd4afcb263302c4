"""The example on a real backbone: it runs as it stands, and its facts are the published ones."""

from math import acos, cos, radians, sin
from pathlib import Path

import networkx as nx
import pytest

from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment

FOLDER = Path(__file__).parents[2] / "examples" / "abilene"
EARTH_KM, KM_PER_MS = 6_371.0, 200.0


def kilometres(one: dict[str, float], other: dict[str, float]) -> float:
    """Over the great circle, by the spherical law of cosines."""
    first, second = radians(one["latitude"]), radians(other["latitude"])
    apart = radians(other["longitude"] - one["longitude"])
    return EARTH_KM * acos(sin(first) * sin(second) + cos(first) * cos(second) * cos(apart))


def test_the_example_finds_what_the_oracle_does() -> None:
    outcome = Experiment(scenario.read(FOLDER / "scenario.toml")).run()
    assert outcome.settled
    assert check(outcome) == []
    sinks = outcome.experiment.sinks.values()
    assert len(sinks) == 11
    assert sum(len(sink.arrivals) for sink in sinks) > 100


def test_the_backbone_is_as_it_was() -> None:
    graph = nx.read_graphml(FOLDER / "abilene.graphml")
    degrees = dict(graph.degree)
    assert (len(graph), graph.number_of_edges()) == (11, 14)
    assert {name for name, degree in degrees.items() if degree == 2} == {
        *("Seattle", "Los-Angeles", "Chicago", "New-York", "Washington")
    }
    assert set(degrees.values()) == {2, 3}
    assert nx.edge_connectivity(graph) == 2


def test_delays_are_those_of_light_in_fibre_over_great_circles() -> None:
    path = FOLDER / "scenario.toml"
    cities = nx.read_graphml(FOLDER / "abilene.graphml").nodes
    for link in scenario.read(path).links:
        one, other = link.between
        expected = kilometres(cities[one], cities[other]) / KM_PER_MS / 1e3
        assert link.quality.delay_s == pytest.approx(expected, abs=1e-5), link.between
