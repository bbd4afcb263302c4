"""Reading events from CloudEvents JSON lines (tesla.md E3, E5).

The file is read in chunks of whole lines. A chunk in which every line is one good event, nearly
every chunk, is decoded in a few calls whatever its length: the envelopes first, their times
(:mod:`matcher.formats.jsontimes`) and then, type by type, the attributes
(:mod:`matcher.formats.jsondata`). Where one of these steps refuses the chunk, that step alone is
taken again line by line, which is slow and exact: it finds the bad events, gives each its place
and its reason, and goes on with the others.

What an event leaves out follows from its line: ``sequence`` is the line's number, ``source`` the
file's name, and ``id`` as :class:`matcher.formats.intake.Place` has it. The extension attribute
``sequence`` carries the number an event had at its publisher (E4), so that a recorded file can be
replayed as it was; ``traceparent`` and ``tracelinks`` say which traces it belongs to.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Annotated, Any, BinaryIO, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Raw, UnsetType

from matcher.errors import BadEvent, EventError
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.jsonadditions import Additions
from matcher.formats.jsondata import REFUSED, Members, data_of, rows_of, unquoted
from matcher.formats.jsontimes import number_of, times_in
from matcher.formats.layout import COLUMNS_SHOWN, ID, SEQUENCE, SOURCE, TIME, TYPE, Layout
from matcher.formats.timeform import Read, read_of
from matcher.model import (
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    StringColumn,
)
from matcher.rows import INT_MAX, INT_MIN, column_of, columns_of, id_texts, values_of
from matcher.traces import is_context

CHUNK_BYTES = 2**19
"""Bytes decoded at once: what is made of them still fits in a processor's cache."""
LINE_BYTES_MAX = 64 * 2**20
"""A line beyond this is no event; it bounds what a file without line ends can take."""

_Name: TypeAlias = Annotated[str, Meta(min_length=1)]
_Sequence: TypeAlias = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]
_NO_DATA = Raw(b"{}")
_TRACES = ("traceparent", "tracelinks")
_FLAT_HINT = " (the event has no data; --flat takes the members beside its type and time)"
_NOWHERE = "\ufdd0"
"""No character of any text: what begins with it is the name of no member."""
Lines: TypeAlias = tuple[int, int, bytes]
"""The numbers of the first and the last line, and whole lines."""
_LINE_END = ord("\n")


class _Forms(NamedTuple):
    """Decoders of events whose attributes are not looked at yet, as the members are called: of many
    together, of one alone, which may lack its time, and of what a first look needs.
    """

    envelopes: msgspec.json.Decoder[Any]
    exact: msgspec.json.Decoder[Any]
    stamps: msgspec.json.Decoder[Any]


@functools.lru_cache(maxsize=64)
def _forms(layout: Layout, type_name: str | None) -> _Forms:
    """The decoders for a layout, where events are of ``type_name`` if they name none."""
    if layout.date is not None:
        raise EventError("--date-column is for tables; a member of JSON holds dates with times")
    roles = layout.role_columns(type_name if layout.flat else None)
    if not layout.flat:  # attributes are apart: none can be meant by the name of a role
        said = {role: layout.named(role) for role in (SOURCE, SEQUENCE, ID, TYPE)}
        roles |= {role: role for role, name in said.items() if name is None}
    rename = {role: roles.get(role, _NOWHERE + role) for role in (TIME, SOURCE, SEQUENCE, ID, TYPE)}
    if layout.flat:
        rename |= {name: _NOWHERE + name for name in ("data", *_TRACES)}
    may_lack = type_name is not None
    of_type: Any = (TYPE, _Name | UnsetType, UNSET) if may_lack else (TYPE, _Name)
    others: list[Any] = [
        (SOURCE, _Name | UnsetType, UNSET),
        (ID, _Name | int | UnsetType, UNSET),
        (SEQUENCE, _Sequence | UnsetType, UNSET),
        ("data", Raw, _NO_DATA),
        *((name, Any, None) for name in _TRACES),
    ]

    def made(*fields: Any) -> msgspec.json.Decoder[Any]:
        event = msgspec.defstruct("Event", fields, rename=rename, gc=False, kw_only=True)
        return msgspec.json.Decoder(event)

    return _Forms(
        made(of_type, (TIME, Raw), *others),
        made(of_type, (TIME, Raw | UnsetType, UNSET), *others),
        made(of_type, (TIME, str | float | int)),
    )


def read(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of each chunk; within a batch in the order of the file.

    ``type_name`` is the type of events that name none. Raises BadEvent unless ``intake`` skips
    them.
    """
    return read_chunks(_chunks(stream, place.file), place, intake, type_name)


def read_chunks(
    chunks: Iterable[Lines],
    place: Place,
    intake: Intake,
    type_name: str | None,
    row: str = "",
) -> Iterator[Chunk]:
    """The same of chunks of lines, which messages call by their numbers after ``row``."""
    reader = _Reader(place, intake, type_name, row)
    for first_line, end, chunk in chunks:
        yield Chunk(end, reader.batches(chunk, first_line, end))


def scan(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Glance]:
    """The times of each chunk; ``intake`` learns the schemas and counts nothing.

    A cheap first look: attributes are read only in chunks that bring a new type. Bad events are
    left for :func:`read` to report.
    """
    return scan_chunks(_chunks(stream, place.file), place, intake, type_name)


def scan_chunks(
    chunks: Iterable[Lines], place: Place, intake: Intake, type_name: str | None
) -> Iterator[Glance]:
    """The same of chunks of lines."""
    aside = intake.aside()
    reader, decoder = _Reader(place, aside, type_name), _forms(place.layout, type_name).stamps
    good = 0
    for first_line, end, chunk in chunks:
        stamps: Any = _decoded(decoder, chunk, end - first_line + 1)
        seen = None
        if stamps is not None:
            seen = place.layout.times.times_of(list(map(attrgetter("time"), stamps)))
        if seen is None:
            stamps, _, seen = reader.envelopes(chunk, first_line, end)
        glance = intake.glance(place, end, seen)
        named = {type_name if one is UNSET else one for one in map(attrgetter("type"), stamps)}
        if not (named and named <= aside.schemas.keys()):
            for batch in reader.batches(chunk, first_line, end):
                if batch.type.name not in intake.schemas:
                    intake.learn(batch.type)
        good += len(glance.times)
        yield glance
    if not good:  # else rules that use its types would be told that nobody knows them
        intake.refuse_as(aside)


class _Reader:
    """Turns the chunks of one file into batches; all that it learns is the intake's."""

    def __init__(self, place: Place, intake: Intake, type_name: str | None, row: str = "") -> None:
        self._place = place
        self._intake = intake
        self._type_name = type_name
        self._row = row
        self._layout = place.layout
        self._forms = _forms(place.layout, type_name)
        self._members = Members.of(place.layout, type_name)
        self._additions = Additions.of(place.layout, place.columns)
        self._refused: list[tuple[int, str, str | None]] = []
        self._has_traces = False

    def batches(self, chunk: bytes, first_line: int, end: int) -> list[EventBatch]:
        """The good events of a chunk, given with the numbers of its first and last line."""
        self._has_traces = b'"trace' in chunk
        envelopes, lines, read = self.envelopes(chunk, first_line, end)
        times = self._intake.note(self._place, read)
        parts = _by_type(envelopes, lines, times, self._type_name)
        batches = [self._batch(name, *part) for name, part in parts]
        self._intake.events += sum(map(len, batches))
        self._report()
        return [batch for batch in batches if len(batch)]

    def envelopes(self, chunk: bytes, first_line: int, end: int) -> tuple[list[Any], Int64s, Read]:
        """The chunk's events, attributes not looked at, with their lines and their times."""
        self._refused.clear()
        envelopes = _decoded(self._forms.envelopes, chunk, end - first_line + 1)
        if envelopes is not None:
            read = times_in(envelopes, self._layout.times)
            if read is not None:
                if self._layout.flat or self._additions:
                    for envelope, line in zip(envelopes, chunk.split(b"\n"), strict=False):
                        self._take_data(envelope, line)
                return envelopes, np.arange(first_line, end + 1, dtype=np.int64), read
        return self._line_by_line(chunk, first_line)

    def _line_by_line(self, chunk: bytes, first_line: int) -> tuple[list[Any], Int64s, Read]:
        envelopes, lines, moments = [], [], []
        for line, text in enumerate(chunk.split(b"\n"), first_line):
            if not text.strip():
                continue
            name = None
            try:
                envelope = self._forms.exact.decode(text)
                name = self._type_name if envelope.type is UNSET else envelope.type
                moment = self._layout.times.time_of(self._time(envelope.time, text))
            except REFUSED as error:
                self._refuse(f"not an event: {error}{self._hint(str(error))}", line)
            except BadEvent as error:
                self._refuse(error.reason, line, name)
            else:
                self._take_data(envelope, text)
                envelopes.append(envelope)
                lines.append(line)
                moments.append(moment)
        return envelopes, np.array(lines, np.int64), read_of(moments)

    def _take_data(self, envelope: Any, line: bytes) -> None:
        """Give an event its data: the whole line if attributes stand beside the time, and what is
        added.
        """
        if self._layout.flat:
            envelope.data = Raw(line)
        if self._additions:
            name = self._type_name if envelope.type is UNSET else envelope.type
            known = self._intake.schemas.get(str(name))
            envelope.data = self._additions.added(bytes(envelope.data), line, known)

    def _time(self, raw: Raw | UnsetType, line: bytes) -> object:
        if raw is UNSET:
            names = [repr(name) for name in msgspec.json.decode(line, type=dict[str, Raw])]
            shown = ", ".join(names[:COLUMNS_SHOWN])
            raise BadEvent(
                f"no time: no member {self._layout.time_column!r} (--time-column says which of "
                f"{shown} it is)"
            )
        text = bytes(raw)
        number = text[:1] in b"-0123456789"
        return number_of(text.decode()) if number else msgspec.json.decode(text)

    def _hint(self, error: str) -> str:
        if "truncated" in error:
            return (
                " (an event stands on one line; jq -c . puts it there, and of one document "
                "--records says where its events are)"
            )
        lacks_type = f"field `{self._layout.type or TYPE}`" in error and "missing" in error
        return (
            " (--type says the type of all, --type-column which member does)" if lacks_type else ""
        )

    def _batch(
        self, name: str, envelopes: Sequence[Any], lines: Int64s, times: Int64s
    ) -> EventBatch:
        event_type, skipped = self._schema(name, envelopes, lines)
        if skipped:
            envelopes, lines, times = envelopes[skipped:], lines[skipped:], times[skipped:]
        columns = self._columns(event_type, envelopes)
        if columns is None:
            columns, good = self._event_by_event(event_type, envelopes, lines)
            envelopes = [envelopes[place] for place in good.tolist()]
            lines, times = lines[good], times[good]
        ids = self._ids(envelopes, lines)
        if self._has_traces:
            self._note_traces(envelopes, ids)
        return EventBatch(event_type, times, ids, columns)

    def _note_traces(self, envelopes: Sequence[Any], ids: EventIds) -> None:
        """Note the trace contexts of events (CloudEvents' extension); what is none is nothing."""
        names = zip(ids.source.tolist(), ids.printed(), strict=True)
        for envelope, (source, own_id) in zip(envelopes, names, strict=True):
            links = envelope.tracelinks if isinstance(envelope.tracelinks, list) else []
            said = (envelope.traceparent, *links)
            if found := tuple(one for one in said if is_context(one)):
                self._intake.traces.note(source, own_id, found)

    def _schema(self, name: str, envelopes: Sequence[Any], lines: Int64s) -> tuple[EventType, int]:
        """The type's schema, and how many bad events stood before the one it was inferred from."""
        known = self._intake.schemas.get(name)
        if known is not None:
            return known, 0
        for place, envelope in enumerate(envelopes):
            try:
                data = self._guessed(envelope)
                return self._intake.infer(name, data, self._others(envelopes, place)), place
            except BadEvent as error:
                reason = f"{error.reason} (declare event {name}, without it)"
                line = int(lines[place])
                bad = BadEvent(reason, self._at(line))
                self._intake.unlearnt.setdefault(name, bad)
                self._refuse(reason, line, name)
        return EventType(name), len(envelopes)  # no good event yet: nothing is learnt

    def _guessed(self, envelope: Any) -> dict[str, object]:
        return self._members.guessed(data_of(envelope, self._members))

    def _others(self, envelopes: Sequence[Any], place: int) -> list[dict[str, object]]:
        """The attributes of the events behind a place, without those that cannot be read."""
        others = []
        for envelope in envelopes[place + 1 :]:
            with contextlib.suppress(BadEvent):
                others.append(self._guessed(envelope))
        return others

    def _columns(
        self, event_type: EventType, envelopes: Sequence[Any]
    ) -> tuple[Column, ...] | None:
        """The columns of a chunk's events of one type, or None when one of them is bad."""
        decoded = rows_of(event_type, envelopes, self._members)
        if decoded is None:
            return None
        rows, surplus = decoded
        try:
            places = range(len(event_type.declared))
            lists = [list(map(attrgetter(f"value_{place}"), rows)) for place in places]
            columns = columns_of(event_type, lists)
        except BadEvent:
            return None
        self._intake.surplus += surplus
        return columns

    def _event_by_event(
        self, event_type: EventType, envelopes: Sequence[Any], lines: Int64s
    ) -> tuple[tuple[Column, ...], Int64s]:
        """Columns of the good events, and the places of those."""
        rows, good = [], []
        for place, envelope in enumerate(envelopes):
            try:
                data = unquoted(event_type, data_of(envelope, self._members))
                rows.append(values_of(event_type, data))
            except BadEvent as error:
                hint = _FLAT_HINT if envelope.data is _NO_DATA else ""
                self._refuse(error.reason + hint, int(lines[place]), event_type.name)
            else:
                good.append(place)
                known = {*event_type.names}
                self._intake.surplus += len(self._members.guessed(data).keys() - known)
        columns = tuple(
            column_of(attribute, [row[place] for row in rows])
            for place, attribute in enumerate(event_type.attributes)
        )
        return columns, np.array(good, np.int64)

    def _ids(self, envelopes: Sequence[Any], lines: Int64s) -> EventIds:
        numbers = list(map(attrgetter("sequence"), envelopes))
        sources = list(map(attrgetter("source"), envelopes))
        ids = list(map(attrgetter("id"), envelopes))
        sequence, source = _filled(numbers, lines), self._sources(sources)
        kinds, own = set(map(type, ids)), self._own_ids(numbers, sources, sequence, lines)
        if kinds <= {UnsetType} and own is None and not self._place.by_row:
            return EventIds(source, sequence, given=int in set(map(type, numbers)))
        if UnsetType in kinds:
            own = own or list(map(str, sequence.tolist()))
            ids = [name if one is UNSET else one for one, name in zip(ids, own, strict=True)]
        if kinds != {str}:
            ids = list(map(str, ids))
        if self._place.by_row:
            return EventIds(source, lines, StringColumn.from_strings(ids))
        return EventIds(source, sequence, id_texts(ids, sequence), given=True)

    def _own_ids(
        self, numbers: list[Any], sources: list[Any], sequence: Int64s, lines: Int64s
    ) -> list[str] | None:
        """The ids of events that leave them out; None where all are the sequence numbers."""
        is_numbered = UnsetType not in set(map(type, numbers))
        if is_numbered or not self._place.source or set(map(type, sources)) <= {UnsetType}:
            return None
        rows = zip(numbers, sources, self._place.names(lines), sequence.tolist(), strict=True)
        return [
            name if number is UNSET and source is not UNSET else str(counted)
            for number, source, name, counted in rows
        ]

    def _sources(self, given: list[Any]) -> StringColumn:
        default, distinct = self._place.source, set(given)
        if distinct == {UNSET}:
            return StringColumn.constant(default, len(given))
        if UNSET in distinct:
            given = [default if source is UNSET else source for source in given]
        return StringColumn.from_strings(given)

    def _refuse(self, reason: str, line: int, type_name: str | None = None) -> None:
        self._refused.append((line, reason, type_name))

    def _report(self) -> None:
        """Hand over the chunk's bad events in the order of the file, not in that of the steps."""
        refused, self._refused = sorted(self._refused), []
        for line, reason, type_name in refused:
            self._intake.refuse(reason, self._at(line), type_name)

    def _at(self, line: int) -> str:
        return f"{self._place.file}:{self._row}{line}"


def _chunks(stream: BinaryIO, file: str) -> Iterator[Lines]:
    """Chunks of whole lines, each after the numbers of its first and last line, from 1."""
    line, rest = 1, b""
    while True:
        block = stream.read(CHUNK_BYTES)
        if line == 1 and not rest:
            block = block.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
        cut = block.rfind(b"\n") + 1 if block else 0
        if cut or not block:
            chunk, rest = rest + block[:cut], block[cut:]
            end = line + int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == _LINE_END))
            if chunk:
                last = end - chunk.endswith(b"\n")
                yield line, last, chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk
            line = end
        else:
            rest += block
        if len(rest) > LINE_BYTES_MAX:
            raise BadEvent(f"a line of more than {LINE_BYTES_MAX} bytes", f"{file}:{line}")
        if not block:
            return


def _decoded(decoder: msgspec.json.Decoder[Any], chunk: bytes, lines: int) -> list[Any] | None:
    """One value a line, or None unless each line holds just one object.

    The decoder takes any white space between values for a line's end, so that a line with two of
    them, or one value on two lines, would shift the numbers of the lines after it. When every
    line starts and ends with its braces, and there are as many values as lines, no value can
    straddle a line's end: ``}`` then ``{`` with no comma between is no JSON.
    """
    if not chunk.startswith(b"{") or not chunk.endswith((b"}\n", b"}")):
        return None
    text = np.frombuffer(chunk, np.uint8)
    ends = np.flatnonzero(text[:-1] == _LINE_END)
    if (text.take(ends - 1) != ord("}")).any() or (text.take(ends + 1) != ord("{")).any():
        return None
    try:
        values = decoder.decode_lines(chunk)
    except REFUSED:
        return None
    return values if len(values) == lines else None


def _by_type(
    envelopes: list[Any], lines: Int64s, times: Int64s, type_name: str | None
) -> Iterator[tuple[str, tuple[list[Any], Int64s, Int64s]]]:
    """The types in the order in which they appear, each with its events, lines and times."""
    names = list(map(attrgetter("type"), envelopes))
    if type_name is not None:
        names = [type_name if name is UNSET else name for name in names]
    types = StringColumn.from_strings(names)
    if len(types.values) == 1:
        yield types.values[0], (envelopes, lines, times)
        return
    by_type = np.argsort(types.codes, kind="stable")
    bounds = np.searchsorted(types.codes[by_type], np.arange(len(types.values) + 1))
    for name, (start, end) in zip(types.values, itertools.pairwise(bounds.tolist()), strict=True):
        places = by_type[start:end]
        chosen = [envelopes[place] for place in places.tolist()]
        yield name, (chosen, lines[places], times[places])


def _filled(given: list[int | UnsetType], otherwise: Int64s) -> Int64s:
    """The numbers given, and the others where none is."""
    kinds = set(map(type, given))
    if kinds <= {UnsetType}:
        return otherwise
    if kinds == {int}:
        return np.array(given, np.int64)
    return np.array(
        [
            number if isinstance(value, UnsetType) else value
            for value, number in zip(given, otherwise.tolist(), strict=True)
        ],
        np.int64,
    )


def read_text(
    text: str | bytes, file: str = "<text>", intake: Intake | None = None
) -> list[EventBatch]:
    """All events of a text, a batch a type in each chunk; for small inputs."""
    data = text.encode() if isinstance(text, str) else text
    lines = io.BytesIO(data.removesuffix(b"\n") + b"\n")
    chunks = read(lines, Place(file, file), Intake() if intake is None else intake)
    return [batch for chunk in chunks for batch in chunk.batches]
