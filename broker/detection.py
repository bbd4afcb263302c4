"""Rules over recorded events, in process (docs/cli.md): one pass, results as they come.

The rules file's own declarations go before what is inferred from the events; every other type of
the events is known to the rules by its first event (tesla.md E5). What is detected goes to a
*sink*, a step's composite events at a time; there is a sink for each format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Protocol, TextIO

import numpy as np

from broker.recorded import RecordedEvents, Step
from matcher.checksum import checksum
from matcher.formats.files import EventOutput
from matcher.formats.inputs import bytes_of, name_of
from matcher.model import EventBatch, EventType, Kind
from rules.checking.checker import check
from rules.engine import Detections, InPieces
from rules.engine.choice.costs import PRICES
from rules.engine.conflict import Conflict
from rules.errors import FilesErrors, Problem, RuleErrors
from rules.language import declared_in
from rules.pattern import RuleSet
from rules.syntax.parser import Reading, decode
from rules.syntax.together import read_together, refuse

PORTIONS = tuple(accumulate(PRICES))
"""How many events of a file are evaluated before ``auto`` looks at the ways of rules."""


def read_rules(paths: Sequence[Path]) -> Reading:
    """Rules files as one set of rules, in the order given.

    RuleErrors with every error of syntax in them.
    """
    files, refused = [], []
    for path in paths:
        name = name_of(path)
        try:
            files.append((name, decode(bytes_of(path), name)))
        except RuleErrors as error:
            refused.append(error)
    refuse(refused)
    return read_together(files)


def checked_over(reading: Reading, recorded: RecordedEvents) -> RuleSet:
    """The rules, checked with the types of the events. From then on bad events of types that no
    rule uses are nothing.

    Raises RuleErrors; BadEvent where a rule needs a type of which the events tell no schema.
    """
    intake, declared = recorded.intake, declared_in(reading.file)
    known = {name: type_ for name, type_ in intake.schemas.items() if name not in declared}
    try:
        checked = check(reading.file, known)
    except RuleErrors as error:
        messages = {one.message for one in error.problems}
        for name, bad in intake.unlearnt.items():
            if f"unknown event type {name}" in messages:
                raise bad from None
        raise _with_kinds(error, known) from None
    intake.used = {type_.name for rule in checked.rules for type_ in rule.used_types}
    return checked


def _with_kinds(error: RuleErrors, known: Mapping[str, EventType]) -> RuleErrors:
    """The same, with a hint where an attribute is a string because the events have it so."""
    if isinstance(error, FilesErrors):
        return FilesErrors([_with_kinds(one, known) for one in error.errors])
    problems = [_with_kind(one, error.text, known) for one in error.problems]
    return RuleErrors(problems, error.text, error.file)


def _with_kind(problem: Problem, text: str, known: Mapping[str, EventType]) -> Problem:
    if problem.hint is not None or problem.span is None or "string" not in problem.message:
        return problem
    words = set(re.findall(r"\w+", text[problem.span.start : problem.span.end]))
    for type_ in known.values():
        if any(one.kind is Kind.STRING and one.name in words for one in type_.declared):
            hint = (
                f"the events say {type_}; declare it otherwise to be told which value does not fit"
            )
            return replace(problem, hint=hint)
    return problem


def defined_types(rules: RuleSet) -> list[EventType]:
    """The types of composite events that the rules define, in the order of the file."""
    return list({rule.defines.name: rule.defines for rule in rules.rules}.values())


class Sink(Protocol):
    """Where detections go."""

    def take(self, detections: Detections) -> None:
        """Take the composite events of one step."""
        ...

    def finish(self) -> None:
        """Print what is printed at the end."""
        ...


class EventSink:
    """Writes the events themselves."""

    def __init__(self, output: EventOutput) -> None:
        self._output = output

    def take(self, detections: Detections) -> None:
        """Write them, in their order."""
        self._output.write(detections.batches, detections.order)

    def finish(self) -> None:
        """Nothing: the output is its owner's to close."""


class CountSink:
    """Prints ``TYPE<tab>N`` lines sorted by type, those of N = 0 too, and ``total<tab>N``."""

    def __init__(self, types: Sequence[EventType], text: TextIO) -> None:
        self._counts = dict.fromkeys(sorted(event_type.name for event_type in types), 0)
        self._text = text

    def take(self, detections: Detections) -> None:
        """Count them."""
        for batch in detections.batches:
            self._counts[batch.type.name] += len(batch)

    def finish(self) -> None:
        """Print the counts."""
        for name, count in (*self._counts.items(), ("total", sum(self._counts.values()))):
            self._text.write(f"{name}\t{count}\n")


class ChecksumSink:
    """Prints ``TYPE<tab>N<tab>CHECKSUM`` lines like CountSink's (docs/files.md)."""

    def __init__(self, types: Sequence[EventType], text: TextIO) -> None:
        self._sums = dict.fromkeys(sorted(event_type.name for event_type in types), (0, 0))
        self._text = text

    def take(self, detections: Detections) -> None:
        """Add them up."""
        for batch in detections.batches:
            count, total = self._sums[batch.type.name]
            self._sums[batch.type.name] = count + len(batch), (total + checksum(batch)) % 2**64

    def finish(self) -> None:
        """Print the sums."""
        counts, sums = zip(*self._sums.values(), strict=True) if self._sums else ((), ())
        for name, (count, total) in (
            *self._sums.items(),
            ("total", (sum(counts), sum(sums) % 2**64)),
        ):
            self._text.write(f"{name}\t{count}\t{total:016x}\n")


@dataclass(slots=True)
class Progress:
    """The progress of a detection.

    ``engine_s`` are the seconds spent in the engine, without reading and printing; ``paces``
    holds, for each step that brought events, their number and the engine's seconds for them.
    """

    events: int = 0
    composites: int = 0
    engine_s: float = 0.0
    paces: list[tuple[int, float]] = field(default_factory=list)
    _printing_s: float = 0.0

    def take(self, detections: Detections, seconds: float) -> None:
        """Count some of a step's composite events, and the seconds in which they were printed."""
        self.composites += len(detections)
        self._printing_s += seconds

    def add(self, step: Step, seconds: float) -> None:
        """Count one step, and the seconds that it took, printing included."""
        seconds, self._printing_s = seconds - self._printing_s, 0.0
        events = sum(map(len, step.batches))
        self.events += events
        self.engine_s += seconds
        if events:
            self.paces.append((events, seconds))

    def per_event_us(self, share: float) -> float:
        """The microseconds of the engine within which ``share`` of the events were done.

        An event is taken to have cost its step's time divided by its step's events.
        """
        if not self.paces:
            return 0.0
        paces = sorted((seconds / events * 1e6, events) for events, seconds in self.paces)
        done = np.cumsum([events for _, events in paces])
        return paces[int(np.searchsorted(done, share * done[-1]))][0]


class Evaluation(Protocol):
    """The engine as a detection needs it (:class:`rules.engine.Detector`)."""

    @property
    def conflicts(self) -> int:
        """How many events were dropped since other ones bear their ids."""
        ...

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        ...

    def push(self, batch: EventBatch) -> None:
        """Add events."""
        ...

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate what the marks allow."""
        ...


def detect(
    engine: Evaluation,
    events: RecordedEvents,
    names: Collection[str],
    sink: Sink,
    clock: Callable[[], float],
    tell: Callable[[int], None] = lambda events: None,
) -> Progress:
    """Run recorded events through an engine; composite events of types ``names`` go to ``sink``.

    ``clock`` gives seconds, for the figures; ``tell`` is told how many events each step had. The
    sink is not finished. Raises EventError where an event is bad, or bears the id of another one.
    """
    progress = Progress()

    def take(detections: Detections) -> None:
        if len(detections):
            begun = clock()
            sink.take(only(detections, names))
            progress.take(detections, clock() - begun)

    for step in events.steps():
        begun = clock()
        for batch in step.batches:
            engine.push(batch)
        events.refuse(engine.take_conflict())
        for mark in marks_of(step.batches, step.mark, progress.events):
            if isinstance(engine, InPieces):
                engine.advance_in_pieces(mark, take)
            else:
                take(engine.advance(mark))
        progress.add(step, clock() - begun)
        tell(sum(map(len, step.batches)))
    events.count_conflicts(engine.conflicts)
    return progress


def marks_of(batches: Sequence[EventBatch], mark: int, done: int) -> Iterator[int]:
    """The marks by which events are evaluated up to ``mark``, which is the last of them.

    The first events of a file are evaluated a few at a time, for ``auto`` chooses the ways of rules
    between advances (:mod:`rules.engine.choice.chooser`). ``done``: events that came before these.
    """
    count = sum(map(len, batches))
    places = [place - done for place in PORTIONS if done < place < done + count]
    if places:
        times = np.partition(np.concatenate([batch.time for batch in batches]), places)
        yield from (time for time in times[places].tolist() if time < mark)
    yield mark


def only(detections: Detections, names: Collection[str]) -> Detections:
    """The detections of the named types, in the same order."""
    kept: list[EventBatch] = []
    moved = np.full(len(detections), -1, np.int64)
    first, place = 0, 0
    for batch in detections.batches:
        if batch.type.name in names:
            kept.append(batch)
            moved[first : first + len(batch)] = np.arange(place, place + len(batch))
            place += len(batch)
        first += len(batch)
    order = moved[detections.order]
    return Detections(tuple(kept), order[order >= 0])
