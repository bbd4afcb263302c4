"""Whether the tables of brokers agree with one another, and with what their clients have said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx

from matcher.model import EventType
from routing.deployment import Deployed
from routing.network.brokers.broker import Broker
from routing.network.evaluation.processing_tree import ProcessingTree
from routing.network.tables.filter_cover import maximal_of_type
from routing.network.tables.filters import by_type, type_of
from routing.serving.sources import SourceState
from routing.session import State
from simulator.clients import Client, Sink, Source
from simulator.hosts import BrokerHost
from simulator.network import Network

Filters: TypeAlias = Mapping[str, tuple[str, ...]]
"""Texts of filters, sorted, by the names of their types."""


@dataclass(frozen=True, slots=True)
class Part:
    """A connected part of the network, and the clients at its brokers."""

    brokers: Mapping[str, Broker]
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    rules: frozenset[tuple[str, int, int | None]] | None
    """Name, version and since of the rules that have been deployed and are in force; None where
    that cannot be known, since an answer was lost or others may have been asked."""
    is_whole: bool
    """Whether there are no other brokers."""
    is_answered: bool
    """Whether no client waits for an answer."""

    @property
    def is_at_rest(self) -> bool:
        """Whether every broker works by a plan, has told all that it knows and waits for nothing,
        and no client waits for an answer. Only then do tables have to agree: what one broker tells
        another, the other does not know yet.
        """
        return self.is_answered and not any(self.restless)

    @property
    def restless(self) -> Iterator[str]:
        """The brokers that are not at rest, or see others around them than there are."""
        for name, broker in self.brokers.items():
            if not broker.is_at_rest or broker.overlay.topology.part.nodes != self.brokers.keys():
                yield name

    @property
    def root(self) -> str:
        """The centre, by the word of the first broker."""
        return next(iter(self.brokers.values())).overlay.topology.part.centre


def parts_of(network: Network) -> Iterator[Part]:
    """The connected parts of the network as it is: of brokers that run, and links not cut."""
    graph = nx.Graph()
    graph.add_nodes_from(name for name, host in network.brokers.items() if host.is_running)
    for link, lanes in network.lanes.items():
        if link <= set(graph) and not any(lane.is_cut for lane in lanes):
            graph.add_edge(*link)
    for names in nx.connected_components(graph):
        yield _part(network, frozenset(names))


def _part(network: Network, names: frozenset[str]) -> Part:
    hosts = network.brokers
    clients = [one for one in network.clients if one.broker.name in names]
    return Part(
        {name: hosts[name].broker for name in sorted(names)},
        tuple(one for one in clients if isinstance(one, Source) and one.is_there),
        tuple(one for one in clients if isinstance(one, Sink) and one.session.ready),
        _rules_in_force(network) if len(names) == len(hosts) else None,
        len(names) == len(hosts),
        not any(map(_waits, clients)) and not any(_is_busy(hosts[name]) for name in names),
    )


def _is_busy(host: BrokerHost) -> bool:
    """Whether a broker has something to do yet, as one that drains has until it has left."""
    return host.processor.waiting > 0 or host.drains


def _waits(client: Client) -> bool:
    """Whether it waits for an answer, is about to come back, or has only just gone."""
    session = client.session
    comes = session.state is State.OFF and client.losses > 0
    is_open = session.state is not State.CLOSED  # who has left early waits for nothing
    waits = session.state is State.GREETING or (is_open and session.unanswered > 0)
    return comes or waits or client.has_just_left


def _rules_in_force(network: Network) -> frozenset[tuple[str, int, int | None]] | None:
    if any(manager.refusals for manager in network.managers):
        return None
    held = [one for one in network.book.held if one.until is None]
    return frozenset((one.rule.name, one.version, one.since) for one in held)


# --- tables ---


def check_tables(part: Part) -> Iterator[str]:
    """Differences between the tables of brokers and what there is: plan, types, sources, rules and
    filters. What ought to be in them is worked out from the clients alone: what brokers have told
    each other proves nothing. Nothing is changed, and nothing may be left over of clients that have
    gone.
    """
    root = part.brokers.get(part.root)
    if root is None:
        yield f"the root {part.root} is not there"
        return
    if any(_plan_of(one) != _plan_of(root) for one in part.brokers.values()):
        yield "brokers go by several plans"
        return
    yield from _check_types(part, root)
    yield from _check_rules(part, root)
    for name, broker in part.brokers.items():
        yield from _check_known(name, broker, root)
        yield from _check_sources(part, name, broker)
        yield from _check_sinks(part, name, broker)
    yield from _check_wants(part)


def _plan_of(broker: Broker) -> tuple[str, int, int] | None:
    plan = broker.agreed.plan
    return None if plan is None else (plan.root, plan.epoch, plan.number)


def _check_types(part: Part, root: Broker) -> Iterator[str]:
    """The root knows the types of the sources that are there, and those that rules speak of."""
    rules = root.context.deployments.rules
    needed = {schema.name for one in rules for schema in one.rule.mentions}
    for source in part.sources:
        needed.update(one.name for one in source.advertised)
    known = root.context.advertisements.schemas.keys()
    for name in sorted(needed - known):
        yield f"broker {part.root}: type {name} is advertised, or used by a rule, and not known"
    if part.is_whole:  # what others publish that are out of reach stays known
        for name in sorted(known - needed - root.borrowed):
            yield f"broker {part.root}: type {name} is known, and nobody advertises or uses it"


def _check_rules(part: Part, root: Broker) -> Iterator[str]:
    if part.rules is not None:
        known = {_rule(one) for one in root.context.deployments.in_force}
        for name, version, _ in sorted(part.rules - known, key=str):
            yield f"broker {part.root}: rule {name}, version {version}, is deployed, and not known"
        for name, version, _ in sorted(known - part.rules, key=str):
            yield f"broker {part.root}: rule {name}, version {version}, is known, and not deployed"


def _rule(deployed: Deployed) -> tuple[str, int, int | None]:
    return deployed.name, deployed.version, deployed.since


def _check_known(name: str, broker: Broker, root: Broker) -> Iterator[str]:
    """Every broker knows what the root knows."""
    own, others = broker.context, root.context
    if broker.agreed.catalog != root.agreed.catalog:
        yield f"broker {name}: it was told something else than the root knows"
    schemas, right = own.advertisements.schemas, others.advertisements.schemas
    for one in sorted(schemas.keys() | right.keys()):
        if schemas.get(one) != right.get(one):
            yield f"broker {name}: type {one} is {schemas.get(one)}, at the root {right.get(one)}"
    rules, in_force = map(_rule, own.deployments.rules), map(_rule, others.deployments.rules)
    for rule, version, _ in sorted(set(rules) ^ set(in_force), key=str):
        yield f"broker {name}: rule {rule}, version {version}, is not known as at the root"
    homes = dict(broker.agreed.catalog.homes).get(name, ())
    if set(homes) != set(own.detection.publishers.types):
        here = ", ".join(own.detection.publishers.types)
        yield f"broker {name}: {here} is published here, by what is known {', '.join(homes)}"


def _check_sources(part: Part, name: str, broker: Broker) -> Iterator[str]:
    """A broker knows what its own sources advertise, and the root what all do."""
    is_root = name == part.root
    expected = {
        one.name: {schema.name for schema in one.advertised}
        for one in part.sources
        if one.advertised and (is_root or one.broker.name == name)
    }
    known = {
        one.name: set(one.floors)
        for one in broker.context.sources
        if one.standing is not SourceState.CLOSED and one.floors  # one that was refused has none
    }
    for one in sorted(expected.keys() | known.keys() if part.is_whole else expected):
        if expected.get(one) != known.get(one):
            told, there = (", ".join(sorted(of.get(one, ()))) for of in (known, expected))
            yield f"broker {name}: source {one} advertises [{there}], by what is known [{told}]"


def _check_sinks(part: Part, name: str, broker: Broker) -> Iterator[str]:
    """A broker knows what its own sinks have subscribed to."""
    expected, known = list(_own_texts(part, name)), list(_known_texts(broker))
    for text in sorted({*expected, *known}):
        if expected.count(text) != known.count(text):
            found = f"{known.count(text)} of {expected.count(text)} subscriptions"
            yield f"broker {name}: {found} to {text} are known"
    if broker.context.filters != by_type(known):
        yield f"broker {name}: the filters of its sinks are not those of their subscriptions"


def _known_texts(broker: Broker) -> Iterator[str]:
    return (one.text for sink in broker.context.sinks for one in sink.interests)


def _own_texts(part: Part, name: str) -> Iterator[str]:
    sinks = [sink for sink in part.sinks if sink.broker.name == name]
    if any(sink.refusals for sink in sinks):
        yield from _known_texts(part.brokers[name])  # what did not fit its type has ended
        return
    for sink in sinks:
        yield from sink.filters


# --- what is wanted along the single tree (thesis 7.3.4) ---


def _check_wants(part: Part) -> Iterator[str]:
    """Each broker knows of each neighbour in the tree what somebody wants beyond it."""
    found: dict[tuple[str, str], Filters] = {}
    for name, broker in part.brokers.items():
        router = broker.context.router
        if router.branches.keys() != router.partners:
            yield f"broker {name}: not all neighbours in the tree follow the same plan"
        for neighbour, branch in router.branches.items():
            if neighbour not in part.brokers:
                yield f"broker {name}: {neighbour} is not there, and in the tree"
                return
            wanted = {one: texts for one in branch.types if (texts := branch.texts(one))}
            right = _wanted(part, neighbour, name, found)
            for one in sorted(wanted.keys() | right.keys()):
                here, there = wanted.get(one, ()), right.get(one, ())
                if here != there:
                    told = f"wants {list(there)} of {one}, and is known to want {list(here)}"
                    yield f"broker {name}: whoever is beyond {neighbour} {told}"


def _wanted(part: Part, name: str, to: str, found: dict[tuple[str, str], Filters]) -> Filters:
    """The filters that a broker wants of a neighbour: those wanted at it, and beyond all
    others.
    """
    known = found.get((name, to))
    if known is not None:
        return known
    found[name, to] = {}  # what is no tree is told elsewhere, and ends here
    broker, texts = part.brokers[name], dict[str, set[str]]()
    for text in _own_texts(part, name):
        texts.setdefault(type_of(text), set()).add(text)
    for other in broker.context.router.branches:
        if other != to and other in part.brokers:
            for one, wanted in _wanted(part, other, name, found).items():
                texts.setdefault(one, set()).update(wanted)
    schemas: Mapping[str, EventType] = broker.context.advertisements.schemas
    made = {one: maximal_of_type(tuple(sorted(of)), schemas.get(one)) for one, of in texts.items()}
    found[name, to] = made
    return made


# --- trees of brokers with sinks ---


def trees_of(broker: Broker) -> Iterator[tuple[str, ProcessingTree]]:
    """A broker's parts in the trees of sinks, by the roots of these."""
    yield from broker.context.detection.trees.items()


def check_trees(part: Part) -> Iterator[str]:
    """Fathers and children of the trees of sinks agree, and make trees."""
    trees: dict[str, dict[str, ProcessingTree]] = {}
    for name, broker in part.brokers.items():
        for root, tree in trees_of(broker):
            trees.setdefault(root, {})[name] = tree
    for root, own in sorted(trees.items()):
        yield from _check_tree(part, root, own)


def _check_tree(part: Part, root: str, own: Mapping[str, ProcessingTree]) -> Iterator[str]:
    told = f"the tree for the sinks of {root}"
    if root not in own or len({(one.generation, one.filters) for one in own.values()}) > 1:
        yield f"{told} is not the same for all its brokers"
        return
    edges = {(one.father, name) for name, one in own.items() if one.father is not None}
    # Brokers out of reach have a place in the division of the rules, which wait for them.
    absent = set(part.brokers[root].agreed.out_of_reach)
    children = {(name, child) for name, one in own.items() for child in one.children - absent}
    if edges != children:
        yield f"fathers and children of {told} do not agree"
    elif own[root].father is not None or not _is_tree(root, edges):
        yield f"{told} is no tree"
    else:
        for father, name in sorted(edges):
            if father not in own[name].met or name not in own[father].met:
                yield f"{told} is not open between {father} and {name}"
    wanted = {type_of(text) for text in _own_texts(part, root)}
    for text in own[root].filters:
        if type_of(text) not in wanted:
            yield f"{told} brings {text}, which none of them wants"


def _is_tree(root: str, edges: Iterable[tuple[str, str]]) -> bool:
    graph = nx.DiGraph(list(edges))
    return not graph or (root in graph and nx.is_arborescence(graph))
