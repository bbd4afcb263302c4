"""Calls of functions by which one broker takes in an event and delivers it, in a steady state.

A source publishes single events to a sink, and nothing else is there. The calls of a *primitive*
event, with the naive engine and no rule, are counted from its frames to the first frames of its
delivery: decoding, the broker, encoding. Those of a *composite* event, with the engine of brokers
and one rule that each event fires, are counted to the end of the step, its acknowledgement and the
timers that are due included. Comprehensions count as the function that they stand in.

::

    python -m tools.calls [composite]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import rules.engine as rules_engine
from matcher.model import EventType
from matcher.single import Row, Single
from routing import wire
from routing.config import NodeConfig, SessionConfig
from routing.effects import Effect, Send
from routing.messages import Delivery, Publish
from routing.network.brokers.broker import Broker
from routing.overlay.config import OverlayConfig
from routing.session import Session

ROOT = Path(__file__).resolve().parents[1]
TYPE = EventType.of("Temp", room="string", value="float")
SOURCE, SINK = b"source", b"sink"
RULE = """define Hot(room: string, value: float) from Temp(value > 20.0) as t
    where room = t.room, value = t.value"""
EVENTS = 50
"""Events that pass until the state is steady."""


class Exchange:
    """A broker, a source and a sink, and the frames between them."""

    def __init__(self, engine: str = "naive", rules: str = "", wanted: str = "Temp") -> None:
        config, detector = NodeConfig(wall_clock=False), rules_engine.make(engine)
        self.node = Broker(config, OverlayConfig("b"), detector, None)
        self.sessions = {
            SOURCE: Session(SessionConfig("source", 1)),
            SINK: Session(SessionConfig()),
        }
        for session in self.sessions.values():
            session.connect(0.0)
        self.settle()
        self.sessions[SOURCE].advertise([TYPE])
        if rules:
            self.sessions[SINK].deploy(rules)
        self.sessions[SINK].subscribe(wanted)
        self.settle()

    def settle(self) -> None:
        """Carry messages until nothing moves."""
        moved = True
        while moved:
            moved = False
            while (due := self.node.next_timer()) is not None and due <= 0.0:
                self.node.handle_timer(0.0)
            for peer, session in self.sessions.items():
                for frames in _frames(session.take_effects()):
                    self.node.receive_frames(peer, frames, 0.0)
                    moved = True
            for effect in self.node.take_effects():
                if isinstance(effect, Send):
                    self.sessions[effect.peer].receive_frames(wire.encode(effect.message), 0.0)
                    moved = True
            for session in self.sessions.values():
                for result in session.take_results():
                    if isinstance(result, Delivery):
                        session.consume(len(result))

    def published(self, number: int) -> Sequence[bytes]:
        """The frames in which the source publishes an event."""
        row = Row(number, "", 0, None, ("kitchen", 20.5))
        self.sessions[SOURCE].publish([Single(TYPE, row)], 0.0, number)
        (effect,) = self.sessions[SOURCE].take_effects()
        assert isinstance(effect, Send)
        assert isinstance(effect.message, Publish)
        return wire.encode(effect.message)


def _frames(effects: Sequence[Effect]) -> list[Sequence[bytes]]:
    return [wire.encode(one.message) for one in effects if isinstance(one, Send)]


def calls_of_an_event(packages: Sequence[str]) -> list[str]:
    """The functions of these packages that a primitive event calls, in order."""
    exchange, counter = Exchange(), Counter(packages)
    frames = _steady(exchange)

    def carry_out(effect: Effect) -> None:
        if isinstance(effect, Send):
            wire.encode(effect.message)
            if isinstance(effect.message, Delivery):
                sys.setprofile(None)

    exchange.node.outlet.emit = carry_out
    with counter:
        exchange.node.receive_frames(SOURCE, frames, 0.0)
    return counter.calls


def calls_of_a_composite_event(packages: Sequence[str]) -> list[str]:
    """The functions of these packages that an event with a composite event calls, in order."""
    exchange, counter = Exchange("auto", RULE, "Hot"), Counter(packages)
    frames, delivered = _steady(exchange), list[Delivery]()

    def carry_out(effect: Effect) -> None:
        if isinstance(effect, Send):
            wire.encode(effect.message)
            if isinstance(effect.message, Delivery):
                delivered.append(effect.message)

    node = exchange.node
    node.outlet.emit = carry_out
    with counter:
        node.receive_frames(SOURCE, frames, 0.0)
        while (due := node.next_timer()) is not None and due <= 0.0:
            node.handle_timer(0.0)
    assert [len(delivery) for delivery in delivered] == [1], delivered
    return counter.calls


def _steady(exchange: Exchange) -> Sequence[bytes]:
    """The frames of the next event, once some have passed."""
    for number in range(1, EVENTS):
        exchange.node.receive_frames(SOURCE, exchange.published(number), 0.0)
        exchange.settle()
    return exchange.published(EVENTS)


class Counter:
    """The functions of some packages that are called within a ``with`` statement."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._folders = tuple(f"{ROOT / package}/" for package in packages)
        self.calls: list[str] = []

    def __enter__(self) -> None:
        sys.setprofile(self._note)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        is_ours = event == "call" and code.co_filename.startswith(self._folders)
        if is_ours and code.co_name[0] != "<":
            name = Path(code.co_filename).relative_to(ROOT)
            self.calls.append(f"{name}: {code.co_qualname}")


def main() -> None:
    """Print them."""
    is_composite = "composite" in sys.argv[1:]
    count = calls_of_a_composite_event if is_composite else calls_of_an_event
    calls = count(("matcher", "rules", "routing"))
    print("\n".join(calls), f"{len(calls)} calls", sep="\n")


if __name__ == "__main__":
    main()
