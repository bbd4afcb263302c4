"""The files of ``rexmq match`` (docs/matching.md): filters, and events that need no type.

Filters are JSON lines: ``{"filter": 331, "interface": 1, "type": null, "constraints":
[["a4", "prefix", "fj"], ["a8", ">", 51]]}``, ``type`` and ``constraints`` being optional. Events
are JSON lines too, ``{"id": 1, "type": "Temp", "data": {"a8": 60}}``, of which everything is
optional (the id is then the line's number) and other members are ignored, so that files for
``rexmq detect`` serve as well. Empty lines are skipped, and counted as lines. A line that does
not fit is refused with its place and what was expected.

Ids are printed, so that two different events of one source and id cannot be told apart: the second
is refused, as it is wherever events are detected over (tesla.md E1). That is known of the last
``IDS_MAX`` ids at least, and of twice as many at most. The same event again is matched again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from matcher.contents import contents_of
from matcher.errors import BadEvent, FilterError, SchemaError
from matcher.filters.constraint import INT_MAX, INT_MIN, SYMBOLS, Constraint, Filter
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.formats.files import form_of, opened, read_from, row_named, source_of
from matcher.formats.inputs import is_regular, name_of, names_file, opened_input
from matcher.formats.intake import Chunk, Intake, Place
from matcher.identity import number_of_id
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
    constraints: list[tuple[str, str, str | bool | int | float]] = []


class _EventLine(Struct, gc=False):
    """One line of a file of events."""

    id: str | int | UnsetType = UNSET
    source: Any = None
    type: str | None = None
    data: dict[str, Any] = {}


class _FittingLine(_EventLine, gc=False):
    """The same where all values are such as attributes have."""

    data: dict[str, str | bool | _Int | float] = {}


_FILTER = msgspec.json.Decoder(_FilterLine)
_EVENT, _FITTING = msgspec.json.Decoder(_EventLine), msgspec.json.Decoder(_FittingLine)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


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
            except _REFUSED as error:
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


def read_events(path: Path, time_unit: str = "s") -> Iterator[tuple[list[PrintedId], MixedEvents]]:
    """The events of a file of any form, some at a time, in its order, with their ids.

    ``time_unit`` is that of a table's times: they are read, although nothing is asked of them.
    Raises BadEvent where an event bears the id of another one.
    """
    known = RecentIds[int]()
    for piece in _pieces(path, time_unit):
        judged = known.judge(piece.names, piece.contents)
        for place, _ in judged.conflicts:
            raise _conflict(path, time_unit, piece, place)
        known.remember(piece.names, piece.contents, IDS_MAX)
        yield piece.ids, piece.events


def _pieces(path: Path, time_unit: str) -> Iterator[_Piece]:
    if names_file(path):
        form_of(path)
    with opened(path) as (form, stream):
        if form == ".jsonl":
            yield from _untyped(stream, name_of(path))
        else:
            place = Place(name_of(path), source_of(path), time_unit, by_row=True)
            yield from _tabular(form, read_from(stream, form, place, Intake()))


def _conflict(path: Path, time_unit: str, piece: _Piece, place: int) -> BadEvent:
    """The error for an event that bears the id of another one, which is looked for again, unless
    it came through a pipe.
    """
    other = ""
    if is_regular(path):
        first = next(
            row
            for before in _pieces(path, time_unit)
            for row, name in zip(before.rows, before.names, strict=True)
            if name == piece.names[place]
        )
        other = f", at {row_named(path, piece.form, first)}"
    return BadEvent(
        f"id {piece.ids[place]} is that of another event of its source{other}, "
        f"with other contents; leave out ids that name something else",
        row_named(path, piece.form, piece.rows[place]),
    )


def _name(source: str, text: str) -> str:
    """What an event is known by; with its length before it no source begins another one's name."""
    return f"{len(source)}:{source}{text}"


def _constraint(parts: tuple[str, str, Any]) -> Constraint:
    name, symbol, operand = parts
    operator = SYMBOLS.get(symbol)
    if operator is None:
        raise FilterError(f"{name}: expected an operator of {' '.join(SYMBOLS)}, found {symbol!r}")
    return Constraint(name, operator, operand)


def _untyped(stream: BinaryIO, file: str) -> Iterator[_Piece]:
    lines = _lines(stream)
    while piece := list(itertools.islice(lines, EVENTS)):
        rows = [number for number, _ in piece]
        read = [_event(line, number, file) for number, line in piece]
        ids: list[PrintedId] = [
            number if isinstance(event.id, UnsetType) else event.id
            for event, number in zip(read, rows, strict=True)
        ]
        sources = (event.source if isinstance(event.source, str) else "" for event in read)
        names = [_name(*pair) for pair in zip(sources, map(str, ids), strict=True)]
        contents = [hash((event.type, frozenset(event.data.items()))) for event in read]
        events = MixedEvents.of(
            [event.data for event in read], [event.type or "" for event in read]
        )
        yield _Piece(".jsonl", ids, names, contents, rows, events)


def _event(line: bytes, number: int, file: str) -> _EventLine:
    """An event; where the decoder that is made for good ones refuses it, another says why."""
    with suppress(*_REFUSED):
        return _FITTING.decode(line)
    place = f"{file}:{number}"
    try:
        event: _EventLine = _EVENT.decode(line)
        inferred_type(event.type or "", event.data)  # refuses values of no kind
    except _REFUSED as error:
        raise BadEvent(f"not an event: {error}", place) from None
    except BadEvent as error:
        raise BadEvent(error.reason, place) from None
    except SchemaError as error:
        raise BadEvent(str(error), place) from None
    return event


def _tabular(form: str, chunks: Iterable[Chunk]) -> Iterator[_Piece]:
    for chunk in chunks:
        for batch in chunk.batches:
            texts = batch.ids.printed()
            names = list(map(_name, batch.ids.source.tolist(), texts))
            contents, rows = contents_of(batch).tolist(), batch.ids.sequence.tolist()
            events = MixedEvents.of_batch(batch)
            ids = list(map(_printed, texts))
            yield _Piece(form, ids, names, contents, rows, events)


def _printed(text: str) -> PrintedId:
    """An id as JSON shows it: one that is a number as a number."""
    number = number_of_id(text)
    return text if number is None else number


def _lines(stream: BinaryIO) -> Iterator[_Numbered]:
    """The lines that are not empty, numbered from 1."""
    numbered: Iterable[_Numbered] = enumerate(stream, 1)
    return ((number, line) for number, line in numbered if line.strip())
