"""What operators ask of a broker, with the right to it and without."""

import pytest
from lone import hear, lone

from routing.effects import Send
from routing.messages import (
    COMMANDS,
    VERSION,
    Act,
    Code,
    Confirmed,
    Goodbye,
    Hello,
    Permit,
    Refused,
    Rights,
    SendAway,
    ShowLog,
    ShowNetwork,
    ShowQueue,
    ShowUsers,
)

ASKED = [
    (ShowUsers(1), "users"),
    (ShowLog(1), "log"),
    (ShowQueue(1, "billing"), "queue"),
    (SendAway(1, 2), "expel"),
    (ShowNetwork(1), "status"),
]


def told(broker, peer, message):
    """What a peer is sent for a message."""
    broker.take_effects()
    hear(broker, peer, message)
    effects = broker.take_effects()
    return [one.message for one in effects if isinstance(one, Send) and one.peer == peer]


def between(*users):
    """A broker, and clients of these users, by their names."""
    broker = lone()
    rights = {
        name: Rights(name, permits, "access.toml", (f"[user.{name}]",)) for name, permits in users
    }
    broker.node.rights_of = lambda peer: rights[peer.decode()]
    broker.service.change_rights(rights, 0.0)
    for name in rights:
        hear(broker, name.encode(), Hello(VERSION, "", 5.0))
    return broker


@pytest.mark.parametrize(("message", "command"), ASKED)
def test_each_needs_its_own_right(message, command):
    others = tuple(Permit(Act.COMMAND, one, 1) for one in COMMANDS if one != command)
    broker = between(("alice", others), ("bob", ()))
    (refused,) = told(broker, b"alice", message)
    assert isinstance(refused, Refused)
    assert (refused.code, command in refused.reason) == (Code.NOT_ALLOWED, True)
    assert len(broker.status(0.0)["clients"]) == 2, "nobody is sent away"


def test_users_are_told_with_what_they_may_do():
    broker = between(
        ("alice", None), ("bob", (Permit(Act.SUBSCRIBE, "Temp", 3, 'Temp(area = "a1")'),))
    )
    (answer,) = told(broker, b"alice", ShowUsers(1))
    alice, bob = answer.detail["users"]
    assert (alice["name"], alice["may"], alice["connected"]) == ("alice", None, 1)
    assert bob["may"] == ['subscribe Temp(area = "a1")']


def test_the_log_is_what_the_host_has_kept():
    broker = between(("alice", None))
    broker.node.inspection.log_lines = lambda: ["one", "two"]
    (answer,) = told(broker, b"alice", ShowLog(1))
    assert answer.detail == {"lines": ["one", "two"]}


def test_a_client_is_sent_away_by_the_number_of_its_link():
    broker = between(("alice", None), ("bob", None))
    numbers = {one["user"]: one["number"] for one in broker.status(0.0)["clients"]}
    hear(broker, b"alice", SendAway(1, numbers["bob"]))
    sent = [(one.peer, one.message) for one in broker.take_effects() if isinstance(one, Send)]
    assert (b"bob", Goodbye("sent away by alice", Code.NOT_ALLOWED)) in sent
    assert (b"alice", Confirmed(1, {"name": ""})) in sent
    (again,) = told(broker, b"alice", SendAway(2, numbers["bob"]))
    assert again.code is Code.UNKNOWN
    (gone,) = told(broker, b"alice", SendAway(3, numbers["alice"]))
    assert isinstance(gone, Goodbye), "who sends itself away is told so, and nothing more"


def test_there_may_be_no_such_queue():
    (refused,) = told(between(("alice", None)), b"alice", ShowQueue(1, "billing"))
    assert (refused.code, "billing" in refused.reason) == (Code.UNKNOWN, True)
