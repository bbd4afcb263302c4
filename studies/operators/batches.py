"""Batches gathered until they are worth a launch."""

from __future__ import annotations

from matcher.joining import are_alike, concatenated
from matcher.model import EventBatch


class Batcher:
    """Events of one stream, held until there are enough of them, or the first has waited enough.

    A batch goes out when it has ``least`` events, or ``timeout`` microseconds after its first came
    in; none is of more than ``most``. The time is whatever clock the caller tells, in microseconds:
    the same calls give the same batches. So there are never more than ``least`` - 1 events in it
    when a call has returned.
    """

    def __init__(self, least: int, most: int, timeout: int) -> None:
        if not 1 <= least <= most:
            raise ValueError(f"batches of {least} to {most} events: at least 1, and in that order")
        if timeout < 0:
            raise ValueError(f"a timeout of {timeout} us is negative")
        self.least, self.most, self.timeout = least, most, timeout
        self._held: list[EventBatch] = []
        self._count = 0
        self._due = 0

    def __len__(self) -> int:
        return self._count

    @property
    def due(self) -> int | None:
        """When what is held must go out at the latest; None of nothing."""
        return self._due if self._count else None

    def add(self, batch: EventBatch, now: int) -> list[EventBatch]:
        """Take events in at a time; the batches that go out."""
        out = self.tick(now)
        if self._held and not are_alike(self._held[-1], batch):
            out += self.flush()
        if len(batch) == 0:
            return out
        if not self._count:
            self._due = now + self.timeout
        self._held.append(batch)
        self._count += len(batch)
        return out + self.flush() if self._count >= self.least else out

    def tick(self, now: int) -> list[EventBatch]:
        """Tell the time; the batches that go out."""
        return self.flush() if self._count and now >= self._due else []

    def flush(self) -> list[EventBatch]:
        """All that is held, in batches of ``most`` at the most."""
        if not self._count:
            return []
        whole, most = concatenated(self._held), self.most
        self._held, self._count = [], 0
        return [whole.take(slice(at, at + most)) for at in range(0, len(whole), most)]
