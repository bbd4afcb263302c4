"""Files of events, by the endings of their names (docs/files.md).

``.jsonl``, ``.parquet``, ``.arrow`` and ``.csv`` say the form, ``.gz`` or ``.zst`` after it the
compression. Every form is read and written a piece at a time, so memory does not follow the
size of a file. (Parquet inside another compression is first unpacked to a temporary file: its
index stands at the end.) What comes from no file, and has no ending that says so, is recognised by
its first bytes.

A reading comes in two kinds: :meth:`EventFile.scan` takes a cheap first look, at times and
schemas alone, and :meth:`EventFile.read` gives the events.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from matcher.errors import EventError
from matcher.formats.inputs import again, copied, copy_of, name_of, names_file, opened_input
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.outputs import replaced
from matcher.formats.printing import json_lines, pieces
from matcher.model import EventBatch, EventType, Int64s

FORMS: Mapping[str, str] = {
    ".jsonl": "matcher.formats.jsonlines",
    ".parquet": "matcher.formats.parquetfiles",
    ".arrow": "matcher.formats.ipcfiles",
    ".csv": "matcher.formats.csvfiles",
}
"""Modules by ending, imported when first needed: each has ``read`` and ``scan``, and ``Writer``
where a file holds one type alone."""
COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrow"}
"""First bytes; an Arrow stream starts with a mark of four."""
_PEEKED = 4096


def form_of(path: Path) -> tuple[str, str | None]:
    """The form (``.jsonl``) and the compression (``gzip``) that a file's name says.

    Raises EventError for any other ending.
    """
    *_, before, last = "", "", *path.suffixes
    compression = COMPRESSIONS.get(last)
    form = before if compression else last
    if form not in FORMS:
        raise EventError(
            f"{path}: a file of events ends in one of {' '.join(FORMS)}, and after that "
            f"perhaps in {' or '.join(COMPRESSIONS)}"
        )
    return form, compression


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events.

    ``source`` is the source of events that name none; ``type_name`` names the type of a tabular
    file that has no column for it, ``time_unit`` (times.UNITS) says what times that are numbers
    count. ``copy`` holds what came through a pipe, which is then read one time after another. With
    ``by_row`` all ids are texts, and sequence numbers those of the rows. Reading raises BadEvent or
    another EventError, with the place, and OSError.
    """

    path: Path
    source: str
    type_name: str | None = None
    time_unit: str = "s"
    copy: BinaryIO | None = None
    by_row: bool = False

    @classmethod
    def of(
        cls,
        path: Path,
        type_name: str | None = None,
        *,
        source: str | None = None,
        time_unit: str = "s",
    ) -> EventFile:
        """The file, its name being the default source (tesla.md E3).

        A pipe is read up to its end and copied to a temporary file.
        """
        if names_file(path):
            form_of(path)
        return cls(path, source or source_of(path), type_name, time_unit, copied(path))

    def read(self, intake: Intake) -> Iterator[Chunk]:
        """The events, in the order of the file."""
        with opened(self.path, self.copy) as (form, stream):
            yield from read_from(stream, form, self._place, intake, self.type_name)

    def scan(self, intake: Intake) -> Iterator[Glance]:
        """The times; ``intake`` learns the schemas of the types that it does not know."""
        with opened(self.path, self.copy) as (form, stream):
            yield from _module(form).scan(stream, self._place, intake, self.type_name)

    def place_of(self, row: int) -> str:
        """A row of the file, or a line of it, as messages name it."""
        with opened(self.path, self.copy) as (form, _):
            return row_named(self.path, form, row)

    @property
    def _place(self) -> Place:
        return Place(name_of(self.path), self.source, self.time_unit, self.by_row)


def row_named(path: Path, form: str, row: int) -> str:
    """A row of a file of a form, or a line of it, as messages name it."""
    return f"{name_of(path)}:{row}" if form == ".jsonl" else f"{name_of(path)}:row {row}"


def source_of(path: Path) -> str:
    """The source of a file's events that name none: its name."""
    return "stdin" if path.name == "-" else path.name


def read_from(
    stream: BinaryIO, form: str, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of an opened file, in its order."""
    chunks: Iterator[Chunk] = _module(form).read(stream, place, intake, type_name)
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

    def __init__(self, sink: BinaryIO, *, full_cause: bool = False, seconds: bool = False) -> None:
        self._sink = sink
        self._full_cause = full_cause
        self._seconds = seconds

    def write(self, batches: Sequence[EventBatch], order: Int64s | None = None) -> None:
        """Write the events."""
        for some, places in pieces(batches, order):
            text = json_lines(some, places, full_cause=self._full_cause, seconds=self._seconds)
            self._sink.write(text)

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
) -> Iterator[EventOutput]:
    """Where the events of ``types`` go, by the ending of ``path``.

    A table holds one type: where there are several, each has a file of its own
    (:func:`path_of_type`). All files are there and valid, if empty, even when no event comes.
    """
    form, compression = form_of(path)
    with ExitStack() as stack:
        output: EventOutput
        if form == ".jsonl":
            sink = stack.enter_context(_created(path, compression))
            output = LinesOutput(sink, full_cause=full_cause, seconds=seconds)
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
    _, compression = form_of(path)
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
    import pyarrow as pa

    form = ""
    with ExitStack() as stack:
        stream: Any = stack.enter_context(opened_input(path) if copy is None else again(copy))
        try:
            form, compression = _form(path, stream)
            if compression:
                stream = stack.enter_context(pa.CompressedInputStream(stream, compression))
            if not form:
                stream = io.BufferedReader(stream) if compression else stream
                form = _recognised(stream.peek(_PEEKED))
            if form == ".parquet" and (compression or not stream.seekable()):
                stream = stack.enter_context(copy_of(stream, path))
            yield form, stream
        except pa.ArrowException as error:
            raise _unexpected(path, form, error) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise _unexpected(path, form, error) from None


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
    return "", next((found for mark, found in _PACKED.items() if start.startswith(mark)), None)


def _recognised(start: bytes) -> str:
    """The form of unpacked bytes: what is neither binary nor objects is CSV."""
    for mark, form in _BEGINNINGS.items():
        if start.startswith(mark):
            return form
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return ".jsonl" if not text or text.startswith(b"{") else ".csv"


def _unexpected(path: Path, form: str, error: Exception) -> EventError:
    return EventError(f"{name_of(path)}: not {form[1:] or 'events'} as expected: {error}")


@contextmanager
def _created(path: Path, compression: str | None) -> Iterator[BinaryIO]:
    with replaced(path) as sink:
        if compression is None:
            yield sink
            return
        import pyarrow as pa

        with pa.CompressedOutputStream(sink, compression) as packed:
            yield packed
