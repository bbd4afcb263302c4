"""The engine in process, without a broker: the thesis's local adapter (5.5).

>>> from rules import Engine
>>> engine = Engine('''
...     event Smoke(area: string)
...     event Temp(area: string, value: float)
...     define Fire(area: string, temperature: float)
...     from Smoke(area = $a) and last Temp(area = $a, value > 45) within 5 min from Smoke
...     where area = $a, temperature = Temp.value
... ''')
>>> engine.publish("Temp", time=10, area="hall", value=51.5)
[]
>>> engine.publish("Smoke", time=70, area="hall")
[]
>>> for event in engine.finish():
...     print(event.type, event.time // 1_000_000, event.data)
Fire 70 {'area': 'hall', 'temperature': 51.5}

An instant is complete only when something later has come (tesla.md S14), so ``publish`` gives what
is detected *before* the time of the event it takes, and ``finish`` the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from matcher.errors import BadEvent
from matcher.formats.intake import Intake
from matcher.formats.layout import PLAIN, Layout
from matcher.identity import plain_name, rule_id
from matcher.model import TIME_MAX, TIME_MIN, Datum, Event, EventBatch, EventType
from matcher.rows import (
    batch_of,
    check_names,
    refuse_surplus,
    refuse_surplus_of_rows,
    refuse_taken,
    values_of,
)
from matcher.single import Row, Single
from matcher.times import time_of, verify_range
from rules.checking.dependencies import arrange
from rules.engine import Detections, Placement, make
from rules.engine.conflict import refuse
from rules.engine.order.intervals import Intervals, told
from rules.errors import Problem, RuleErrors
from rules.language import load
from rules.overrun import COMPOSITES_MAX, Overrun
from rules.pattern import TIMER, Rule, RuleSet

SOURCE = "local"
"""The source of events that name none."""
PUT_OFF_MAX = 1024
"""So many events are evaluated together at the most."""


class FrameLike(Protocol):
    """A table that comes over by the PyCapsule interface of Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its columns."""
        ...


Frames: TypeAlias = FrameLike | Mapping[str, "FrameLike | Sequence[Mapping[str, Any]]"]


class TooManyComposites(RuntimeError):
    """Rules have ended, each since it has more composite events at one instant than it may.

    ``overruns`` says which rules, and where; ``detections`` are what was detected all the same, by
    them and by others.
    """

    def __init__(self, overruns: Sequence[Overrun], detections: Detections) -> None:
        hint = "narrow what 'each' selects, or raise composites_per_instant_max"
        super().__init__(f"{'; '.join(map(str, overruns))}; {hint}")
        self.overruns = tuple(overruns)
        self.detections = detections


class Engine:
    """Rules and their detection, in the caller's thread.

    ``rules`` is TESLA text that declares the types it uses; ``engine`` a name of
    ``rules.engine.ENGINES``; ``device`` says where it computes: ``cpu``, ``gpu``, or ``auto``,
    where each rule costs less (docs/gpu.md); ``time_unit`` (s, ms, us or ns) says what times that
    are numbers count. A rule that has more than ``composites_per_instant_max`` composite events at
    one instant ends there (None: it may have any number). Raises RuleErrors for a text that is
    refused, ValueError for names that do not go together and NoDevice for ``gpu`` without one. An
    engine is no more thread-safe than a list.

    Events come either one by one and in order of time (``publish``), or in batches of any order
    (``push``), evaluated when ``advance`` says up to where they are complete.
    """

    def __init__(
        self,
        rules: str = "",
        *,
        engine: str = "auto",
        device: str = "cpu",
        time_unit: str = "s",
        composites_per_instant_max: int | None = COMPOSITES_MAX,
    ) -> None:
        most = composites_per_instant_max
        if most is not None and most < 1:
            raise ValueError(f"composites_per_instant_max must be at least 1, not {most}")
        self._detector = Intervals(make(engine, device=device, composites_max=most))
        self._schemas: dict[str, EventType] = {}
        self._rules: dict[str, tuple[Rule, int]] = {}  # with their versions
        self._versions: dict[str, int] = {}  # of names that were ever in use
        self._ending: dict[str, tuple[Rule, int]] = {}  # by id, and where they end
        self._sequences: dict[str, int] = {}
        self._opening: set[str] = set()
        """The types that some rule begins at: at an instant without any, nothing is detected."""
        self._has_ticks = False
        """Whether some rule uses the Timer, of whose events nobody tells."""
        self._due = TIME_MAX
        """Of these types, no event that waits is earlier. Example: a Smoke waits since 10 s. A Temp
        at 12 s has that evaluated; a Temp at 13 s has nothing to evaluate."""
        self._put_off = 0
        """How many events were published since something was evaluated."""
        self._time = TIME_MIN
        self._time_unit = time_unit
        if rules:
            self.deploy(rules)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The deployed rules, in the order of their deployment."""
        return tuple(rule for rule, _ in self._rules.values())

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """Every event type that was declared or defined, by name."""
        return dict(self._schemas)

    @property
    def duplicates(self) -> int:
        """How many events were dropped, being those of their ids again (tesla.md E1)."""
        return self._detector.duplicates - self._detector.conflicts

    def placement(self, name: str) -> Placement | None:
        """Where a rule is evaluated, and why; None where there is the processor alone. KeyError
        when none has that name.
        """
        if name not in self._rules:
            raise KeyError(name)
        return self._detector.placement(self._id(name))

    def deploy(self, text: str, *, replace: bool = False) -> None:
        """Add the rules of a text; they see events from now on (S15).

        With ``replace``, rules of the same names hold up to now. Raises RuleErrors, and changes
        nothing, for a text that is refused.
        """
        checked = load(text, known=self._schemas)
        taken = [rule.name for rule in checked.rules if rule.name in self._rules]
        if taken and not replace:
            problems = [Problem(f"a rule named {name} is already deployed") for name in taken]
            raise RuleErrors(problems, text)
        kept = [rule for rule in self.rules if rule.name not in taken]
        ending = [rule for rule, _ in self._ending.values()]
        ending += [self._rules[name][0] for name in taken if self._time != TIME_MIN]
        arrange([*kept, *ending, *checked.rules])  # or what it replaces would be gone when refused
        version = max((self._versions.get(rule.name, -1) + 1 for rule in checked.rules), default=0)
        self._catch_up()
        for name in taken:
            self.remove(name)
        versions = tuple(rule.named(rule_id(rule.name, version)) for rule in checked.rules)
        self._detector.deploy(RuleSet(versions, checked.schemas), since=self._now, version=version)
        self._schemas.update(checked.schemas)
        for rule in checked.rules:
            self._rules[rule.name] = (rule, version)
            self._versions[rule.name] = version
            self._opening.update(rule.wiring.opening)
            self._has_ticks |= TIMER.name in rule.wiring.used

    def remove(self, name: str) -> None:
        """Remove a rule, which still finds what was published before; KeyError when none has that
        name.
        """
        rule = self._id(name)
        self._catch_up()
        if self._detector.mark(rule) < self._now:
            self._detector.end(rule, self._now)
            self._ending[rule] = self._rules[name][0], self._now
        else:
            self._detector.remove(rule)
        del self._rules[name]

    def _catch_up(self) -> None:
        """Evaluate what ``publish`` has put off, of which nothing comes."""
        if self._put_off:
            self._advance(self._time)

    @property
    def _now(self) -> int:
        """The instant beyond all that was published."""
        return TIME_MIN if self._time == TIME_MIN else self._time + 1

    def _id(self, name: str) -> str:
        return rule_id(name, self._rules[name][1])

    def _advance(self, mark: int) -> Detections:
        """As ``advance``; drops the rules that have come to their ends."""
        found = self._detector.advance(mark)
        self._put_off = 0
        for rule, (_, end) in list(self._ending.items()):
            if self._detector.mark(rule) >= end:
                self._detector.remove(rule)
                del self._ending[rule]
        overruns = self._detector.take_overruns()
        for one in overruns:
            self._forget(one.rule)
        if any(self._versions.values()):
            found = Detections(told(found.batches), found.order)
        if overruns:
            raise TooManyComposites(overruns, found)
        return found

    def _forget(self, rule: str) -> None:
        """Forget a rule that has ended, be it in force or not."""
        name = plain_name(rule)
        if name in self._rules and self._id(name) == rule:
            del self._rules[name]
        elif self._ending.pop(rule, None) is None:
            return  # it came to its end besides
        self._detector.remove(rule)

    def publish(
        self,
        type: str,  # noqa: A002 - the word for it
        data: Mapping[str, Datum] | None = None,
        /,
        *,
        time: float | str | datetime,
        source: str = SOURCE,
        id: str | None = None,  # noqa: A002
        **attributes: Datum,
    ) -> list[Event]:
        """Take one event, and give the composite events of all earlier instants.

        ``time`` in seconds (or the ``time_unit``) since the epoch, RFC 3339 text or a datetime
        (E2); events come in its order. Attributes that are not names of Python, or are called
        ``time``, ``source`` or ``id``, go into ``data``. An ``id`` names an event of its source:
        the same event again is a duplicate, and is dropped (``duplicates`` counts it). Raises
        BadEvent for an event that does not fit its schema, or has an attribute that it lacks, that
        is earlier than one before it, or whose id names another event already, and takes none of it
        then; TooManyComposites as ``advance``.
        """
        event_type = self.schema(type)
        values = {**(data or {}), **attributes} if attributes else data or {}
        try:
            fitting = values_of(event_type, values)
        except BadEvent:
            words = (("time", time, None), ("source", source, SOURCE), ("id", id, None))
            refuse_taken(event_type, values, {one: one for one, given, no in words if given != no})
            refuse_surplus(event_type, values)
            raise
        if event_type.has_optional or len(values) != len(event_type.declared):
            refuse_surplus(event_type, values)
        at = time_of(time, self._time_unit)
        if at < self._time:
            raise BadEvent(f"{type} is earlier than an event that was published before it")
        number = self._sequences.get(source, 0) + 1
        batch: EventBatch
        if id is None:
            if number == 1:
                check_names(source, ())
            # Without columns, which cost more than all else that is done with one event.
            batch = Single(event_type, Row(at, source, number, None, fitting))
        else:
            batch = batch_of(
                event_type, [values], source=source, first_sequence=number, times=[at], ids=[id]
            )
        self._detector.push(batch)
        refuse(self._detector.take_conflict())
        self._sequences[source] = number
        is_later, self._time = at > self._time, at
        is_opening = type in self._opening
        self._put_off += 1
        if self._due >= at and not self._is_eager:
            if is_opening:
                self._due = at
            return []
        self._due = at if is_opening or not is_later else TIME_MAX
        return list(self._advance(at).events())

    @property
    def _is_eager(self) -> bool:
        """Whether something is to be done at an instant though no rule begins there."""
        return self._has_ticks or bool(self._ending) or self._put_off >= PUT_OFF_MAX

    def push(
        self,
        events: EventBatch | Sequence[Mapping[str, Any]] | Frames,
        *,
        type: str | None = None,  # noqa: A002
        layout: Layout | None = None,
    ) -> None:
        """Take a batch, rows of the ``type`` named, each with its own ``"time"``, or a frame.

        A frame is a table of pandas, polars, DuckDB or Arrow, read as a file of events is; its
        columns are as ``layout`` says (times count its unit then), its events of the ``type``
        named, or as a column says. A dict has frames, or rows, by their types.

        Nothing is evaluated until ``advance`` or ``finish``. Raises BadEvent, and takes nothing,
        for events that do not fit their schema, rows that have attributes which it lacks, and times
        beyond the years 1 to 9999. Raises it for the first event whose id names another one
        already, too; the others are taken then.
        """
        numbers = dict(self._sequences)
        batches = [*self._batches(events, type, layout, numbers)]
        for batch in batches:
            verify_range(batch.time)
        self._sequences = numbers
        for batch in batches:
            self._detector.push(batch)
            if len(batch):
                self._time = max(self._time, int(batch.time.max()))
                if batch.type.name in self._opening:
                    self._due = min(self._due, int(batch.time.min()))
        refuse(self._detector.take_conflict())

    def _batches(
        self, events: Any, type_name: str | None, layout: Layout | None, numbers: dict[str, int]
    ) -> Iterator[EventBatch]:
        """Events as batches; ``numbers`` says, by source, the last number that is taken."""
        if isinstance(events, EventBatch):
            yield events
            return
        if isinstance(events, Mapping):
            for name, some in events.items():
                yield from self._batches(some, name, layout, numbers)
            return
        number = numbers.get(SOURCE, 0)
        if isinstance(events, Sequence):
            if type_name is None:
                raise ValueError("rows need the name of their type: push(rows, type=...)")
            numbers[SOURCE] = number + len(events)
            yield self._batch_of_rows(events, self.schema(type_name), number)
            return
        from matcher.formats.frames import Frame  # with Arrow, which rows do not need

        if type_name is not None:
            self.schema(type_name)
        meaning = PLAIN.in_unit(self._time_unit) if layout is None else layout
        frame = Frame.of(events, type_name, layout=meaning)
        frame = replace(frame, source=SOURCE, rows_before=number)
        numbers[SOURCE] = number + frame.table.num_rows
        for chunk in frame.read(Intake(self._schemas)):
            for batch in chunk.batches:
                self.schema(batch.type.name)
                yield batch

    def _batch_of_rows(
        self, rows: Sequence[Mapping[str, Any]], event_type: EventType, number: int
    ) -> EventBatch:
        refuse_surplus_of_rows(event_type, rows)
        return batch_of(
            event_type,
            rows,
            source=SOURCE,
            first_sequence=number + 1,
            time_unit=self._time_unit,
        )

    def advance(self, mark: int = TIME_MAX) -> Detections:
        """Evaluate every instant before ``mark`` (microseconds), all of them where it is left out;
        nothing earlier may follow.

        Raises ValueError for a mark beyond 64 bits, and changes nothing then; and
        TooManyComposites, which has what was detected, when a rule has ended since it has more
        composite events at one instant than it may. That rule is removed.
        """
        if not TIME_MIN <= mark <= TIME_MAX:
            raise ValueError(f"mark {mark} is beyond 64 bits")
        if self._due < TIME_MAX:
            self._due = TIME_MAX if mark > self._time else max(self._due, mark)
        return self._advance(mark)

    def finish(self) -> list[Event]:
        """End the input: the composite events of everything not yet evaluated. Raises
        TooManyComposites as ``advance``.
        """
        return list(self.advance().events())

    def __repr__(self) -> str:
        names = ", ".join(rule.name for rule in self.rules) or "none"
        return f"Engine(rules: {names}; event types: {', '.join(self._schemas) or 'none'})"

    def _repr_html_(self) -> str:
        from matcher.formats.markup import html_table

        rules = html_table("Rules", ["name", "text"], ((one.name, one.text) for one in self.rules))
        return rules + html_table(
            "Event types", ["type"], ([one] for one in self._schemas.values())
        )

    def schema(self, name: str) -> EventType:
        """A declared or defined event type; BadEvent when there is none of that name."""
        try:
            return self._schemas[name]
        except KeyError:
            known = ", ".join(sorted(self._schemas)) or "none"
            raise BadEvent(f"no event type is called {name}; known are: {known}") from None
