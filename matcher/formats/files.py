"""Files of events, by the endings of their names (docs/files.md).

``.jsonl``, ``.parquet``, ``.arrow`` and ``.csv`` say the form, ``.gz`` or ``.zst`` after it the
compression. Every form is read and written a piece at a time, so memory does not follow the
size of a file. (Parquet inside another compression is first unpacked to a temporary file: its
index stands at the end.)

A reading comes in two kinds: :meth:`EventFile.scan` takes a cheap first look, at times and
schemas alone, and :meth:`EventFile.read` gives the events.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from matcher.errors import EventError
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.printing import json_lines
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
    file that has no column for it. Reading raises BadEvent or another EventError, with the
    place, and OSError.
    """

    path: Path
    source: str
    type_name: str | None = None

    @classmethod
    def of(cls, path: Path, type_name: str | None = None) -> EventFile:
        """The file, its name being the default source (tesla.md E3)."""
        form_of(path)
        return cls(path, path.name, type_name)

    def read(self, intake: Intake) -> Iterator[Chunk]:
        """The events, in the order of the file."""
        form, _ = form_of(self.path)
        with opened(self.path) as stream:
            yield from _module(form).read(stream, self._place, intake, self.type_name)

    def scan(self, intake: Intake) -> Iterator[Glance]:
        """The times; ``intake`` learns the schemas of the types that it does not know."""
        form, _ = form_of(self.path)
        with opened(self.path) as stream:
            yield from _module(form).scan(stream, self._place, intake, self.type_name)

    @property
    def _place(self) -> Place:
        return Place(str(self.path), self.source)


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
        text = json_lines(batches, order, full_cause=self._full_cause, seconds=self._seconds)
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
    form, _ = form_of(path)
    with ExitStack() as stack:
        output: EventOutput
        if form == ".jsonl":
            sink = stack.enter_context(_created(path))
            output = LinesOutput(sink, full_cause=full_cause, seconds=seconds)
        else:
            output = TablesOutput(
                {
                    event_type.name: _module(form).Writer(
                        stack.enter_context(_created(path_of_type(path, event_type, types))),
                        event_type,
                        composite=composite,
                        full_cause=full_cause,
                    )
                    for event_type in types
                }
            )
        yield output
        output.close()


def path_of_type(path: Path, event_type: EventType, types: Sequence[EventType]) -> Path:
    """``path`` itself for a type that is alone, else ``out.Fire.parquet`` for ``out.parquet``."""
    if len(types) == 1:
        return path
    _, compression = form_of(path)
    ending = "".join(path.suffixes[-2 if compression else -1 :])
    return path.with_name(f"{path.name.removesuffix(ending)}.{event_type.name}{ending}")


def _module(form: str) -> Any:
    return importlib.import_module(FORMS[form])


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file's bytes, unpacked; what Arrow finds wrong with them becomes an EventError."""
    import pyarrow as pa

    form, compression = form_of(path)
    with ExitStack() as stack:
        stream: Any = stack.enter_context(path.open("rb"))
        try:
            if compression:
                stream = stack.enter_context(pa.CompressedInputStream(stream, compression))
            if compression and form == ".parquet":
                packed, stream = stream, stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(packed, stream)
                stream.seek(0)
            yield stream
        except pa.ArrowException as error:
            raise EventError(f"{path}: not {form[1:]} as expected: {error}") from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise EventError(f"{path}: not {form[1:]} as expected: {error}") from None


def _created(path: Path) -> AbstractContextManager[BinaryIO]:
    _, compression = form_of(path)
    if compression is None:
        return path.open("wb")
    import pyarrow as pa

    packed: AbstractContextManager[BinaryIO] = pa.CompressedOutputStream(str(path), compression)
    return packed
