"""What would take more memory or time than the message has bytes costs its sender the link."""

import numpy as np
import pytest
from alone import TEMP, Alone, hello, values, with_source
from event_batches import batch_of_events

from matcher.model import Event, EventBatch, EventIds, EventType, StringColumn
from routing import deployment, wire
from routing.messages import (
    Advertise,
    Code,
    Confirmed,
    Credit,
    Delivery,
    Deploy,
    Goodbye,
    Publish,
    Refused,
    Rights,
    Stay,
    Stays,
    Subscribe,
)
from routing.messages.values import ID_MAX
from routing.wire.codec import LINK_HELLO, prefix


def published(alone: Alone, length: int, count: int) -> list[Goodbye]:
    """Publish events that share an id of that length; gives what the source is told of its end."""
    events = [Event("Temp", n * 1_000, "s", str(n), {"n": n}, n) for n in range(1, count + 1)]
    batch = batch_of_events(TEMP, events)
    ids = StringColumn(np.zeros(count, np.int32), ("x" * length,))
    known = EventIds(batch.ids.source, batch.ids.sequence, ids)
    batch = EventBatch(batch.type, batch.time, known, batch.columns)
    alone.turn((b"s", Publish((batch,))))
    return alone.take(b"s", Goodbye)


@pytest.mark.parametrize("count", [1, 3])
def test_an_id_beyond_the_bound_costs_its_sender_the_link(count: int) -> None:
    (goodbye,) = published(with_source(), ID_MAX + 1, count)
    assert f"an id of {ID_MAX + 1} characters: {ID_MAX} at most" in goodbye.reason


def test_an_id_as_long_as_may_be_is_taken() -> None:
    alone = with_source()
    alone.turn((b"c", hello()), (b"c", Subscribe(1, 1, "Temp()")), (b"c", Credit(10)))
    assert not published(alone, ID_MAX, 1)
    assert values(alone.take(b"c", Delivery)) == [1]


def test_a_message_of_brokers_is_not_read_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kind that is one, whatever follows."""
    packet = LINK_HELLO + 1
    kinds = [packet, *(codec.kind for codec in wire.CODECS if codec.kind >= LINK_HELLO)]
    assert len(kinds) > 10
    for kind in kinds:
        alone = with_source()
        alone.broker.receive_frames(b"s", [prefix(kind) + b"\xff" * 10], alone.simulation.now)
        alone.turn()
        (goodbye,) = alone.take(b"s", Goodbye)
        assert "a message among brokers, from a client" in goodbye.reason


def test_all_accounts_go_in_messages_that_frames_hold() -> None:
    stays = [Stay(n, "b1", True, f"{n:05}" + "\U0001f600" * 250) for n in range(40_000)]
    parts = [*Stays.in_parts(stays)]
    assert [stay for part in parts for stay in part.stays] == stays
    sizes = [sum(map(len, wire.encode(part))) for part in parts]
    assert 1 < len(parts) < 20
    assert max(sizes) < wire.FRAME_MAX // 4


@pytest.mark.parametrize("stays", [[], [Stay(1, "b1", True, "s")]])
def test_few_accounts_are_one_message_and_none_are_none(stays: list[Stay]) -> None:
    assert [part.stays for part in Stays.in_parts(stays)] == ([tuple(stays)] if stays else [])


def refusals(alone: Alone, *asked: Advertise | Deploy) -> list[Refused]:
    alone.turn((b"m", hello("m")), *((b"m", one) for one in asked))
    return alone.take(b"m", Refused)


def test_rules_that_could_not_be_told_in_one_message_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is known goes to a broker that joins in one frame: one that cannot is cut off."""
    monkeypatch.setattr(deployment, "RULES_BYTES_MAX", 1_000)
    alone = with_source()
    text = "rule r{}: define R{}(n: int) from Temp(n > 1) where n = Temp.n"
    asked = [Deploy(number, text.format(number, number)) for number in range(1, 31)]
    refused = refusals(alone, *asked)
    assert {one.code for one in refused} == {Code.LIMIT}
    assert 10 < len(refused) < 20
    assert "more than 1000 bytes of rules in the network" in refused[0].reason


def test_no_user_takes_the_room_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "RULES_BYTES_MAX", 1_000)
    alone = with_source()
    alone.broker.node.rights_of = lambda peer: Rights(peer.decode())
    text = "rule r{}: define R{}(n: int) from Temp(n > 1) where n = Temp.n"
    refused = refusals(alone, *(Deploy(n, text.format(n, n)) for n in range(1, 13)))
    assert len(refused) > 3
    assert "more than 500 bytes of rules of user 'm'" in refused[0].reason
    alone.turn((b"k", hello()), (b"k", Deploy(1, text.format("k", "K"))))
    alone.pass_time(1.0)
    assert alone.take(b"k", Confirmed)


def test_types_whose_names_could_not_be_told_in_one_message_are_refused() -> None:
    alone = with_source()
    asked = [
        Advertise(place, (EventType.of(f"T{place}", **{f"a{n:0240d}": "int" for n in range(900)}),))
        for place in range(1, 13)
    ]
    refused = refusals(alone, *asked)
    assert [one.request for one in refused] == [10, 11, 12]
    assert refused[0].code is Code.LIMIT
    alone.turn((b"m", Advertise(20, asked[0].types)))
    assert alone.take(b"m", Confirmed), "what is known takes no more room"
