"""Requests on their way to the root, and sources that visit it."""

import pytest

from routing.errors import Refusal
from routing.messages import Advertise, Asked, Code, ListRules
from routing.network.agreement.remote_sources import ELSEWHERE, RemoteSources
from routing.serving.pending_requests import PENDING_REQUESTS_MAX, PendingRequests
from routing.serving.sources import Source


def test_a_request_is_answered_once() -> None:
    pending = PendingRequests()
    number = pending.send(b"a", ListRules(1), "")
    assert pending.answer(number) == (b"a", ListRules(1), "")
    assert pending.answer(number) is None


def test_what_was_sent_is_lost_with_the_way_and_what_waits_is_not() -> None:
    pending = PendingRequests()
    number = pending.send(b"a", ListRules(1), "")
    pending.wait(b"b", ListRules(2))
    assert pending.take_lost() == [(b"a", ListRules(1), "")]
    assert pending.answer(number) is None
    assert pending.take_waiting() == [(b"b", ListRules(2), "")]
    assert pending.take_waiting() == []


def test_open_requests_are_bounded() -> None:
    pending = PendingRequests()
    for number in range(PENDING_REQUESTS_MAX):
        pending.check_room()
        pending.wait(b"a", ListRules(number))
    with pytest.raises(Refusal) as caught:
        pending.check_room()
    assert caught.value.code is Code.LIMIT


def asked(name: str, home: str) -> Asked:
    return Asked((home,), 1, name, Advertise(1, ()))


def test_a_name_is_free_once_its_source_has_closed() -> None:
    remote_sources = RemoteSources()
    link = remote_sources.admit(asked("s", "b1"), 0.0)
    assert (link.peer, link.home) == (ELSEWHERE, "b1")
    assert remote_sources.admit(asked("s", "b2"), 0.0) is link, "nothing came of the first"
    link.source = Source("s")
    assert remote_sources.find("s") is link.source
    assert remote_sources.admit(asked("s", "b2"), 0.0) is link
    with pytest.raises(Refusal, match="a live client of broker b2 is named 's'"):
        remote_sources.admit(asked("s", "b1"), 0.0)
    remote_sources.leave("s")
    assert remote_sources.find("s") is None
    assert remote_sources.admit(asked("s", "b1"), 0.0).home == "b1"
