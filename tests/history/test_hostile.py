"""Readers of a broker's log that ask for what there is not, or more than they take."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zmq
from live_hosts import Hosts

from broker import Publisher, RefusedError, RuleManager
from broker.client.logs import BrokerLog
from broker.network import Member
from broker.store.ordered import Wanted
from matcher import EventType
from routing.messages import (
    VERSION,
    Code,
    Goodbye,
    Heartbeat,
    Hello,
    LogPart,
    LogReceived,
    Message,
    ReadLog,
    Refused,
    Welcome,
)
from routing.network.brokers import log_reader
from routing.wire import decode, encode

TYPES = [EventType.of("Temp", room="string", value="float")]
WAIT_S = 60.0
REASON = "one part of a log at a time: ask for the next once you have the last"


def publish(endpoint: str, values: range, room: str = "hall") -> None:
    with Publisher(endpoint, name="s", types=TYPES, increasing=True) as source:
        for value in values:
            source.publish("Temp", room=room, value=float(value))
            source.wait(WAIT_S)


def test_the_broker_goes_on_whatever_is_asked(alone: str) -> None:
    publish(alone, range(3))
    end = 2**63 - 1
    with RuleManager(alone) as manager:
        for asked, expected in (
            ({"after": end}, []),
            ({"after": end, "outlined": True}, []),
            ({"at": [0, 99, end]}, []),
            ({"at": [3, 1, 1, 3]}, [1, 3]),
            ({"since": end}, []),
            ({"since": -end}, [1, 2, 3]),
            ({"types": ["Nothing", "Timer", "*"]}, []),
            ({"after": 1, "outlined": True}, [2, 3]),
        ):
            part = manager.read_log(**asked)
            assert [one.position for one in part.entries] == expected, asked
            assert (part.read, part.last) == (3, 3), asked
        with pytest.raises(RefusedError, match="'nowhere' is out of reach"):
            manager.read_log("nowhere")


def raw(endpoint: str) -> zmq.Socket[bytes]:
    """A client that says what it likes, once it was welcomed."""
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.connect(endpoint)
    socket.send_multipart(encode(Hello(VERSION, "", WAIT_S, 1)))
    assert isinstance(heard(socket), Welcome)
    return socket


def heard(socket: zmq.Socket[bytes]) -> Message:
    """The next message but for heartbeats."""
    while True:
        assert socket.poll(WAIT_S * 1_000)
        message = decode(socket.recv_multipart())
        if not isinstance(message, Heartbeat):
            return message


@pytest.mark.parametrize("of", ["b1", "b2"])
def test_a_client_that_reads_nothing_has_one_part_under_way(tmp_path: Path, of: str) -> None:
    def stored(name: str) -> dict[str, str]:
        return {"data": str(tmp_path / f"store-{name}")}

    members = Member("b1", ()), Member("b2", ("b1",))
    hosts = Hosts(tmp_path, members[:1], strategy="centralized", **stored("b1"))
    hosts.add(members[1], **stored("b2"))
    try:
        publish(hosts.address(of), range(100), room="x" * 100_000)
        with RuleManager(hosts.address("b1")) as manager:
            BrokerLog(manager, of, Wanted()).behind(0)  # waits until there is a way
        asker = raw(hosts.address("b1"))
        for number in range(1, 501):
            asker.send_multipart(encode(ReadLog(number, of)))
        answers = [heard(asker) for _ in range(500)]
        (part,) = (one for one in answers if isinstance(one, LogPart))
        refused = [one for one in answers if isinstance(one, Refused)]
        assert part.request == 1
        assert {(one.code, one.reason) for one in refused} == {(Code.LIMIT, REASON)}
        assert 4 << 20 < sum(len(one.frames) for one in part.entries) < 5 << 20
        asker.send_multipart(encode(LogReceived(1)))
        asker.send_multipart(encode(ReadLog(501, of, part.read)))
        following = heard(asker)
        assert isinstance(following, LogPart)
        assert following.entries[0].position == part.read + 1
        asker.close(0)
    finally:
        hosts.kill()


def test_threads_that_read_through_one_client_take_turns(alone: str) -> None:
    publish(alone, range(3))
    with RuleManager(alone) as manager, ThreadPoolExecutor(8) as threads:
        parts = list(threads.map(lambda after: manager.read_log(after=after), [0, 1, 2, 3] * 20))
    assert [len(one.entries) for one in parts] == [3, 2, 1, 0] * 20


def is_quiet(socket: zmq.Socket[bytes], seconds: float) -> bool:
    """Whether nothing but heartbeats comes for so long."""
    ends_at = time.monotonic() + seconds
    while (left_s := ends_at - time.monotonic()) > 0:
        is_there = socket.poll(left_s * 1_000)
        if is_there and not isinstance(decode(socket.recv_multipart()), Heartbeat):
            return False
    return True


def test_so_many_clients_have_a_part_under_way_and_the_others_wait_in_their_order(
    alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn is over once its client says that it has the part, goes, or takes nothing for long."""
    monkeypatch.setattr(log_reader, "PARTS_AT_ONCE", 2)
    publish(alone, range(3))
    clients = [raw(alone) for _ in range(6)]
    for number, one in enumerate(clients):
        one.send_multipart(encode(ReadLog(number)))
        assert number > 1 or isinstance(heard(one), LogPart)
        assert number < 2 or is_quiet(one, 0.1)
    clients[1].send_multipart(encode(LogReceived(1)))
    assert isinstance(heard(clients[2]), LogPart)
    clients[2].send_multipart(encode(Goodbye()))
    assert isinstance(heard(clients[3]), LogPart)
    assert all(is_quiet(one, 0.3) for one in clients[4:]), "two have yet to say that they have it"
    monkeypatch.setattr(log_reader, "STALLED_S", 0.0)
    for one in (clients[0], clients[3]):
        left = heard(one)
        assert isinstance(left, Goodbye)
        assert (left.code, "others wait" in left.reason) == (Code.QUEUE_FULL, True)
    assert isinstance(heard(clients[4]), LogPart)
    for one in clients:
        one.close(0)


def test_who_says_to_have_what_nobody_sent_loses_the_link(alone: str) -> None:
    asker = raw(alone)
    asker.send_multipart(encode(LogReceived(1)))
    left = heard(asker)
    assert isinstance(left, Goodbye)
    assert left.code is Code.PROTOCOL
    asker.close(0)
