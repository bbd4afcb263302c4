"""Links that break and are made anew, as over ZeroMQ: the neighbour's channel outlives them."""

from random import Random

import pytest
from mesh import Mesh

from routing import wire
from routing.effects import Close, Log, Send
from routing.messages import (
    LINK_VERSION,
    Answered,
    Code as Why,
    Goodbye,
    LinkHello,
    LinkStates,
    Message,
    Refused,
)
from routing.overlay.config import OverlayConfig
from routing.overlay.ends import Heard, Up
from routing.overlay.overlay import Overlay

DELAY_S = 0.002


class Exchange:
    """Overlays that dial one another: every connection is another link for who is dialled."""

    def __init__(self, seed: int = 0) -> None:
        self.mesh = Mesh(Random(seed))
        self.mesh.settle = self.settle  # type: ignore[method-assign]
        self.nodes: dict[str, Overlay] = {}
        self.logs: list[tuple[str, str, str]] = []
        self.ups: list[tuple[str, str, bool]] = []
        self.heard: dict[str, list[int]] = {}
        self.sent: dict[str, int] = {}
        self.open: dict[tuple[str, bytes], tuple[str, bytes]] = {}
        """By (broker, link), the far end of a connection."""
        self._connections = 0
        self._incarnations = 0

    def start(self, name: str, *links: str, incarnation: int = 0, **options: float) -> Overlay:
        self._incarnations += 1
        config = OverlayConfig(name, incarnation or self._incarnations, **options)  # type: ignore[arg-type]
        node = self.nodes[name] = self.mesh.parties[name] = Overlay(config, self.mesh.now)  # type: ignore[assignment]
        for far in links:
            node.add_link(b"\0to " + far.encode(), self.mesh.now)
        return node

    def kill(self, name: str) -> None:
        del self.nodes[name], self.mesh.parties[name]
        for end in [end for end in self.open if end[0] == name]:
            self.hang_up(*end)

    def hang_up(self, name: str, peer: bytes) -> None:
        """A connection ends; who has dialled notices, who was dialled when it sends next."""
        far, known_as = self.open.pop((name, peer), ("", b""))
        self.open.pop((far, known_as), None)
        if far in self.nodes and known_as.startswith(b"\0to "):
            self.mesh.at(self.mesh.now + DELAY_S, lambda: self._lose(far, known_as))

    def _lose(self, name: str, peer: bytes) -> None:
        if name in self.nodes:
            self.nodes[name].lose(peer, self.mesh.now)

    def send(self, name: str, to: str) -> None:
        """The next number, from one broker to another."""
        number = self.sent[name] = self.sent.get(name, 0) + 1
        answer = Answered((), number, Refused(0, Why.UNKNOWN, ""))
        self.nodes[name].send(to, answer, self.mesh.now)

    def settle(self, names: object = None) -> None:
        for name in list(self.nodes):
            for effect in self.nodes[name].take_effects():
                if isinstance(effect, Send):
                    self._carry(name, effect.peer, effect.message)
                elif isinstance(effect, Close):
                    self.mesh.at(
                        self.mesh.now + DELAY_S,
                        lambda name=name, peer=effect.peer: self.hang_up(name, peer),
                    )
                else:
                    said = str(effect.fields.get("reason", effect.fields.get("neighbour", "")))
                    self.logs.append((name, effect.text, said))
            for change in self.nodes[name].take_changes():
                if isinstance(change, Up):
                    self.ups.append((name, change.name, change.fresh))
                elif isinstance(change, Heard) and isinstance(change.message, Answered):
                    self.heard.setdefault(name, []).append(change.message.number)

    def _carry(self, name: str, peer: bytes, message: Message) -> None:
        if (name, peer) not in self.open:
            far = peer.removeprefix(b"\0to ").removesuffix(b" too").decode()
            if not peer.startswith(b"\0to ") or far not in self.nodes:
                self.mesh.at(self.mesh.now, lambda: self._lose(name, peer))
                return
            self._connections += 1
            known_as = b"%d" % self._connections
            self.open[name, peer] = far, known_as
            self.open[far, known_as] = name, peer
        far, known_as = self.open[name, peer]
        frames = wire.encode(message)

        def arrive() -> None:
            if far in self.nodes:
                self.nodes[far].receive_frames(known_as, frames, self.mesh.now)

        self.mesh.at(self.mesh.now + DELAY_S, arrive)

    def run(self, seconds: float) -> None:
        self.mesh.run(self.mesh.now + seconds)

    def agree(self) -> None:
        """All see all, and have one tree."""
        for node in self.nodes.values():
            assert node.topology.part.nodes == self.nodes.keys()
            tree = node.topology.single_tree
            assert tree is not None

    def said(self, name: str) -> list[str]:
        """What warnings a broker's log has."""
        return [text for who, text, _ in self.logs if who == name and not text.endswith(" up")]


def test_who_comes_back_on_another_link_goes_on_where_it_was() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.start("b", "a")
    exchange.run(2)
    exchange.agree()
    for _ in range(5):
        exchange.hang_up("b", b"\0to a")
        exchange.send("a", "b")
        exchange.send("b", "a")
        exchange.run(2)
    exchange.agree()
    assert exchange.heard == {"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 5]}
    assert [up for up in exchange.ups if up[2]] == [("a", "b", True), ("b", "a", True)]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_breaks_everything_arrives_once_and_in_order(seed: int) -> None:
    """Links made by one, by both, and twice; connections that end at any moment."""
    random = Random(f"links {seed}")
    exchange = Exchange(seed)
    exchange.start("a", *random.choice([(), ("b",)]))
    exchange.start("b", "a")
    if random.random() < 0.3:
        exchange.nodes["b"].add_link(b"\0to a too", 0.0)
    exchange.run(1)
    for _ in range(60):
        match random.choice(["send", "send", "send", "pass", "pass", "break"]):
            case "send":
                name = random.choice("ab")
                far = "b" if name == "a" else "a"
                if far in exchange.nodes[name].neighbours:
                    exchange.send(name, far)
            case "pass":
                exchange.run(random.choice([0.001, 0.01, 0.3, 1.0]))
            case "break" if exchange.open:
                exchange.hang_up(*random.choice(sorted(exchange.open)))
    exchange.run(10)
    exchange.agree()
    for name, far in ("ab", "ba"):
        expected = list(range(1, exchange.sent.get(name, 0) + 1))
        assert exchange.heard.get(far, []) == expected, f"seed {seed}"


def test_two_that_dial_one_another_have_one_link() -> None:
    exchange = Exchange()
    exchange.start("a", "b")
    exchange.start("b", "a")
    exchange.run(2)
    exchange.agree()
    assert [len(node.neighbours) for node in exchange.nodes.values()] == [1, 1]
    assert exchange.said("a") == exchange.said("b") == []
    before = len(exchange.ups)
    exchange.run(20)
    assert len(exchange.ups) == before == 2


def test_when_one_link_of_two_breaks_the_other_carries_on() -> None:
    exchange = Exchange()
    exchange.start("a", "b")
    exchange.start("b", "a")
    exchange.run(2)
    ups = len(exchange.ups)
    for name, peer in ("a", b"\0to b"), ("b", b"\0to a"):
        exchange.hang_up(name, peer)
        exchange.nodes[name].lose(peer, exchange.mesh.now)
        exchange.run(2)
        exchange.send("a", "b")
        exchange.send("b", "a")
        exchange.run(2)
    assert exchange.heard == {"a": [1, 2], "b": [1, 2]}
    assert not any(fresh for _, _, fresh in exchange.ups[ups:])
    exchange.agree()


def test_nobody_there_is_said_once_and_tried_again() -> None:
    exchange = Exchange()
    exchange.start("b", "a")
    exchange.run(20)
    assert exchange.said("b") == ["no broker answers yet"]
    exchange.start("a")
    exchange.run(2)
    exchange.agree()


def test_a_namesake_is_refused_and_says_so_once() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.start("b", "a")
    exchange.run(2)
    twin = exchange.nodes["b"]
    exchange.nodes["twin"] = exchange.mesh.parties["twin"] = Overlay(  # type: ignore[assignment]
        OverlayConfig("b", 77), exchange.mesh.now
    )
    exchange.nodes["twin"].add_link(b"\0to a", exchange.mesh.now)
    exchange.run(10)
    assert exchange.said("a") == ["link refused"]
    assert exchange.said("twin") == ["refused by another broker"]
    assert exchange.nodes["a"].neighbours.keys() == {"b"}
    assert twin.neighbours.keys() == {"a"}


def test_one_that_bears_our_own_name_is_refused() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.nodes["twin"] = exchange.mesh.parties["twin"] = Overlay(OverlayConfig("a", 7), 0.0)  # type: ignore[assignment]
    exchange.nodes["twin"].add_link(b"\0to a", 0.0)
    exchange.run(3)
    (line,) = [one for one in exchange.logs if one[0] == "a"]
    assert line == ("a", "link refused", "this broker is named 'a' itself")


def test_a_namesake_further_away_is_noticed_by_both() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.start("b", "a")
    exchange.start("c", "b")
    exchange.run(3)
    exchange.agree()
    exchange.nodes["twin"] = exchange.mesh.parties["twin"] = Overlay(  # type: ignore[assignment]
        OverlayConfig("a", 77), exchange.mesh.now
    )
    exchange.nodes["twin"].add_link(b"\0to c", exchange.mesh.now)
    exchange.run(20)
    text = "another broker of the network bears this name"
    assert exchange.said("a") == exchange.said("twin") == [text]
    assert exchange.said("b") == exchange.said("c") == []


def test_brokers_of_other_terms_are_refused() -> None:
    exchange = Exchange()
    exchange.start("a", terms="centralized")  # type: ignore[arg-type]
    exchange.start("b", "a", terms="distributed-st")  # type: ignore[arg-type]
    exchange.run(5)
    assert not exchange.nodes["a"].neighbours
    reason = "broker 'b' has 'distributed-st', but 'a' has 'centralized'"
    assert exchange.logs == [
        ("a", "link refused", reason),
        ("b", "refused by another broker", reason),
    ]


def test_another_version_is_refused_whatever_it_says() -> None:
    exchange = Exchange()
    node = exchange.start("a")
    frames = [bytes(frame) for frame in wire.encode(LinkHello(LINK_VERSION, "b", 1, 0, 0, 0, 1.0))]
    frames[0] = frames[0][:2] + b"\x07" + frames[0][3:]
    node.receive_frames(b"x", frames, 0.0)
    goodbye, close, log = node.take_effects()
    assert isinstance(goodbye, Send)
    assert isinstance(goodbye.message, Goodbye)
    assert goodbye.message.code is Why.VERSION
    assert close == Close(b"x", goodbye.message.reason)
    assert isinstance(log, Log)


def test_garbage_costs_one_link_and_nothing_is_lost() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.start("b", "a")
    exchange.start("c", "a")
    exchange.run(2)
    (link,) = [peer for (name, peer), far in exchange.open.items() if name == "a" and far[0] == "b"]
    exchange.nodes["a"].receive_frames(link, [b"RX\x02\xff\xff"], exchange.mesh.now)
    assert exchange.nodes["a"].neighbours.keys() == {"c"}
    exchange.send("b", "a")
    exchange.run(2)
    exchange.agree()
    assert exchange.heard == {"a": [1]}
    assert [up for up in exchange.ups if up[1] == "c"] == [("a", "c", True)]


def test_a_killed_broker_that_comes_back_is_another_life() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.start("b", "a")
    exchange.run(2)
    exchange.kill("b")
    exchange.start("b", "a")
    exchange.run(4)
    exchange.agree()
    assert exchange.ups[-2:] in (
        [("a", "b", True), ("b", "a", True)],
        [("b", "a", True), ("a", "b", True)],
    )


def test_a_broker_at_an_endpoint_may_be_replaced_by_another() -> None:
    exchange = Exchange()
    exchange.start("a")
    exchange.start("b", "a")
    exchange.run(2)
    exchange.kill("a")
    exchange.nodes["a"] = exchange.mesh.parties["a"] = Overlay(  # type: ignore[assignment]
        OverlayConfig("z", 99), exchange.mesh.now
    )
    exchange.run(3)
    assert exchange.nodes["b"].neighbours.keys() == {"z"}


def test_a_neighbour_without_a_link_makes_room_for_another() -> None:
    exchange = Exchange()
    exchange.start("a", neighbours_max=1)
    for name in ("b", "c"):
        exchange.start(name, "a")
        exchange.run(2)
        assert exchange.nodes["a"].neighbours.keys() == {name}
        exchange.kill(name)
        exchange.run(5)
    exchange.start("b", "a", incarnation=1)  # its clock has gone back, and it was given up here
    exchange.run(5)
    exchange.agree()


def test_who_knows_no_greeting_is_sent_away() -> None:
    exchange = Exchange()
    node = exchange.start("a")
    node.receive(b"x", LinkStates(()), 0.0)  # type: ignore[arg-type]
    assert [type(one) for one in node.take_effects()] == [Send, Close]
    assert b"x" not in node.links
