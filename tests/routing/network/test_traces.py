"""Trace contexts through a network, and what its brokers tell of an event's way."""

import msgspec
import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of
from event_batches import batch_of_events

from matcher.model import Event, EventType
from routing import wire
from routing.errors import WireError
from routing.messages import (
    Confirmed,
    Delivery,
    Flow,
    Forward,
    Message,
    Publish,
    Question,
    Shared,
    ShowTrace,
)
from routing.network import strategy

T1, T2 = f"00-{'1' * 32}-{'1' * 16}-01", f"00-{'2' * 32}-{'2' * 16}-01"
RULES = """
event Temp(room: string, value: float)
event Smoke(room: string)
event Fire(room: string)
rule fire: define Fire(room) from Smoke() and last Temp(value > 45) within 5 min from Smoke
  where room = Smoke.room
rule alarm: define Alarm(room) from Fire() where room = Fire.room
"""
TEMP = EventType.of("Temp", n="int")
EVENTS = (batch_of_events(TEMP, [Event("Temp", n, "t", str(n), {"n": n}, n) for n in (1, 2)]),)


@pytest.mark.parametrize("name", strategy.names())
def test_a_context_goes_wherever_its_event_and_what_is_made_of_it_go(name: str) -> None:
    network = type("Chosen", (Network,), {"strategy": name})(3)
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {"k1": [], "k3": []}
    note = network._note

    def noting(party: str) -> None:
        session = network.clients.get(party)
        if party in found and session is not None:
            for result in session.take_results():
                if isinstance(result, Delivery):
                    session.consume(len(result))
                    traces = dict(result.traces)
                    events = [one for batch in result.batches for one in batch.events()]
                    found[party] += [
                        (event.type, traces.get(place, ())) for place, event in enumerate(events)
                    ]
        else:
            note(party)

    network.mesh.after = noting
    for party, broker in (("k1", "b1"), ("k3", "b3")):
        network.connect(party, broker)
        for text in ("Temp()", "Alarm()"):
            network.clients[party].subscribe(text)
    source, other = network.connect("t", "b1"), network.connect("s", "b3")
    source.advertise((SCHEMAS["Temp"],))
    other.advertise((SCHEMAS["Smoke"],))
    network.run(2)
    source.deploy(RULES)
    network.run(3)
    for one, texts, context in (
        (source, ('Temp@10("a", 50.0)',), T1),
        (other, ('Smoke@20("a")', 'Smoke@30("b")'), T2),
    ):
        one.note_trace("1", (context,))
        for text in texts:
            promise = 25_000_000 if "@20" in text else 60_000_000
            one.publish(batches_of(text, SCHEMAS), network.mesh.now, promise)
            network.run(1)
    network.run(3)
    for events in found.values():
        assert ("Temp", (T1,)) in events
        alarms = [traces for kind, traces in events if kind == "Alarm"]
        assert alarms == [(T2, T1), (T1,)]


def test_a_message_without_contexts_is_as_long_as_if_there_were_none() -> None:
    for message, fields in (
        (Publish(EVENTS), 3),
        (Delivery(EVENTS, ((1,),)), 7),
        (Flow(EVENTS), 3),
        (Forward(EVENTS), 5),
        (Shared(EVENTS, ()), 3),
    ):
        assert len(msgspec.msgpack.decode(wire.encode(message)[0][4:])) == fields
        traced = msgspec.structs.replace(message, traces=((1, (T1, T2)),))
        assert len(msgspec.msgpack.decode(wire.encode(traced)[0][4:])) == fields + 1
        assert bearing(wire.decode(wire.encode(traced))) == ((1, (T1, T2)),)
        for traces in (((2, (T1,)),), ((1, (T1,)), (0, (T1,))), ((0, ()),), ((0, ("00-x",)),)):
            with pytest.raises(WireError):
                wire.decode(wire.encode(msgspec.structs.replace(message, traces=traces)))


def bearing(message: Message) -> object:
    assert isinstance(message, Publish | Delivery | Flow | Forward | Shared)
    return message.traces


def asked(network: Network, name: str, text: str) -> dict[str, object]:
    session, details = network.clients[name], []
    network.mesh.after = lambda party: details.extend(
        result.detail for result in session.take_results() if isinstance(result, Confirmed)
    )
    session.ask(ShowTrace, text)
    network.run(3)
    (detail,) = details
    return dict(detail)


def test_any_broker_tells_what_all_have_kept_and_who_has_not_answered() -> None:
    network = Network(4)
    for name, broker in network.brokers.items():
        broker.overlay.queries.finders[Question.TRACE] = lambda event, name=name: {
            "traced": 5,
            "events": [f"{event} at {name}"],
        }
    for place in ("b1", "b3"):
        network.connect(place + "k", place)
        detail = asked(network, place + "k", "t#1")
        answers = {one["broker"]: one["events"] for one in detail["brokers"]}
        assert answers == {name: [f"t#1 at {name}"] for name in network.brokers}
        assert detail["silent"] == []
    for wire_ in network.both_ways("b3", "b4"):
        wire_.deliver = lambda frames, now: None
    detail = asked(network, "b1k", "t#1")
    assert [one["broker"] for one in detail["brokers"]] == ["b1", "b2", "b3"]
    assert detail["silent"] == ["b4"]
