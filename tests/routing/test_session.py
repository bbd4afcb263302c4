"""The client's side where a story would need a broker that misbehaves."""

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing import wire
from routing.config import SessionConfig
from routing.delivery.remainder import positions_of
from routing.effects import Close, Send
from routing.errors import SessionError
from routing.messages import (
    VERSION,
    Acknowledged,
    Code,
    Confirmed,
    Credit,
    DealtWith,
    Delivery,
    Deploy,
    FromBroker,
    Goodbye,
    Heartbeat,
    LogPart,
    LogReceived,
    Message,
    Publish,
    ReadLog,
    Refused,
    Remove,
    ShowRule,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from routing.outgoing import CHARACTER_BYTES
from routing.session import Lost, Session, State
from routing.wire.extent import extent

TEMP = EventType.of("Temp", value="int")


def batch(*values: int) -> EventBatch:
    names = EventIds(StringColumn.constant("", len(values)), np.arange(len(values)))
    return EventBatch(TEMP, np.array(values), names, (np.array(values),))


def welcome(last: int = 0, credit: int = 10, version: int = VERSION) -> Welcome:
    return Welcome(version, "b", last, credit, 1.0)


def ready(**options: object) -> Session:
    session = Session(SessionConfig(name="p", **options))  # type: ignore[arg-type]
    session.connect(0.0)
    session.receive(welcome(), 0.0)
    session.advertise([TEMP])
    session.receive(Confirmed(1), 0.0)
    drain(session)
    return session


def sent(session: Session) -> list[Message]:
    return [one.message for one in session.take_effects() if isinstance(one, Send)]


def drain(session: Session) -> None:
    session.take_effects()
    session.take_results()


def test_nothing_is_published_before_the_advertisement_is_confirmed() -> None:
    session = Session(SessionConfig(name="p"))
    assert session.outgoing.room == 0
    session.connect(0.0)
    session.receive(welcome(last=41), 0.0)
    request = session.advertise([TEMP])
    assert session.publish([batch(1, 2)], 0.0) == (42, 43)
    assert not any(isinstance(one, Publish) for one in sent(session))
    session.receive(Confirmed(request), 0.0)
    assert [type(one) for one in sent(session)] == [Publish]


def test_events_leave_as_far_as_credit_reaches_and_the_promise_with_the_last() -> None:
    session = ready()
    session.publish([batch(*range(25))], 0.0, promise=25)
    session.promise(30)
    first = sent(session)
    session.receive(Credit(20), 0.0)
    messages = first + sent(session)
    assert all(isinstance(one, Publish) for one in messages)
    assert [sum(map(len, one.batches)) for one in messages] == [10, 15]
    assert [one.promise for one in messages] == [None, 30]


def lengths(messages: list[Message]) -> list[list[int]]:
    return [list(map(len, one.batches)) for one in messages if isinstance(one, Publish)]


def test_batches_that_have_waited_for_credit_leave_as_one() -> None:
    session = ready(publish_events_max=12)
    for first in range(0, 30, 3):
        session.publish([batch(first, first + 1, first + 2)], 0.0)
    assert lengths(sent(session)) == [[3], [3], [3], [1]]
    session.receive(Credit(19), 0.0)
    messages = sent(session)
    assert lengths(messages) == [[11], [6], [2]]
    assert isinstance(messages[0], Publish)
    (joined,) = messages[0].batches
    assert joined.ids.sequence.tolist() == list(range(11, 22))
    assert joined.time.tolist() == joined.columns[0].tolist() == list(range(10, 21))
    session.receive(Acknowledged(21), 0.0)
    assert session.outgoing.unacknowledged == 9
    session.lose(0.0)
    session.connect(0.0)
    session.receive(welcome(last=23), 0.0)
    session.receive(Confirmed(2), 0.0)
    assert lengths(sent(session)) == [[9]]  # the broker drops its repeats, 22 and 23


def test_what_follows_a_promise_that_it_breaks_stays_behind_it() -> None:
    session = ready()
    session.publish([batch(*range(10))], 0.0)
    drain(session)
    session.publish([batch(20, 21)], 0.0, promise=22)
    session.publish([batch(22, 23)], 0.0)
    session.publish([batch(5, 24)], 0.0, promise=25)
    session.publish([batch(25)], 0.0, promise=24)
    session.receive(Credit(10), 0.0)
    messages = [one for one in sent(session) if isinstance(one, Publish)]
    assert [(one.batches[0].time.tolist(), one.promise) for one in messages] == [
        ([20, 21, 22, 23], 22),
        ([5, 24, 25], 25),
    ]


def test_only_what_is_alike_and_short_leaves_as_one() -> None:
    session = ready()
    other = EventType.of("Long", text="string")
    session.advertise([other])
    session.receive(Confirmed(2), 0.0)
    session.publish([batch(*range(10))], 0.0)
    drain(session)
    numbers = EventIds(StringColumn.constant("", 1), np.arange(1))
    named = EventIds(StringColumn.constant("", 2), np.arange(2), StringColumn.from_strings("ab"))
    long = StringColumn.constant("x" * 200_000, 1)
    session.publish([batch(1, 2)], 0.0)
    session.publish([batch(1, 2).with_ids(named)], 0.0)
    session.publish([batch(1, 2).with_ids(named)], 0.0)
    for _ in range(2):
        session.publish([EventBatch(other, np.array([1]), numbers, (long,))], 0.0)
    session.receive(Credit(10), 0.0)
    assert lengths(sent(session)) == [[2], [4], [1], [1]]


def test_what_leaves_as_one_is_no_longer_than_a_message_of_the_user_may_be() -> None:
    session = ready()
    for first in range(0, 20, 2):
        session.publish([batch(first, first + 1)], 0.0)
    drain(session)
    session.lose(0.0)
    session.connect(0.0)
    pair = 2 * extent(batch(1, 2))
    limited = Welcome(VERSION, "b", 10, 10, 1.0, message_bytes_max=CHARACTER_BYTES * pair)
    session.receive(limited, 0.0)
    session.receive(Confirmed(2), 0.0)
    assert lengths(sent(session)) == [[4], [4], [2]]


def test_batches_of_several_types_are_cut_by_their_common_order() -> None:
    session = ready()
    other = EventType.of("Hum", value="int")
    session.advertise([other])
    session.receive(Confirmed(2), 0.0)
    drain(session)
    odd, even = np.arange(1, 20, 2), np.arange(2, 21, 2)
    batches = [
        EventBatch(schema, places, EventIds(StringColumn.constant("", 10), places), (places,))
        for schema, places in ((TEMP, odd), (other, even))
    ]
    assert session.publish(batches, 0.0) == (1, 20)
    session.receive(Credit(10), 0.0)
    numbers = [
        sorted(number for one in message.batches for number in one.ids.sequence.tolist())
        for message in sent(session)
        if isinstance(message, Publish)
    ]
    assert numbers == [list(range(1, 11)), list(range(11, 21))]


def test_an_unanswered_request_is_answered_when_the_link_is_lost() -> None:
    session = ready()
    asked = session.deploy("define ...")
    subscription, _ = session.subscribe("Temp()")
    session.lose(1.0)  # before the host has sent anything: it must not go out on the next link
    lost = [one for one in session.take_results() if isinstance(one, Refused)]
    assert [(one.request, one.code) for one in lost] == [(asked, Code.SILENT)]
    # The subscription is what the client wants; it is asked for again, under its number.
    session.connect(2.0)
    session.receive(welcome(), 2.0)
    again = [one for one in sent(session) if isinstance(one, Subscribe)]
    assert [one.request for one in again] == [subscription]


def test_a_subscription_that_is_refused_on_a_new_link_is_reported_and_forgotten() -> None:
    session = ready()
    request, number = session.subscribe("Temp()")
    session.receive(Confirmed(request), 0.0)
    drain(session)
    for _ in range(2):
        session.lose(1.0)
        session.connect(2.0)
        session.receive(welcome(), 2.0)
        again = [one for one in sent(session) if isinstance(one, Subscribe)]
        session.take_results()
        for one in again:
            assert one.number == number
            session.receive(Refused(one.request, Code.LIMIT, "too many"), 2.0)
            assert session.take_results() == [Refused(None, Code.LIMIT, "too many")]
    assert not again, "it was asked for again"


def reconnected(session: Session) -> list[Message]:
    """What the session asks on its next link."""
    session.lose(1.0)
    session.connect(1.0)
    session.receive(welcome(), 1.0)
    return [one for one in sent(session) if isinstance(one, Subscribe | Unsubscribe | Unadvertise)]


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_subscription_that_has_ended_before_it_was_in_force_is_not_asked_for_again(
    is_answered: bool,
) -> None:
    """In a network it takes a while until one is in force, and none until it has ended."""
    session = ready()
    request, number = session.subscribe("Temp")
    ended = session.unsubscribe(number)
    session.receive(Confirmed(ended), 0.0)
    if is_answered:
        session.receive(Confirmed(request), 0.0)
    drain(session)
    assert reconnected(session) == []
    refused = [one.request for one in session.take_results() if isinstance(one, Refused)]
    assert refused == ([] if is_answered else [request])


def test_what_a_client_wants_no_more_is_asked_again_until_it_is_answered() -> None:
    """It came to be refused for the lost link, and was subscribed to again, or advertised."""
    session = ready()
    request, number = session.subscribe("Temp")
    session.receive(Confirmed(request), 0.0)
    ended, withdrawn = session.unsubscribe(number), session.ask(Unadvertise, ["Temp"])
    drain(session)
    kinds = [Subscribe, Unsubscribe, Unadvertise]
    assert [type(one) for one in reconnected(session)] == kinds
    assert [one for one in session.take_results() if isinstance(one, Refused)] == []
    for request in (5, 6, ended, withdrawn):  # those that are repeated, of which nothing is said
        session.receive(Confirmed(request), 1.0)
    told = [one.request for one in session.take_results() if isinstance(one, Confirmed)]
    assert told == [ended, withdrawn]
    assert reconnected(session) == []


def test_another_client_under_the_same_name_is_noticed() -> None:
    session = ready()
    session.publish([batch(1, 2)], 0.0)
    session.lose(1.0)
    session.connect(2.0)
    session.receive(welcome(last=3), 2.0)
    assert session.state is State.OFF
    lost = session.take_results()[-1]
    assert isinstance(lost, Lost)
    assert not lost.retry
    assert "another one has used its name" in lost.reason


def test_who_has_published_nothing_yet_goes_on_above_what_its_name_has_published() -> None:
    """Its broker may hear of that after the first link, before the second; it was refused for it,
    as somebody who had used another's name.
    """
    session = ready()
    session.lose(1.0)
    session.connect(2.0)
    session.receive(welcome(last=3), 2.0)
    session.receive(Confirmed(2), 2.0)
    assert session.state is State.READY
    assert session.publish([batch(1)], 2.0) == (4, 4)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (Confirmed(99), "request 99, which is not open"),
        (welcome(), "Welcome while ready"),
        (Delivery((batch(1),), ((1,),)), "1 events more than there was credit for"),
    ],
)
def test_a_broker_that_breaks_the_protocol_loses_the_link(
    message: FromBroker, complaint: str
) -> None:
    session = ready()
    session.receive(message, 0.0)
    assert session.state is State.OFF
    (lost,) = session.take_results()
    assert isinstance(lost, Lost)
    assert lost.code is Code.PROTOCOL
    assert complaint in lost.reason
    effects = session.take_effects()
    # A Goodbye with this code tells the broker that the source has not finished.
    assert any(isinstance(one, Send) and isinstance(one.message, Goodbye) for one in effects)
    assert any(isinstance(one, Close) for one in effects)


def test_malformed_frames_and_other_versions_end_the_link() -> None:
    for frames, code in (([b"junk"], Code.PROTOCOL), ([b"RX\x07\x21\x90"], Code.VERSION)):
        session = ready()
        session.receive_frames(frames, 0.0)
        (lost,) = session.take_results()
        assert isinstance(lost, Lost)
        assert (lost.code, lost.retry) == (code, False)
    session = Session(SessionConfig())
    session.connect(0.0)
    session.receive(welcome(version=VERSION + 1), 0.0)
    (lost,) = session.take_results()
    assert isinstance(lost, Lost)
    assert lost.code is Code.VERSION


def test_a_broker_that_never_answers_is_given_up() -> None:
    session = Session(SessionConfig(heartbeat_s=1.0))
    session.connect(10.0)
    due = session.next_timer()
    while due is not None and due < 20:
        session.handle_timer(due)
        due = session.next_timer()
    assert due is None
    (lost,) = session.take_results()
    assert isinstance(lost, Lost)
    assert lost.retry


def test_heartbeats_go_out_when_nothing_else_does() -> None:
    session = ready()
    session.handle_timer(0.5)
    assert sent(session) == [Heartbeat()]
    session.publish([batch(1)], 0.9)
    drain(session)
    session.handle_timer(1.0)
    assert sent(session) == []


def test_credit_follows_what_the_application_takes() -> None:
    session = ready(delivery_credit=4)
    request, _ = session.subscribe("Temp()")
    session.receive(Confirmed(request), 0.0)
    assert sent(session)[-1] == Credit(4)
    session.receive(Delivery((batch(1, 2, 3),), ((1,),)), 0.0)
    session.consume(1)
    assert sent(session) == []  # half of it is still out
    session.consume(2)
    assert sent(session) == [Credit(3)]
    # On a new link only what the application can still take is granted.
    session.receive(Delivery((batch(1, 2, 3),), ((1,),)), 0.0)
    session.lose(1.0)
    session.connect(1.0)
    session.receive(welcome(), 1.0)
    again = [one for one in sent(session) if isinstance(one, Subscribe)]
    session.receive(Confirmed(again[0].request), 1.0)
    assert sent(session) == [Credit(1)]


def test_numbered_events_keep_their_numbers() -> None:
    session = ready()
    recorded = EventBatch(
        TEMP,
        np.array([5, 6]),
        EventIds(StringColumn.constant("elsewhere", 2), np.array([17, 99])),
        (np.array([1, 2]),),
    )
    assert session.publish([recorded], 0.0, numbered=True) == (17, 99)
    with pytest.raises(SessionError, match="from above 99"):
        session.publish([recorded], 0.0, numbered=True)
    (message,) = sent(session)
    assert isinstance(message, Publish)
    assert [event.id for event in message.batches[0].events()] == ["17", "99"]
    assert [event.source for event in message.batches[0].events()] == ["p", "p"]


def test_what_cannot_be_asked_is_the_callers_mistake() -> None:
    nameless = Session(SessionConfig())
    with pytest.raises(SessionError, match="without a name"):
        nameless.publish([batch(1)], 0.0)
    session = ready()
    with pytest.raises(SessionError, match="no event"):
        session.publish([batch()], 0.0)
    with pytest.raises(SessionError, match="the session is ready"):
        session.connect(0.0)
    sent(session)
    for ask, longest in ((session.subscribe, 65_536), (session.deploy, 2**24)):
        with pytest.raises(SessionError, match=f"of length <= {longest}"):
            ask("x" * (longest + 1))
        ask("x" * longest)
    for kind in (Remove, ShowRule):
        for name in ("x" * 256, "x\x1b[2J"):
            with pytest.raises(SessionError, match=rf"{kind.__name__}: .* at `\$.name`"):
                session.ask(kind, name)
        session.ask(kind, "x" * 255)
    session.deploy("", file="/" * 256 + "f.tesla")
    asked = sent(session)
    assert [type(one) for one in asked] == [Subscribe, Deploy, Remove, ShowRule, Deploy]
    assert asked[-1].file == "/" * 248 + "f.tesla"
    session.close(0.0)
    assert isinstance(sent(session)[-1], Goodbye)
    with pytest.raises(SessionError, match="closed"):
        session.advertise([TEMP])
    with pytest.raises(SessionError, match="closed"):
        session.publish([batch(1)], 0.0)
    session.receive(Acknowledged(1), 0.0)  # still under way when it closed
    assert session.take_results() == []


@pytest.mark.parametrize(
    "options",
    [
        {"heartbeat_s": 0.0},
        {"increasing": True, "disorder_us": 5},
        {"disorder_us": -1},
        {"instance": 2**63},
        {"delivery_credit": 0},
    ],
    ids=str,
)
def test_a_configuration_without_sense_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        SessionConfig(**options)  # type: ignore[arg-type]


def test_a_sessions_messages_survive_the_wire() -> None:
    session = ready()
    session.publish([batch(1, 2)], 0.0, promise=3)
    (message,) = sent(session)
    assert isinstance(message, Publish)
    again = wire.decode(wire.encode(message))
    assert isinstance(again, Publish)
    assert list(again.batches[0].events()) == list(message.batches[0].events())


def subscribed(session: Session) -> None:
    """Say that the session's subscription is in force on its link."""
    (asked,) = (one for one in sent(session) if isinstance(one, Subscribe))
    session.receive(Confirmed(asked.request), 1.0)
    drain(session)


def given(session: Session) -> list[tuple[list[int], list[int], int]]:
    """Values, positions and losses of what the session gives its application."""
    found = [one for one in session.take_results() if isinstance(one, Delivery)]
    return [(one.batches[0].columns[0].tolist(), positions_of(one), one.dropped) for one in found]


def test_what_comes_again_on_another_link_keeps_its_numbers() -> None:
    session = ready()
    session.subscribe("Temp()", durable="billing")
    subscribed(session)
    for value in (12, 14):  # another client has 11 and 13
        delivery = Delivery((batch(value),), ((1,),), number=value - 10)
        session.receive(delivery, 1.0)
    assert given(session) == [([12], [2], 0), ([14], [4], 0)]
    session.acknowledge(2)
    assert sent(session) == [DealtWith(2, 2)]
    session.lose(1.0)
    session.connect(1.0)
    session.receive(welcome(), 1.0)
    subscribed(session)
    known = Delivery((batch(14),), ((1,),), dropped=5, number=4, again=True)
    session.receive(known, 1.0)
    assert given(session) == []
    assert not any(isinstance(one, DealtWith) for one in sent(session)), "4 is not dealt with"
    again = Delivery((batch(11, 12, 13, 14),), ((1,),), dropped=2, number=4, again=True)
    session.receive(again, 1.0)
    assert (given(session), sent(session)[0]) == ([([11, 13], [1, 3], 7)], DealtWith(2, 2))
    session.acknowledge(1)
    assert sent(session) == [DealtWith(1, 1), DealtWith(4, 4)]
    assert session.acknowledge_each([3])
    assert not session.acknowledge_each([3])
    assert sent(session) == [DealtWith(3, 3)]
    session.receive(Delivery((batch(15),), ((1,),), number=5), 1.0)
    assert given(session) == [([15], [5], 0)]


def test_parts_of_logs_are_asked_for_one_after_another() -> None:
    session = ready()
    asked = [session.ask(ReadLog, after=after) for after in (0, 1, 2)]
    assert sent(session) == [ReadLog(asked[0])]
    session.receive(LogPart(asked[0], "b", (), 1, 3, (), ()), 1.0)
    assert sent(session) == [LogReceived(asked[0]), ReadLog(asked[1], after=1)]
    session.receive(Refused(asked[1], Code.NO_STORE, "no"), 1.0)
    assert sent(session) == [ReadLog(asked[2], after=2)]
    session.lose(1.0)
    session.connect(1.0)
    session.receive(welcome(), 1.0)
    drain(session)
    last = session.ask(ReadLog, after=3)
    assert sent(session) == [ReadLog(last, after=3)]
