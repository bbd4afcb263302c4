"""Calls of functions by which one broker takes in an event and delivers it, in a steady state.

A source publishes single events, a sink is subscribed to them, and nothing else is there. Counted
is what happens between the frames that come in and the frames of the delivery that leave: decoding,
the broker itself, encoding. Comprehensions count as the function that they stand in.

::

    python -m tools.calls
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import rules.engine
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
EVENTS = 50
"""Events that pass until the state is steady."""


class Exchange:
    """A broker, a source and a sink, and the frames between them."""

    def __init__(self) -> None:
        config, engine = NodeConfig(wall_clock=False), rules.engine.make("naive")
        self.node = Broker(config, OverlayConfig("b"), engine, None)
        self.sessions = {
            SOURCE: Session(SessionConfig("source", 1)),
            SINK: Session(SessionConfig()),
        }
        for session in self.sessions.values():
            session.connect(0.0)
        self.settle()
        self.sessions[SOURCE].advertise([TYPE])
        self.sessions[SINK].subscribe("Temp")
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
        self.sessions[SOURCE].publish_all([Single(TYPE, row)], 0.0, number)
        (effect,) = self.sessions[SOURCE].take_effects()
        assert isinstance(effect, Send)
        assert isinstance(effect.message, Publish)
        return wire.encode(effect.message)


def _frames(effects: Sequence[Effect]) -> list[Sequence[bytes]]:
    return [wire.encode(one.message) for one in effects if isinstance(one, Send)]


def calls_of_an_event(packages: Sequence[str]) -> list[str]:
    """The functions of these packages that are called, in order, each with its module."""
    exchange = Exchange()
    for number in range(1, EVENTS):
        exchange.node.receive_frames(SOURCE, exchange.published(number), 0.0)
        exchange.settle()
    frames, calls = exchange.published(EVENTS), list[str]()
    folders = tuple(f"{ROOT / package}/" for package in packages)

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders) and code.co_name[0] != "<":
            calls.append(f"{Path(code.co_filename).relative_to(ROOT)}: {code.co_qualname}")

    def carry_out(effect: Effect) -> None:
        if isinstance(effect, Send):
            wire.encode(effect.message)
            if isinstance(effect.message, Delivery):
                sys.setprofile(None)

    exchange.node.outlet.emit = carry_out
    sys.setprofile(note)
    try:
        exchange.node.receive_frames(SOURCE, frames, 0.0)
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    """Print them."""
    calls = calls_of_an_event(("matcher", "rules", "routing"))
    print("\n".join(calls), f"{len(calls)} calls", sep="\n")


if __name__ == "__main__":
    main()
