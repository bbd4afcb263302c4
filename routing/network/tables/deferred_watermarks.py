"""The marks of rules that a neighbour is told, and those that it may have to be told yet (7.3.6).

Composite events wait at sinks for the marks of all rules that come before them, wherever these are
evaluated. Most marks nobody waits for, and each would be a message.

Law 1: a mark is told as long as it has not passed everything that was sent to the neighbour: what
lies beyond has nothing of this side that waits for more. What is not told is owed, and goes with
what is sent there next: whatever comes through here finds the marks that are known here with it. b3
was sent a Fire of 12 s, and flood is at 11 s: its mark is told until it is beyond 12 s.

Law 2: where composite events come to those beyond some other way, too, these may wait for marks of
this side without being known here. There every mark is told as it moves. b3 gets Floods from a tree
of its own, and Fires from b2: every mark of fire is told.

Law 3: a rule that nobody publishes anything for any more waits for nothing: that is told once, and
once more if it is no longer so. In between no mark of it is told, though it may move with those of
others: that would take it back. Smoke has closed: b3 is told that fire has ended, and none of its
marks.

Law 4: when rules begin anew, those beyond may hold what was sent before. It is earlier than the
plan's *front*, the greatest mark that there was, so up to there every mark is told. Rules had come
to 50 s: marks of fire are told up to there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from matcher.model import TIME_MAX, TIME_MIN

RuleWatermarks = tuple[tuple[str, int], ...]
"""Rules, and up to where the receiver has all of their composite events that it wants."""


class DeferredWatermarks:
    """Owner of what one neighbour was told of marks."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        """By rule that is wanted there; TIME_MIN for nothing."""
        self._deferred: dict[str, int] = {}
        """The marks that are known here and go further."""
        self._ended: set[str] = set()
        """The rules of which it was told that they have ended."""
        self._latest = TIME_MIN
        """The greatest time of what may be held there for this side's sake."""

    def arrange(self, names: Iterable[str]) -> None:
        """Replace the rules that are wanted there by these."""
        self._told = {name: self._told.get(name, TIME_MIN) for name in names}
        self._deferred = {name: mark for name, mark in self._deferred.items() if name in self._told}

    def forget(self, name: str) -> None:
        """A name means no rule any more, or another than before; there, too."""
        if name in self._told:
            self._told[name] = TIME_MIN
        self._deferred.pop(name, None)
        self._ended.discard(name)

    def begin_anew(self, front: int) -> None:
        """Rules begin anew, and what was said is forgotten there (Law 4)."""
        self._told = dict.fromkeys(self._told, TIME_MIN)
        self._deferred.clear()
        self._ended.clear()
        self._latest = front

    def awaits(self, names: Iterable[str], *, every: bool) -> bool:
        """Whether something there may wait for a mark of one of these rules; ``every``: Law 2."""
        for name in names:
            told = self._told.get(name)
            if told is not None and (every or told <= self._latest) and name not in self._ended:
                return True
        return False

    def send(self, latest: int) -> RuleWatermarks:
        """Events up to this time are being sent there; gives the marks that go behind them."""
        if latest <= self._latest:
            return ()
        self._latest = latest
        return self._take([name for name in self._deferred if self._told[name] <= latest])

    def learn(
        self, marks: Mapping[str, int], *, ended: Container[str] = (), every: bool = False
    ) -> RuleWatermarks:
        """Marks are known here; gives what is to be told of them.

        ``ended``: those of these rules that Law 3 speaks of; ``every``: Law 2.
        """
        if not (marks and self._told):
            return ()
        few = marks if len(marks) < len(self._told) else self._told
        to_tell: list[str] = []
        ends: list[tuple[str, int]] = []
        for name in few:
            if name not in marks or name not in self._told:
                continue
            mark, is_over = marks[name], name in ended
            if is_over != (name in self._ended):
                ends += self._end(name, mark, is_over=is_over)
            elif not is_over and mark > self._told[name]:
                self._deferred[name] = mark
                if every or self._told[name] <= self._latest:
                    to_tell.append(name)
        return (*self._take(to_tell), *ends)

    def take_all(self) -> RuleWatermarks:
        """All that is owed, which is told now whether anybody waits for it or not."""
        return self._take(list(self._deferred))

    def _take(self, names: Iterable[str]) -> RuleWatermarks:
        taken = []
        for name in names:
            mark = self._told[name] = self._deferred.pop(name)
            taken.append((name, mark))
        return tuple(taken)

    def _end(self, name: str, mark: int, *, is_over: bool) -> RuleWatermarks:
        self._deferred.pop(name, None)
        mark = self._told[name] = max(mark, self._told[name])
        if is_over:
            self._ended.add(name)
            return (name, mark), (name, TIME_MAX)
        self._ended.discard(name)
        return ((name, mark),)
