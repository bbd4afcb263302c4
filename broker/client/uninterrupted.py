"""Sections of the main thread that no signal handler interrupts.

Python runs handlers of signals in its main thread, between any two steps, and a handler may raise:
KeyboardInterrupt does, and so do timeouts by SIGALRM. In the midst of a client's work that would
leave half a message in its socket, or an event that was taken out of one place and is in no other.

While it lasts, the handlers stand aside for one that notes (as ``signal.getsignal`` would show).
That one calls them whenever no section is under way, so it does no harm if it is ever left behind.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Value = TypeVar("Value")

# Without the layer that makes a member of an enumeration of each number, which costs twenty times
# as much: every event that leaves alone is a section.
_bare = importlib.import_module("_signal")
_handler_of: Callable[[int], Any] = _bare.getsignal
_set_handler: Callable[[int, Any], Any] = _bare.signal
_NUMBERS = tuple(
    number
    for number in map(int, sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
    if number < signal.SIGRTMIN
)


class _Main:
    """The sections of the main thread. One of them may be inside another."""

    def __init__(self) -> None:
        self.depth = 0
        """How many sections are under way."""
        self.handlers: dict[int, Any] = {}
        """The handlers that stand aside in a section, by signal."""
        self.seen: list[Any] = []
        """Handlers of all signals, as they stood when the last section began."""
        self.noted: list[tuple[int, FrameType | None]] = []
        self.thread = threading.main_thread().ident

    def learn(self, seen: list[Any]) -> None:
        """Handlers are others than before; where ``_note`` was left behind, what it stands for is
        known.
        """
        self.handlers = {
            number: self.handlers[number] if handler is _note else handler
            for number, handler in zip(_NUMBERS, seen, strict=True)
            if callable(handler)
        }
        self.seen = seen

    def put_back(self) -> None:
        """Let the handlers stand where they stood, unless one of them has seen to that itself."""
        for number, handler in self.handlers.items():
            if _handler_of(number) is _note:
                _set_handler(number, handler)

    def run_noted(self) -> None:
        """Run the handlers of what was noted; the last that raises is heard."""
        while self.noted:
            number, frame = self.noted.pop(0)
            try:
                self.handlers[number](number, frame)
            except BaseException:
                self.run_noted()
                raise


_main = _Main()


def _note(number: int, frame: FrameType | None) -> None:
    if _main.depth:
        _main.noted.append((number, frame))
    else:
        _main.handlers[number](number, frame)


def enter() -> None:
    """Begin a section; ``leave`` ends it. Inside it signals are noted, and their handlers run at
    its end, in the same call, when all is as it should be. Other threads run no handlers: for them
    a section is nothing. Real-time signals are not held up: to look for their handlers, too, would
    cost each section as much again.
    """
    if threading.get_ident() != _main.thread:
        return
    if _main.depth:
        _main.depth += 1
        return
    seen = list(map(_handler_of, _NUMBERS))
    if seen != _main.seen:
        _main.learn(seen)
    for number in _main.handlers:
        _set_handler(number, _note)
    _main.depth = 1


def leave() -> None:
    """End a section. Raises what a handler raises that came meanwhile."""
    if threading.get_ident() != _main.thread:
        return
    if _main.depth > 1:
        _main.depth -= 1
        return
    _main.depth = 0
    try:
        _main.put_back()
    except BaseException:  # a handler's, which has come just now
        _main.put_back()
        raise
    if _main.noted:
        _main.run_noted()


def whole(action: Callable[..., Value], *arguments: Any) -> Value:
    """Do something in a section of its own."""
    enter()
    try:
        return action(*arguments)
    finally:
        leave()


def interruptible(action: Callable[..., Value], *arguments: Any) -> Value:
    """Do something, a sleep say, that handlers may interrupt, though it is inside a section."""
    if threading.get_ident() != _main.thread or not _main.depth:
        return action(*arguments)
    depth, _main.depth = _main.depth, 0
    try:
        if _main.noted:
            _main.run_noted()
        return action(*arguments)
    finally:
        _main.depth = depth


def _begin_in_child() -> None:
    """A process was forked: its main thread is the one that did it, and is in no section."""
    _main.thread = threading.get_ident()
    _main.noted.clear()
    _main.depth = 0
    _main.put_back()


os.register_at_fork(after_in_child=_begin_in_child)
