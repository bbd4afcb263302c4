"""The pages of a broker, as an ASGI application: plain GETs, each answered by one look.

A look that fails is 503, and says why: ``no broker answers at tcp://127.0.0.1:7461 within 3 s``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from broker.errors import BrokerUnreachable
from broker.monitoring.health import reasons_unready
from broker.monitoring.looks import Looks
from broker.monitoring.metrics import registry_of

UNAVAILABLE = 503

Page: TypeAlias = Callable[[Request, Mapping[str, Any]], Response]


def pages(looks: Looks, pid: int) -> Starlette:
    """The application that shows the broker of these looks, which is the process ``pid``."""

    def metrics(request: Request, status: Mapping[str, Any]) -> Response:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry_of(status, pid)), media_type=kind)

    shown: dict[str, Page] = {
        "/metrics": metrics,
        "/healthz": _health,
        "/readyz": _readiness,
        "/status.json": _status,
    }
    return Starlette(routes=[Route(path, _answer(looks, page)) for path, page in shown.items()])


def _answer(looks: Looks, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            status = await looks.status()
        except BrokerUnreachable as error:
            return PlainTextResponse(f"{error}\n", UNAVAILABLE)
        return page(request, status)

    return answer


def _health(request: Request, status: Mapping[str, Any]) -> Response:
    return PlainTextResponse("ok\n")


def _readiness(request: Request, status: Mapping[str, Any]) -> Response:
    reasons = reasons_unready(status)
    return PlainTextResponse("\n".join([*(reasons or ["ok"]), ""]), UNAVAILABLE if reasons else 200)


def _status(request: Request, status: Mapping[str, Any]) -> Response:
    return JSONResponse(status)
