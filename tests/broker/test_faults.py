"""What goes wrong around a broker costs whoever caused it, and nobody else."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import zmq
from forked import started
from two_brokers import two_brokers

from broker import (
    AsyncPublisher,
    BrokerUnreachable,
    Publisher,
    RefusedError,
    RuleManager,
    Subscriber,
)
from broker.errors import BrokerError, PublishBlocked
from broker.process import BrokerProcess
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")
TRAFFIC = 500
"""Events that a test sends to see that others are served as before."""


def values(subscriber, count):
    return [subscriber.receive(timeout_s=10).data["value"] for _ in range(count)]


def publish_until_blocked(publisher, name):
    """How many events a publisher could publish before it was blocked."""
    for number in itertools.count():
        try:
            publisher.publish(name, area="a", value=number)
        except PublishBlocked as error:
            assert "unacknowledged" in str(error)  # noqa: PT017 - the loop needs the count
            return number
    raise AssertionError


def serves_others(endpoint, name):
    """Whether a fresh publisher and subscriber get their events through."""
    own = EventType("Served" + name.title().replace(" ", ""), TEMP.attributes)
    with (
        Publisher(endpoint, name=f"served {name}", types=[own]) as publisher,
        Subscriber(endpoint, f"{own.name}()") as subscriber,
    ):
        for number in range(TRAFFIC):
            publisher.publish(own.name, area="a", value=number)
        return values(subscriber, TRAFFIC) == list(range(TRAFFIC))


# --- malformed input ---------------------------------------------------------------------------


def test_garbage_frames_cost_their_sender_the_link_and_nothing_else(endpoint):
    context = zmq.Context()
    try:
        for frames in ([b""], [b"garbage"], [bytes(300), b"x"], [b"\xff" * 40] * 5):
            with context.socket(zmq.DEALER) as dealer:
                dealer.linger = 0
                dealer.connect(endpoint)
                dealer.send_multipart(frames)
                assert dealer.poll(5000), "no goodbye"
                dealer.recv_multipart()
                # What follows on a closed link is not even read.
                dealer.send_multipart(frames)
                assert not dealer.poll(100)
    finally:
        context.term()
    assert serves_others(endpoint, "frames")


def test_garbage_on_a_raw_socket_harms_nobody(endpoint):
    host, port = endpoint.removeprefix("tcp://").split(":")
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" + bytes(8) + b"\x7f" + bytes(1000), b""):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(garbage)
            raw.settimeout(1)
            with contextlib.suppress(OSError):
                raw.recv(100)
    assert serves_others(endpoint, "raw")


# --- clients that die --------------------------------------------------------------------------

ENDLESS = """
import sys
from broker import Publisher
from matcher.model import EventType
types = [EventType.of("Endless", n="int")]
with Publisher(sys.argv[1], name="endless", types=types, increasing=True) as publisher:
    n = 0
    while True:
        publisher.publish("Endless", n=n)
        n += 1
"""


def test_a_client_killed_while_publishing_loses_its_link_and_may_come_back(endpoint):
    with Subscriber(endpoint, "Endless()") as subscriber:
        child = subprocess.Popen([sys.executable, "-c", ENDLESS, endpoint])
        numbers = [subscriber.receive(timeout_s=20).data["n"] for _ in range(2000)]
        child.kill()
        child.wait()
        assert numbers == list(range(2000))
        assert serves_others(endpoint, "after the kill")
        # Another client of its name is refused while the dead one may still be alive, and the
        # constructor keeps trying until it is taken for lost.
        endless = EventType.of("Endless", n="int")
        with Publisher(endpoint, name="endless", types=[endless]) as publisher:
            publisher.publish("Endless", n=-1)
            while (event := subscriber.receive(timeout_s=10)).data["n"] != -1:
                numbers.append(event.data["n"])
            assert event.sequence > len(numbers), "sequences go on where the first client was"
    assert numbers == list(range(len(numbers)))


def test_a_source_that_is_lost_stalls_its_rule_and_status_names_it(endpoint):
    child = subprocess.Popen([sys.executable, "-c", ENDLESS.replace("ndless", "nding"), endpoint])
    with RuleManager(endpoint) as manager, Subscriber(endpoint, "Ending()") as subscriber:
        subscriber.receive(timeout_s=20)
        manager.add("define Ended(n: int) from Ending() as e where n = e.n")
        child.kill()
        child.wait()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            sources = {one["name"]: one["standing"] for one in manager.status()["sources"]}
            if sources["ending"] == "lost":
                break
            time.sleep(0.05)
        assert sources["ending"] == "lost"
        (rule,) = (one for one in manager.list() if one["name"] == "Ended")
        assert [one["source"] for one in rule["held_by"]] == ["ending"]
        manager.remove("Ended")


# --- slow sinks --------------------------------------------------------------------------------


def test_a_slow_sink_that_drops_loses_the_oldest_and_knows_how_many(endpoint, temp):
    count = 5_000
    with (
        Publisher(endpoint, name="for dropper", types=[temp]) as publisher,
        Subscriber(
            endpoint, f"{temp.name}()", when_full="drop-oldest", queue=100, credit=50
        ) as slow,
        Subscriber(endpoint, f"{temp.name}()") as quick,
    ):
        for number in range(count):
            publisher.publish(temp.name, area="a", value=number)
        publisher.wait()
        assert values(quick, count) == list(range(count))
        seen = []
        while not seen or seen[-1] != count - 1:
            seen += values(slow, 1)
        assert seen[:50] == list(range(50))
        assert seen == sorted(seen)
        assert slow.dropped == count - len(seen) > 0


def test_a_slow_sink_that_asked_for_it_is_disconnected(endpoint, temp):
    with (
        Publisher(endpoint, name="for quitter", types=[temp]) as publisher,
        Subscriber(
            endpoint, f"{temp.name}()", when_full="disconnect", queue=100, credit=50
        ) as slow,
        Subscriber(endpoint, f"{temp.name}()") as quick,
    ):
        for number in range(1_000):
            publisher.publish(temp.name, area="a", value=number)
        assert values(quick, 1_000) == list(range(1_000))
        with pytest.raises(RefusedError, match="queue") as caught:
            values(slow, 1_000)
        assert caught.value.code == "queue-full"


def test_a_slow_sink_that_blocks_holds_up_its_own_sources_alone(endpoint, temp):
    with (
        Publisher(
            endpoint, name="blocked", types=[temp], timeout_s=0.5, unacknowledged_max=1_000
        ) as publisher,
        Subscriber(endpoint, f"{temp.name}()", when_full="block", queue=100, credit=50) as slow,
    ):
        assert_held_up_until_it_takes(publisher, slow, temp, endpoint)


def assert_held_up_until_it_takes(publisher, slow, temp, endpoint):
    """The source blocks, nobody else does, and as the sink takes its events the source goes on."""
    sent = publish_until_blocked(publisher, temp.name)
    assert serves_others(endpoint, "beside the blocked")
    assert values(slow, sent) == list(range(sent))
    publisher.publish(temp.name, area="a", value=-1)
    assert values(slow, 1) == [-1]


def test_it_holds_up_those_at_other_brokers_too(temp):
    """Their brokers hear of it along the tree."""
    with (
        two_brokers() as (first, second),
        Publisher(
            first.endpoint, name="blocked", types=[temp], timeout_s=2.0, unacknowledged_max=1_000
        ) as publisher,
        Subscriber(
            second.endpoint, f"{temp.name}()", when_full="block", queue=100, credit=50
        ) as slow,
    ):
        assert_held_up_until_it_takes(publisher, slow, temp, first.endpoint)


# --- brokers that stop -------------------------------------------------------------------------


def naive_broker(tmp_path, *arguments, **options):
    """A broker on a file, with the engine that starts quickest."""
    return BrokerProcess("--engine", "naive", *arguments, listen=[f"ipc://{tmp_path}/b"], **options)


def test_sigterm_stops_a_broker_gracefully(tmp_path):
    with (tmp_path / "log").open("w") as log:
        broker = naive_broker(tmp_path, log=log)
        with Subscriber(broker.endpoint, "Temp()"):
            assert broker.stop() == 0
    lines = (tmp_path / "log").read_text()
    assert lines.index("loading kernels") < lines.index("message=listening")
    assert "message=stopping signal=SIGTERM" in lines
    assert "message=stopped" in lines
    assert "Traceback" not in lines


def test_to_be_told_again_and_again_to_stop_disturbs_no_broker(tmp_path):
    """Up to its last moment, when what signals would wake has gone."""
    with (tmp_path / "log").open("w") as log:
        broker = naive_broker(tmp_path, log=log)
        while broker.child.poll() is None:
            broker.child.terminate()
            time.sleep(0.001)
        assert broker.stop() == 0
    assert "Bad file descriptor" not in (tmp_path / "log").read_text()


def test_a_client_reconnects_after_a_restart_and_nothing_is_lost(tmp_path):
    first = naive_broker(tmp_path)
    publisher = Publisher(first.endpoint, name="steady", types=[TEMP], increasing=True)
    subscriber = Subscriber(first.endpoint, "Temp()")
    for number in range(10):
        publisher.publish("Temp", area="a", value=number)
    assert values(subscriber, 10) == list(range(10))
    publisher.wait()
    first.kill()
    for number in range(10, 20):
        publisher.publish("Temp", area="a", value=number)
    with naive_broker(tmp_path):
        # What waited at the publisher arrives unless it overtakes the subscription; what is
        # published once both are back does in any case.
        publisher.wait()
        deadline = time.monotonic() + 20
        seen = []
        while not seen or seen[-1] < 20:
            assert time.monotonic() < deadline
            publisher.publish("Temp", area="a", value=20 + len(seen))
            with contextlib.suppress(TimeoutError):
                seen.append(subscriber.receive(timeout_s=0.2).data["value"])
        assert seen == sorted(seen)
        with RuleManager(first.endpoint) as manager:
            (source,) = manager.status()["sources"]
        assert source["name"] == "steady"
        assert source["duplicates"] == 0
        subscriber.close()
        publisher.close()


def test_a_broker_that_is_killed_ends_requests_with_a_clear_error(tmp_path):
    broker = naive_broker(tmp_path)
    with RuleManager(broker.endpoint, timeout_s=1) as manager:
        os.kill(broker.child.pid, signal.SIGKILL)
        broker.child.wait()
        with pytest.raises(BrokerError) as caught:
            manager.list()
        assert isinstance(caught.value, BrokerUnreachable | RefusedError)


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_a_taken_address_is_a_clear_error_and_its_owner_stays(endpoint, tmp_path, transport):
    with contextlib.ExitStack() as stack:
        if transport == "ipc":
            first = stack.enter_context(naive_broker(tmp_path))
            endpoint = first.endpoint
        pipe = subprocess.PIPE
        words = "broker", "--engine", "naive", "--listen", endpoint
        with started(*words, stdout=pipe, stderr=pipe) as second:
            out, err = second.communicate(timeout=60)
        assert second.returncode == 1
        assert err == f"rexmq: {endpoint}: another process listens on it\n"
        assert out == ""
        assert serves_others(endpoint, f"on {transport}")


def test_a_broker_that_was_killed_leaves_no_address_behind(tmp_path):
    naive_broker(tmp_path).kill()
    with naive_broker(tmp_path) as broker:
        assert serves_others(broker.endpoint, "on a stale file")


# --- closing -----------------------------------------------------------------------------------


def test_closing_does_not_wait_for_long_for_a_broker_that_is_gone(tmp_path):
    broker = naive_broker(tmp_path)
    patience = {"types": [TEMP], "close_timeout_s": 0.3}

    async def closed_late():
        publisher = AsyncPublisher(broker.endpoint, name="loop", **patience)
        await publisher.open()
        broker.kill()
        await publisher.publish("Temp", area="a", value=1.0)
        with pytest.raises(PublishBlocked, match=r"1 events are still unacknowledged after 0\.3 s"):
            await publisher.close()

    publisher = Publisher(broker.endpoint, name="thread", **patience)
    asyncio.run(closed_late())
    publisher.publish("Temp", area="a", value=1.0)
    started = time.monotonic()
    with pytest.raises(PublishBlocked, match=r"1 events are still unacknowledged after 0\.3 s"):
        publisher.close()
    assert time.monotonic() - started < 15, "far less than the patience of publish"
    publisher.close()  # once more is no mistake


def test_closing_waits_while_a_slow_broker_takes_events(tmp_path):
    with (
        naive_broker(tmp_path, "--publish-credit", "4") as broker,
        Subscriber(broker.endpoint, "Temp", queue=1, credit=1) as subscriber,
    ):
        publisher = Publisher(broker.endpoint, name="slow", types=[TEMP], close_timeout_s=2.0)
        for number in range(30):
            publisher.publish("Temp", area="a", value=float(number))
        publisher.flush()
        closing = threading.Thread(target=publisher.close)
        closing.start()
        got = []
        for _ in range(30):  # three seconds in all, but less than two from one credit to the next
            got += values(subscriber, 1)
            time.sleep(0.1)
        closing.join()
        assert publisher.rejected == 0
    assert got == list(range(30))
