"""Recorded events as one stream in order of time, for an engine (tesla.md E3 to E5, S14).

Several files are merged as they are read, a chunk at a time. What makes that exact is a first
look at every file's times: after each chunk it tells the least time that the rest of the file
still holds, and the least of those over all files is a mark that nothing still to come precedes.
Within a step events need no order (an engine takes a set, E4 settles ties), so how the files are
cut into chunks changes no result.

A file in order of time is thus held a chunk at a time. One that is not holds the mark back, in
the worst case until it has been read whole; the events wait in the engine meanwhile, which costs
memory, and nothing else. A pipe, which can be read once, is copied to a temporary file first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from matcher.contents import contents_of
from matcher.errors import BadEvent, EventError
from matcher.formats.files import EventFile
from matcher.formats.folders import expanded
from matcher.formats.inputs import InputFile
from matcher.formats.intake import Chunk, Glance, Intake
from matcher.formats.layout import PLAIN, Layout
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType, Int64s
from rules.engine.conflict import CONFLICT_HINT, Conflict
from rules.pattern import TIMER

if TYPE_CHECKING:
    from matcher.formats.frames import Frame

CONFLICTS = "the id of another event"
"""The reason by which conflicts are counted among bad events."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Events, and the mark: every event earlier than ``mark`` has come by now."""

    batches: Sequence[EventBatch]
    mark: int


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The course of a file's times, from a first look at them.

    ``ends`` int64[n]: the last line or row of each piece; ``least`` int64[n + 1]: the least time
    from that piece on; ``setback``: by how many microseconds, at most, an event is earlier than
    one before it in the file.
    """

    ends: Int64s
    least: Int64s
    setback: int

    def mark_after(self, end: int) -> int:
        """The least time that comes after the line or row ``end``."""
        return int(self.least[np.searchsorted(self.ends, end, side="right")])


class RecordedEvents:
    """Files of events, and frames (matcher.formats.frames), that are read as one stream.

    ``declared`` schemas go before inferred ones; ``type_name`` names the type of events that name
    none, ``layout`` says what columns mean and how times are written (``time_unit``, s, ms, us or
    ns, what those count that are numbers). Events later than ``until``, in microseconds, are left
    out, and the last mark is just beyond it: Timers tick up to there. Construction takes the first
    look. Raises EventError (a bad event among them, unless ``skip_bad``) and OSError.
    """

    def __init__(
        self,
        inputs: Sequence[Path | InputFile | Frame],
        *,
        declared: Mapping[str, EventType] | None = None,
        type_name: str | None = None,
        skip_bad: bool = False,
        time_unit: str | None = None,
        layout: Layout = PLAIN,
        until: int | None = None,
    ) -> None:
        self.until = until
        layout = layout if time_unit is None else layout.in_unit(time_unit)
        self.files = _files(inputs, type_name, layout)
        self.intake = Intake(declared, skip_bad=skip_bad)
        self._skips_bad = skip_bad
        self.courses = [course_of(file.scan(self.intake)) for file in self.files]
        if TIMER.name in self.intake.schemas:
            raise EventError(f"events of type {TIMER.name}: it is built in (tesla.md S13)")

    @property
    def rows_by_file(self) -> list[int]:
        """How many lines or rows each file has."""
        return [int(course.ends[-1]) if len(course.ends) else 0 for course in self.courses]

    @property
    def disordered(self) -> Mapping[str, int]:
        """The names of the files that are not in order of time, with their setbacks in
        microseconds.
        """
        pairs = zip(self.files, self.courses, strict=True)
        return {file.name: course.setback for file, course in pairs if course.setback}

    def steps(self) -> Iterator[Step]:
        """The events; the last step's mark is TIME_MAX, or the microsecond behind ``until``."""
        until = self.until
        for step in self._all_steps():
            if until is None:
                yield step
                continue
            kept = (batch.take(np.flatnonzero(batch.time <= until)) for batch in step.batches)
            batches = tuple(batch for batch in kept if len(batch))
            yield Step(batches, min(step.mark, until + 1))
            if step.mark > until:
                return

    def _all_steps(self) -> Iterator[Step]:
        chunks = [file.read(self.intake) for file in self.files]
        marks = [course.mark_after(0) for course in self.courses]
        while min(marks, default=TIME_MAX) < TIME_MAX:
            behind = marks.index(min(marks))
            chunk = next(chunks[behind], None)
            marks[behind] = self._mark(behind, chunk)
            yield Step(() if chunk is None else chunk.batches, min(marks))
        # What is left are lines in which the first look found no time.
        rest = (batch for file in chunks for chunk in file for batch in chunk.batches)
        yield Step(tuple(rest), TIME_MAX)

    def refuse(self, conflict: Conflict | None) -> None:
        """Raise BadEvent, with the places of both events, where an engine has found an id to
        repeat with other contents; do nothing where there is no conflict, or bad events are
        skipped.
        """
        if conflict is None or self._skips_bad:
            return
        place, other = self._places_of(conflict)
        if other is None:
            raise BadEvent(f"{conflict}; {CONFLICT_HINT}", place)
        raise BadEvent(
            f"id {conflict.id} of source {conflict.source} is that of another event, at {other}, "
            f"with other contents; {CONFLICT_HINT}",
            place,
        )

    def count_conflicts(self, count: int) -> None:
        """Count what was skipped since its id is another event's."""
        if count:
            self.intake.bad[CONFLICTS] += count

    def _places_of(self, conflict: Conflict) -> tuple[str | None, str | None]:
        """Where the events of a conflict are: the one that was refused, and the other one; None
        for what is not found, in files that have changed since.
        """
        found = list(self._bearing(conflict.source, conflict.id))
        for other in found:
            if other.time != conflict.before:
                continue
            for one in found:
                is_meant = (one.type, one.time) == (conflict.type, conflict.time)
                if is_meant and one.contents != other.contents:
                    return one.place, other.place
        return None, None

    def _bearing(self, source: str, text: str) -> Iterator[_Found]:
        """The events of a source and id, in the order of the files."""
        for file in self.files:
            aside = Intake(self.intake.schemas, skip_bad=True)
            for chunk in replace(file, by_row=True).read(aside):
                for batch in chunk.batches:
                    for place in _places(batch, source, text):
                        one = batch.take(np.array([place]))
                        row = file.place_of(int(one.ids.sequence[0]))
                        contents = int(contents_of(one)[0])
                        yield _Found(row, batch.type.name, int(one.time[0]), contents)

    def _mark(self, place: int, chunk: Chunk | None) -> int:
        return TIME_MAX if chunk is None else self.courses[place].mark_after(chunk.end)


@dataclass(frozen=True, slots=True)
class _Found:
    """An event of a file: its place, type, time (in microseconds) and contents."""

    place: str
    type: str
    time: int
    contents: int


def _places(batch: EventBatch, source: str, text: str) -> list[int]:
    """Where in a batch events have a source and an id, which are texts here."""
    ids = batch.ids
    assert ids.text is not None
    if source not in ids.source.values or text not in ids.text.values:
        return []
    is_source = ids.source.codes == ids.source.values.index(source)
    is_named = ids.text.codes == ids.text.values.index(text)
    places: list[int] = np.flatnonzero(is_source & is_named).tolist()
    return places


def course_of(glances: Iterator[Glance]) -> Course:
    """The course of a file from a first look at it."""
    ends, least, setback, latest = [], [], 0, TIME_MIN
    for glance in glances:
        ends.append(glance.end)
        least.append(glance.least)
        if len(glance.times):
            before = np.maximum.accumulate(glance.times)
            np.maximum(before, latest, out=before)
            # Unsigned: the two may lie further apart than an int64 reaches.
            setback = max(setback, int((before.view("u8") - glance.times.view("u8")).max()))
            latest = int(before[-1])
    from_here_on = np.minimum.accumulate(np.array([TIME_MAX, *reversed(least)], np.int64))[::-1]
    return Course(np.array(ends, np.int64), from_here_on, setback)


def _files(
    inputs: Sequence[Path | InputFile | Frame], type_name: str | None, layout: Layout
) -> list[EventFile | Frame]:
    """The files and frames, each the source of its nameless events under its name.

    Files of one name in different folders are told apart by their paths; a file given twice is
    not, so that its events are duplicates (E1).
    """
    given = (InputFile(one) if isinstance(one, Path) else one for one in inputs)
    files = [
        file for one in given for file in (expanded(one) if isinstance(one, InputFile) else [one])
    ]
    paths = {one.path for one in files if isinstance(one, InputFile)}
    folders = Counter(path.name for path in paths)
    return [
        EventFile.of(
            one.path,
            one.type_name or type_name,
            source=None if folders[one.path.name] == 1 else str(one.path),
            layout=layout,
            columns=one.columns,
        )
        if isinstance(one, InputFile)
        else one
        for one in files
    ]
