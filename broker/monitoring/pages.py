"""The pages of a broker, as an ASGI application: for programs, and the page for people.

Those for programs are plain GETs, each answered by one look. A look that fails is 503, and says
why: ``no broker answers at tcp://127.0.0.1:7461 within 3 s``; one that is not allowed is 403.
Health is told to everybody, all else to those who are let in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from broker.errors import BrokerUnreachable, RefusedError
from broker.monitoring.api import BAD, Api
from broker.monitoring.assets import asset_routes
from broker.monitoring.entry import FORBIDDEN, NoEntry
from broker.monitoring.health import reasons_unready
from broker.monitoring.looks import Looks
from broker.monitoring.metrics import registry_of

UNAVAILABLE = 503

Page: TypeAlias = Callable[[Request, Mapping[str, Any]], Response]


def pages(looks: Looks, pid: int, api: Api) -> Starlette:
    """The application that shows the broker of these looks, which is the process ``pid``; ``api``
    answers what the page asks.
    """

    def metrics(request: Request, status: Mapping[str, Any]) -> Response:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry_of(status, pid)), media_type=kind)

    shown = {"/healthz": _health, "/readyz": _readiness}
    guarded = {"/metrics": metrics, "/status.json": _status}
    routes: list[BaseRoute] = [Route(path, _answer(looks, page)) for path, page in shown.items()]
    routes += [Route(path, _answer(looks, page, api)) for path, page in guarded.items()]
    routes += [*api.routes, *asset_routes()]
    return Starlette(routes=routes, exception_handlers={ClientDisconnect: _gone})


async def _gone(request: Request, error: Exception) -> Response:
    """A client has left in the midst of what it said: nobody hears the answer."""
    return Response(status_code=BAD)


def _answer(
    looks: Looks, page: Page, guard: Api | None = None
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            seen = looks if guard is None else guard.admit(request).looks
            status = await seen.status()
        except NoEntry as refusal:
            return PlainTextResponse(f"{refusal}\n", refusal.status)
        except RefusedError as refusal:
            return PlainTextResponse(f"{refusal.reason}\n", FORBIDDEN)
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
