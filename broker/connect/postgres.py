"""PostgreSQL, by psycopg 3 (``pip install 'rexmq[postgres]'``): notifications, and outbox tables.

A row of a ``table`` is deleted behind the broker's acknowledgement; what is left after a kill
is read again. Notifications without a table are lost while nobody listens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import psycopg
from psycopg import sql

from broker.connect.access import Access, check_url
from broker.connect.systems import CONNECT_S, Message, SystemLost
from broker.connect.templates import Template

LEVEL = "."
WAIT_S = 5.0
"""A table is looked at so often, if no notification comes."""
_ERRORS = (psycopg.Error, OSError)


class Settings(Access, frozen=True, kw_only=True):
    """The table ``postgres`` of a source."""

    url: str = "postgresql://127.0.0.1:5432"
    table: str = ""

    def __post_init__(self) -> None:
        check_url(self.url, "postgresql", "postgres")


class Source:
    """Notifications of a channel, as ``topic`` names it; or, if these tell of new rows, the rows of
    a table, of which ``id`` is their order, ``body`` the body, and all else headers.
    """

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        if topic.names:
            raise ValueError(f"topic: expected the name of one channel, found {topic.text!r}")
        self._channel, self._settings, self._window = topic.filled({}), settings, window
        self._table = sql.Identifier(*settings.table.split("."))
        self._options: dict[str, Any] = {
            "application_name": name,
            "user": settings.username or None,
            "password": settings.password(folder),
            "connect_timeout": int(CONNECT_S),
        }
        files = settings.files(folder, "sslrootcert", "sslcert", "sslkey")
        if any(files.values()):
            self._options |= files | {"sslmode": "verify-full" if settings.ca_file else "require"}
        self._listening: psycopg.AsyncConnection[Any] | None = None
        self._working: psycopg.AsyncConnection[Any] | None = None
        """The connection of queries: one that listens keeps them waiting."""
        self._unacknowledged: set[Any] = set()

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        try:
            await self._connect()
            if self._settings.table:
                await self._rows(0)
        except _ERRORS as error:
            raise self._lost(error) from None

    async def receive(self) -> Sequence[Message]:
        """The next messages."""
        try:
            while True:
                connection = await self._connect()
                if self._settings.table and (messages := await self._rows(self._window)):
                    return messages
                told = [
                    Message(self._channel, one.payload.encode())
                    async for one in connection.notifies(timeout=WAIT_S, stop_after=1)
                ]
                if told and not self._settings.table:
                    return told
        except _ERRORS as error:
            await self.close()
            raise self._lost(error) from None

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Delete rows."""
        places = [message.place for message in messages if message.place is not None]
        if not places:
            return
        delete = sql.SQL("DELETE FROM {} WHERE id = ANY(%s)").format(self._table)
        try:
            await self._connect()
            assert self._working is not None, "it was connected"
            await self._working.execute(delete, [places])
        except _ERRORS as error:
            raise self._lost(error) from None
        self._unacknowledged.difference_update(places)

    async def close(self) -> None:
        """Hang up."""
        for connection in (self._listening, self._working):
            if connection is not None:
                await connection.close()

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        """The connection that listens; both are made again if they were lost."""
        for name in ("_working", "_listening"):
            connection = getattr(self, name)
            if connection is None or connection.closed:
                connection = await psycopg.AsyncConnection.connect(
                    self._settings.url, autocommit=True, **self._options
                )
                setattr(self, name, connection)
                if name == "_listening":
                    listen = sql.SQL("LISTEN {}").format(sql.Identifier(self._channel))
                    await connection.execute(listen)
        assert self._listening is not None, "it was connected"
        return self._listening

    async def _rows(self, most: int) -> list[Message]:
        """The next rows that were not read, so many at most: one with a lower id may come later."""
        assert self._working is not None, "it was connected"
        select = sql.SQL(
            "SELECT id, coalesce(body::text, ''), to_jsonb(own)::text,"
            " (SELECT json_object_agg(key, value) FROM jsonb_each_text(to_jsonb(own)))::text"
            " FROM {} own WHERE id <> ALL(%s) ORDER BY id LIMIT %s"
        ).format(self._table)
        cursor = await self._working.execute(select, [[*self._unacknowledged], most])
        rows = await cursor.fetchall()
        self._unacknowledged.update(own_id for own_id, *_ in rows)
        return [
            Message(
                self._channel,
                text.encode(),
                own_id,
                _headers(columns),
                f"{self._settings.table}/{own_id}-{crc32(row.encode()):08x}",
            )
            for own_id, text, row, columns in rows
        ]

    def _lost(self, error: Exception) -> SystemLost:
        reason = self._settings.reason(error).strip().replace("\n", " ")
        if "certificate verify failed" in reason:
            reason = f"{self._settings.verifier}: {reason}"
        return SystemLost(f"{self._settings.url}: {reason}")


def _headers(columns: str) -> dict[str, str]:
    """The columns that have a value, as texts. The server has written these: JSON of any depth."""
    texts = msgspec.json.decode(columns, type=dict[str, str | None])
    return {name: text for name, text in texts.items() if text is not None and name not in _OWN}


_OWN = ("id", "body")
"""The columns that are no headers."""
