"""When one end of a link greets the other, and how long an answer takes.

Law: a greeting is repeated every ``greeting_s`` until it is answered. Half of what that takes is
the link's delay; an answer where no greeting is open says nothing of it.
"""

from __future__ import annotations

UNANSWERED_MAX = 6
"""Greetings in a row without an answer after which the log says so, once."""


class Greeting:
    """The greetings of one end. ``now`` is in seconds and never goes back."""

    def __init__(self, greeting_s: float) -> None:
        self._greeting_s = greeting_s
        self.due_at = 0.0
        """When to greet next, while the neighbour is not there."""
        self.delay_us: int | None = None
        """Half of what the last greeting took to be answered, in microseconds."""
        self._sent_at: float | None = None
        """When the greeting was sent that is not answered yet."""
        self._unanswered = 0

    def send(self, now: float) -> bool:
        """A greeting is sent; whether it is time to say that nobody answers."""
        self._unanswered = 0 if self._sent_at is None else self._unanswered + 1
        self._sent_at = now
        self.wait(now)
        return self._unanswered == UNANSWERED_MAX

    def wait(self, now: float) -> None:
        """Greet no sooner than that."""
        self.due_at = now + self._greeting_s

    def hear(self, now: float) -> None:
        """Take in an answer; one that was lost would be measured as a long delay."""
        if self._sent_at is not None:
            self.delay_us = round((now - self._sent_at) * 500_000)
            self._sent_at = None

    def forget(self) -> None:
        """Somebody is there, but does not greet."""
        self._sent_at = None
