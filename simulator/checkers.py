"""What must be true of a run: at its end, when nothing happens any more.

Each checker gives the differences in words; none is a pass. The results are compared with the
centralised oracle, the network with what is really there.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from rules.pattern import TIMER
from simulator.experiment import Experiment, Outcome
from simulator.oracle import Answer, Oracle, delivered, differences


def check(outcome: Outcome) -> list[str]:
    """All differences of a run."""
    return [*check_results(outcome), *check_network(outcome.experiment)]


def check_results(outcome: Outcome) -> Iterator[str]:
    """Every sink got exactly what the centralised oracle gives it, and nothing was refused.

    Of events whose times are those of their arrival only the published ones are compared.
    """
    experiment = outcome.experiment
    for client in experiment.clients:
        for refusal in client.refusals:
            yield f"{client.name}: {type(refusal).__name__.lower()}: {refusal.reason}"
    oracle = Oracle(experiment.rules, experiment.batches)
    for name, sink in experiment.sinks.items():
        got = _within(experiment, delivered(sink.arrivals))
        expected = oracle.answer(sink.filters)
        if experiment.scenario.ordering == "arrival":
            expected = Answer(got.composite, expected.published)
        for line in differences(expected, got):
            yield f"sink {name}: {line}"


def _within(experiment: Experiment, got: Answer) -> Answer:
    """Without what timers brought before and after the input, which a recording has not (S13)."""
    ruleset = experiment.rules
    if ruleset is None or not any(TIMER in rule.used_types for rule in ruleset.rules):
        return got
    times = [batch.time for batch in experiment.batches]
    least = min((int(one.min()) for one in times), default=0)
    greatest = max((int(one.max()) for one in times), default=0)
    kept = tuple(event for event in got.composite if least <= event.time <= greatest)
    return Answer(kept, got.published)


def check_network(experiment: Experiment) -> Iterator[str]:
    """In every connected part all agree on it and on its centre, and its trees are trees."""
    graph = nx.Graph()
    graph.add_nodes_from(name for name, host in experiment.brokers.items() if host.is_running)
    for link, lanes in experiment.lanes.items():
        if link <= set(graph) and not any(lane.is_cut for lane in lanes):
            graph.add_edge(*link)
    for part in nx.connected_components(graph):
        yield from _check_part(experiment, frozenset(part))


def _check_part(experiment: Experiment, names: frozenset[str]) -> Iterator[str]:
    overlays = {name: experiment.brokers[name].broker.overlay for name in sorted(names)}
    centres = {overlay.part.centre for overlay in overlays.values()}
    for name, overlay in overlays.items():
        if overlay.part.nodes != names:
            yield f"broker {name} sees {len(overlay.part.nodes)} of {len(names)} brokers"
    if len(centres) > 1:
        yield f"there are several centres: {', '.join(sorted(centres))}"
        return
    (centre,) = centres
    trees = {name: overlay.trees.find(centre) for name, overlay in overlays.items()}
    fathers = {name: tree.father for name, tree in trees.items() if tree is not None}
    children = {
        (name, child) for name, tree in trees.items() if tree is not None for child in tree.children
    }
    edges = {(father, name) for name, father in fathers.items() if father is not None}
    if len(fathers) < len(names) or edges != children:
        yield f"fathers and children of the tree of {centre} do not agree"
    elif len(names) > 1 and not nx.is_tree(nx.Graph(list(edges))):
        yield f"the tree of {centre} is no tree"
