"""A user may read less than before: of what waits for its durable sinks, only that comes."""

import itertools
from dataclasses import replace

import pytest
from alone import TEMP, Alone, hello, values
from event_batches import batch_of_events
from msgspec import structs

from matcher.model import Event
from routing.delivery import durable
from routing.messages import (
    Act,
    Advertise,
    Code,
    Credit,
    Delivery,
    Goodbye,
    Nack,
    Permit,
    Publish,
    Rejected,
    ResendDurable,
    Rights,
    Subscribe,
)

EVERY_EVENT, SOME, NOTHING = "", "Temp(n >= 3)", None
BILLING = Subscribe(1, 1, "Temp()", durable="billing")
ALL_TYPES = Subscribe(1, 1, "*", durable="billing")
DEAD = Subscribe(1, 1, "Temp()", durable="billing.dead")


def rights(temp: str | None) -> Rights:
    """What everybody may: publish, and read others and those Temps."""
    permits = [Permit(Act.PUBLISH, "*", 1), Permit(Act.SUBSCRIBE, "Other", 2)]
    if temp is not None:
        permits.append(Permit(Act.SUBSCRIBE, "Temp", 3, temp))
    return Rights("k", tuple(permits), "access.toml")


def narrow(alone: Alone, temp: str | None, *, restarts: bool) -> None:
    """Other rights hold from now on, or the broker comes back and they do."""
    if restarts:
        alone.fail()
    alone.broker.node.rights_of = lambda peer: rights(temp)
    if not restarts:
        alone.broker.service.change_rights({"k": rights(temp)}, alone.simulation.now)
        alone.turn()


def with_events(asked: Subscribe, *said: Nack, credit: int = 0) -> Alone:
    """Four events wait, or were given and are not dealt with."""
    alone = Alone()
    alone.broker.node.rights_of = lambda peer: rights(EVERY_EVENT)
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.turn((b"k", hello()), (b"k", asked), *([(b"k", Credit(credit))] if credit else []))
    alone.publish(b"s", 2)
    alone.publish(b"s", 2)
    assert values(alone.take(b"k", Delivery)) == list(range(1, 5))[:credit]
    alone.turn(*((b"k", nack) for nack in said))
    alone.take(b"k", Delivery)
    return alone


def given(alone: Alone, peer: bytes, asked: Subscribe) -> list[int]:
    """What another client is given."""
    alone.turn((peer, hello()), (peer, asked), (peer, Credit(1_000)))
    alone.pass_time(30.0)
    return values(alone.take(peer, Delivery))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("temp", "expected"), [(SOME, [3, 4]), (EVERY_EVENT, [1, 2, 3, 4])])
@pytest.mark.parametrize("asked", [BILLING, ALL_TYPES])
@pytest.mark.parametrize(
    ("window", "credit", "said"),
    [
        (8_192, 0, ()),
        (2, 0, ()),
        (8_192, 4, ()),
        (8_192, 4, (Nack(1, 4, 20.0),)),
        (8_192, 4, (Nack(1, 4, 0.0),)),
    ],
    ids=["in-memory", "in-the-store", "given", "put-off", "given-back"],
)
def test_what_waits_comes_as_far_as_it_may_be_read(
    monkeypatch: pytest.MonkeyPatch,
    window: int,
    credit: int,
    said: tuple[Nack, ...],
    asked: Subscribe,
    temp: str,
    expected: list[int],
    restarts: bool,
) -> None:
    monkeypatch.setattr(durable, "WINDOW", window)
    alone = with_events(asked, *said, credit=credit)
    narrow(alone, temp, restarts=restarts)
    if not restarts:
        alone.turn((b"k", Goodbye()))
    assert given(alone, b"l", asked) == expected


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("window", [8_192, 2])
def test_of_all_types_none_comes_that_may_not_be_read_any_more(
    monkeypatch: pytest.MonkeyPatch, window: int, restarts: bool
) -> None:
    monkeypatch.setattr(durable, "WINDOW", window)
    alone = with_events(ALL_TYPES)
    narrow(alone, NOTHING, restarts=restarts)
    if not restarts:
        alone.turn((b"k", Goodbye()))
    assert given(alone, b"l", ALL_TYPES) == []


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_first", [False, True], ids=["resent-last", "resent-first"])
def test_dead_letters_come_as_far_as_they_may_be_read(restarts: bool, is_first: bool) -> None:
    alone = with_events(BILLING, Nack(1, 4, 0.0, 1), credit=4)
    narrow(alone, SOME, restarts=restarts)
    resend = (b"m", hello()), (b"m", ResendDurable(1, "billing"))
    if not restarts:
        alone.turn((b"k", Goodbye()))
    if is_first:
        alone.turn(*resend)
        assert given(alone, b"l", BILLING) == [3, 4]
        return
    assert given(alone, b"l", BILLING) == []
    alone.turn(*resend)
    assert values(alone.take(b"l", Delivery)) == [3, 4]


@pytest.mark.parametrize("restarts", [False, True])
def test_dead_letters_are_read_as_far_as_they_may_be(restarts: bool) -> None:
    alone = with_events(BILLING, Nack(1, 4, 0.0, 1), credit=4)
    narrow(alone, SOME, restarts=restarts)
    assert given(alone, b"l", DEAD) == [3, 4]


def test_what_was_left_out_is_done_with() -> None:
    """Nothing of it waits, comes with a wider right, or stays in the store."""
    alone = with_events(BILLING)
    narrow(alone, SOME, restarts=False)
    narrow(alone, EVERY_EVENT, restarts=False)
    alone.turn((b"k", Credit(10)))
    (delivery,) = itertools.islice(alone.take(b"k", Delivery), 1)
    assert values([delivery]) == [3, 4]


@pytest.mark.parametrize("filter_", ["Temp(n >= 3)", ""])
def test_a_replay_of_some_events_of_a_type_is_bound_by_the_clock(filter_: str) -> None:
    """One Temp of 2255 by who may publish few of them made all others late, for as long as a rule
    named the type.
    """
    alone = Alone()
    alone.config = replace(alone.config, wall_clock=True)
    alone.start()
    may = {b"b": Permit(Act.PUBLISH, "Temp", 1, filter_)}
    everything = Permit(Act.PUBLISH, "*", 1), Permit(Act.SUBSCRIBE, "*", 2)
    alone.broker.node.rights_of = lambda peer: Rights(
        peer.decode(), (may[peer],) if peer in may else everything, "access.toml"
    )
    replay = structs.replace(hello("b"), replay=True)
    alone.turn((b"b", replay), (b"b", Advertise(1, (TEMP,))))
    far = Event("Temp", 9 * 10**15, "b", "1", {"n": 5}, 1)
    alone.turn((b"b", Publish((batch_of_events(TEMP, [far]),), far.time)))
    codes = [one.code for one in alone.take(b"b", Rejected)]
    assert codes == ([Code.AHEAD] if filter_ else [])
