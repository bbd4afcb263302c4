"""HTTP: messages that others post to the connector (``pip install 'rexmq[http]'``).

A request is answered by 204 once the broker has acknowledged all its messages, dead letters too.
Any other answer says that they may not have been taken: who repeats a message gives it an id. At
most ``window`` messages wait; a request beyond them is answered by 429.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from broker.connect.access import Access
from broker.connect.systems import Inbox, Message, SystemLost
from broker.connect.templates import Template
from broker.keys import ADDRESS
from broker.names import is_open_to_others
from matcher.formats.jsondata import REFUSED

LEVEL = "/"
BODY_MAX = 2**20
"""Bytes of a request's body."""
ANSWER_S = 30.0
"""So long a request waits for the broker."""


class Settings(Access, frozen=True, kw_only=True):
    """The table ``http`` of a source. A password without a user is a token; ``cert_file`` is the
    connector's certificate, and ``ca_file`` says whose certificates clients have to show.
    """

    NEEDS_USER = False
    listen: str = "127.0.0.1:9470"
    items: str = ""


class _Posted:
    """A request that is answered once the broker has its messages: so many are left."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.had = asyncio.Event()


class _Server(uvicorn.Server):
    """A server that leaves signals to the connector."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


class Source:
    """Bodies that are posted to paths as ``topic`` names them; with ``items`` each is an object,
    and the elements of this member are the messages.
    """

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        self._topic, self._items, self._window = topic, settings.items, window
        self._address = _address(settings.listen)
        self._allowed = settings.authorization(folder)
        if not self._allowed and is_open_to_others(f"http://{settings.listen}"):
            raise ValueError("listen: expected a password, since other machines may reach it")
        self._tls: dict[str, Any] = {}
        if settings.cert_file:
            verified = ssl.CERT_REQUIRED if settings.ca_file else ssl.CERT_NONE
            self._tls = {
                **settings.files(folder, "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"),
                "ssl_cert_reqs": verified,
            }
        elif settings.ca_file:
            raise ValueError("ca_file: expected with cert_file")
        self._inbox = Inbox()
        self._waiting = 0
        """Messages that the broker has yet to acknowledge."""
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._address[1]

    async def open(self) -> None:
        """Listen. Raises SystemLost."""
        host, port = self._address
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
            bound.listen()  # or another could have the address, too
        except OSError as error:
            bound.close()
            raise SystemLost(f"http: {host}:{port}: {error.strerror}") from None
        self._address = host, bound.getsockname()[1]
        app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["POST"])])
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,
            timeout_graceful_shutdown=1,
            **self._tls,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[bound]))

    async def receive(self) -> Sequence[Message]:
        """The next messages."""
        return await self._inbox.take()

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Answer the requests whose messages the broker has."""
        self._waiting -= len(messages)
        for message in messages:
            message.place.left -= 1
            if not message.place.left:
                message.place.had.set()

    async def close(self) -> None:
        """Listen no more."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving

    async def _answer(self, request: Request) -> Response:
        said = request.headers.get("authorization", "")
        if self._allowed and not hmac.compare_digest(said.encode(), self._allowed.encode()):
            scheme = self._allowed.partition(" ")[0]
            return _said(401, "expected the user and password", {"WWW-Authenticate": scheme})
        if "origin" in request.headers:  # as any page could have a browser do
            return _said(403, "expected a program, not the script or form of a page")
        path = request.path_params["path"]
        if self._topic.found(path) is None:
            return _said(404, f"expected {self._topic.text}, found {path}")
        if self._waiting >= self._window:
            return _LATER
        body = bytearray()
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > BODY_MAX:
                    return _said(413, f"expected a body of at most {BODY_MAX} bytes")
        except ClientDisconnect:
            return _said(400, "hung up")
        try:
            bodies = self._bodies(bytes(body))
        except REFUSED as error:
            return _said(400, f"expected an object of JSON with a list {self._items}: {error}")
        if len(bodies) > self._window:
            return _said(413, f"expected at most {self._window} messages")
        if self._waiting + len(bodies) > self._window:
            return _LATER
        return await self._had(path, _headers(request.headers), bodies)

    def _bodies(self, body: bytes) -> Sequence[bytes]:
        if not self._items:
            return [body]
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        items = members.get(self._items, msgspec.Raw(b"null"))
        return [bytes(item) for item in msgspec.json.decode(items, type=list[msgspec.Raw])]

    async def _had(
        self, path: str, headers: Mapping[str, str], bodies: Sequence[bytes]
    ) -> Response:
        """The answer once the broker has the messages."""
        posted = _Posted(len(bodies))
        self._waiting += len(bodies)
        for body in bodies:
            own_id = headers.get("idempotency-key") if len(bodies) == 1 else None
            self._inbox.put_now(Message(path, body, posted, headers, own_id))
        try:
            if bodies:
                await asyncio.wait_for(posted.had.wait(), ANSWER_S)
        except TimeoutError:
            return _said(
                503, f"the broker has not answered in {ANSWER_S:g} s", {"Retry-After": "5"}
            )
        return Response(status_code=204)


def _address(text: str) -> tuple[str, int]:
    try:
        host, port = ADDRESS.parse(text)
        return str(ipaddress.ip_address(host)), port
    except (ValueError, TypeError):  # no address, or none of a number
        raise ValueError(
            f"listen: expected an address such as 127.0.0.1:9470, found {text!r}"
        ) from None


def _headers(said: Mapping[str, str]) -> dict[str, str]:
    """Headers that say something of a message: those of a CloudEvent, and what its body is."""
    known = "content-type", "idempotency-key"
    return {name: text for name, text in said.items() if name.startswith("ce-") or name in known}


def _said(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, dict(headers or {}))


_LATER = _said(429, "too many messages wait for the broker", {"Retry-After": "1"})
