"""Doorway of a broker's pages: what every request passes before anything looks at it."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from broker.monitoring import deadlines
from broker.monitoring.entry import OPERATOR, Entry
from broker.monitoring.origins import origin_of
from broker.monitoring.shares import NoShare, Shares

REQUESTS_MAX, HEALTH_MAX = 100, 32
"""Requests under way, and those for health beside them."""
HEALTH = ("/healthz", "/readyz")
FORBIDDEN, BUSY = 403, 503
PORT_MAX = 2**16 - 1
_HOST = re.compile(
    r"(?:\[(?P<number>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?"
)


class Doorway:
    """The way to ``app``. ``entry`` knows who asks. ``names``: what the page is asked for by,
    beside its own names. ``proxies``: addresses and networks of proxies that are believed.

    An address is that of the connection: ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed
    of configured proxies alone, and a request that comes by one without the latter has come over
    TLS. The page is asked for by its own name: a number, ``localhost``, the machine's name, or one
    that is configured. Any other is one that somebody else's DNS gives for this machine, by which
    another site's scripts could read the page.
    """

    def __init__(
        self,
        app: ASGIApp,
        entry: Entry,
        names: Iterable[str] = (),
        proxies: Iterable[str] = (),
    ) -> None:
        self._app, self._entry = app, entry
        self._names = {"localhost", socket.gethostname().lower(), *map(str.lower, names)}
        self._requests, self._health = Shares(REQUESTS_MAX), Shares(HEALTH_MAX)
        believed = list(proxies)
        self._told: ASGIApp = self._pass
        if believed:
            self._told = ProxyHeadersMiddleware(self._pass, believed)  # type: ignore[assignment,arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. ``scope["peer"]``: the connection that it has come by."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope["peer"] = scope["client"]

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                deadlines.allow(scope["peer"])
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        try:
            await self._told(scope, receive, send_once)
        finally:
            if scope["type"] == "websocket":  # nobody else sees its connection end
                deadlines.end(scope["peer"])

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if scope["client"] != scope["peer"] and b"x-forwarded-proto" not in headers:
            scope["scheme"] = "https" if scope["type"] == "http" else "wss"
        host, path = headers.get(b"host", ""), scope["path"]
        if not self._is_own(host):
            text = f"no page of this name: ask by number or as localhost, or configure {host!r}"
            await _refused(path, FORBIDDEN, f"{text} (http_names)")(scope, receive, send)
            return
        holder = self._holder(scope)
        if holder is None:
            deadlines.place(scope["peer"], address_of(scope))
        else:
            deadlines.hear(scope["peer"])
        if holder is None or scope["type"] == "websocket":  # long-lived ones have their own shares
            await self._app(scope, receive, send)
            return
        shares = self._health if path in HEALTH else self._requests
        try:
            with shares.held(holder):
                await self._app(scope, receive, send)
        except NoShare:
            text = "too many requests of yours are under way"
            await _refused(path, BUSY, text)(scope, receive, send)

    def _holder(self, scope: Scope) -> str | None:
        """The holder of a request; None for a stranger. Health is told to strangers, too. Who is
        known, by a session or by a token that nobody can guess, has a share of the requests under
        way (``Shares``), by user. Strangers take none of them, and are bounded by ``deadlines``.
        Health has a reserve of its own.
        """
        if scope["path"] in HEALTH:
            return address_of(scope)
        request = HTTPConnection(scope)
        user = self._entry.known(request.headers, request.cookies.get(cookie(request)))
        return address_of(scope) if user == OPERATOR else user

    def _is_own(self, host: str) -> bool:
        return not host or is_number(host) or name_of(host).lower() in self._names


def address_of(scope: Scope) -> str:
    """The address that a request comes from, as far as it tells one from others (``origin_of``)."""
    return origin_of(str(scope["client"][0])) if scope["client"] else ""


def cookie(request: HTTPConnection) -> str:
    """The name of the cookie: ports of one machine share their cookies."""
    return f"rexmq_{request.url.port or 80}"


def name_of(host: str) -> str:
    """A ``Host`` without its port; "" for what is none."""
    parts = _HOST.fullmatch(host)
    if parts is None or int(parts["port"] or 0) > PORT_MAX:
        return ""
    return parts["number"] or parts["name"]


def is_number(host: str) -> bool:
    """Whether a ``Host`` is an address in numbers, with a port or without."""
    try:
        ipaddress.ip_address(name_of(host))
    except ValueError:
        return False
    return True


def _refused(path: str, status: int, reason: str) -> Response:
    if path.startswith("/api/") or path in ("/events", "/ws"):
        return Response(msgspec.json.encode({"error": reason}), status, {}, "application/json")
    return PlainTextResponse(f"{reason}\n", status)
