"""The interface of every engine: push events, advance the mark, take what was detected.

Law 1 (S14): results are a function of the set of events. A mark promises that nothing earlier
will come any more as a terminator; every instant before it is then evaluated, once, as a whole,
in order of time.

Law 2 (protocol.md section 4): events older than a rule's mark may still be pushed. They enter its
columns, never as terminators.

Law 3 (S15): a rule sees, in every role, only events from its ``since`` on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from matcher.model import TIME_MIN, Event, EventBatch, Int64s, UInt64s
from rules.engine.conflict import Conflict
from rules.overrun import Overrun
from rules.pattern import RuleSet

if TYPE_CHECKING:
    from matcher.formats.tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """Composite events of one ``advance``, one batch a type, and their common order.

    ``order`` int64[n] lists positions in the concatenation of ``batches``, in the order of time
    and then E4: the order in which the events are printed and delivered.
    """

    batches: tuple[EventBatch, ...]
    order: Int64s

    def __len__(self) -> int:
        return len(self.order)

    def events(self) -> Iterator[Event]:
        """The composite events as rows, in order."""
        if not len(self.order):
            return iter(())
        rows = [event for batch in self.batches for event in batch.events()]
        return (rows[place] for place in self.order.tolist())

    def tables(self) -> Tables:
        """The composite events as tables by type, for pandas, polars and Arrow."""
        from matcher.formats.tables import Table, Tables

        first, tables = 0, []
        for batch in self.batches:
            places = self.order[(self.order >= first) & (self.order < first + len(batch))] - first
            tables.append(Table(batch.type, [batch.take(places)]))
            first += len(batch)
        return Tables(tables)

    def __repr__(self) -> str:
        counts = ", ".join(f"{batch.type.name}: {len(batch)}" for batch in self.batches)
        return f"Detections({counts})"

    def _repr_html_(self) -> str:
        return self.tables()._repr_html_()


NOTHING = Detections((), np.empty(0, np.int64))
"""No composite event."""


def beginning(since: int | None, greatest: int) -> int:
    """The first instant that rules see which are deployed without a ``since``: beyond all events
    that have come, of whatever type, the latest at ``greatest``; from the beginning where none has
    (TIME_MIN). With one it is theirs: whoever names it has their events come after them.

    >>> beginning(None, 40), beginning(7, 40), beginning(None, TIME_MIN) == TIME_MIN
    (41, 7, True)
    """
    if since is not None:
        return since
    return TIME_MIN if greatest == TIME_MIN else greatest + 1


def one_by_one(found: Sequence[Detections], kind: type[Detections] = Detections) -> Detections:
    """Detections one behind the other, of that kind where several have events in them."""
    found = [one for one in found if len(one)]
    if len(found) <= 1:
        return found[0] if found else NOTHING
    starts = np.cumsum([0, *map(len, found)])
    return kind(
        tuple(batch for one in found for batch in one.batches),
        np.concatenate([one.order + start for one, start in zip(found, starts, strict=False)]),
    )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a rule is evaluated, ``cpu`` or ``gpu``, and why if it is not on the device."""

    device: str
    reason: str = ""


def kept_by_all(memories: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """The sums of what several engines keep, by name."""
    total: Counter[str] = Counter()
    for one in memories:
        total.update(one)
    return dict(sorted(total.items()))


@runtime_checkable
class InPieces(Protocol):
    """An engine that need not have what one advance finds in memory whole."""

    def advance_in_pieces(
        self, marks: int | Mapping[str, int], give: Callable[[Detections], None]
    ) -> None:
        """Advance; what is detected is given in pieces, in the common order."""
        ...


@runtime_checkable
class Selective(Protocol):
    """An engine that can be asked beforehand whether it takes rules."""

    def refuse(self, rules: RuleSet) -> None:
        """Raise RuleErrors, as ``deploy`` would, where it has no way to evaluate some of them."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """An engine whose rules go on from where another has evaluated them (intervals, Law 5)."""

    def go_on_from(self, name: str, mark: int) -> None:
        """Evaluate a rule, just deployed, at no instant before a mark; it sees what came before."""
        ...

    def consume(self, name: str, keys: UInt64s) -> None:
        """Let a rule see none of these events any more, uint64[n, 2], of those that have come and
        whose types' marks have passed them (S11).
        """
        ...


class Detector(Protocol):
    """An engine: one owner of one state, deterministic.

    ``deploy`` adds checked rules after those already there, in the order of their set; they hold
    from instant ``since`` (:func:`beginning`) until removed, and their composite events bear
    ``version`` in their ids (S15). It raises RuleErrors, and changes nothing, when the rules
    together with the deployed ones are refused (a name in use, two schemas for a type, a cycle of
    terminators).

    ``push`` takes events in any order; a repeat of a (source, id) already seen is dropped and
    counted (E1). It is in conflict where it is explicit and of other contents than the first
    (:mod:`rules.engine.intake.duplicates`, Law 2); what becomes of that is the host's to say, which
    asks ``take_conflict`` after it has pushed. Events of types that no rule uses are dropped at
    once.

    ``advance`` evaluates and gives the composite events in order. Its argument is one mark for
    all types, or a mapping from type names to marks (a type that is absent promises nothing;
    ``Timer`` has a mark of its own, that of the clock): "no event of that type earlier than this
    will come". Every rule has its own mark, the least of those of the types that it uses,
    through the rules that define them too; it is evaluated at every instant before it. Marks
    never go back: an older one changes nothing. ``TIME_MAX`` for all types ends the input:
    everything pushed is evaluated, and timers tick up to its greatest time (S13).

    A type that a rule defines, and for which no mark is named, comes from its rules alone. After
    ``forget_marks`` that is every such type, until marks are named again: others bring events than
    before. What rules have been evaluated up to stays.
    """

    @property
    def marks(self) -> Mapping[str, int]:
        """Each deployed rule's mark, by name: all instants before it have been evaluated."""
        ...

    def mark(self, name: str) -> int:
        """One rule's mark; KeyError when no rule has that name."""
        ...

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        ...

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        ...

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        ...

    @property
    def parts(self) -> Sequence[Collection[str]]:
        """The names of the rules of each part; parts may be evaluated at once."""
        ...

    def placement(self, name: str) -> Placement | None:
        """Where a deployed rule is evaluated; None from an engine that knows one place alone."""
        ...

    def memory(self) -> Mapping[str, int]:
        """How much is kept at present, by names that are the engine's own."""
        ...

    def costs(self) -> Mapping[str, int]:
        """How long each rule was evaluated, by and large, in units that are alike for all of them;
        rules of which that is not known are left out.
        """
        ...

    def footprints(self) -> Mapping[str, int]:
        """How many bytes each rule takes at present: the entries of its columns, its partial
        sequences and the events stored for it, what several use split among them; rules of which
        that is not known are left out. It is worked out when it is asked for.
        """
        ...

    def fresh(self) -> Detector:
        """A new engine of the same kind and choices, without rules or events."""
        ...

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules."""
        ...

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        ...

    def push(self, batch: EventBatch) -> None:
        """Add events."""
        ...

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark."""
        ...

    def take_overruns(self) -> Sequence[Overrun]:
        """The rules that have ended since the last call (:mod:`rules.overrun`)."""
        ...

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        ...
