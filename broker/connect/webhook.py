"""Webhooks: events posted to an address over HTTP.

Law: an event is confirmed by a status of 2xx. What the receiver will never take (4xx) is refused at
once. What it fails at (5xx) is tried ``tries`` times, and what it does not hear, or asks for later
(408, 429), until it does; in both cases after pauses that double.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec
from msgspec import Meta

from broker.connect.systems import (
    PAUSE_MAX_S,
    PAUSE_MIN_S,
    Outgoing,
    Pending,
    Singly,
    check_url,
    quoted_headers,
)
from broker.documents import content_of
from broker.log import log
from matcher.errors import BadEvent

_LATER = (408, 429)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``webhook`` of a sink."""

    url: str
    secret_file: str = ""
    content_type: str = ""
    timeout_s: Annotated[float, Meta(gt=0)] = 10.0
    tries: Annotated[int, Meta(ge=1)] = 8

    def __post_init__(self) -> None:
        check_url(self.url, "http", "https")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: a body that is signed for one address goes to no other."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


class Sink:
    """Posts messages to ``url`` and their topic behind it."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._settings = settings
        file = settings.secret_file
        self._secret = content_of(folder / file, "secret_file").strip() if file else b""
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._singly = Singly(self._send)

    async def open(self) -> None:
        """Nothing to connect to."""

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
            status, reason = await asyncio.to_thread(self._post, request)
            if 200 <= status < 300:
                return
            failures += status >= 500
            if failures >= self._settings.tries or (300 <= status < 500 and status not in _LATER):
                raise BadEvent(f"{request.full_url}: {reason}")
            fields = {"url": request.full_url, "reason": reason, "again_in_s": pause_s}
            log("warning", "webhook not confirmed", fields, "connect")
            await asyncio.sleep(pause_s)
            pause_s = min(PAUSE_MAX_S, 2 * pause_s)

    def _request(self, message: Outgoing) -> urllib.request.Request:
        url = f"{self._settings.url.rstrip('/')}/{quote(message.topic)}".rstrip("/")
        own_id = quote(message.id, safe="/#:")
        headers = quoted_headers(message)
        headers["Content-Type"] = self._settings.content_type or message.content_type
        headers["Webhook-Id"] = own_id
        if self._secret:
            digest = hmac.new(self._secret, message.body, hashlib.sha256).hexdigest()
            headers["Webhook-Signature"] = f"sha256={digest}"
        return urllib.request.Request(url, message.body, headers, method="POST")

    def _post(self, request: urllib.request.Request) -> tuple[int, str]:
        """The status that a post is answered, and the reason in words; 0: no answer."""
        try:
            with self._opener.open(request, timeout=self._settings.timeout_s) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, f"{error.code} {error.reason}"
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
