"""Traces: the path of an event through a broker, as its host sees it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from matcher.model import Event
from matcher.traces import Contexts
from routing import wire
from routing.effects import Close, Effect, Send
from routing.errors import WireError
from routing.messages import Delivery, Flow, Forward, Hello, LinkHello, Packet, Publish, Shared

STEPS_MAX = 64
"""Places that an event is known to have come from and gone to."""
FOLLOWED_MAX = 64
"""Composite events that are named as what followed from one."""
FOUND_MAX = 20
"""Events of one id that are told."""
FOUND, CAME, SENT, DELIVERED = "found", "came from", "sent to", "delivered to"


@dataclass(slots=True)
class Entry:
    """One event, ``steps`` being when, what, and of whom or to whom."""

    event: Event
    traces: tuple[str, ...] = ()
    steps: list[tuple[int, str, str]] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)


class Tracer:
    """The latest events of a broker, by name (``source#id``).

    A tracer looks at every message with events that comes and goes, and keeps where each event came
    from, where it went, when, and what it is a cause of. t#7 came of client t, went to broker b2,
    and is a cause of fire's e4d1. At most ``events_max`` events are kept, the latest, each with
    ``STEPS_MAX`` steps at most.
    """

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._names: dict[bytes, str] = {}
        """Names of the peers at the other ends of links."""

    # --- what passes ---

    def note_received(self, peer: bytes, frames: Sequence[bytes]) -> None:
        """Take in a message that has come, before the node does."""
        if wire.looks_like(frames, Hello) or wire.looks_like(frames, LinkHello):
            message = _decoded(frames)
            if isinstance(message, Hello):
                self._names[peer] = f"client {message.name}" if message.name else "a client"
            elif isinstance(message, LinkHello):
                self._names[peer] = f"broker {message.name}"
        elif len(frames) > 1 and wire.is_gathered(frames):
            for event, traces in _events_of(_decoded(frames)):
                self._note(event, CAME, peer, traces)

    def note_effect(self, effect: Effect) -> None:
        """Take in what the node wants of its host."""
        if isinstance(effect, Send):
            what = DELIVERED if isinstance(effect.message, Delivery) else SENT
            for event, traces in _events_of(effect.message):
                self._note(event, what, effect.peer, traces)
        elif isinstance(effect, Close):
            self._names.pop(effect.peer, None)

    def _note(self, event: Event, what: str, peer: bytes, traces: Contexts) -> None:
        name, now = f"{event.source}#{event.id}", round(time.time() * 1e6)
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = Entry(event)
            if what != CAME:
                entry.steps.append((now, FOUND, ""))
            for cause in event.cause_full:
                known = self._entries.get(cause)
                if known is not None and len(known.followed) < FOLLOWED_MAX:
                    known.followed.append(name)
            if len(self._entries) > self._events_max:
                self._entries.popitem(last=False)
        entry.traces = traces or entry.traces
        whom = self._names.get(peer, "a peer")
        is_new = all(step[1:] != (what, whom) for step in entry.steps)
        if is_new and len(entry.steps) < STEPS_MAX:
            entry.steps.append((now, what, whom))

    # --- what is asked ---

    def find(self, name: str) -> dict[str, Any]:
        """The events called ``source#id``, or of whatever source where an id alone is given; plain
        data, empty where none is kept (any more).
        """
        found = [self._entries[name]] if name in self._entries else self._with_id(name)
        return {"traced": self._events_max, "events": [self._facts(one) for one in found]}

    def _with_id(self, text: str) -> list[Entry]:
        return [one for one in self._entries.values() if one.event.id == text][:FOUND_MAX]

    def _facts(self, entry: Entry) -> dict[str, Any]:
        event = entry.event
        return {
            "event": f"{event.source}#{event.id}",
            "type": event.type,
            "time": event.time,
            "traces": list(entry.traces),
            "causes": list(event.cause_full),
            "followed": list(entry.followed),
            "steps": [list(step) for step in entry.steps],
        }


def noting(tracer: Tracer, receive: Callable[[], Any]) -> Callable[[], Any]:
    """A transport's ``receive`` of which the tracer sees every message."""

    def received() -> Any:
        message = receive()
        if message is not None:
            tracer.note_received(*message)
        return message

    return received


def both(
    first: Callable[[Effect], object], second: Callable[[Effect], object]
) -> Callable[[Effect], None]:
    """Two uses of an effect, one after the other."""

    def act(effect: Effect) -> None:
        first(effect)
        second(effect)

    return act


def _decoded(frames: Sequence[bytes]) -> Any:
    try:
        return wire.decode(frames)
    except WireError:  # the node says so
        return None


def _events_of(message: Any) -> Iterator[tuple[Event, Contexts]]:
    """The events of a message, and the traces that they belong to."""
    inner = message.message if isinstance(message, Packet) else message
    if not isinstance(inner, Publish | Delivery | Flow | Forward | Shared):
        return
    traces = dict(inner.traces)
    events = (event for batch in inner.batches for event in batch.events())
    for place, event in enumerate(events):
        yield event, traces.get(place, ())
