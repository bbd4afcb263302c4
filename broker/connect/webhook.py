"""Webhooks: events posted to an address over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote

from msgspec import Meta

from broker.connect.access import Access, check_url
from broker.connect.systems import (
    PAUSE_MAX_S,
    PAUSE_MIN_S,
    Outgoing,
    Pending,
    Singly,
    SystemLost,
    quoted_headers,
)
from broker.documents import content_of
from broker.log import log
from matcher.errors import BadEvent

_LATER = (408, 429)
LATER_MAX_S = 3_600.0
"""A receiver that asks for a longer pause gets this one."""


class Settings(Access, frozen=True, kw_only=True):
    """The table ``webhook`` of a sink. A password without a user is a token."""

    NEEDS_USER = False
    url: str
    secret_file: str = ""
    content_type: str = ""
    origin: str = ""
    timeout_s: Annotated[float, Meta(gt=0)] = 10.0
    tries: Annotated[int, Meta(ge=1)] = 8

    def __post_init__(self) -> None:
        check_url(self.url, "http", "https")


class _Answer(NamedTuple):
    """An answer: its status (0: none came), the reason in words, and its headers,
    whose names are in small letters.
    """

    status: int
    reason: str
    headers: Mapping[str, str] = {}

    @property
    def is_well(self) -> bool:
        """Whether it is a status of 2xx."""
        return 200 <= self.status < 300

    @property
    def later_s(self) -> float:
        """For how long the receiver asks to wait (``Retry-After``); 0 if it does not."""
        text = self.headers.get("retry-after", "").strip()
        if text.isdecimal():
            return min(LATER_MAX_S, float(text))
        try:
            pause = parsedate_to_datetime(text) - datetime.now(UTC)
        except (ValueError, TypeError):
            return 0.0
        return min(LATER_MAX_S, max(0.0, pause.total_seconds()))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: a body that is signed for one address goes to no other."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


class Sink:
    """Posts messages to ``url`` and their topic behind it.

    An event is confirmed by a status of 2xx. What the receiver will never take (4xx) is refused at
    once. What it fails at (5xx) is tried ``tries`` times, and what it does not hear, or asks for
    later (408, 429), until it does; in both cases after pauses that double, or as long as it asks
    for.
    """

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._settings = settings
        file = settings.secret_file
        self._secret = content_of(folder / file, "secret_file").strip() if file else b""
        context = settings.tls(folder) if settings.url.startswith("https:") else None
        own = urllib.request.HTTPSHandler(context=context)
        self._opener = urllib.request.build_opener(_NoRedirects, own)
        said = settings.authorization(folder)
        self._headers = {"Authorization": said} if said else {}
        self._singly = Singly(self._send)
        self._pace_s = 0.0
        """Seconds between two posts at least, as the receiver has asked."""
        self._next_at = 0.0

    async def open(self) -> None:
        """Ask the receiver whether it wants messages of ``origin``, and how many (the validation of
        CloudEvents' specification of webhooks); without an ``origin`` nobody is asked. Raises
        SystemLost unless it does.
        """
        settings = self._settings
        if not settings.origin:
            return
        headers = {**self._headers, "WebHook-Request-Origin": settings.origin}
        request = urllib.request.Request(settings.url, None, headers, method="OPTIONS")
        answer = await asyncio.to_thread(self._answer, request)
        allowed = answer.headers.get("webhook-allowed-origin", "")
        if not answer.is_well or allowed not in ("*", settings.origin):
            reason = answer.reason or f"WebHook-Allowed-Origin is {allowed!r}"
            raise SystemLost(f"{settings.url}: does not allow {settings.origin!r}: {reason}")
        rate = answer.headers.get("webhook-allowed-rate", "*")
        self._pace_s = 60 / int(rate) if rate.isdecimal() and int(rate) else 0.0

    async def close(self) -> None:
        """Give up what is not confirmed."""
        self._singly.close()

    async def send(self, lot: Sequence[Pending]) -> None:
        """Post messages, each until it is confirmed."""
        self._singly.add(lot)

    async def _send(self, message: Outgoing) -> None:
        """Post a message until it is confirmed. Raises BadEvent for one that is refused."""
        request, pause_s, failures = self._request(message), PAUSE_MIN_S, 0
        while True:
            await self._await_turn()
            answer = await asyncio.to_thread(self._answer, request)
            status, reason = answer.status, answer.reason
            if answer.is_well:
                return
            failures += status >= 500
            if failures >= self._settings.tries or (300 <= status < 500 and status not in _LATER):
                raise BadEvent(f"{request.full_url}: {reason}")
            wait_s = max(pause_s, answer.later_s)
            fields = {"url": request.full_url, "reason": reason, "again_in_s": wait_s}
            log("warning", "webhook not confirmed", fields, "connect")
            await asyncio.sleep(wait_s)
            pause_s = min(PAUSE_MAX_S, 2 * pause_s)

    async def _await_turn(self) -> None:
        """Post no faster than the receiver has asked."""
        if self._pace_s:
            now = asyncio.get_running_loop().time()
            at = max(now, self._next_at)
            self._next_at = at + self._pace_s
            await asyncio.sleep(at - now)

    def _request(self, message: Outgoing) -> urllib.request.Request:
        url = f"{self._settings.url.rstrip('/')}/{quote(message.topic)}".rstrip("/")
        own_id = quote(message.id, safe="/#:")
        headers = {**quoted_headers(message), **self._headers}
        headers["Content-Type"] = self._settings.content_type or message.content_type
        headers["Webhook-Id"] = own_id
        if self._secret:
            digest = hmac.new(self._secret, message.body, hashlib.sha256).hexdigest()
            headers["Webhook-Signature"] = f"sha256={digest}"
        return urllib.request.Request(url, message.body, headers, method="POST")

    def _answer(self, request: urllib.request.Request) -> _Answer:
        try:
            with self._opener.open(request, timeout=self._settings.timeout_s) as answer:
                return _Answer(answer.status, "", _lower(answer.headers))
        except urllib.error.HTTPError as error:
            error.close()
            return _Answer(error.code, f"{error.code} {error.reason}", _lower(error.headers))
        except (OSError, http.client.HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            shown = cause if isinstance(cause, BaseException) else error
            return _Answer(0, self._settings.reason(shown))


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
