"""Events over HTTP: ``POST /events`` publishes, ``GET /events`` subscribes (docs/connect.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from math import isfinite
from typing import cast, get_args

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.client.sink import WhenFullName
from broker.cloudevents import Unsupported, events_of
from broker.errors import BrokerError, BrokerUnreachable, PublishBlocked, RefusedError
from broker.monitoring import deadlines
from broker.monitoring.bodies import Bodies
from broker.monitoring.doorway import address_of
from broker.monitoring.entry import FORBIDDEN, TOO_MANY, NoEntry
from broker.monitoring.event_streams import EventStreams, Wish
from broker.monitoring.posts import Outcome, Posts, Types
from broker.monitoring.seats import Seat
from broker.schemas import type_of
from matcher.errors import BadEvent
from routing.messages import Code

BODY_BYTES_MAX = 2**20
POST_S, STREAM_S = 30.0, 300.0
"""For so long a post, and a stream, may have its connection."""
RETRY_S = 1
BAD, CONFLICT, UNSUPPORTED, REFUSED, UNREACHABLE = 400, 409, 415, 422, 503
LATE_HINT = " (?disorder_s=60 admits a minute, ?time=arrival stamps events as they come)"
STATUSES: Mapping[str, int] = {
    Code.NOT_ALLOWED.value: FORBIDDEN,
    Code.CONFLICT.value: CONFLICT,
    Code.NAME_TAKEN.value: CONFLICT,
    Code.IN_USE.value: CONFLICT,
    Code.LIMIT.value: TOO_MANY,
    Code.BAD_FILTER.value: BAD,
    Code.BAD_NAME.value: BAD,
    Code.SCHEMA.value: BAD,
    Code.STORE_FULL.value: UNREACHABLE,
    Code.CLOSING.value: UNREACHABLE,
    Code.LEAVING.value: UNREACHABLE,
}
"""Statuses of what the broker refuses; of all else REFUSED."""


class EventRequests:
    """The requests ``/events``. ``enter`` gives the seat of who asks; ``alive`` raises
    BrokerUnreachable unless the broker answers; ``stream`` answers with a shared stream.

    The broker decides: each request goes there under the keys of whoever asks, is answered once the
    broker has acknowledged what was posted, and refused as the broker says.
    """

    def __init__(
        self,
        enter: Callable[[Request], Seat],
        bodies: Bodies,
        alive: Callable[[], Awaitable[object]],
        stream: Callable[..., Response],
    ) -> None:
        self._enter, self._bodies, self._alive, self._stream = enter, bodies, alive, stream
        self._posts = Posts()
        self._streams = EventStreams()

    @property
    def routes(self) -> list[Route]:
        """The requests by their path."""
        post = Route("/events", self._guarded(self._post), methods=["POST"])
        get = Route("/events", self._guarded(self._get), methods=["GET"])
        get.methods = {"GET"}  # without HEAD, which would take events and show none
        return [post, get]

    async def close(self) -> None:
        """End what runs for them."""
        await self._posts.close()

    async def _post(self, request: Request) -> Response:
        seat = self._enter(request)
        deadlines.extend(request.scope["peer"], POST_S)
        asked = request.query_params
        disorder_s, is_stamped = _disorder(asked.get("disorder_s")), _is_stamped(asked.get("time"))
        holder = seat.user or address_of(request.scope)
        async with self._bodies.of(request, BODY_BYTES_MAX, holder) as content:
            events = events_of(request.headers, content)
            if is_stamped:
                events = [structs.replace(event, time=None) for event in events]
            own = seat.changes.address, seat.user, events, await _known(seat), disorder_s
            return _told(await self._posts.publish(*own))

    async def _get(self, request: Request) -> Response:
        seat = self._enter(request)
        deadlines.extend(request.scope["peer"], STREAM_S + POST_S)
        wish = _wish(request)
        opened = await self._streams.open(seat.changes.address, seat.user, wish, STREAM_S)
        return self._stream(request, seat, opened.pieces(), opened.close)

    def _guarded(
        self, handle: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except NoEntry as refusal:
                return _error(refusal.status, str(refusal))
            except Unsupported as error:
                return _error(UNSUPPORTED, str(error))
            except (BadEvent, ValueError) as error:
                return _error(BAD, str(error))
            except RefusedError as refusal:
                return _error(STATUSES.get(refusal.code, REFUSED), refusal.reason)
            except PublishBlocked:
                return await self._blocked()
            except (BrokerError, TimeoutError) as error:
                return _error(UNREACHABLE, str(error))

        return answer

    async def _blocked(self) -> Response:
        """The answer to a post that the broker has not acknowledged in time."""
        try:
            await self._alive()
        except BrokerUnreachable as error:
            return _error(UNREACHABLE, str(error))
        return _error(TOO_MANY, "the broker does not take more for now; post it again, as it is")


def _told(outcome: Outcome) -> Response:
    if not outcome.refusals:
        return _answer(200, {"published": outcome.published})
    statuses = {STATUSES.get(refusal.code, REFUSED) for _, refusal in outcome.refusals}
    status = statuses.pop() if len(statuses) == 1 else REFUSED
    place, first = outcome.refusals[0]
    where = "" if place is None else f"event {place}: "
    hint = LATE_HINT if first.code == Code.LATE.value else ""
    refused = [
        {"event": place, "code": refusal.code, "reason": refusal.reason}
        for place, refusal in outcome.refusals
    ]
    said = {
        "error": where + first.reason + hint,
        "published": outcome.published,
        "refused": refused,
    }
    return _answer(status, said)


def _error(status: int, reason: str) -> Response:
    return _answer(status, {"error": reason})


def _answer(status: int, content: object) -> Response:
    headers = {"Cache-Control": "no-store"}
    if status in (TOO_MANY, UNREACHABLE):
        headers["Retry-After"] = str(RETRY_S)
    return Response(msgspec.json.encode(content), status, headers, "application/json")


async def _known(seat: Seat) -> Types:
    """The types that the broker knows, as far as whoever posts may know them."""
    try:
        status = await seat.looks.status()
    except RefusedError as refusal:
        if refusal.code != Code.NOT_ALLOWED.value:
            raise
        return {}
    return {
        one["name"]: type_of(one["schema"]) for one in (*status["former_types"], *status["types"])
    }


def _disorder(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (isfinite(seconds) and 0 <= seconds <= 366 * 86_400):
        raise ValueError(f"disorder_s: expected seconds, 0 to 366 days, found {text!r}")
    return seconds


def _is_stamped(text: str | None) -> bool:
    """Whether events are stamped as they come, whatever their times are."""
    if text not in (None, "arrival"):
        raise ValueError(f"time: expected arrival, found {text!r}")
    return text is not None


def _wish(request: Request) -> Wish:
    """The stream that a request asks for. Raises ValueError."""
    asked = request.query_params
    for name in asked:
        if name not in ("filter", "name", "when_full", "last_event_id"):
            raise ValueError(f"{name}: expected filter, name, when_full or last_event_id")
    if not (filters := tuple(asked.getlist("filter"))):
        raise ValueError("filter: expected one, as in /events?filter=Fire()")
    name = asked.get("name", "")
    asked_for = asked.get("when_full", "block" if name else "drop-oldest")
    if asked_for not in (names := get_args(WhenFullName)):
        raise ValueError(f"when_full: expected {', '.join(names)}, found {asked_for!r}")
    when_full = cast(WhenFullName, asked_for)
    last = request.headers.get("last-event-id") or asked.get("last_event_id") or "0"
    if not (last.isascii() and last.isdecimal() and len(last) < 19):
        raise ValueError(f"Last-Event-ID: expected the number of an event, found {last!r}")
    return Wish(filters, name, int(last), when_full)
