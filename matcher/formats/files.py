"""Files of events, by the endings of their names (docs/files.md).

``.jsonl`` (or ``.ndjson``), ``.json``, ``.parquet``, ``.arrow``, ``.csv``, ``.tsv``, ``.xes``,
``.jsonocel``, ``.xmlocel`` (or ``.xml``) and ``.sqlite`` say the form, ``.gz``, ``.zst``, ``.bz2``,
``.xz`` or ``.zip`` after it the compression (:mod:`matcher.formats.compressions`), in small letters
or capitals. Every form but the documents of JSON and OCEL is read a piece at a time, so memory does
not follow the size of a file. (Parquet inside another compression is first unpacked to a temporary
file: its index stands at the end.) What comes from no file, and has no ending that says so, is
recognised by its first bytes.

A reading comes in two kinds: :meth:`EventFile.scan` takes a cheap first look, at times and
schemas alone, and :meth:`EventFile.read` gives the events.
"""

from __future__ import annotations

import importlib
import io
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from matcher.errors import EventError
from matcher.formats.compressions import COMPRESSIONS, compression_of, packed, unpacked
from matcher.formats.inputs import (
    FolderColumn,
    again,
    copied,
    copy_of,
    name_of,
    names_file,
    opened_input,
)
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.layout import PLAIN, Layout
from matcher.formats.outputs import replaced
from matcher.formats.printing import json_lines, pieces
from matcher.model import EventBatch, EventType, Int64s
from matcher.traces import TraceContexts

FORMS: Mapping[str, str] = {
    ".jsonl": "matcher.formats.jsonlines",
    ".json": "matcher.formats.jsonarrays",
    ".parquet": "matcher.formats.parquetfiles",
    ".arrow": "matcher.formats.ipcfiles",
    ".csv": "matcher.formats.csvfiles",
    ".tsv": "matcher.formats.tsvfiles",
    ".xes": "matcher.formats.xesfiles",
    ".jsonocel": "matcher.formats.oceljson",
    ".xmlocel": "matcher.formats.ocelxml",
    ".sqlite": "matcher.formats.ocelsqlite",
}
"""Modules by ending, imported when first needed: each has ``read`` and ``scan``, and ``Writer``
where a file holds one type alone."""
_SAME = {".ndjson": ".jsonl", ".xml": ".xmlocel"}
_READ_ALONE = (".json", ".xes", ".jsonocel", ".xmlocel", ".sqlite", ".zip")
"""Endings of what is read and never written."""
_BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",
    b"SQLite format 3\0": ".sqlite",
}
"""First bytes; an Arrow stream starts with a mark of four."""
_OCEL = re.compile(rb'\{\s*"(objectTypes|eventTypes)"')
"""How a document of OCEL 2.0 begins."""
_PEEKED = 4096


def form_of(path: Path) -> tuple[str, str | None]:
    """The form (``.jsonl``) and the compression (``gzip``) that a file's name says; the form of
    what is in a ``.zip`` may be left open ("").

    Raises EventError for any other ending.
    """
    *_, before, last = "", "", *(suffix.lower() for suffix in path.suffixes)
    compression = COMPRESSIONS.get(last)
    form = before if compression else last
    form = _SAME.get(form, form)
    if form in FORMS:
        return form, compression
    if compression == "zip":
        return "", compression
    raise EventError(
        f"{path}: a file of events ends in one of {' '.join((*FORMS, *_SAME))}, and after that "
        f"perhaps in {' or '.join(COMPRESSIONS)}"
    )


def form_written(path: Path) -> tuple[str, str | None]:
    """The same of a file that is to be written; EventError, too, for what is only read."""
    form, compression = form_of(path)
    if form in _READ_ALONE or compression == "zip":
        endings = [one for one in FORMS if one not in _READ_ALONE]
        packed = [one for one in COMPRESSIONS if one not in _READ_ALONE]
        raise EventError(
            f"{path}: events are not written like this; it ends in one of {' '.join(endings)}, "
            f"and after that perhaps in {' or '.join(packed)}"
        )
    return form, compression


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events.

    ``source`` is the source of events that name none; ``type_name`` names the type of those that
    name none; ``layout`` says what columns mean and how times are written, ``columns`` what names
    of folders say of all events. ``copy`` holds what came through a pipe, which is then read one
    time after another. With ``by_row`` all ids are texts, and sequence numbers those of the rows.
    Reading raises BadEvent or another EventError, with the place, and OSError.
    """

    path: Path
    source: str
    type_name: str | None = None
    layout: Layout = PLAIN
    copy: BinaryIO | None = None
    by_row: bool = False
    columns: tuple[FolderColumn, ...] = ()

    @classmethod
    def of(
        cls,
        path: Path,
        type_name: str | None = None,
        *,
        source: str | None = None,
        layout: Layout = PLAIN,
        columns: tuple[FolderColumn, ...] = (),
    ) -> EventFile:
        """The file, its name being the default source (tesla.md E3).

        A pipe is read up to its end and copied to a temporary file.
        """
        if names_file(path):
            form_of(path)
        own = source or source_of(path)
        return cls(path, own, type_name, layout, copied(path), columns=columns)

    def read(self, intake: Intake) -> Iterator[Chunk]:
        """The events, in the order of the file."""
        with opened(self.path, self.copy) as (form, stream):
            yield from read_from(stream, form, self._place, intake, self.type_name)

    def scan(self, intake: Intake) -> Iterator[Glance]:
        """The times; ``intake`` learns the schemas of the types that it does not know."""
        with opened(self.path, self.copy) as (form, stream):
            module = _module(form_read(form, self.layout))
            yield from module.scan(stream, self._place, intake, self.type_name)

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return name_of(self.path)

    def place_of(self, row: int) -> str:
        """A row of the file, or a line of it, as messages name it."""
        with opened(self.path, self.copy) as (form, _):
            return row_named(self.path, form_read(form, self.layout), row)

    @property
    def _place(self) -> Place:
        return Place(self.name, self.source, self.layout, self.by_row, columns=self.columns)


def row_named(path: Path, form: str, row: int) -> str:
    """A row of a file of a form, or a line of it, as messages name it."""
    return f"{name_of(path)}:{row}" if form == ".jsonl" else f"{name_of(path)}:row {row}"


def form_read(form: str, layout: Layout) -> str:
    """The form in which a file is read: events in a document of JSON are an array."""
    return ".json" if form in (".jsonl", ".jsonocel") and layout.records is not None else form


def source_of(path: Path) -> str:
    """The source of a file's events that name none: its name."""
    return "stdin" if path.name == "-" else path.name


def read_from(
    stream: BinaryIO, form: str, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of an opened file, in its order."""
    chunks: Iterator[Chunk] = _module(form_read(form, place.layout)).read(
        stream, place, intake, type_name
    )
    return chunks


class EventOutput(Protocol):
    """Where events are written, some batches at a time."""

    def write(self, batches: Sequence[EventBatch], order: Int64s | None = None) -> None:
        """Write the events of ``batches`` in ``order`` (positions in their concatenation)."""
        ...

    def close(self) -> None:
        """Finish the file or files."""
        ...


class LinesOutput:
    """Events of any types as JSON lines to one sink."""

    def __init__(
        self,
        sink: BinaryIO,
        *,
        full_cause: bool = False,
        seconds: bool = False,
        traces: TraceContexts | None = None,
        shown_by: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """``traces``: the trace contexts of events, where they are known. ``shown_by``: gives the
        lines as they are written.
        """
        self._sink = sink
        self._shown_by = shown_by
        self._traces = TraceContexts() if traces is None else traces
        self._full_cause = full_cause
        self._seconds = seconds

    def write(self, batches: Sequence[EventBatch], order: Int64s | None = None) -> None:
        """Write the events."""
        for some, places in pieces(batches, order):
            text = json_lines(
                some,
                places,
                full_cause=self._full_cause,
                seconds=self._seconds,
                traces=self._traces.of(some) if self._traces.has_any else (),
            )
            self._sink.write(self._shown_by(text))

    def close(self) -> None:
        """Let what is buffered go; the sink is its owner's to close."""
        self._sink.flush()


class TablesOutput:
    """Events as tables, one type each (``writers`` by type); other types are left out."""

    def __init__(self, writers: Mapping[str, Any]) -> None:
        self._writers = writers

    def write(self, batches: Sequence[EventBatch], order: Int64s | None = None) -> None:
        """Write each type's events to its table, in the order given."""
        first = 0
        for batch in batches:
            writer = self._writers.get(batch.type.name)
            if writer is not None and order is not None:
                places = order[(order >= first) & (order < first + len(batch))] - first
                writer.write(batch.take(places))
            elif writer is not None:
                writer.write(batch)
            first += len(batch)

    def close(self) -> None:
        """Finish every table."""
        for writer in self._writers.values():
            writer.close()


@contextmanager
def output_to(
    path: Path,
    types: Sequence[EventType],
    *,
    composite: bool,
    full_cause: bool = False,
    seconds: bool = False,
    traces: TraceContexts | None = None,
) -> Iterator[EventOutput]:
    """Where the events of ``types`` go, by the ending of ``path``.

    A table holds one type: where there are several, each has a file of its own
    (:func:`path_of_type`). All files are there and valid, if empty, even when no event comes.
    """
    form, compression = form_written(path)
    with ExitStack() as stack:
        output: EventOutput
        if form == ".jsonl":
            sink = stack.enter_context(_created(path, compression))
            output = LinesOutput(sink, full_cause=full_cause, seconds=seconds, traces=traces)
        else:
            output = TablesOutput(
                {
                    event_type.name: _module(form).Writer(
                        stack.enter_context(_created(own, compression)),
                        event_type,
                        composite=composite,
                        full_cause=full_cause,
                    )
                    for event_type in types
                    for own in [path_of_type(path, event_type, types)]
                }
            )
        try:
            yield output
        except BaseException:
            with suppress(Exception):  # nothing of it will be seen
                output.close()
            raise
        output.close()


def path_of_type(path: Path, event_type: EventType, types: Sequence[EventType]) -> Path:
    """``path`` itself for a type that is alone, else ``out.Fire.parquet`` for ``out.parquet``."""
    if len(types) == 1:
        return path
    _, compression = form_written(path)
    ending = "".join(path.suffixes[-2 if compression else -1 :])
    name = event_type.name.replace("/", "%2F")  # a type may be called anything, a file may not
    return path.with_name(f"{path.name.removesuffix(ending)}.{name}{ending}")


def _module(form: str) -> Any:
    return importlib.import_module(FORMS[form])


@contextmanager
def opened(path: Path, copy: BinaryIO | None = None) -> Iterator[tuple[str, BinaryIO]]:
    """The form of a file, and its bytes, unpacked; or those of a ``copy`` of it.

    What Arrow finds wrong with them becomes an EventError.
    """
    form = ""
    with ExitStack() as stack:
        stream: Any = stack.enter_context(opened_input(path) if copy is None else again(copy))
        try:
            form, compression = _form(path, stream)
            if compression == "zip":
                form, compression, stream = _member(stack, path, form, stream)
            if compression not in (None, "zip"):
                stream = unpacked(stack, stream, compression, peeks=form in ("", ".json"))
            if form in ("", ".json"):
                form = _recognised(stream.peek(_PEEKED), form)
            if form == ".parquet" and (compression or not stream.seekable()):
                stream = stack.enter_context(copy_of(stream, path))
            yield form, stream
        except _refusals() as error:
            raise _unexpected(path, form, error) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise _unexpected(path, form, error) from None


def _member(stack: ExitStack, path: Path, form: str, stream: Any) -> tuple[str, str, Any]:
    """The form and compression of the one file in an archive of a ``form``, and its bytes."""
    if not stream.seekable():
        stream = stack.enter_context(copy_of(stream, path))
    archive = stack.enter_context(zipfile.ZipFile(stream))
    names = [
        one.filename
        for one in archive.infolist()
        if not (one.is_dir() or one.filename.startswith("__MACOSX/"))
    ]
    if len(names) != 1:
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
        raise EventError(
            f"{name_of(path)}: an archive of {len(names)} files ({shown}); expected one: "
            f"unpack it, and name those that are meant"
        )
    compression = None
    with suppress(EventError) if form else nullcontext():
        form, compression = form_of(Path(names[0]))
    try:
        member: Any = stack.enter_context(archive.open(names[0]))
    except RuntimeError as error:  # it is enciphered, or packed in an unknown way
        raise _unexpected(path, form, error) from None
    return form, compression or "zip", io.BufferedReader(member)


def _form(path: Path, stream: Any) -> tuple[str, str | None]:
    """The form and the compression that a name says; of what is no file, else by its beginning,
    and an empty form where that is still to be found out.
    """
    try:
        return form_of(path)
    except EventError:
        if names_file(path):
            raise
    start = stream.peek(_PEEKED)
    return "", compression_of(start)


def _recognised(start: bytes, form: str) -> str:
    """The form of unpacked bytes: what is neither binary nor JSON is CSV; ``.json`` may be an
    array, objects, one a line, or a log.
    """
    for mark, found in _BEGINNINGS.items():
        if not form and start.startswith(mark):
            return found
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    if _OCEL.match(text):
        return ".jsonocel"
    return ".jsonl" if form or not text or text.startswith(b"{") else ".csv"


_NAMES_SHOWN = 4


def _refusals() -> tuple[type[Exception], ...]:
    """Exceptions of readers that find other bytes than they expect."""
    import pyarrow as pa  # which need not be there before anything is wrong

    # Arrow has no memory where a length in the file is beyond all there is.
    refusals = (pa.ArrowException, MemoryError, UnicodeDecodeError, zipfile.BadZipFile)
    lzma = sys.modules.get("lzma")
    more = () if lzma is None else (lzma.LZMAError,)
    return (*refusals, zlib.error, EOFError, *more)


def _unexpected(path: Path, form: str, error: Exception) -> EventError:
    return EventError(f"{name_of(path)}: not {form[1:] or 'events'} as expected: {error}")


@contextmanager
def _created(path: Path, compression: str | None) -> Iterator[BinaryIO]:
    with replaced(path) as sink:
        if compression is None:
            yield sink
            return
        with packed(sink, compression) as stream:
            yield stream
