"""Files that are followed while they grow: their whole lines, and how far they have been had.

A file is known by its device and inode, and by the bytes before the place that was reached
(``Place.is_in``). So one that was renamed is read to its end under its old name; one that was cut
is read from its beginning, and a copy of what was cut from that place on. That holds after a
restart, too.

The token of a file, by which its lines have ids, is on the disk before a line of it leaves; its
place is when its lines were acknowledged. So what comes again has the id that it had.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from glob import escape, glob
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from broker.connect.systems import SystemLost
from broker.connect.templates import Template
from broker.log import log

LINE_MAX = 2**20
"""A line with more bytes comes in pieces of so many."""
MARK_BYTES = 256
"""So many bytes before a place, at most, tell whether a file is the one that was read."""
OPEN_MAX = 128
"""Files that are open at a time."""
LOOK_S = 0.2
"""New files are looked for so often."""
SETTLE_S = 60.0
"""A file that was renamed or removed is followed until it has not grown for so long."""
TICK_NS = 100_000_000
"""Two changes of a file have different times if so much is between them."""
Identity: TypeAlias = tuple[int, int]
"""Device and inode."""


class Place(msgspec.Struct, frozen=True):
    """A file, and how far it was reached: to ``offset``, behind ``size`` bytes with a digest."""

    path: str
    token: str
    device: int
    inode: int
    offset: int = 0
    size: int = 0
    mark: str = ""

    @property
    def identity(self) -> Identity:
        """Device and inode of the file."""
        return self.device, self.inode

    def behind(self, raw: bytes, offset: int) -> Place:
        """The place behind these bytes, which end at an offset."""
        tail = raw[-MARK_BYTES:]
        return replace(self, offset=offset, size=len(tail), mark=_digest(tail))

    def is_in(self, handle: int) -> bool:
        """Whether an open file has before this place what was read there."""
        tail = os.pread(handle, self.size, self.offset - self.size)
        return len(tail) == self.size and (not tail or _digest(tail) == self.mark)


class Line(NamedTuple):
    """A line of a file, with its end, and the offset behind it."""

    file: Followed
    raw: bytes
    end: int


class Followed:
    """A file that is read (``read``), and acknowledged (``had``), to some place."""

    def __init__(self, place: Place) -> None:
        self.read = self.had = place
        self.handle: int | None = None
        self.heading = b""
        """The first line, if it names columns."""
        self.last_end = place.offset
        """The end of the last line that was given; all is acknowledged if ``had`` is there."""
        self.seen: tuple[int, int] | None = None
        """Size and time of change when all was read; None if it may change without a new time."""
        self.is_read = False
        """Whether there was nothing more to read."""
        self.moved_at = time.monotonic()
        """When it has grown, or was renamed or removed (``is_gone``)."""
        self.is_gone = self.is_missing = self.is_over = False

    def close(self) -> None:
        """Close the file, which is opened again when it has grown."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


class Following:
    """The files of a template of paths below a folder, as they grow; what was had of them is kept
    in the file ``positions``.
    """

    def __init__(self, folder: Path, topic: Template, positions: Path, has_heading: bool) -> None:
        self._folder, self._topic, self._positions = folder, topic, positions
        self._has_heading = has_heading
        pattern = Template(escape(topic.text))
        self._pattern = pattern.filled(dict.fromkeys(pattern.names, "*"))
        self._files: list[Followed] = []
        self._look_at = 0.0
        self._passed_over: set[str] = set()
        """Paths that are no UTF-8, which neither positions nor events can name."""

    def begin(self) -> None:
        """Go on where the file of positions says. Raises SystemLost if it is none, or cannot be
        written.
        """
        places: list[Place] = []
        try:
            with suppress(FileNotFoundError):
                places = msgspec.json.decode(self._positions.read_bytes(), type=list[Place])
        except (OSError, msgspec.MsgspecError) as error:
            raise self._lost(error) from None
        self._files = [Followed(one) for one in places if self._topic.found(one.path) is not None]
        self._store()

    def lines(self, most: int) -> Sequence[Line]:
        """The next lines of one file, so many at most; none if none has grown. Raises SystemLost if
        ``positions`` cannot be written.
        """
        if time.monotonic() >= self._look_at:
            self._look()
            self._look_at = time.monotonic() + LOOK_S
        for file in [*self._files]:
            if lines := [*self._lines_of(file, most)]:
                self._files.remove(file)
                self._files.append(file)  # the others come first next time
                return lines
        return ()

    def acknowledge(self, lines: Sequence[Line]) -> None:
        """Keep the places behind lines. Raises SystemLost if ``positions`` cannot be written."""
        last = {id(line.file): line for line in lines}
        for file, raw, end in last.values():
            file.had = file.read.behind(raw, end)
        self._store()

    def close(self) -> None:
        """Close all files."""
        for file in self._files:
            file.close()

    # --- one file ---

    def _lines_of(self, file: Followed, most: int) -> Iterator[Line]:
        handle = self._opened(file)
        if handle is None:
            return
        status = os.fstat(handle)
        seen = status.st_size, status.st_mtime_ns
        is_whole = self._is_settled(file)
        if seen == file.seen and not is_whole:
            return
        if not file.read.is_in(handle):
            self._cut(file)
            return
        offset = file.read.offset
        chunk = os.pread(handle, LINE_MAX, offset)
        *whole, rest = chunk.split(b"\n", most)
        raws = [line + b"\n" for line in whole]
        if rest and not raws and (is_whole or len(chunk) == LINE_MAX):
            raws = [rest]
        if not raws:
            file.is_read, file.is_over = True, is_whole
            file.seen = seen if time.time_ns() - status.st_mtime_ns > TICK_NS else None
            return
        file.is_read, file.moved_at = False, time.monotonic()
        for raw in raws:
            offset += len(raw)
            if self._has_heading and offset == len(raw):
                file.heading = raw
            elif raw.strip():
                file.last_end = offset
                yield Line(file, raw, offset)
        file.read = file.read.behind(raws[-1], offset)

    def _opened(self, file: Followed) -> int | None:
        """The open file; None if it cannot be read, or was not changed since it was closed."""
        if file.handle is not None:
            return file.handle
        path, is_there = self._folder / file.read.path, False
        with suppress(OSError):
            status = path.stat()
            is_there = _identity(status) == file.read.identity
            if is_there and (status.st_size, status.st_mtime_ns) == file.seen:
                return None
        self._make_room()
        file.handle = _open(path) if is_there else self._found(file)
        if file.handle is None:
            if not file.is_missing:
                fields = {"path": file.read.path, "read_to": file.read.offset}
                log("warning", "file cannot be read, or is gone", fields, "connect")
        elif self._has_heading:
            file.heading = os.pread(file.handle, LINE_MAX, 0).partition(b"\n")[0]
        file.is_missing = file.handle is None
        return file.handle

    def _found(self, file: Followed) -> int | None:
        """The file, opened, that was renamed within its folder; else a copy of it there."""
        place = file.read
        path = self._folder / place.path
        others = {one.read.identity for one in self._files if one is not file}
        found: list[tuple[bool, Path, os.stat_result]] = []
        with suppress(OSError), os.scandir(path.parent) as entries:
            for entry in entries:
                status = entry.stat()
                is_same = _identity(status) == place.identity
                if stat.S_ISREG(status.st_mode) and _identity(status) not in others:
                    found.append((not is_same, Path(entry.path), status))
        for is_copy, other, status in sorted(found, key=lambda one: one[0]):
            if is_copy and not place.offset:
                continue
            handle = _open(other)
            if handle is not None and place.is_in(handle):
                device, inode = _identity(status)
                file.read = replace(file.read, device=device, inode=inode)
                file.had = replace(file.had, device=device, inode=inode)
                return handle
            if handle is not None:
                os.close(handle)
        return None

    def _cut(self, file: Followed) -> None:
        """A file was cut, or written anew: it is another one, from its beginning on. What was not
        read of it is in a copy, or lost.
        """
        fields = {"path": file.read.path, "read_to": file.read.offset}
        log("info", "file was cut", fields, "connect")
        device, inode = file.read.identity
        file.close()
        new = Followed(Place(file.read.path, _token(), device, inode))
        self._files.append(new)
        copy = self._found(file) if file.read.offset else None
        if copy is None:
            self._files.remove(file)
        else:
            file.handle, file.seen, file.is_read = copy, None, False
        self._store()

    # --- all files ---

    def _look(self) -> None:
        """Follow files that are new; leave those that are gone and had."""
        current = {}
        for path in glob(self._pattern, root_dir=self._folder):
            if not self._is_text(path):
                continue
            with suppress(OSError):
                status = (self._folder / path).stat()
                if stat.S_ISREG(status.st_mode):
                    current[_identity(status)] = path
        for file in self._files:
            is_gone = file.read.identity not in current
            if is_gone and not file.is_gone:
                file.moved_at = time.monotonic()
            file.is_gone = is_gone
        known = {file.read.identity for file in self._files}
        unread = {file.read.path for file in self._files if not file.is_read}
        new = [
            Followed(Place(path, _token(), *identity))
            for identity, path in sorted(current.items(), key=lambda item: item[1])
            if identity not in known and path not in unread
        ]
        left = [
            file
            for file in self._files
            if file.is_over or (file.is_missing and self._is_settled(file))
        ]
        for file in left:
            file.close()
            self._files.remove(file)
        if new or left:
            self._files += new
            self._store()

    def _is_text(self, path: str) -> bool:
        """Whether a path is text; one that is not is told of once."""
        try:
            path.encode()
        except UnicodeEncodeError:
            if path not in self._passed_over:
                self._passed_over.add(path)
                fields = {"path": os.fsencode(path).decode(errors="backslashreplace")}
                log("warning", "file passed over: its name is no UTF-8", fields, "connect")
            return False
        return True

    def _is_settled(self, file: Followed) -> bool:
        """Whether nobody writes to a file any more, and all lines of it are acknowledged."""
        is_quiet = file.is_gone and time.monotonic() - file.moved_at > SETTLE_S
        return is_quiet and file.had.offset >= file.last_end

    def _make_room(self) -> None:
        opened = [file for file in self._files if file.handle is not None]
        if len(opened) >= OPEN_MAX:
            min(opened, key=lambda file: file.moved_at).close()

    def _store(self) -> None:
        part = self._positions.with_name(f"{self._positions.name}.part")
        try:
            with part.open("wb") as opened:
                opened.write(msgspec.json.encode([file.had for file in self._files]))
                opened.flush()
                os.fsync(opened.fileno())
            part.replace(self._positions)
        except OSError as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> SystemLost:
        return SystemLost(f"positions: {self._positions}: {error}")


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None


def _token() -> str:
    return f"{time.time_ns():x}"


def _digest(tail: bytes) -> str:
    return hashlib.blake2b(tail, digest_size=16).hexdigest()
