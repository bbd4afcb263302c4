"""When one end of a link greets the other, and how long an answer takes."""

from __future__ import annotations

UNANSWERED_MAX = 6
"""Greetings in a row without an answer after which the log says so, once."""
MEASURED = 5
"""Answers that a link is measured by."""
MEASURE_S = 0.02
"""Seconds from an answer to the next greeting while a link is measured."""


class Greeting:
    """The greetings of one end. ``now`` is in seconds and never goes back. A greeting is repeated
    every ``greeting_s`` until it is answered.
    """

    def __init__(self, greeting_s: float) -> None:
        self._greeting_s = greeting_s
        self.due_at = 0.0
        """When to greet next, while the neighbour is not there or the link is measured."""
        self.is_measuring = False
        self.delay_us: int | None = None
        """The link's delay in microseconds; None until it is measured."""
        self.number = 0
        """The number of the last greeting."""
        self._sent_at: float | None = None
        """When the greeting was sent that is not answered yet."""
        self._unanswered = 0
        self._took_s: list[float] = []
        """How long answers took, while the link is measured."""

    def send(self, now: float) -> bool:
        """A greeting is sent; whether it is time to say that nobody answers."""
        self._unanswered = 0 if self._sent_at is None else self._unanswered + 1
        self._sent_at = now
        self.number += 1
        self.wait(now)
        return self._unanswered == UNANSWERED_MAX

    def wait(self, now: float) -> None:
        """Greet no sooner than that."""
        self.due_at = now + self._greeting_s

    def measure(self, now: float) -> None:
        """Measure the link, from now on: some more greetings follow soon, and half of the least
        time that one of them took is its delay, since a broker that has just been started has other
        things to do. Answers take 140, 3, 2, 2 and 4 ms: a delay of 1 ms. A link is told to others
        only once it is measured, so ways that are chosen by it do not change with the load.
        """
        self.is_measuring, self.delay_us = True, None
        self._took_s.clear()
        self.due_at = now

    def hear(self, answers: int, now: float) -> bool:
        """Take in an answer to the greeting of that number; whether the link is measured by it.

        One to a greeting before the last would be measured as too short a delay.
        """
        if self._sent_at is None or answers != self.number:
            return False
        took_s, self._sent_at = now - self._sent_at, None
        if not self.is_measuring:
            return False
        self._took_s.append(took_s)
        self.due_at = now + MEASURE_S
        if len(self._took_s) < MEASURED:
            return False
        self.is_measuring, self.delay_us = False, round(min(self._took_s) * 500_000)
        return True

    def forget(self) -> None:
        """Somebody is there, but does not greet."""
        self._sent_at = None
