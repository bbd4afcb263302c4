"""The time that patterns may take, by the user who has asked for them (``matches``).

RE2 looks for most patterns in a nanosecond a byte, by an automaton that it makes as it goes. Some
patterns need too many states; then it takes a microsecond a byte, which nothing in the pattern's
text tells beforehand. So the time is measured, and what goes beyond a usual one is charged to the
pattern's payer: a user, "" for all who have no names. A user who has used up BURST_S, and SHARE of
the time since, has no more patterns evaluated that were slow; at twice that, no patterns at all.
Example: Bob's filters with ``[ab]*a[abc]{14}x`` get 20 texts of 9,900 letters. After a dozen
evaluations his account is empty; his filters of that kind match nothing more, and are paused.

Nothing is measured before a host has called ``begin``, nor where nobody pays: over files, in a
process, in the simulator and for rights of an access file results depend on events alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

Result = TypeVar("Result")
BURST_S, SHARE = 0.25, 0.02
"""Seconds that patterns of a user may take at once, and of each second since."""
FREE_S, FREE_CHARACTER_S = 1e-3, 1e-7
"""Seconds of an evaluation, and of each character, that are not charged: a pattern is compiled each
time, which takes up to a millisecond."""
SAID = (
    f"the patterns (matches) of its user have taken more than {BURST_S:g} s beyond what patterns "
    f"usually take, and {100 * SHARE:g} % of the time since"
)
"""Words for why something of a user has ended."""
TOGETHER_MAX = 10_000
"""Characters that are looked at together, unless one text has more: up to some 25 ms."""


class TooSlow(Exception):
    """A pattern is not evaluated: its payer's account is empty."""


@dataclass(slots=True)
class _Account:
    """The seconds that are left to a payer, as they were at ``at``, and its slow patterns."""

    left: float
    at: float
    slow: set[str] = field(default_factory=set)


class Patience:
    """Owner of the accounts of this process."""

    def __init__(self) -> None:
        self._clock: Callable[[], float] | None = None
        self._work: Callable[[], float] = float
        self._accounts: dict[str, _Account] = {}
        self._payer: str | None = None
        self.paused: list[object] = []
        """Subscriptions that have matched nothing since their payers have no time left."""

    def begin(self, clock: Callable[[], float], work: Callable[[], float]) -> None:
        """Measure from now on. ``clock``: seconds; ``work``: seconds that this thread has run."""
        self._clock, self._work = clock, work

    @contextmanager
    def paying(self, payer: str | None) -> Iterator[None]:
        """Charge what is evaluated meanwhile; None: to nobody."""
        before, self._payer = self._payer, payer
        try:
            yield
        finally:
            self._payer = before

    def evaluate(
        self, pattern: str, texts: Sequence[str], look: Callable[[Sequence[str]], list[Result]]
    ) -> list[Result]:
        """The results of ``look`` for texts, a part of them at a time; TooSlow for a pattern that
        whoever pays has no time left for.
        """
        if self._clock is None or self._payer is None:
            return look(texts)
        found: list[Result] = []
        for some in _parts(texts):
            account = self._account(self._payer, self._clock())
            if account.left < 0 and (pattern in account.slow or account.left < -BURST_S):
                raise TooSlow(pattern)
            begun = self._work()
            found += look(some)
            excess = self._work() - begun - FREE_S - FREE_CHARACTER_S * sum(map(len, some))
            if excess > 0:
                account.left -= excess
                account.slow.add(pattern)
        return found

    def take_paused(self) -> Sequence[object]:
        """The subscriptions ``paused`` since the last call."""
        paused, self.paused = self.paused, []
        return paused

    def _account(self, payer: str, now: float) -> _Account:
        account = self._accounts.get(payer)
        if account is None:
            account = self._accounts[payer] = _Account(BURST_S, now)
        account.left += SHARE * (now - account.at)
        account.at = now
        if account.left >= BURST_S:
            account.left = BURST_S
            account.slow.clear()
        return account


def _parts(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    part, length = list[str](), 0
    for text in texts:
        if part and length + len(text) > TOGETHER_MAX:
            yield part
            part, length = [], 0
        part.append(text)
        length += len(text)
    if part:
        yield part


PATIENCE = Patience()
