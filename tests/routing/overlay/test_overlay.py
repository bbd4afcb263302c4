"""Brokers joined into any graph agree on it, on its centre and on its trees."""

import itertools
from collections.abc import Iterable, Iterator
from random import Random

import networkx as nx
import pytest
from mesh import Mesh, Wire, decoded

from routing.effects import Log
from routing.messages import Goodbye, Heartbeat, LinkState
from routing.overlay.config import OverlayConfig
from routing.overlay.graph import fathers_of
from routing.overlay.overlay import Overlay


class Network:
    """Overlays over a mesh. A link's delay is told to both of its ends."""

    def __init__(self, seed: int | str, **wire: float) -> None:
        self.random = Random(seed)
        self.mesh = Mesh(self.random)
        self.wire = wire
        self.nodes: dict[str, Overlay] = {}
        self.links: dict[frozenset[str], float] = {}
        self.starts = 0

    def start(self, name: str, **options: float) -> Overlay:
        self.starts += 1
        config = OverlayConfig(name, round(self.mesh.now * 1e6) + self.starts, **options)  # type: ignore[arg-type]
        node = self.nodes[name] = self.mesh.parties[name] = Overlay(config, self.mesh.now)  # type: ignore[assignment]
        for link in self.links:
            if name in link:
                self._add(name, next(iter(link - {name})))
        return node

    def link(self, one: str, other: str, delay_s: float = 0.005, *, measured: bool = False) -> None:
        self.links[frozenset((one, other))] = delay_s
        for name, far in ((one, other), (other, one)):
            deliver = decoded(
                lambda message, now, name=name, far=far: self._deliver(far, name, message, now)
            )
            self.mesh.wires[name, far.encode()] = Wire(deliver, delay_s, **self.wire)
            self._add(name, far, measured=measured)

    def _add(self, name: str, far: str, *, measured: bool = False) -> None:
        delay_us = None if measured else round(self.links[frozenset((name, far))] * 1e6)
        self.nodes[name].add_link(far.encode(), self.mesh.now, delay_us)

    def _deliver(self, far: str, name: str, message: object, now: float) -> None:
        if far in self.nodes:
            self.nodes[far].receive(name.encode(), message, now)  # type: ignore[arg-type]

    def cut(self, one: str, other: str, cut: bool = True) -> None:
        self.mesh.wires[one, other.encode()].cut = cut
        self.mesh.wires[other, one.encode()].cut = cut

    def kill(self, name: str) -> None:
        del self.nodes[name], self.mesh.parties[name]

    def run(self, seconds: float) -> None:
        self.mesh.run(self.mesh.now + seconds)

    def epochs(self) -> dict[str, int]:
        """The epochs of the brokers' own trees."""
        return {
            name: tree.epoch
            for name, node in self.nodes.items()
            if (tree := node.topology.trees.find(name)) is not None
        }

    # --- what must be true once nothing changes any more ---

    def check(self) -> None:
        graph = self.graph()
        for part in nx.connected_components(graph):
            self.check_part(graph.subgraph(part))

    def graph(self) -> nx.Graph:
        graph = nx.Graph()
        graph.add_nodes_from(self.nodes)
        for link, delay_s in self.links.items():
            one, other = sorted(link)
            if link <= self.nodes.keys() and not self.mesh.wires[one, other.encode()].cut:
                graph.add_edge(one, other, delay=round(delay_s * 1e6))
        return graph

    def check_part(self, graph: nx.Graph) -> None:
        lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight="delay"))
        totals = {name: sum(own.values()) for name, own in lengths.items()}
        centre = min(totals, key=lambda name: (totals[name], name))
        for name in graph:
            node = self.nodes[name]
            assert node.topology.is_settled
            assert node.topology.part.nodes == set(graph), name
            assert node.topology.part.centre == centre, name
            known = [one for one in node.topology.states if one.origin in graph]
            assert known == [
                one for one in self.nodes[centre].topology.states if one.origin in graph
            ]
            tree = node.topology.single_tree
            assert tree is not None, name
            assert tree.root == centre
            assert {one.root for one in node.topology.trees if not one.orphan} == {centre}, name
        self.check_tree(graph, centre)

    def check_tree(self, graph: nx.Graph, root: str) -> None:
        trees = {name: self.nodes[name].topology.trees.find(root) for name in graph}
        fathers = set()
        for name, tree in trees.items():
            assert tree is not None, f"{name} is not in the tree of {root}"
            assert tree.epoch == trees[root].epoch, name  # type: ignore[union-attr]
            assert not tree.orphan
            fathers |= {(tree.father, name)} if tree.father is not None else set()
            assert (tree.father is None) == (name == root)
        children = {(name, child) for name, tree in trees.items() for child in tree.children}  # type: ignore[union-attr]
        assert children == fathers
        assert nx.is_tree(nx.Graph(list(fathers))) if len(graph) > 1 else not fathers
        assert all(graph.has_edge(*edge) for edge in fathers)


def names(count: int) -> list[str]:
    return [f"b{number}" for number in range(count)]


def connected(random: Random, count: int) -> Iterator[tuple[str, str, float]]:
    """The links of a random connected graph with cycles, with delays in seconds."""
    nodes = names(count)
    for place, name in enumerate(nodes[1:], start=1):
        yield random.choice(nodes[:place]), name, random.choice([0.001, 0.005, 0.02])
    for _ in range(random.randint(0, count)):
        one, other = random.sample(nodes, 2) if count > 1 else (nodes[0], nodes[0])
        if one != other:
            yield one, other, random.choice([0.001, 0.005, 0.02])


def network(seed: int | str, count: int, **wire: float) -> Network:
    made = Network(seed, **wire)
    for name in names(count):
        made.start(name)
    for one, other, delay_s in connected(made.random, count):
        if frozenset((one, other)) not in made.links:
            made.link(one, other, delay_s)
    return made


def line(nodes: Iterable[str]) -> Network:
    made = Network(0)
    chain = list(nodes)
    for name in chain:
        made.start(name)
    for one, other in itertools.pairwise(chain):
        made.link(one, other)
    return made


@pytest.mark.parametrize("seed", range(30))
def test_brokers_that_are_linked_agree(seed: int) -> None:
    made = network(seed, Random(seed).randint(1, 12))
    made.run(5)
    made.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_is_one_of_shortest_paths(seed: int) -> None:
    """Where all are linked before the centre is chosen (7.3.1)."""
    made = network(seed, 10)
    made.run(5)
    graph = made.graph()
    centre = made.nodes["b0"].topology.part.centre
    for name, node in made.nodes.items():
        walked, at = 0, name
        while (father := made.nodes[at].topology.single_tree.father) is not None:  # type: ignore[union-attr]
            walked += graph.edges[at, father]["delay"]
            at = father
        assert walked == nx.dijkstra_path_length(graph, name, centre, weight="delay"), node.name


@pytest.mark.parametrize("seed", [*range(40), 394])
def test_whatever_happens_to_it_a_network_heals(seed: int) -> None:
    """Cuts, crashes, restarts, roots that come and go; then it settles, and everybody agrees.

    Seed 394: a broker that lost its father before it had heard of the root did not report it.
    """
    random = Random(f"faults {seed}")
    made = network(
        f"network {seed}",
        random.randint(2, 9),
        jitter_s=random.choice([0.0, 0.03]),
        loss=random.choice([0.0, 0.1]),
    )
    for _ in range(25):
        made.run(random.choice([0.001, 0.02, 0.3, 1.0, 4.0]))
        match random.choice(["cut", "cut", "heal", "kill", "start", "lose", "link"]):
            case "cut" if made.links:
                made.cut(*random.choice(sorted(map(sorted, made.links))))
            case "heal" if made.links:
                made.cut(*random.choice(sorted(map(sorted, made.links))), cut=False)
            case "kill" if len(made.nodes) > 1:
                made.kill(random.choice(sorted(made.nodes)))
            case "start":
                gone = sorted({one for link in made.links for one in link} - made.nodes.keys())
                if gone:
                    made.start(random.choice(gone))
            case "lose":
                name = random.choice(sorted(made.nodes))
                for link in sorted(map(sorted, made.links)):
                    if name in link:
                        far = link[0] if link[1] == name else link[1]
                        made.nodes[name].lose(far.encode(), made.mesh.now)
            case "link" if len(made.nodes) > 1:
                one, other = random.sample(sorted(made.nodes), 2)
                if frozenset((one, other)) not in made.links:
                    made.link(one, other)
    for wire in made.mesh.wires.values():
        wire.loss = 0.0
    if random.random() < 0.5:
        for wire in made.mesh.wires.values():
            wire.cut = False
    made.run(60)
    made.check()


@pytest.mark.parametrize(("link", "is_rebuilt"), [(("b2", "b3"), False), (("b0", "b1"), True)])
def test_only_a_tree_that_used_a_lost_link_is_rebuilt(link: tuple[str, str], is_rebuilt: bool):
    """In a ring of five, the link opposite the root is in no tree."""
    made = Network(0)
    for name in names(5):
        made.start(name)
    for place in range(5):
        made.link(f"b{place}", f"b{(place + 1) % 5}")
    made.run(3)
    made.check()
    before = made.epochs()
    assert before.keys() == {"b0"}
    made.cut(*link)
    made.run(10)
    made.check()
    assert (made.epochs() != before) == is_rebuilt


def test_a_broker_that_joins_is_taken_in_without_a_new_epoch() -> None:
    made = line(["b0", "b1", "b2"])
    made.run(3)
    before = made.nodes["b1"].topology.single_tree
    assert before is not None
    assert before.root == "b1"
    epoch = before.epoch
    made.start("b9")
    made.link("b1", "b9")
    made.run(3)
    made.check()
    assert made.nodes["b1"].topology.single_tree.epoch == epoch  # type: ignore[union-attr]


def test_networks_that_are_joined_go_by_their_trees_until_they_have_settled() -> None:
    made = Network(0)
    for name in ("b0", "b1", "b2", "b3"):
        made.start(name)
    made.link("b0", "b1")
    made.link("b2", "b3")
    made.run(3)
    assert made.nodes["b0"].topology.part.centre == "b0"
    assert made.nodes["b3"].topology.part.centre == "b2"
    made.link("b1", "b2")
    made.run(0.2)  # heard of one another, and not settled yet
    roots = [made.nodes[name].topology.single_tree.root for name in ("b1", "b2")]  # type: ignore[union-attr]
    assert roots == ["b0", "b2"]
    made.run(5)
    made.check()
    assert made.nodes["b0"].topology.part.centre == "b1"


def test_a_link_is_told_of_once_it_is_measured() -> None:
    made = Network(0)
    made.start("b0")
    made.start("b1")
    made.link("b0", "b1", 0.03, measured=True)
    made.run(0.2)
    assert not made.nodes["b0"].topology.part.edges
    made.run(3)
    made.check()
    assert made.nodes["b0"].topology.part.edges == (("b0", "b1", 30_000),)


def test_of_equal_ways_that_of_fewer_links_is_taken() -> None:
    made = Network(0)
    for name in ("b0", "b1", "b2"):
        made.start(name)
    made.link("b0", "b2", 0.002)
    made.link("b0", "b1", 0.001)
    made.link("b1", "b2", 0.001)
    made.start("b3")
    made.link("b1", "b3", 0.001)
    made.run(3)
    made.check()
    assert made.nodes["b1"].topology.part.centre == "b1"
    assert fathers_of(
        "b0", made.nodes["b0"].topology.part.nodes, made.nodes["b0"].topology.part.edges
    ) == {
        "b1": "b0",
        "b2": "b0",
        "b3": "b1",
    }


def test_a_leaving_broker_is_gone_at_once() -> None:
    made = line(["b0", "b1", "b2"])
    made.run(3)
    made.nodes["b2"].close("enough", made.mesh.now)
    made.mesh.settle()
    made.run(0.1)
    assert [one for one, _ in made.nodes["b1"].topology.database.own.neighbours] == ["b0"]


def test_the_network_is_quiet_when_nothing_happens() -> None:
    made = network(1, 8)
    made.run(10)
    before = {name: node.topology.states for name, node in made.nodes.items()}
    carried = sum(wire.carried for wire in made.mesh.wires.values())
    made.run(100)
    assert {name: node.topology.states for name, node in made.nodes.items()} == before
    signs = sum(wire.carried for wire in made.mesh.wires.values()) - carried
    assert signs <= len(made.mesh.wires) * 201


def test_who_was_kept_from_its_work_for_long_knows_it_whatever_comes_first() -> None:
    """Frames that are no message came first, and it did not."""
    made = line(["b0", "b1"])
    made.run(3)
    node = made.nodes["b0"]
    version = node.topology.database.own.version
    node.receive_frames(b"x", [b"GET / HTTP/1.1"], made.mesh.now + 3_600)
    assert node.topology.database.own.version == version + 1


def test_names_are_brokers_own() -> None:
    made = Network(0)
    for name in ("b0", "b1"):
        made.start(name)
    made.link("b0", "b1")
    made.run(1)
    twin = Overlay(OverlayConfig("b1", 77), made.mesh.now)
    twin.add_link(b"x", made.mesh.now)
    (greeting,) = twin.take_effects()
    made.nodes["b0"].receive(b"other", greeting.message, made.mesh.now)  # type: ignore[union-attr]
    said = [one.message for one in made.nodes["b0"].take_effects() if hasattr(one, "message")]
    assert any(isinstance(one, Goodbye) and "linked already" in one.reason for one in said)
    made.run(3)
    made.check()


def test_who_does_not_greet_is_sent_away() -> None:
    node = Overlay(OverlayConfig("b0"), 0.0)
    node.receive(b"x", Heartbeat(), 0.0)  # type: ignore[arg-type]
    said = [one.message for one in node.take_effects() if hasattr(one, "message")]
    assert [type(one) for one in said] == [Goodbye]


def test_too_many_neighbours_are_refused() -> None:
    node = Overlay(OverlayConfig("b0", neighbours_max=1), 0.0)
    for number in (1, 2):
        other = Overlay(OverlayConfig(f"b{number}"), 0.0)
        other.add_link(b"x", 0.0)
        (greeting,) = other.take_effects()
        node.receive(str(number).encode(), greeting.message, 0.0)  # type: ignore[union-attr]
    assert len(node.neighbours) == 1
    said = [one.message for one in node.take_effects() if hasattr(one, "message")]
    assert any(isinstance(one, Goodbye) and "neighbours_max" in one.reason for one in said)


def test_a_restarted_broker_speaks_above_its_former_versions() -> None:
    made = Network(0)
    made.starts = 10_000_000
    for name in ("b0", "b1"):
        made.start(name)
    made.link("b0", "b1")
    made.run(3)
    made.kill("b0")
    made.starts = 0  # its clock has gone back
    made.start("b0")
    made.run(10)
    made.check()


def test_link_states_beyond_the_bound_are_dropped_and_counted() -> None:
    node = Overlay(OverlayConfig("b0", nodes_max=2), 0.0)
    node.topology.database.take("b1", [LinkState("b1", 1), LinkState("b2", 1), LinkState("b1", 2)])
    assert [one.origin for one in node.topology.states] == ["b0", "b1"]
    assert node.topology.database.refused == 1
    assert not any(isinstance(one, Log) and one.level == "error" for one in node.take_effects())
