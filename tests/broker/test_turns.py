"""Messages of users, whose work has an owner."""

from collections import deque

from broker.clock import Clock
from broker.host import Host
from broker.turns import WAITING_MAX, Turns, _Work


class Bench:
    """Messages named ``user`` and a number, each of which takes so many seconds."""

    def __init__(self) -> None:
        self.sent: deque[tuple[bytes, list[bytes]]] = deque()
        self.turns = Turns(
            lambda: self.sent.popleft() if self.sent else None,
            lambda: None,
            lambda peer: "" if peer == b"broker" else peer.decode(),
        )
        self.now = 0.0

    def send(self, user: str, *numbers: int) -> None:
        self.sent += [(user.encode(), [str(number).encode()]) for number in numbers]

    def read(self, takes_s: float) -> str:
        message = self.turns.next(self.now)
        self.now += takes_s
        return "" if message is None else f"{message[0].decode()}{message[1][0].decode()}"


def test_others_wait_for_one_message_of_a_busy_user():
    bench = Bench()
    bench.send("bob", *range(8))
    assert bench.read(0.5) == "bob0"
    bench.send("alice", 0, 1)
    assert [bench.read(0.01) for _ in range(2)] == ["alice0", "alice1"]
    assert bench.read(0.5) == "bob1"
    bench.send("broker", 0)
    bench.send("alice", 2)
    assert [bench.read(0.01) for _ in range(2)] == ["broker0", "alice2"]
    assert [bench.read(0.1) for _ in range(7)] == [f"bob{number}" for number in range(2, 8)] + [""]
    assert round(bench.turns.spent_s["bob"], 6) == 1.6
    assert not bench.turns.has_waiting


def test_who_was_busy_a_while_ago_is_read_as_it_comes():
    bench = Bench()
    bench.send("bob", 0)
    bench.read(1.0)
    bench.send("bob", 1)
    bench.send("alice", 0)
    bench.turns.rest(bench.now)
    bench.now += 10.0
    assert [bench.read(0.0) for _ in range(2)] == ["bob1", "alice0"]


def test_two_busy_users_take_turns_and_each_is_read_in_its_order():
    bench = Bench()
    bench.send("bob", 0)
    bench.send("eve", 0)
    assert [bench.read(0.5), bench.read(0.4)] == ["bob0", "eve0"]
    bench.send("bob", 1, 2)
    bench.send("eve", 1, 2)
    assert [bench.read(0.3) for _ in range(4)] == ["bob1", "eve1", "bob2", "eve2"]


def test_a_full_queue_has_its_turn():
    bench = Bench()
    bench.send("bob", 0)
    bench.read(0.9)
    rounds = WAITING_MAX // 20
    for turn in range(rounds):
        bench.send("bob", *range(1 + 20 * turn, 21 + 20 * turn))
        bench.send("alice", turn)
    assert [bench.read(0.0) for _ in range(rounds)] == [f"alice{turn}" for turn in range(rounds)]
    bench.send("alice", rounds)
    assert [bench.read(0.0) for _ in range(2)] == ["bob1", f"alice{rounds}"]


def test_what_waits_of_a_link_that_was_ended_is_not_read():
    """Another user may come by its identity, and would be taken for its sender."""
    bench = Bench()
    bench.send("bob", 0)
    bench.read(0.9)
    bench.send("bob", 1, 2)
    bench.send("alice", 0)
    bench.read(0.0)
    assert bench.turns.has_waiting
    bench.turns.forget(b"bob")
    assert not bench.turns.has_waiting
    bench.send("bob", 3)
    assert bench.read(0.0) == "bob3"


def test_what_is_put_back_is_given_again_and_costs_its_user_nothing():
    bench = Bench()
    bench.send("bob", 0, 1)
    assert bench.read(0.5) == "bob0"
    assert not bench.turns.is_busy, "when it was given"
    bench.send("alice", 0, 1)
    message = bench.turns.next(bench.now)
    assert not bench.turns.is_busy
    bench.turns.put_back(message)
    assert [bench.read(0.0), bench.read(0.0)] == ["alice0", "alice1"]
    assert bench.turns.spent_s["alice"] == 0.0
    assert bench.read(0.1) == "bob1"
    assert bench.turns.is_busy


class Flooded:
    """A transport with a thousand messages of bob, who is busy, and one of alice behind some."""

    def __init__(self) -> None:
        self.read = 0
        self.is_readable = True
        self.has_users = True

    def receive(self):
        self.read += 1
        peer = b"alice" if self.read == 40 else b"bob"
        return (peer, [b"RX"]) if self.read < 1_000 else None

    def wait(self, seconds):
        return False

    def user_of(self, peer):
        return peer.decode()


def test_a_message_of_another_user_is_done_apart_from_those_of_a_busy_one():
    """Law 1: the batch of a busy user ends before it, and it is in the next one alone."""
    host = Host.__new__(Host)
    transport = Flooded()
    host._transport, host._clock = transport, Clock()
    host._turns = Turns(transport.receive, lambda: None, transport.user_of)
    host._turns._work["bob"] = _Work(0.9, host._clock.now())
    batches = []
    for _ in range(3):
        now = host._clock.now()
        first = host._turns.next(now)
        batches.append({peer for peer, _ in host._read(first, now)})
    assert batches == [{b"bob"}, {b"alice"}, {b"bob"}]
