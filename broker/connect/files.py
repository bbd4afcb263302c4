"""Files and folders that grow, and standard input: a message a line. They need no extra.

Files are looked at again and again, not watched: the kernel tells nothing of those on a network.
"""

from __future__ import annotations

import asyncio
import os
import threading
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from broker.connect.following import LINE_MAX, Following
from broker.connect.systems import HEADING, Message
from broker.connect.templates import Template

LEVEL = "/"
POLL_S = 0.2
"""Pause between two looks at files that have not grown."""
INPUT = "-"
"""The topic that is standard input."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``files`` of a source."""

    positions: str = ""


class Source:
    """Lines of the files of a template of paths, or of standard input. With ``has_heading`` the
    first line of each names the columns of the others.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        folder: Path,
        topic: Template,
        window: int,
        *,
        has_heading: bool = False,
    ) -> None:
        positions = folder / (settings.positions or f"{name}.positions")
        self._window = window
        self._following = Following(folder, topic, positions, has_heading)
        self._input = _Input(has_heading) if topic.text == INPUT else None
        self._turn = threading.Lock()

    async def open(self) -> None:
        """Begin. Raises SystemLost."""
        if self._input is None:
            self._following.begin()

    async def receive(self) -> Sequence[Message]:
        """The next messages; none at the end of standard input."""
        if self._input is not None:
            return await self._input.messages()
        while not (messages := await asyncio.to_thread(self._next)):
            await asyncio.sleep(POLL_S)
        return messages

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Keep how far the files were had."""
        if self._input is None:
            await asyncio.to_thread(self._keep, messages)

    async def close(self) -> None:
        """Close the files."""
        with self._turn:
            self._following.close()

    def _next(self) -> list[Message]:
        with self._turn:
            lines = self._following.lines(self._window)
            return [
                Message(
                    line.file.read.path,
                    _text(line.raw, is_first=line.end == len(line.raw)),
                    line,
                    _headers(line.file.heading),
                    f"{line.file.read.token}/{line.end}-{crc32(line.raw):08x}",
                )
                for line in lines
            ]

    def _keep(self, messages: Sequence[Message]) -> None:
        with self._turn:
            self._following.acknowledge([message.place for message in messages])


class _Input:
    """Standard input, as it comes."""

    def __init__(self, has_heading: bool) -> None:
        self._awaits_heading, self._headers = has_heading, dict[str, str]()
        self._rest = b""
        self._is_first, self._is_over = True, False

    async def messages(self) -> list[Message]:
        """The next lines, one at least; none at the end."""
        messages: list[Message] = []
        while not messages and not self._is_over:
            messages = [
                Message(INPUT, line, None, self._headers)
                for raw in self._lines(await _data())
                if (line := self._line(raw)) and not self._is_heading(line)
            ]
        return messages

    def _lines(self, data: bytes) -> list[bytes]:
        self._is_over = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._is_over or len(self._rest) > LINE_MAX:
            lines, self._rest = [*lines, self._rest], b""
        return lines

    def _line(self, raw: bytes) -> bytes:
        is_first, self._is_first = self._is_first, False
        return _text(raw, is_first=is_first)

    def _is_heading(self, line: bytes) -> bool:
        if is_heading := self._awaits_heading:
            self._awaits_heading, self._headers = False, _headers(line)
        return is_heading


async def _data() -> bytes:
    """Bytes of standard input, once there are some; none at its end."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    try:
        loop.add_reader(0, is_there.set)
    except PermissionError:  # a file, which has nobody wait
        return os.read(0, LINE_MAX)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(0)
    return os.read(0, LINE_MAX)


def _text(raw: bytes, *, is_first: bool) -> bytes:
    """A line without its end, and without the mark before the first one."""
    return (raw.removeprefix(BOM_UTF8) if is_first else raw).rstrip(b"\r\n")


def _headers(heading: bytes) -> dict[str, str]:
    return {HEADING: heading.decode(errors="replace")} if heading else {}
