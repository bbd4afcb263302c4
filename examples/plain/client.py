"""A client of RexMQ: nothing but docs/protocol.md and the standard library.

    python examples/plain/client.py HOST:PORT RULES EVENTS FILTER...

deploys the rules at a broker, publishes the events (JSON lines, in the order of their times), and
prints the events that the filters select, as `rexmq detect` does, until all have been evaluated.
"""

import datetime
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import columns
import msgpack
import zmtp

VERSION = 1
HELLO, ADVERTISE, PUBLISH, SUBSCRIBE, DEPLOY, STATUS = 1, 2, 4, 6, 8, 12
WELCOME, CONFIRMED, REFUSED, ACKNOWLEDGED, DELIVERY, REJECTED = 16, 17, 18, 19, 20, 21
CREDIT, HEARTBEAT, GOODBYE = 32, 33, 34
QUEUE = 1000  # how many events may wait for us at the broker, and how many be under way
MISSED_MAX = 3  # intervals of the broker's silence after which it is given up


class Client:
    """One conversation with a broker; a link that ends raises ``ConnectionError``.

    A client that is to outlive its link would keep its ``instance``, its types, subscriptions and
    what was not acknowledged, and say all of it again on the next one.
    """

    def __init__(self, host: str, port: int, name: str, heartbeat_s: float = 2.0) -> None:
        self.name = name  # the source of its events; "" for a client that publishes none
        self.heartbeat_s = heartbeat_s
        self.broker_heartbeat_s = 5.0  # until Welcome says it
        self.delivered: list[columns.Event] = []
        self.acknowledged = self.request = 0
        self.answer: list[Any] | None = None
        self.link = zmtp.Link(host, port)
        self.heard_at = time.monotonic()
        self.say(HELLO, VERSION, name, heartbeat_s, random.getrandbits(62) + 1)
        _, _, self.sequence, self.credit, self.broker_heartbeat_s, *_ = self.wait_for_answer()

    def say(self, kind: int, *fields: Any, second: bytes | None = None) -> None:
        first = b"RX" + bytes([VERSION, kind]) + msgpack.pack(list(fields))
        self.link.send([first] if second is None else [first, second])
        self.spoke_at = time.monotonic()

    def ask(self, kind: int, *fields: Any) -> Any:
        """What the broker confirms a request with; ``ValueError`` says why it refuses one."""
        self.request += 1
        self.say(kind, self.request, *fields)
        return self.wait_for_answer()[1]

    def wait_for_answer(self) -> list[Any]:
        self.answer = None
        while self.answer is None:
            self.listen()
        return self.answer

    def listen(self) -> None:
        """Take in the next message, if one comes soon, and keep the conversation alive."""
        frames = self.link.receive(self.heartbeat_s / 4)
        now = time.monotonic()
        if frames is not None:
            self.heard_at = now
            self._take(frames[0][3], msgpack.unpack(frames[0][4:]), frames[1:])
        elif now - self.heard_at > MISSED_MAX * self.broker_heartbeat_s:
            raise ConnectionError("the broker has fallen silent")
        if now - self.spoke_at > self.heartbeat_s / 2:
            self.say(HEARTBEAT)

    def publish(self, schema: list[str], event: columns.Event) -> None:
        """Publish an event, and promise that no earlier one follows."""
        while self.credit == 0:
            self.listen()
        self.credit -= 1
        self.sequence += 1
        named = event | {"source": self.name, "sequence": self.sequence}
        batch, frame = columns.written(schema, [named])
        self.say(PUBLISH, [batch], event["time"], "broker", second=frame)

    def close(self) -> None:
        """Leave once all is acknowledged; for a source that means that nothing follows."""
        while self.acknowledged < self.sequence:
            self.listen()
        self.say(GOODBYE, "done", "closing")
        self.link.close()

    def _take(self, kind: int, fields: list[Any], rest: list[bytes]) -> None:
        if kind in (WELCOME, CONFIRMED):
            self.answer = fields
        elif kind == ACKNOWLEDGED:
            (self.acknowledged,) = fields
        elif kind == CREDIT:
            self.credit += fields[0]
        elif kind == DELIVERY:
            self._take_delivery(fields, rest)
        elif kind in (REFUSED, REJECTED):
            raise ValueError(fields[2])
        elif kind == GOODBYE:
            raise ConnectionError(f"the broker has said goodbye: {fields[0]}")

    def _take_delivery(self, fields: list[Any], rest: list[bytes]) -> None:
        batches, _, ordered, *_ = fields
        reader = columns.Columns(rest[0])
        events = [event for batch in batches for event in columns.read(batch, reader)]
        order = reader.take("q", len(events)) if ordered else range(len(events))
        self.delivered += [events[place] for place in order]
        self.say(CREDIT, len(events))


def recorded(path: str, schemas: dict[str, list[str]]) -> Iterator[columns.Event]:
    """The events of a file of JSON lines that have an id; whole numbers may be floats."""
    for line in Path(path).read_text().splitlines():
        event = json.loads(line)
        schema = schemas[event["type"]]
        at = datetime.datetime.fromisoformat(event["time"])
        pairs = zip(schema[1::2], schema[2::2], strict=True)
        data = {n: float(event["data"][n]) if k == "float" else event["data"][n] for n, k in pairs}
        yield event | {"time": round(at.timestamp() * 1e6), "data": data}


def printed(event: columns.Event) -> str:
    """The event as `rexmq detect` prints it."""
    at = datetime.datetime.fromtimestamp(event["time"] / 1e6, datetime.UTC)
    shown = {"specversion": "1.0", "type": event["type"], "time": at.isoformat()[:-6] + "Z"}
    shown |= {key: event[key] for key in ("source", "id", "data", "cause") if key in event}
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def has_ended(sink: Client) -> bool:
    """Whether the sink has got all composite events that there are."""
    (facts,) = [one for one in sink.ask(STATUS)["sinks"] if one["name"] == sink.name]
    return facts["ended"] and not facts["queued"]


def main(address: str, rules: str, events: str, *filters: str) -> None:
    host, port = address.rsplit(":", 1)
    name = Path(events).name
    sink = Client(host, int(port), f"{name} sink")
    sink.ask(DEPLOY, Path(rules).read_text(), False, rules)
    for number, pattern in enumerate(filters, start=1):
        sink.ask(SUBSCRIBE, number, pattern, "block", QUEUE, False, "")
    sink.say(CREDIT, QUEUE)

    known = sink.ask(STATUS)["types"]  # with schemas as in "Temp(area: string, value: float)"
    schemas = {one["name"]: re.findall(r"[^\s(),:]+", one["schema"]) for one in known}
    source = Client(host, int(port), name)
    published = list(recorded(events, schemas))
    source.ask(ADVERTISE, [schemas[name] for name in sorted({e["type"] for e in published})])
    for event in published:
        source.publish(schemas[event["type"]], event)
    source.close()

    while not has_ended(sink):
        sink.listen()
    for event in sink.delivered:
        print(printed(event))
    sink.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
