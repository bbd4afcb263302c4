"""One broker beside many rules: what a rule more, one less, a subscription and a checkpoint cost.

    rexmq bench walks      # or: python -m benchmarks.walks 1000 4000 10000

The broker works alone and in this process, a source and a sink are sessions beside it, and nothing
is published. Figures are milliseconds of this thread's processor time, the least of several; and of
the largest two numbers of rules the calls of functions of Python that one rule more makes it cost,
which do not depend on the machine: what looks through all rules has one of each at least, unless it
does so within one step of the interpreter.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

import rules.engine as rules_engine
from benchmarks.report import Row, table
from benchmarks.steps import RAIN, SMOKE, TEMP, TEXT_RULES, text_of
from broker.warmup import warm_up
from routing import wire
from routing.config import NodeConfig, SessionConfig
from routing.effects import Send
from routing.messages import Remove
from routing.network.brokers.broker import Broker
from routing.overlay.config import OverlayConfig
from routing.session import Session

SOURCE, SINK = b"source", b"sink"
BEAT_S, LATER_S = 3_600.0, 5.0
ROUNDS = 5


class Alone:
    """A broker with a number of rules, a source of their types, and a sink of a tenth of them."""

    def __init__(self, rules: int) -> None:
        config = NodeConfig(wall_clock=False, heartbeat_s=BEAT_S)
        overlay = OverlayConfig("b", heartbeat_s=BEAT_S)
        self.broker = Broker(config, overlay, rules_engine.make("auto"), None)
        self._now = 0.0
        self._sessions = {
            SOURCE: Session(SessionConfig("source", 1, heartbeat_s=BEAT_S)),
            SINK: Session(SessionConfig(heartbeat_s=BEAT_S)),
        }
        for session in self._sessions.values():
            session.connect(0.0)
        self._settle()
        self._sessions[SOURCE].advertise([TEMP, SMOKE, RAIN])
        for first in range(0, rules, TEXT_RULES):
            self._sessions[SINK].deploy(text_of(min(TEXT_RULES, rules - first), first))
            self._settle()
        assert len(self.broker.context.deployments) == rules, "a text was refused"
        self._sessions[SINK].subscribe("Fire0")
        self._settle()
        self._names = iter(range(sys.maxsize))

    def actions(self) -> Mapping[str, Callable[[], None]]:
        """What to measure, in this order, by name."""
        sink, number = self._sessions[SINK], next(self._names)
        checkpoints = self.broker._parts.checkpoints
        return {
            "a rule more": lambda: self._do(
                lambda: sink.deploy(text_of(1).replace("fire0", f"other{number}"))
            ),
            "a rule less": lambda: self._do(lambda: sink.ask(Remove, f"other{number}")),
            "a subscription": lambda: self._do(lambda: sink.subscribe(f"Temp(value > {number})")),
            "the first checkpoint after that": lambda: self._do(checkpoints.begin),
            "a later checkpoint": lambda: self._do(checkpoints.begin),
        }

    def _do(self, action: Callable[[], object]) -> None:
        action()
        self._settle()

    def _settle(self) -> None:
        for _ in range(3):
            self._carry()
            self._now += LATER_S

    def _carry(self) -> None:
        has_moved = True
        while has_moved:
            has_moved = False
            while (due := self.broker.next_timer()) is not None and due <= self._now:
                self.broker.handle_timer(self._now)
            for peer, session in self._sessions.items():
                for effect in session.take_effects():
                    if isinstance(effect, Send):
                        frames = wire.encode(effect.message)
                        self.broker.receive_frames(peer, frames, self._now)
                        has_moved = True
            for effect in self.broker.take_effects():
                if isinstance(effect, Send):
                    frames = wire.encode(effect.message)
                    self._sessions[effect.peer].receive_frames(frames, self._now)
                    has_moved = True


def run(quick: bool) -> Iterator[Row]:
    """The figures, beside some numbers of rules."""
    yield from measured((250, 500) if quick else (1_000, 4_000, 10_000))


def measured(counts: Sequence[int]) -> Iterator[Row]:
    """Milliseconds beside each number of rules, and calls for one rule more."""
    warm_up("auto")
    calls: dict[int, Mapping[str, int]] = {}
    for count in counts:
        alone, spent = Alone(count), dict[str, float]()
        gc.collect()
        gc.freeze()
        for _ in range(ROUNDS):
            for name, action in alone.actions().items():
                begun = time.thread_time()
                action()
                ms = (time.thread_time() - begun) * 1e3
                spent[name] = min(ms, spent.get(name, ms))
        calls[count] = {name: calls_of(action) for name, action in alone.actions().items()}
        gc.unfreeze()
        yield from (Row(f"{name} beside {count:,}", ms, "ms") for name, ms in spent.items())
    few, many = sorted(calls)[-2:]
    for name, found in calls[many].items():
        slope = (found - calls[few][name]) / (many - few)
        yield Row(f"{name}, for each rule that is there", slope, "calls")


def calls_of(action: Callable[[], None]) -> int:
    """How many functions of Python are called, built-in ones apart."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    action()
    sys.setprofile(None)
    return count


if __name__ == "__main__":
    print(table(list(measured([int(one) for one in sys.argv[1:]] or (1_000, 4_000, 10_000)))))
