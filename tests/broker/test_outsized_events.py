"""An event that no frame holds ends nobody who would have got it."""

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventType

NOTE = EventType.of("Note", text="string", n="int")
COPIES = "abcdef"
RULE = f"""
define Wide({", ".join(f"{name}: string" for name in COPIES)}, n: int) from Note() as note
    where {", ".join(f"{name} = note.text" for name in COPIES)}, n = note.n
"""


def numbers(sink: Subscriber, until: int) -> list[int]:
    had = [sink.receive(timeout_s=60).data["n"]]
    while had[-1] != until:
        had.append(sink.receive(timeout_s=60).data["n"])
    return had


def test_others_go_on_behind_an_event_that_no_frame_holds(tmp_path):
    """Six copies of a text ended subscribers, and a durable subscription got them first again."""
    with (
        (tmp_path / "log").open("w+") as log,
        BrokerProcess("--data", str(tmp_path / "b1"), log=log) as broker,
        Publisher(broker.endpoint, name="p", types=[NOTE]) as source,
    ):
        with RuleManager(broker.endpoint) as manager:
            manager.add(RULE)
        with (
            Subscriber(broker.endpoint, "Wide()") as plain,
            Subscriber(broker.endpoint, "Wide()", name="d", durable=True) as durable,
        ):
            source.publish("Note", text="x", n=1)
            source.publish("Note", text="x" * 6_000_000, n=2)
            source.publish("Note", text="x", n=3)
            assert numbers(plain, 3) == numbers(durable, 3) == [1, 3]
        with Subscriber(broker.endpoint, "Wide()", name="d", durable=True) as durable:
            source.publish("Note", text="x", n=4)
            assert numbers(durable, 4) == [4]
        log.seek(0)
        assert "not delivered: an event that no frame holds" in log.read()
