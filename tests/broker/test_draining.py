"""Brokers of a live network that drain, with clients that know several addresses."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import command
import pytest
from lone import lone
from pairs import some_of

from broker import Publisher, RuleManager, Subscriber
from broker.client.address import Address, address_of
from broker.errors import BrokerUnreachable, ConfigurationError
from broker.monitoring.health import reasons_unready
from broker.network import BrokerNetwork, members
from broker.process import BrokerProcess
from matcher.model import EventType
from routing.config import NodeConfig
from routing.effects import Send
from routing.messages import Drain, Hello, Refused

TEMP = EventType.of("Temp", n="int")
SMOKE = EventType.of("Smoke", n="int")
RULE = (
    "event Temp(n: int) event Smoke(n: int) rule fire: define Fire(n: int) from Smoke(n = $n) "
    "and last Temp(n = $n) within 2 s from Smoke where n = Smoke.n"
)
EVENTS = 400
WAIT_S = 60
"""How long a step of seconds may take where other programs have the processor."""
WHERE = some_of(product(("centralized", "push-pull-mt"), ("b1", "b2", "b3")), 0, 4, 5)


def test_addresses_of_several_brokers(tmp_path: Path) -> None:
    found = address_of("tcp://a:1, tcp://b:2")
    assert [one.endpoint for one in found.all] == ["tcp://a:1", "tcp://b:2"]
    assert address_of(found) is found
    from broker.security.keys import create, load_pair

    own = create("own", tmp_path)
    servers = [load_pair(create(name, tmp_path)).public for name in ("a", "b")]
    curves = [one.curve for one in address_of("tcp://a:1,tcp://b:2", own, ",".join(servers)).all]
    assert [curve.server for curve in curves if curve] == servers
    with pytest.raises(ConfigurationError, match="expected one key, or 3"):
        address_of("tcp://a:1,tcp://b:2,tcp://c:3", own, ",".join(servers))


def test_the_next_address_is_tried_where_the_first_is_dead() -> None:
    with BrokerProcess("--engine", "naive") as broker:
        address = f"tcp://127.0.0.1:9,{broker.endpoint}"
        with RuleManager(address) as manager:
            assert manager.list() == []
    with pytest.raises(BrokerUnreachable):
        RuleManager(Address("tcp://127.0.0.1:9"), connect_timeout_s=0.3)


def await_network(endpoint: str) -> None:
    """Return when a broker knows all three, and where rules are to run."""
    with RuleManager(endpoint) as manager:
        while True:
            network = manager.status()["network"]
            if network["settled"] and len(network["brokers"]) == 3 and network["root"]:
                return
            time.sleep(0.05)


@pytest.mark.parametrize(("strategy", "leaves"), WHERE)
def test_nothing_is_lost_or_twice_when_a_broker_drains(leaves: str, strategy: str) -> None:
    """A source at the broker that leaves goes on at another one, while another source and the sink
    stay where they are: the sink gets what it would get without that.
    """
    names = ["b1", "b2", "b3"]
    stays = [name for name in names if name != leaves]
    every = [("b1", "b2"), ("b2", "b3"), ("b1", "b3")]
    network = members([(name, None) for name in names], every)
    flags = ("--engine", "naive", "--strategy", strategy)
    with BrokerNetwork(network, *flags) as brokers:
        ends = dict(brokers.await_ready())
        for endpoint in ends.values():
            await_network(endpoint)
        address = f"{ends[leaves]},{ends[stays[0]]},{ends[stays[1]]}"
        with (
            Publisher(address, name="t", types=[TEMP], increasing=True) as temps,
            Publisher(ends[stays[0]], name="s", types=[SMOKE], increasing=True) as smokes,
            RuleManager(ends[stays[1]]) as manager,
            Subscriber(ends[stays[1]], "Fire()") as sink,
        ):
            manager.add(RULE)
            start = int(time.time() * 1e6)
            child = brokers.processes[leaves].child
            for n in range(EVENTS):
                at = start + n * 10_000
                temps.publish("Temp", at=at, n=n)
                smokes.publish("Smoke", at=at + 1_000, n=n)
                if n == 100:
                    child.send_signal(signal.SIGUSR1)
                time.sleep(0.002)
            temps.wait(20)
            end = start + EVENTS * 10_000 + 10_000_000
            temps.promise(end)
            smokes.promise(end)
            found = [sink.receive(timeout_s=WAIT_S).data["n"] for _ in range(EVENTS)]
            assert found == list(range(EVENTS))
            assert child.wait(WAIT_S) == 0
            temps.publish("Temp", at=end + 10, n=-1)
            smokes.publish("Smoke", at=end + 20, n=-1)
            temps.promise(end + 100)
            smokes.promise(end + 100)
            assert sink.receive(timeout_s=WAIT_S).data["n"] == -1
            assert temps.rejected == 0
            assert brokers.processes[leaves].child.returncode == 0


def test_a_broker_alone_leaves_when_its_subscribers_have_what_is_theirs() -> None:
    with (
        BrokerProcess("--engine", "naive") as broker,
        Publisher(broker.endpoint, name="t", types=[TEMP]) as temps,
        Subscriber(broker.endpoint, "Temp()") as sink,
        RuleManager(broker.endpoint) as manager,
    ):
        temps.publish("Temp", n=1)
        temps.wait()
        assert manager.status()["draining"] is None
        assert manager.drain() == {"draining": []}
        assert sink.receive(timeout_s=WAIT_S).data["n"] == 1
        assert broker.child.wait(WAIT_S) == 0


def test_two_that_drain_are_not_stormed() -> None:
    """A client that both have sent away tries again with pauses."""
    before = threading.active_count()
    with (
        BrokerProcess("--engine", "naive") as one,
        BrokerProcess("--engine", "naive") as other,
        Subscriber(f"{one.endpoint},{other.endpoint}", "Temp()", name="k") as sink,
    ):
        connection = sink._sink.connection
        one.child.send_signal(signal.SIGUSR1)
        other.child.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            time.sleep(0.1)
        assert connection.links < 60
        assert threading.active_count() < before + 10


def test_the_command_says_what_the_broker_waits_for_until_it_has_left() -> None:
    common = ("--engine", "naive", "--strategy", "centralized")
    with (
        BrokerProcess("--name", "b1", *common) as first,
        BrokerProcess("--name", "b2", *common, "--link", first.endpoint) as second,
        Publisher(f"{second.endpoint},{first.endpoint}", name="t", types=[TEMP]) as source,
    ):
        source.publish("Temp", n=1)
        source.wait()
        done = command.run("drain", "--broker", second.endpoint)
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert all(line.startswith("draining") for line in lines[:-1])
        assert lines[-1] == "the broker has left"
        assert second.child.wait(WAIT_S) == 0
        source.publish("Temp", n=2)
        source.wait(10)
        assert source.rejected == 0


def test_a_broker_that_drains_is_not_ready_and_says_why() -> None:
    node = lone()
    assert reasons_unready(node.status(0.0)) == []
    node.drain(0.0)
    node.node.draining = ["2 events"]
    assert reasons_unready(node.status(0.0)) == ["the broker drains; 2 events"]


def test_one_that_anybody_can_reach_drains_at_a_signal_alone() -> None:
    node = lone(NodeConfig(drainable=False))
    node.node.receive(b"m", Hello(1, "", 1.0), 0.0)
    node.take_effects()
    node.node.receive(b"m", Drain(1), 0.0)
    (refused,) = [one.message for one in node.take_effects() if isinstance(one, Send)]
    assert isinstance(refused, Refused)
    assert "SIGUSR1" in refused.reason
    assert node.node.draining is None


def test_a_durable_subscription_keeps_its_broker_until_it_is_removed(tmp_path: Path) -> None:
    """Where no other broker has a store: clients of it may come back to a broker that drains, and
    have what waits for them.
    """
    common = ("--engine", "naive", "--strategy", "centralized")
    store = ("--data", str(tmp_path))
    with (
        BrokerProcess("--name", "b1", *common) as first,
        BrokerProcess("--name", "b2", *common, "--link", first.endpoint, *store) as second,
        Publisher(first.endpoint, name="t", types=[TEMP]) as source,
        RuleManager(second.endpoint) as manager,
    ):
        with Subscriber(second.endpoint, "Temp()", name="billing", durable=True):
            pass
        manager.drain()
        source.publish("Temp", n=1)
        lives = (
            "durable subscriptions that no other broker takes until they are removed "
            "(broker 'b1' keeps nothing (--data)): billing"
        )
        while lives not in (manager.status()["draining"] or ()):
            time.sleep(0.1)
        with Subscriber(second.endpoint, "Temp()", name="billing", durable=True) as back:
            assert back.receive(timeout_s=WAIT_S).data["n"] == 1
        time.sleep(0.5)
        assert second.child.poll() is None
        manager.remove_durable("billing")
        assert second.child.wait(WAIT_S) == 0


def published(endpoint: str, events: int) -> threading.Thread:
    """A source that publishes so many Temps, one every few milliseconds."""

    def publish() -> None:
        with Publisher(endpoint, name="t", types=[TEMP]) as source:
            for n in range(events):
                source.publish("Temp", n=n)
                time.sleep(0.003)

    thread = threading.Thread(target=publish)
    thread.start()
    return thread


class Kept:
    """Three brokers in a line, of which b2 and b3 have stores; billing is at b3."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.brokers: dict[str, BrokerProcess] = {}
        common = ("--engine", "naive", "--strategy", "centralized", "--heartbeat-s", "0.5")
        self.flags = {
            "b1": ("--name", "b1", *common),
            "b2": ("--name", "b2", *common, "--data", str(folder / "b2")),
            "b3": ("--name", "b3", *common, "--data", str(folder / "b3")),
        }
        self.start("b1")
        self.start("b2", "--link", self.brokers["b1"].endpoint)
        self.start("b3", "--link", self.brokers["b2"].endpoint)

    def start(self, name: str, *flags: str) -> None:
        self.flags[name] += flags
        before = self.brokers.get(name)
        listen = ("tcp://127.0.0.1:*",) if before is None else (before.endpoint,)
        self.brokers[name] = BrokerProcess(*self.flags[name], listen=listen)

    def kill(self, name: str) -> None:
        """Kill a broker and start it again."""
        self.brokers[name].kill()
        self.start(name)

    def home(self) -> str:
        """Where billing is, once one broker alone has it and stays."""
        while True:
            if len(found := [name for name in ("b2", "b3") if self._has_it(name)]) == 1:
                return found[0]
            time.sleep(0.2)

    def _has_it(self, name: str) -> bool:
        """Whether a broker lives, has billing and is not to give it away."""
        broker = self.brokers[name]
        try:
            with RuleManager(broker.endpoint, connect_timeout_s=2.0) as manager:
                status = manager.status()
        except BrokerUnreachable:
            return False
        return bool(status["durable"]) and status["draining"] is None

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.kill()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    try:
        await_network(made.brokers["b1"].endpoint)
        yield made
    finally:
        made.close()


def test_a_durable_subscription_goes_to_another_broker_and_its_clients_follow(kept: Kept) -> None:
    ends = {name: broker.endpoint for name, broker in kept.brokers.items()}
    with (
        Subscriber(f"{ends['b3']},{ends['b2']}", "Temp()", name="billing", durable=True) as one,
        Subscriber(
            f"{ends['b3']},{ends['b1']},{ends['b2']}", "Temp()", name="billing", durable=True
        ) as other,
    ):
        thread = published(ends["b1"], EVENTS)
        had: dict[str, list[int]] = {"one": [], "other": []}

        def take(name: str, sink: Subscriber) -> None:
            while len({n for numbers in had.values() for n in numbers}) < EVENTS:
                with suppress(TimeoutError):
                    had[name].append(sink.receive(timeout_s=0.5).data["n"])

        threads = [
            threading.Thread(target=take, args=args) for args in (("one", one), ("other", other))
        ]
        for each in threads:
            each.start()
        time.sleep(0.3)
        kept.brokers["b3"].child.send_signal(signal.SIGUSR1)
        for each in (*threads, thread):
            each.join()
        assert {*had["one"], *had["other"]} == set(range(EVENTS))
        for numbers in had.values():  # the other may have what one was given and had not dealt with
            assert len(set(numbers)) == len(numbers)
        assert kept.brokers["b3"].child.wait(WAIT_S) == 0
        assert kept.home() == "b2"


@pytest.mark.parametrize("killed", ["b2", "b3"])
@pytest.mark.parametrize("after_s", [0.1, 0.4])
def test_either_broker_is_killed_while_a_durable_subscription_goes(
    kept: Kept, killed: str, after_s: float
) -> None:
    ends = {name: broker.endpoint for name, broker in kept.brokers.items()}
    with Subscriber(ends["b3"], "Temp()", name="billing", durable=True, acks="explicit") as away:
        thread = published(ends["b1"], EVENTS)
        had = [away.receive(timeout_s=WAIT_S).data["n"] for _ in range(40)]
        away.acknowledge()
    kept.brokers["b3"].child.send_signal(signal.SIGUSR1)
    time.sleep(after_s)
    kept.kill(killed)
    thread.join()
    home = kept.home()
    with Subscriber(kept.brokers[home].endpoint, "Temp()", name="billing", durable=True) as back:
        found = [back.receive(timeout_s=WAIT_S).data["n"]]
        while found[-1] != EVENTS - 1:
            found.append(back.receive(timeout_s=WAIT_S).data["n"])
    assert found == list(range(found[0], EVENTS))
    assert found[0] <= len(had)  # an acknowledgement may not have been kept


def test_a_broker_that_has_not_heard_of_others_yet_keeps_its_durable_subscriptions(
    tmp_path: Path,
) -> None:
    """It is started again, and drains before those whom it is to link to have answered."""
    common = ("--engine", "naive", "--strategy", "centralized")
    store = ("--data", str(tmp_path / "b2"))
    dead = "tcp://127.0.0.1:9"
    with BrokerProcess("--name", "b2", *common, *store, "--link", dead) as second:
        with Subscriber(second.endpoint, "Temp()", name="billing", durable=True):
            pass
        second.child.send_signal(signal.SIGUSR1)
        held = f"durable subscriptions, until they are removed or another broker answers ({dead})"
        with RuleManager(second.endpoint) as manager:
            while f"{held}: billing" not in (manager.status()["draining"] or ()):
                time.sleep(0.1)
            manager.remove_durable("billing")
            assert second.child.wait(10) == 0
