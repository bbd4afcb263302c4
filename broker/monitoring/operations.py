"""Requests of the page by which a broker is operated: what `RuleManager` does, and one event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.client.async_publisher import AsyncPublisher
from broker.errors import RefusedError
from broker.monitoring.changes import ANSWER_S
from broker.monitoring.seats import Seat
from broker.monitoring.turns import Turns
from broker.schemas import type_of
from matcher.errors import EventError
from matcher.model import EventType

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]
Posted: TypeAlias = Callable[..., Answer]
"""Makes the answer to a POST of a body's kind, from what handles it."""
UNKNOWN, BAD_EVENT = "unknown", "bad-event"


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing to say."""


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """An event type, or a durable queue."""

    name: str


class Client(msgspec.Struct, forbid_unknown_fields=True):
    """A client, by its number in the status."""

    number: Annotated[int, Meta(ge=0, lt=2**31)]


class OneEvent(msgspec.Struct, forbid_unknown_fields=True):
    """An event to be published now; attributes that are left out are null."""

    type: str
    data: dict[str, str | bool | int | float | None]


def operation_routes(posted: Posted) -> list[Route]:
    """The requests by their paths. Each request goes to the broker under the keys of whoever asks,
    and is refused there if the right is missing. An event is published under the name
    ``page/USER``, one of a user at a time.
    """
    publishing = Turns()

    async def publish(request: Request, body: OneEvent, seat: Seat) -> Mapping[str, Any]:
        event_type = await _type(seat, body.type)
        data = {name: value for name, value in body.data.items() if value is not None}
        name = f"page/{seat.user}".rstrip("/")
        async with publishing.of(name):
            publisher = AsyncPublisher(
                seat.changes.address,
                name=name,
                types=[event_type],
                timeout_s=ANSWER_S,
                connect_timeout_s=ANSWER_S,
            )
            try:
                async with publisher:
                    await (await publisher.publish(body.type, data))
            except EventError as error:
                raise RefusedError(str(error), BAD_EVENT) from None
        return {"source": name}

    handled: Mapping[str, tuple[type, Callable[..., Awaitable[Mapping[str, Any]]]]] = {
        "type": (Named, _attributes),
        "publish": (OneEvent, publish),
        "users": (Nothing, _users),
        "log": (Nothing, _log),
        "waiting": (Named, _waiting),
        "send-away": (Client, _send_away),
    }
    return [
        Route(f"/api/{path}", posted(kind, handle), methods=["POST"])
        for path, (kind, handle) in handled.items()
    ]


async def _type(seat: Seat, name: str) -> EventType:
    """A type that the broker knows. Raises RefusedError."""
    for known in (await seat.looks.status())["types"]:
        if known["name"] == name:
            return type_of(known["schema"])
    raise RefusedError(f"no event type {name!r} is known here", UNKNOWN)


async def _attributes(request: Request, body: Named, seat: Seat) -> Mapping[str, Any]:
    """The attributes of a type: name, kind and whether it may be null."""
    found = await _type(seat, body.name)
    declared = zip(found.attributes, found.presences, strict=False)
    return {"attributes": [[one.name, one.kind.value, place >= 0] for one, place in declared]}


async def _users(request: Request, body: Nothing, seat: Seat) -> Mapping[str, Any]:
    async with seat.changes.manager() as manager:
        return {"users": await manager.users()}


async def _log(request: Request, body: Nothing, seat: Seat) -> Mapping[str, Any]:
    async with seat.changes.manager() as manager:
        return {"lines": await manager.log_lines()}


async def _waiting(request: Request, body: Named, seat: Seat) -> Mapping[str, Any]:
    async with seat.changes.manager() as manager:
        return await manager.waiting(body.name)


async def _send_away(request: Request, body: Client, seat: Seat) -> Mapping[str, Any]:
    async with seat.changes.manager() as manager:
        return await manager.send_away(body.number)
