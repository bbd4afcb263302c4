"""The files of ``rexmq match`` (docs/matching.md): filters, and events that need no type.

Filters are JSON lines: ``{"filter": 331, "interface": 1, "type": null, "constraints":
[["a4", "prefix", "fj"], ["a8", ">", 51]]}``, ``type`` and ``constraints`` being optional. Events
are JSON lines too, ``{"id": 1, "type": "Temp", "data": {"a8": 60}}``, of which everything is
optional (the id is then the line's number) and other members are ignored, so that files for
``rexmq detect`` serve as well; a layout says where these stand otherwise. Empty lines are skipped,
and counted as lines. A line that does not fit is refused with its place and what was expected.

A filter may ask whether an attribute is null: ``["a4", "is", null]``. Matchers know no nulls, so
that is a constraint on the attribute's presence, ``a4?`` (matcher.model, Rule 5), which every event
then bears: one without ``a4`` is read as one with ``a4? = false``.

Ids are printed, so that two different events of one source and id cannot be told apart: the second
is refused, as it is wherever events are detected over (tesla.md E1). That is known of the last
``IDS_MAX`` ids at least, and of twice as many at most. The same event again is matched again.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from matcher.contents import contents_of
from matcher.errors import BadEvent, FilterError, SchemaError
from matcher.filters.constraint import INT_MAX, INT_MIN, SYMBOLS, Constraint, Filter, Operator
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.formats import jsonarrays
from matcher.formats.files import form_of, form_read, opened, read_from, row_named, source_of
from matcher.formats.inputs import is_regular, name_of, names_file, opened_input
from matcher.formats.intake import Chunk, Intake, Place
from matcher.formats.jsonadditions import Additions
from matcher.formats.jsondata import REFUSED, Members
from matcher.formats.layout import ID, PLAIN, SOURCE, TYPE, Layout
from matcher.formats.timeform import RFC_3339
from matcher.identity import number_of_id
from matcher.model import OPTIONAL, Attribute, EventBatch, EventType, Kind
from matcher.recent import RecentIds
from matcher.rows import inferred_type

EVENTS = 4_096
"""Events read at once."""
IDS_MAX = 1_000_000
"""Ids remembered at least."""
PrintedId: TypeAlias = int | str
_Numbered: TypeAlias = tuple[int, bytes]
_Int: TypeAlias = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]


class _FilterLine(Struct, forbid_unknown_fields=True):
    """One line of a file of filters."""

    filter: int
    interface: int
    type: str | None = None
    constraints: list[tuple[str, str, str | bool | int | float | None]] = []


class _EventLine(Struct, gc=False):
    """One line of a file of events."""

    id: str | int | UnsetType = UNSET
    source: Any = None
    type: str | None = None
    data: dict[str, Any] = {}


class _FittingLine(_EventLine, gc=False):
    """The same where all values are such as attributes have."""

    data: dict[str, str | bool | _Int | float | None] = {}


_FILTER = msgspec.json.Decoder(_FilterLine)
_EVENT, _FITTING = msgspec.json.Decoder(_EventLine), msgspec.json.Decoder(_FittingLine)
_PRESENT: Mapping[str, bool] = {"is": False, "is not": True}
"""The presence of an attribute that stands so to null."""


def read_filters(path: Path) -> FilterBatch:
    """The filters of a file; raises FilterError, with the line, for one that is ill-formed."""
    filters: list[tuple[int, int, Filter]] = []
    lines: dict[int, int] = {}
    with opened_input(path) as stream:
        for number, line in _lines(stream):
            place = f"{name_of(path)}:{number}"
            try:
                read = _FILTER.decode(line)
                filter_ = Filter(tuple(map(_constraint, read.constraints)), read.type)
            except REFUSED as error:
                raise FilterError(f"{place}: not a filter: {error}") from None
            except FilterError as error:
                raise FilterError(f"{place}: {error}") from None
            for name in ("filter", "interface"):
                if not INT_MIN <= getattr(read, name) <= INT_MAX:
                    raise FilterError(f"{place}: {name}: an int beyond 64 bits")
            first = lines.setdefault(read.filter, number)
            if first != number:
                raise FilterError(f"{place}: filter {read.filter} stands in line {first} already")
            filters.append((read.filter, read.interface, filter_))
    return FilterBatch.of(filters)


class _Piece(NamedTuple):
    """Events read at once from a file of a form: their ids as printed and, with those of their
    sources, as they are known by; their contents and their rows, or lines.
    """

    form: str
    ids: list[PrintedId]
    names: list[str]
    contents: list[int]
    rows: list[int]
    events: MixedEvents


@dataclass(frozen=True, slots=True)
class MatchFile:
    """A file of events of any form; ``layout`` and ``type_name`` are those of files.EventFile.

    Times are read of tables alone, although nothing is asked of them; what is assumed of them the
    ``intake`` notes. Events bear the ``presences`` that filters ask for.
    """

    path: Path
    layout: Layout = PLAIN
    type_name: str | None = None
    presences: tuple[str, ...] = ()
    intake: Intake = field(default_factory=Intake)

    def pieces(self) -> Iterator[_Piece]:
        """The events, some at a time, in the order of the file."""
        if names_file(self.path):
            form_of(self.path)
        with opened(self.path) as (form, stream):
            if form in (".jsonl", ".json"):
                yield from self._untyped(form_read(form, self.layout), stream)
            else:
                place = Place(name_of(self.path), source_of(self.path), self.layout, by_row=True)
                chunks = read_from(stream, form, place, self.intake, self.type_name)
                yield from _tabular(form, chunks, self.presences)

    def _untyped(self, form: str, stream: BinaryIO) -> Iterator[_Piece]:
        file, records = name_of(self.path), self.layout.records
        lines = _lines(stream) if form == ".jsonl" else _array(stream, file, records)
        while piece := list(itertools.islice(lines, EVENTS)):
            rows = [number for number, _ in piece]
            read = [self._event(line, row_named(self.path, form, row)) for row, line in piece]
            ids: list[PrintedId] = [
                number if isinstance(event.id, UnsetType) else event.id
                for event, number in zip(read, rows, strict=True)
            ]
            sources = (event.source if isinstance(event.source, str) else "" for event in read)
            names = [_name(*pair) for pair in zip(sources, map(str, ids), strict=True)]
            contents = [hash((event.type, frozenset(event.data.items()))) for event in read]
            events = MixedEvents.of(
                [_bearing(event.data, self.presences) for event in read],
                [event.type or "" for event in read],
            )
            yield _Piece(form, ids, names, contents, rows, events)

    @property
    def _is_plain(self) -> bool:
        """Whether members are called as always."""
        return self.type_name is None and replace(self.layout, times=RFC_3339) == PLAIN

    def _event(self, line: bytes, place: str) -> _EventLine:
        """An event; where the decoder that is made for good ones refuses it, another says why."""
        is_plain = self._is_plain
        if is_plain:
            with suppress(*REFUSED):
                return _FITTING.decode(line)
        try:
            event: _EventLine = _EVENT.decode(line) if is_plain else self._laid_out(line)
            inferred_type(event.type or "", event.data)  # refuses values of no kind
        except REFUSED as error:
            raise BadEvent(f"not an event: {error}", place) from None
        except BadEvent as error:
            raise BadEvent(error.reason, place) from None
        except SchemaError as error:
            raise BadEvent(str(error), place) from None
        return event

    def _laid_out(self, line: bytes) -> _EventLine:
        """An event whose members are called as the layout says."""
        given = msgspec.json.decode(line, type=dict[str, Any])
        members = Members.of(self.layout, self.type_name)
        roles = self.layout.role_columns(self.type_name if self.layout.flat else None)
        own = {role: given[roles[role]] for role in (ID, SOURCE, TYPE) if roles.get(role) in given}
        added = Additions.of(self.layout, ()).members(line, None)
        more = {name: msgspec.json.decode(value) for name, value in added}
        if self.layout.flat:
            data = members.guessed(members.attributes({**given, **more}))
        else:
            data = members.attributes({**given.get("data", {}), **more})
        return msgspec.convert({TYPE: self.type_name, **own, "data": data}, _EventLine)


def presences_of(filters: FilterBatch) -> tuple[str, ...]:
    """The presences that filters ask for."""
    return tuple(name for name in filters.cells.names.values if name.endswith(OPTIONAL))


def read_events(path: Path | MatchFile) -> Iterator[tuple[list[PrintedId], MixedEvents]]:
    """The events of a file, some at a time, in its order, with their ids.

    Raises BadEvent where an event bears the id of another one.
    """
    file = path if isinstance(path, MatchFile) else MatchFile(path)
    known = RecentIds[int]()
    for piece in file.pieces():
        judged = known.judge(piece.names, piece.contents)
        for place, _ in judged.conflicts:
            raise _conflict(file, piece, place)
        known.remember(piece.names, piece.contents, IDS_MAX)
        yield piece.ids, piece.events


def _conflict(file: MatchFile, piece: _Piece, place: int) -> BadEvent:
    """The error for an event that bears the id of another one, which is looked for again, unless
    it came through a pipe.
    """
    other = ""
    if is_regular(file.path):
        first = next(
            row
            for before in replace(file, intake=Intake()).pieces()
            for row, name in zip(before.rows, before.names, strict=True)
            if name == piece.names[place]
        )
        other = f", at {row_named(file.path, piece.form, first)}"
    return BadEvent(
        f"id {piece.ids[place]} is that of another event of its source{other}, "
        f"with other contents; leave out ids that name something else",
        row_named(file.path, piece.form, piece.rows[place]),
    )


def _name(source: str, text: str) -> str:
    """The name that an event is known by; with its length before it no source begins another one's
    name.
    """
    return f"{len(source)}:{source}{text}"


def _constraint(parts: tuple[str, str, Any]) -> Constraint:
    name, symbol, operand = parts
    if operand is None:
        if symbol not in _PRESENT:
            raise FilterError(f"{name} {symbol}: null stands behind {' and '.join(_PRESENT)} alone")
        return Constraint(name + OPTIONAL, Operator.EQUAL, _PRESENT[symbol])
    operator = SYMBOLS.get(symbol)
    if operator is None:
        hint = f", or {' and '.join(_PRESENT)} before null"
        listed = " ".join(SYMBOLS)
        raise FilterError(f"{name}: expected an operator of {listed}{hint}, found {symbol!r}")
    return Constraint(name, operator, operand)


def _array(stream: BinaryIO, file: str, records: str | None) -> Iterator[_Numbered]:
    """The values of an array of JSON, numbered from 1."""
    for first, _, lines in jsonarrays.chunks(stream, file, records):
        yield from enumerate(lines.splitlines(), first)


def _bearing(data: dict[str, Any], presences: tuple[str, ...]) -> dict[str, Any]:
    """An event's attributes with presences; an attribute that is called so answers for itself."""
    there = {name: data.get(name.removesuffix(OPTIONAL)) is not None for name in presences}
    return {**there, **data} if there else data


def _with_presences(batch: EventBatch, presences: tuple[str, ...]) -> EventBatch:
    """The same of a batch, whose type has the presences of its optional attributes already."""
    own = batch.type
    lacking = [name for name in presences if own.index(name) is None]
    if not lacking:
        return batch
    there = [own.index(name.removesuffix(OPTIONAL)) is not None for name in lacking]
    return replace(
        batch,
        type=EventType(
            own.name, (*own.attributes, *(Attribute(name, Kind.BOOL) for name in lacking))
        ),
        columns=(*batch.columns, *(np.full(len(batch), is_there) for is_there in there)),
    )


def _tabular(form: str, chunks: Iterable[Chunk], presences: tuple[str, ...]) -> Iterator[_Piece]:
    for chunk in chunks:
        for batch in chunk.batches:
            texts = batch.ids.printed()
            names = list(map(_name, batch.ids.source.tolist(), texts))
            contents, rows = contents_of(batch).tolist(), batch.ids.sequence.tolist()
            events = MixedEvents.of_batch(_with_presences(batch, presences))
            ids = list(map(_printed, texts))
            yield _Piece(form, ids, names, contents, rows, events)


def _printed(text: str) -> PrintedId:
    """An id as JSON shows it: one that is a number as a number."""
    number = number_of_id(text)
    return text if number is None else number


def _lines(stream: BinaryIO) -> Iterator[_Numbered]:
    """The lines that are not empty, numbered from 1."""
    lines = itertools.chain((next(stream, b"").removeprefix(codecs.BOM_UTF8),), stream)
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())
