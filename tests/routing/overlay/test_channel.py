"""The link between two brokers: everything once, in order, whatever lies below."""

from random import Random

import pytest
from event_batches import batch_of
from mesh import Mesh, Wire, decoded

from matcher.model import EventType
from routing.effects import Send
from routing.errors import ProtocolError
from routing.messages import (
    VERSION,
    Asked,
    CheckpointProbe,
    Code,
    Flow,
    FromNeighbour,
    Goodbye,
    Heartbeat,
    LinkAck,
    LinkHello,
    LinkState,
    LinkStates,
    ListRules,
    Packet,
)
from routing.overlay.channel import PILED_EVENTS, UNACKNOWLEDGED_EVENTS, Channel
from routing.overlay.config import OverlayConfig
from routing.overlay.ends import ChannelState, DelayKnown, Down, Piling, Up, tag_of
from routing.overlay.greeting import Greeting

A, B = b"to-a", b"to-b"
TEMP = EventType.of("Temp", value="float")


class Pair:
    """Two ends, what each has received in this pair of incarnations, and the wires between them."""

    def __init__(self, random: Random, **wire: float) -> None:
        self.mesh = Mesh(random)
        self.mesh.after = self.take
        self.options: dict[str, float] = {"window_max": 8, "buffer_max": 64}
        self.ends: dict[str, Channel] = {}
        self.got: dict[str, list[int]] = {"a": [], "b": []}
        self.told: dict[str, list[object]] = {"a": [], "b": []}
        self.sent = {"a": 0, "b": 0}
        self.start("a", B, 1)
        self.start("b", A, 1)
        for name, peer, other in (("a", B, "b"), ("b", A, "a")):
            deliver = decoded(
                lambda message, now, other=other: self.ends[other].receive(message, now)
            )
            self.mesh.wires[name, peer] = Wire(deliver, **wire)

    def start(self, name: str, peer: bytes, incarnation: int) -> None:
        config = OverlayConfig(name, incarnation, **self.options)  # type: ignore[arg-type]
        self.ends[name] = Channel(peer, config, self.mesh.now)
        self.mesh.parties[name] = self.ends[name]

    def take(self, name: str) -> None:
        for result in self.ends[name].take_results():
            if isinstance(result, CheckpointProbe):
                self.got[name].append(result.number)
                assert self.ends[name].is_up
            else:
                self.told[name].append(result)
                if isinstance(result, Up) and result.fresh:
                    self.got[name] = []

    def send(self, name: str) -> None:
        self.sent[name] += 1
        self.ends[name].send(CheckpointProbe(self.sent[name]), self.mesh.now)

    def cut(self, cut: bool) -> None:
        for wire in self.mesh.wires.values():
            wire.cut = cut


@pytest.mark.parametrize("seed", range(60))
def test_everything_arrives_once_and_in_order(seed: int) -> None:
    """Loss, repeats, reordering and breaks; then the network heals and everything is there."""
    random = Random(seed)
    pair = Pair(
        random,
        delay_s=random.choice([0.0, 0.005, 0.3]),
        jitter_s=random.choice([0.0, 0.02, 1.0]),
        loss=random.choice([0.0, 0.05, 0.3]),
        repeats=random.choice([0.0, 0.2]),
    )
    for _ in range(120):
        match random.choices(["send", "pass", "cut", "heal", "lose"], [10, 6, 1, 2, 1])[0]:
            case "send":
                name = random.choice("ab")
                if pair.ends[name].room:
                    pair.send(name)
            case "pass":
                pair.mesh.run(pair.mesh.now + random.choice([0.001, 0.1, 2.0]))
            case "lose":
                pair.ends[random.choice("ab")].lose(pair.mesh.now)
            case word:
                pair.cut(word == "cut")
        for end in pair.ends.values():
            assert end.kept <= 8
            assert end.buffered <= 64
    pair.cut(False)
    for wire in pair.mesh.wires.values():
        wire.loss = 0.0
    pair.mesh.run(pair.mesh.now + 200)
    assert pair.got == {
        "a": list(range(1, pair.sent["b"] + 1)),
        "b": list(range(1, pair.sent["a"] + 1)),
    }, f"seed {seed}"
    assert all(end.is_up and end.buffered == 0 for end in pair.ends.values())


@pytest.mark.parametrize("seed", range(40))
def test_lives_are_not_mixed(seed: int) -> None:
    """Restarts in between: of each pair of incarnations what arrives is a beginning of what was
    sent, and with the last pair, once the network has healed, it is everything.
    """
    random = Random(f"lives {seed}")
    pair = Pair(random, delay_s=0.05, jitter_s=1.5, loss=0.1, repeats=0.2)
    incarnations = {"a": 1, "b": 1}
    for _ in range(40):
        pair.mesh.run(pair.mesh.now + random.choice([0.01, 0.5, 3.0]))
        for name in "ab":
            got = pair.got[name]
            assert got == list(range(got[0], got[0] + len(got))) if got else True, f"seed {seed}"
        if random.random() < 0.2:
            name = random.choice("ab")
            incarnations[name] += random.randint(1, 3)
            pair.start(name, B if name == "a" else A, incarnations[name])
            pair.got[name] = []
        elif pair.ends["a"].room and pair.ends["b"].room:
            pair.send(random.choice("ab"))
    for wire in pair.mesh.wires.values():
        wire.loss = 0.0
    pair.mesh.run(pair.mesh.now + 100)
    last = dict(pair.sent)
    pair.send("a")
    pair.send("b")
    pair.mesh.run(pair.mesh.now + 100)
    assert pair.got["b"][-1] == last["a"] + 1
    assert pair.got["a"][-1] == last["b"] + 1
    assert all(end.is_up and end.buffered == 0 for end in pair.ends.values())


def test_a_break_that_both_ends_notice_loses_nothing() -> None:
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.cut(True)
    for end in pair.ends.values():
        end.lose(pair.mesh.now)
    for _ in range(20):
        pair.send("a")
    pair.mesh.run(3)
    assert pair.got["b"] == []
    pair.cut(False)
    pair.mesh.run(5)
    assert pair.got["b"] == list(range(1, 21))
    ups = [one for one in pair.told["b"] if isinstance(one, Up)]
    assert ups == [Up("a", True), Up("a", False)]


@pytest.mark.parametrize("lost", ["first", "all"])
def test_requests_go_with_the_link(lost: str) -> None:
    """Those that are under way, those that wait for room, and those that came before their turn."""
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.cut(True)
    pair.send("a")
    pair.mesh.run(1.01)
    pair.cut(lost == "all")
    for number in range(20):  # twice what the window has room for
        request = Asked(("a",), number, "client", ListRules(number))
        pair.ends["a"].send(request, pair.mesh.now)
    pair.mesh.run(1.1)
    pair.cut(True)
    for end in pair.ends.values():
        end.lose(pair.mesh.now)
    pair.cut(False)
    pair.send("a")
    pair.mesh.run(5)
    assert pair.got["b"] == [1, 2]
    assert pair.ends["a"].buffered == 0
    others = [one for one in pair.told["b"] if not isinstance(one, Up | Down)]
    assert others == [LinkStates(())] * 7


def test_link_states_go_with_the_link() -> None:
    """They are told anew; who told them may have forgotten since what they say."""
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.cut(True)
    pair.ends["a"].send(LinkStates((LinkState("c", 1),)), pair.mesh.now)
    pair.send("a")
    pair.mesh.run(6)
    pair.cut(False)
    pair.mesh.run(12)
    assert pair.got["b"] == [1]
    told = [one for one in pair.told["b"] if not isinstance(one, Up | Down)]
    assert told == [LinkStates(())]


def test_silence_takes_a_link_down_and_up_again() -> None:
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.cut(True)
    pair.mesh.run(6)
    assert pair.told["a"][-1] == Down("b", "nothing heard for 3 s")
    pair.cut(False)
    pair.mesh.run(8)
    assert pair.told["a"][-1] == Up("b", False)


def test_an_idle_link_says_little() -> None:
    pair = Pair(Random(0))
    pair.mesh.run(100)
    for wire in pair.mesh.wires.values():
        assert wire.carried <= 205, "two signs of life a second, and the greetings"


def test_acknowledgements_wait_for_something_to_travel_with() -> None:
    pair = Pair(Random(0))
    pair.options = {}
    pair.start("a", B, 2)
    pair.start("b", A, 2)
    pair.mesh.run(1)
    there, back = pair.mesh.wires["a", B], pair.mesh.wires["b", A]
    there.carried = back.carried = 0
    for _ in range(100):
        pair.send("a")
        pair.mesh.run(pair.mesh.now + 0.01)
    assert (there.carried, back.carried) == (100, 5), "one each 0.2 s"
    for _ in range(100):
        pair.send("a")
        pair.send("b")
        pair.mesh.run(pair.mesh.now + 0.01)
    assert (there.carried, back.carried) == (200, 105)
    pair.mesh.run(pair.mesh.now + 1)
    assert pair.ends["a"].buffered == pair.ends["b"].buffered == 0


def test_one_way_a_quarter_of_the_window_is_acknowledged_at_once() -> None:
    pair = Pair(Random(0))
    pair.mesh.run(1)
    for _ in range(8):
        pair.send("a")
    pair.mesh.run(pair.mesh.now + 0.02)
    assert pair.ends["a"].buffered == 0


def test_what_is_acknowledged_too_late_is_refused() -> None:
    with pytest.raises(ValueError, match=r"acknowledge_s \(1\) must be less than resend_s \(1\)"):
        OverlayConfig("a", acknowledge_s=1.0)


def test_a_window_bounds_what_is_under_way() -> None:
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.cut(True)
    for _ in range(64):
        pair.send("a")
    assert pair.ends["a"].room == 0
    effects = pair.ends["a"].take_effects()
    assert sum(isinstance(one, Send) for one in effects) == 8


def test_a_full_buffer_starts_the_link_anew() -> None:
    """What a neighbour would not take is dropped, and it is told everything anew."""
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.cut(True)
    for _ in range(66):
        pair.send("a")
    pair.cut(False)
    pair.mesh.run(5)
    assert pair.ends["a"].buffered == 0
    assert pair.told["b"][-2:] == [Down("a", "the neighbour has started anew"), Up("a", True)]
    assert pair.told["a"][-2:] == [Down("b", "the buffer has overflowed"), Up("b", True)]
    pair.send("a")
    pair.mesh.run(6)
    assert pair.got["b"][-1] == 67


def test_the_delay_is_the_least_of_some() -> None:
    pair = Pair(Random(0), delay_s=0.05, jitter_s=0.04)
    pair.mesh.run(1)
    before = len(pair.told["a"])
    pair.ends["a"].measure(pair.mesh.now)
    assert pair.ends["a"].delay_us is None
    pair.mesh.run(3)
    assert pair.told["a"][before:] == [DelayKnown()]
    assert pair.ends["a"].delay_us == pytest.approx(55_000, abs=5_000)


def test_an_answer_to_an_earlier_greeting_measures_nothing() -> None:
    greeting = Greeting(0.5)
    greeting.measure(0.0)
    greeting.send(0.0)
    greeting.send(0.5)
    assert not greeting.hear(1, 0.6)
    for place in range(5):
        assert not greeting.hear(greeting.number - 1, 0.7)
        assert greeting.hear(greeting.number, greeting.due_at) == (place == 4)
        greeting.send(1.0)
    assert greeting.delay_us is not None


def test_goodbye_takes_a_link_down_at_once() -> None:
    pair = Pair(Random(0))
    pair.mesh.run(1)
    pair.ends["b"].close(pair.mesh.now, "the broker stops")
    pair.mesh.run(1.1)
    assert pair.told["a"][-1] == Down("b", "the broker stops")
    assert pair.ends["b"].state is ChannelState.CLOSED
    assert pair.ends["b"].next_timer() is None


def hello(incarnation: int, knows: int = 0) -> LinkHello:
    return LinkHello(VERSION, "b", incarnation, knows, 0, 0, 1.0)


def test_a_broker_whose_clock_went_back_takes_a_life_of_its_own() -> None:
    end = Channel(B, OverlayConfig("a", 5), 0.0)
    end.receive(hello(1, knows=9), 0.0)
    greetings = [
        one.message
        for one in end.take_effects()
        if isinstance(one, Send) and isinstance(one.message, LinkHello)
    ]
    assert greetings[-1].incarnation > 9


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Heartbeat(), Code.PROTOCOL),
        (CheckpointProbe(1), Code.PROTOCOL),
        (LinkAck(tag_of(3, 1), 7), Code.PROTOCOL),
        (Packet(tag_of(3, 1), 1, 7, CheckpointProbe(1)), Code.PROTOCOL),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_neighbour_may_not_send(message: object, code: Code) -> None:
    end = Channel(B, OverlayConfig("a"), 0.0)
    end.receive(hello(3), 0.0)
    with pytest.raises(ProtocolError) as caught:
        end.receive(message, 0.0)  # type: ignore[arg-type]
    assert caught.value.code is code
    assert end.is_up


def test_what_belongs_to_another_life_is_ignored() -> None:
    end = Channel(B, OverlayConfig("a"), 0.0)
    end.receive(hello(3), 0.0)
    end.take_effects()
    for stale in (
        Packet(tag_of(2, 1), 1, 0, CheckpointProbe(1)),
        LinkAck(tag_of(2, 1), 5),
        hello(2),
    ):
        end.receive(stale, 0.0)
        assert end.take_effects() == []
    assert end.take_results() == [Up("b", True)]
    assert Goodbye() not in end.take_effects()


def test_a_slow_link_is_not_made_slower_by_what_is_sent_again() -> None:
    """Every packet was sent two or three times where a link takes longer than a fixed second."""
    pair = Pair(Random(0), delay_s=3.0)
    packets: list[int] = []
    receive = pair.ends["b"].receive

    def counting(message: FromNeighbour, now: float) -> None:
        if isinstance(message, Packet):
            packets.append(message.sequence)
        receive(message, now)

    pair.ends["b"].receive = counting  # type: ignore[method-assign]
    pair.mesh.run(20)
    for _ in range(60):
        pair.send("a")
    pair.mesh.run(200)
    assert pair.got["b"] == list(range(1, 61))
    again = {one for one in packets if packets.count(one) > 1}
    assert again <= set(range(1, 17)), "two windows, of which nobody knew how long they take"


def test_an_outage_says_nothing_of_how_long_a_link_takes() -> None:
    """A packet that had arrived was acknowledged with the greeting, a minute later."""
    pair = Pair(Random(0), delay_s=0.01)
    pair.mesh.run(5)
    pair.mesh.wires["b", A].cut = True
    pair.send("a")
    pair.mesh.run(5.3)
    assert pair.got["b"] == [1]
    pair.cut(True)
    for end in pair.ends.values():
        end.lose(pair.mesh.now)
    pair.mesh.run(60)
    pair.cut(False)
    pair.mesh.run(70)
    assert pair.ends["a"].buffered == 0
    pair.cut(True)
    pair.send("a")
    pair.mesh.run(70.05)
    pair.cut(False)
    pair.mesh.run(73)
    assert pair.got["b"] == [1, 2]


def test_messages_of_many_events_pile_up_by_these() -> None:
    """Eight messages of 16,384 events are twice as much as may wait; of one event they are few."""
    pair = Pair(Random(1), delay_s=0.05)
    pair.options["window_max"] = 2
    pair.start("a", B, 2)
    pair.mesh.run(1.0)
    end, small, large = pair.ends["a"], flow_of(1), flow_of(PILED_EVENTS // 4)
    said = []
    for flow in [small] * 8 + [large] * 8:
        end.send(flow, pair.mesh.now)
        said.append(end.piles_up)
    assert said == [False] * 11 + [True] * 5
    assert Piling("b") in end.take_results()
    while end.piles_up:
        assert end.buffered > 1
        pair.mesh.run(pair.mesh.now + 0.01)
    assert end.buffered <= 2
    pair.mesh.run(pair.mesh.now + 5)
    assert end.buffered == 0
    assert not end.piles_up


def test_many_events_are_acknowledged_at_once() -> None:
    """By the quarter of a window, or some time, they would be long after."""
    pair = Pair(Random(1), delay_s=0.001)
    pair.start("a", B, 2)
    pair.mesh.run(1.0)
    end = pair.ends["a"]
    for flow in [flow_of(UNACKNOWLEDGED_EVENTS // 2)] * 3:
        end.send(flow, pair.mesh.now)
    assert end.events == 3 * UNACKNOWLEDGED_EVENTS // 2
    pair.mesh.run(pair.mesh.now + 0.05)
    assert end.events == UNACKNOWLEDGED_EVENTS // 2, "the third waits for its time"
    pair.mesh.run(pair.mesh.now + 0.5)
    assert end.events == 0


def flow_of(events: int) -> Flow:
    return Flow((batch_of(TEMP, [{"value": 1.0}] * events, source="s", times=[0] * events),), None)
