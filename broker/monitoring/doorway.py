"""Doorway of a broker's pages: what every request passes before anything looks at it.

Law 1: an address is that of the connection. ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are
believed of configured proxies alone; a request that comes by one without the latter has come over
TLS, which is what the proxy is for.

Law 2: the page is asked for by its own name: a number, ``localhost``, the machine's name, or one
that is configured. Any other is one that somebody else's DNS gives for this machine, by which
another site's scripts could read the page.

Law 3: requests under way are shared out by address (``Shares``). Health has a reserve of its own:
it is answered whatever others ask for.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from broker.monitoring import deadlines
from broker.monitoring.shares import NoShare, Shares

REQUESTS_MAX, HEALTH_MAX = 100, 32
"""Requests under way, and those for health beside them."""
HEALTH = ("/healthz", "/readyz")
FORBIDDEN, BUSY = 403, 503


class Doorway:
    """The way to ``app``. ``names``: what the page is asked for by, beside its own names.
    ``proxies``: addresses and networks of proxies that are believed.
    """

    def __init__(
        self, app: ASGIApp, names: Iterable[str] = (), proxies: Iterable[str] = ()
    ) -> None:
        self._app = app
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
        deadlines.hear(scope["peer"])

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
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
        if scope["type"] == "websocket":  # long-lived ones have shares of their own
            await self._app(scope, receive, send)
            return
        shares = self._health if path in HEALTH else self._requests
        try:
            with shares.held(address_of(scope)):
                await self._app(scope, receive, send)
        except NoShare:
            text = "too many requests are under way from this address"
            await _refused(path, BUSY, text)(scope, receive, send)

    def _is_own(self, host: str) -> bool:
        return not host or is_number(host) or name_of(host).lower() in self._names


def address_of(scope: Scope) -> str:
    """The address that a request comes from."""
    return str(scope["client"][0]) if scope["client"] else ""


def name_of(host: str) -> str:
    """A ``Host`` without its port."""
    return host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.split(":")[0]


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
