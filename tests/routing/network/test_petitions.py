"""Requests on their way to the root, and sources that visit it."""

import pytest

from routing.errors import Refusal
from routing.messages import Advertise, Asked, Code, ListRules
from routing.network.agreement.petitions import PENDING_REQUESTS_MAX, Petitions
from routing.network.agreement.visitors import ELSEWHERE, Visitors
from routing.serving.sources import Source


def test_a_request_is_answered_once() -> None:
    petitions = Petitions()
    number = petitions.send(b"a", ListRules(1), "")
    assert petitions.answer(number) == (b"a", ListRules(1), "")
    assert petitions.answer(number) is None


def test_what_was_sent_is_lost_with_the_way_and_what_waits_is_not() -> None:
    petitions = Petitions()
    number = petitions.send(b"a", ListRules(1), "")
    petitions.wait(b"b", ListRules(2))
    assert petitions.take_lost() == [(b"a", ListRules(1), "")]
    assert petitions.answer(number) is None
    assert petitions.take_waiting() == [(b"b", ListRules(2), "")]
    assert petitions.take_waiting() == []


def test_open_requests_are_bounded() -> None:
    petitions = Petitions()
    for number in range(PENDING_REQUESTS_MAX):
        petitions.check_room()
        petitions.wait(b"a", ListRules(number))
    with pytest.raises(Refusal) as caught:
        petitions.check_room()
    assert caught.value.code is Code.LIMIT


def asked(name: str, home: str) -> Asked:
    return Asked((home,), 1, name, Advertise(1, ()))


def test_a_name_is_free_once_its_source_has_closed() -> None:
    visitors = Visitors()
    link = visitors.admit(asked("s", "b1"), 0.0)
    assert (link.peer, link.home) == (ELSEWHERE, "b1")
    assert visitors.admit(asked("s", "b2"), 0.0) is link, "nothing came of the first"
    link.source = Source("s")
    assert visitors.find("s") is link.source
    assert visitors.admit(asked("s", "b2"), 0.0) is link
    with pytest.raises(Refusal, match="a live client of broker b2 is named 's'"):
        visitors.admit(asked("s", "b1"), 0.0)
    visitors.leave("s")
    assert visitors.find("s") is None
    assert visitors.admit(asked("s", "b1"), 0.0).home == "b1"
