"""Requests of the page: what it is sent as things change, and what it asks to have done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from broker.errors import BrokerError, BrokerUnreachable, RefusedError
from broker.monitoring import deadlines
from broker.monitoring.bench import LONGEST_S, Bench, Busy
from broker.monitoring.bodies import Bodies, body_of
from broker.monitoring.checks import Checks
from broker.monitoring.doorway import address_of, cookie
from broker.monitoring.entry import (
    FORBIDDEN,
    OPERATOR,
    SESSION_S,
    TOO_MANY,
    UNAUTHORIZED,
    Entry,
    NoEntry,
)
from broker.monitoring.events import EventRequests
from broker.monitoring.looks import FRESH_S, NOT_ALLOWED
from broker.monitoring.operations import operation_routes
from broker.monitoring.seats import Seat, Seats
from broker.monitoring.shares import NoShare, Shares
from broker.monitoring.trial import File, Request as Trial
from broker.monitoring.web_sockets import WebSockets
from broker.monitoring.windows import Window, windows_of
from broker.security.codes import Codes
from matcher.formats.jsondata import REFUSED as NOT_JSON
from matcher.identity import RULE_SOURCE

SIGN_IN_BYTES_MAX = 4 * 2**10
"""Of strangers."""
TEXT_BYTES_MAX = 256 * 2**10
FILE_BYTES_MAX = 21 * 2**20
"""Of a request with rules alone, and of one with files, which are a third longer as JSON."""
FILES_MAX = 20
STREAMS_MAX = 64
STREAM_S = 300.0
"""Seconds after which a stream ends; the page asks for another one."""
LAST_WORD_S = 1.0
"""For so long a stream that ends early may be read to its end."""
TICK_S = 1.05
"""Seconds between two states that a page is sent: a little more than a look is shown for."""
BAD, REFUSED, UNREACHABLE = 400, 422, 503

Body = TypeVar("Body", bound=msgspec.Struct)


class Token(msgspec.Struct, forbid_unknown_fields=True):
    """Signing in by a token, or by a code that the owner of a key has shown the broker."""

    token: str = ""
    code: str = ""


class Text(msgspec.Struct, forbid_unknown_fields=True):
    """Rules to be checked; ``schemas``: types that are known besides the broker's."""

    text: str
    schemas: tuple[str, ...] = ()


class Deployment(msgspec.Struct, forbid_unknown_fields=True):
    """Rules to be deployed."""

    text: str
    replace: bool = False


class Name(msgspec.Struct, forbid_unknown_fields=True):
    """A rule, or an event ``source#id``."""

    name: str


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing to say."""


class EventsFile(msgspec.Struct, forbid_unknown_fields=True):
    """A file of events; ``type``: of those that name none."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    content: bytes
    type: str | None = None


class Experiment(msgspec.Struct, forbid_unknown_fields=True):
    """Rules over ``files``, over the last ``log_s`` seconds of the broker's log, or over
    the events that are kept (``tap``).
    """

    do: str
    text: str = ""
    files: Annotated[tuple[EventsFile, ...], Meta(max_length=FILES_MAX)] = ()
    log_s: float = 0.0
    rule: str = ""
    event: str = ""


class Api:
    """The requests of the page of one broker.

    Every request passes the entry first, and one that changes something, or has much worked out,
    comes as a POST of JSON from the page itself. Requests are bounded: so many bytes, so many
    streams, one trial at a time, each shared out by user and address. A right that is missing is
    403 and says so.
    """

    def __init__(self, entry: Entry, seats: Seats) -> None:
        self._entry = entry
        self._seats = seats
        self._bench = Bench()
        self._checks = Checks(self._bench)
        self._codes = Codes()
        self._streams, self._bodies = Shares(STREAMS_MAX), Bodies()
        alive = seats.of(OPERATOR).looks.status
        self._events_over = EventRequests(self._enter, self._bodies, alive, self._shared)
        self._web_sockets = WebSockets(self._enter, self._stay)

    @property
    def routes(self) -> list[BaseRoute]:
        """The requests by their paths."""
        return [
            Route("/api/session", self._session),
            Route("/api/sign-in", self._sign_in, methods=["POST"]),
            Route("/api/sign-out", self._posted(Nothing, self._sign_out), methods=["POST"]),
            Route("/api/stream", self._stream),
            Route("/api/rule", self._posted(Name, self._rule), methods=["POST"]),
            Route("/api/history", self._posted(Name, self._history), methods=["POST"]),
            Route("/api/check", self._posted(Text, self._check), methods=["POST"]),
            Route("/api/deploy", self._posted(Deployment, self._deploy), methods=["POST"]),
            Route("/api/remove", self._posted(Name, self._remove), methods=["POST"]),
            *operation_routes(self._posted),
            *self._events_over.routes,
            *self._web_sockets.routes,
            Route("/api/why", self._posted(Name, self._why), methods=["POST"]),
            Route(
                "/api/try",
                self._posted(Experiment, self._try, FILE_BYTES_MAX, self._may_try),
                methods=["POST"],
            ),
        ]

    async def close(self) -> None:
        """End what runs for the page."""
        await self._events_over.close()
        await self._seats.close()
        self._checks.close()
        await self._bench.close()

    # --- coming in ---

    def verify(self, request: Request, *, changes: bool = False) -> Seat:
        """Let a request in; gives the seat of whose it is. Raises NoEntry."""
        self._entry.verify_origin(request.headers, changes=changes)
        return self.admit(request)

    def admit(self, request: HTTPConnection) -> Seat:
        """Let in a program that reads, from whatever name it asks. Raises NoEntry."""
        seat = self._seats.of(self._entry.verify(*_shown_by(request)))
        deadlines.allow(request.scope["peer"])
        return seat

    def _stay(self, request: HTTPConnection) -> AbstractAsyncContextManager[None]:
        """Let in a request that lasts, until its session ends. Raises NoEntry then, and before."""
        return self._entry.stay(*_shown_by(request))

    def _enter(self, request: HTTPConnection) -> Seat:
        """Let in whoever publishes or takes events. Raises NoEntry."""
        self._entry.verify_site(request.headers)
        return self.admit(request)

    async def _session(self, request: Request) -> Response:
        try:
            seat = self.verify(request)
        except NoEntry as refusal:
            known = {"signed_in": False, "asks": self._entry.asks, "error": str(refusal)}
            return answered({**known, "takes_keys": self._entry.takes_keys})
        own = {"user": seat.user, "log": bool(seat.log)}
        return answered({"signed_in": True, "asks": self._entry.asks, **own})

    async def _sign_in(self, request: Request) -> Response:
        try:
            self._entry.verify_origin(request.headers, changes=True)
            body = msgspec.json.decode(await body_of(request, SIGN_IN_BYTES_MAX), type=Token)
            deadlines.allow(request.scope["peer"])
            session = await self._begin_session(body, who(request))
        except NoEntry as refusal:
            return answered({"error": str(refusal)}, refusal.status)
        except NOT_JSON as error:
            return answered({"error": str(error)}, BAD)
        except BrokerUnreachable as error:
            return answered({"error": str(error)}, UNREACHABLE)
        response = answered({"signed_in": True})
        response.set_cookie(
            cookie(request),
            session,
            max_age=int(SESSION_S),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def _begin_session(self, body: Token, address: str) -> str:
        """The number of a session for a token or a code. Raises NoEntry."""
        if not body.code:
            return self._entry.sign_in(body.token, address)
        user = await self._user_of(body.code)
        if user is None:
            self._entry.spend_try(address)
            await asyncio.sleep(FRESH_S)  # it may have come a moment ago, after the last look
            user = await self._user_of(body.code)
            if user is None:
                raise NoEntry(UNAUTHORIZED, "this code is not good, or not any more: rexmq page")
            self._entry.return_try(address)
        return self._entry.open_session(user)

    async def _user_of(self, code: str) -> str | None:
        """The user who has shown the broker a key for a code, by the last look."""
        clients = (await self._seats.of(OPERATOR).looks.status())["clients"]
        user = self._codes.take(code, clients)
        return user if user is not None and self._seats.has(user) else None

    async def _sign_out(self, request: Request, body: Nothing, seat: Seat) -> Any:
        self._entry.sign_out(request.cookies.get(cookie(request)))
        return {"signed_in": False}

    def _posted(
        self,
        kind: type[Body],
        handle: Callable[[Request, Body, Seat], Awaitable[Any]],
        most: int = TEXT_BYTES_MAX,
        allow: Callable[[Request, Seat], Awaitable[None]] | None = None,
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                seat = self.verify(request, changes=True)
                if allow is not None:
                    await allow(request, seat)
                async with self._bodies.of(request, most, seat.user or who(request)) as content:
                    body = msgspec.json.decode(content, type=kind)
                    return answered(await handle(request, body, seat))
            except NoEntry as refusal:
                return answered({"error": str(refusal)}, refusal.status)
            except NOT_JSON as error:
                return answered({"error": str(error)}, BAD)
            except RefusedError as refusal:
                status = FORBIDDEN if refusal.code == NOT_ALLOWED else REFUSED
                return answered({"error": refusal.reason}, status)
            except Busy:
                return answered({"error": "another trial is under way"}, TOO_MANY)
            except (BrokerError, TimeoutError) as error:
                return answered({"error": str(error)}, UNREACHABLE)

        return answer

    # --- as things change ---

    async def _stream(self, request: Request) -> Response:
        try:
            seat = self.verify(request)
        except NoEntry as refusal:
            return answered({"error": str(refusal)}, refusal.status)
        deadlines.extend(request.scope["peer"], STREAM_S + TICK_S)
        asked = request.query_params
        try:
            windows = windows_of(asked.get("lists", ""))
        except NOT_JSON as error:
            return answered({"error": str(error)}, BAD)
        types = frozenset(filter(None, asked.get("types", "").split(",")))
        whole = asked.get("whole") == "1"
        events = self._events(seat, types, whole) if "events" in asked else None
        ticks = self._ticks(seat, windows, events)
        return self._shared(request, seat, ticks, ticks.aclose)

    def _shared(
        self,
        request: Request,
        seat: Seat,
        content: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
    ) -> Response:
        """A stream that takes a share of the streams, and is closed at the end."""
        holders = f"user {seat.user}", f"address {who(request)}"
        return SharedStream(content, self._streams, holders, close, partial(self._stay, request))

    async def _ticks(
        self, seat: Seat, windows: Mapping[str, Window], events: AsyncIterator[bytes] | None
    ) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        until = loop.time() + STREAM_S
        yield b"retry: 1000\n\n"
        while loop.time() < until:
            begun = loop.time()
            try:
                yield told("state", await seat.board.shown(windows))
                if events is not None:
                    yield await anext(events)
            except (BrokerUnreachable, RefusedError) as error:
                yield told("trouble", {"error": str(error)})
            await asyncio.sleep(max(0.1, begun + TICK_S - loop.time()))

    async def _events(self, seat: Seat, types: frozenset[str], whole: bool) -> AsyncIterator[bytes]:
        tap = seat.tap
        after = tap.last
        offered: list[str] = []
        while True:
            state = await seat.board.state()
            made = {rule["type"]: rule["lately/s"] for rule in state["lists"]["rules"]}
            tap.look({name: rate for name, rate in made.items() if name in types} or made, whole)
            sample = tap.sample(after, types)
            after = sample.last
            facts = {"events": sample.events, "count": sample.count, "kept": tap.facts}
            if offered != (names := sorted(made)):
                facts["made"] = offered = names
            yield told("events", facts)

    # --- what is asked for ---

    async def _rule(self, request: Request, body: Name, seat: Seat) -> Any:
        return await seat.changes.text(body.name)

    async def _history(self, request: Request, body: Name, seat: Seat) -> Any:
        return {"events": seat.tap.history(body.name)}

    async def _check(self, request: Request, body: Text, seat: Seat) -> Any:
        schemas = body.schemas or await self._schemas(seat)
        deadlines.extend(request.scope["peer"], LONGEST_S)
        return await self._checks.problems(body.text, schemas, seat.user or who(request))

    async def _deploy(self, request: Request, body: Deployment, seat: Seat) -> Any:
        return await seat.changes.deploy(body.text, replace=body.replace)

    async def _remove(self, request: Request, body: Name, seat: Seat) -> Any:
        return await seat.changes.remove(body.name)

    async def _why(self, request: Request, body: Name, seat: Seat) -> Any:
        """Why a composite event came, over the events that are kept."""
        deadlines.extend(request.scope["peer"], LONGEST_S)
        rule = body.name.rpartition("#")[0].removeprefix(RULE_SOURCE).partition("#")[0]
        (event, *_) = seat.tap.history(body.name)
        if not event["cause"]:
            return {"error": "its causes are not kept here any more"}
        shown = await seat.changes.text(rule)
        more, since = await seat.changes.texts(but=[rule])
        since |= {} if shown["since"] is None else {rule: shown["since"]}
        return await self._bench.run(
            Trial(
                "explain",
                text=shown["text"],
                more=more,
                schemas=await self._schemas(seat),
                batches=tuple(seat.tap.batches),
                rule=rule,
                event=event["cause"][0],
                since=since,
            ),
            seat.user or who(request),
        )

    async def _may_try(self, request: Request, seat: Seat) -> None:
        """Refuse a trial whose files need not be read then."""
        self._bench.verify_free(seat.user or who(request))
        await seat.looks.status()

    async def _try(self, request: Request, body: Experiment, seat: Seat) -> Any:
        deadlines.extend(request.scope["peer"], LONGEST_S)
        asker = seat.user or who(request)
        if body.do not in ("inspect", "run", "explain"):
            return {"error": "expected do as inspect, run or explain"}
        trial = Trial(
            body.do,
            text=body.text,
            files=tuple(File(one.name, one.content, one.type or None) for one in body.files),
            rule=body.rule,
            event=body.event,
        )
        if body.log_s > 0 and not seat.log:
            return {"error": "there is no log here, or not for you"}
        if not body.files:
            schemas = await self._schemas(seat)
            names = await self._checks.names(body.text, schemas, asker)
            more, since = await seat.changes.texts(but=names)
            trial = replace(trial, more=more, since=since, schemas=schemas)
            if body.log_s > 0:
                trial = replace(trial, log=seat.log, log_s=body.log_s)
            else:
                trial = replace(trial, batches=tuple(seat.tap.batches))
        return await self._bench.run(trial, asker)

    async def _schemas(self, seat: Seat) -> tuple[str, ...]:
        """The types that the broker knows and its rules do not make."""
        status = await seat.looks.status()
        made = {rule["type"] for rule in status["rules"]}
        return tuple(one["schema"] for one in status["types"] if one["name"] not in made)


class SharedStream(StreamingResponse):
    """A stream that takes a share of the streams while it lasts. The first page too many is told
    ``too many pages are open`` and looks again by itself.
    """

    def __init__(
        self,
        content: AsyncIterator[bytes],
        shares: Shares,
        holders: tuple[str, ...],
        close: Callable[[], Awaitable[None]],
        stay: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        super().__init__(content, media_type="text/event-stream")
        self._shares, self._holders, self._close = shares, holders, close
        self._stay = stay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, or say that too many are open; end it with the session that has asked for it."""
        is_begun = False

        async def begin(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            with self._shares.held(*self._holders):
                async with self._stay():
                    await super().__call__(scope, receive, begin)
        except NoEntry as refusal:
            if is_begun:
                deadlines.extend(scope["peer"], LAST_WORD_S)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                refused = answered({"error": str(refusal)}, refusal.status)
                await refused(scope, receive, send)
        except NoShare:
            refused = answered({"error": "too many pages are open"}, UNREACHABLE)
            await refused(scope, receive, send)
        finally:
            await self._close()


def answered(content: Any, status: int = 200) -> Response:
    """An answer in JSON that nobody keeps."""
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def told(event: str, content: Any) -> bytes:
    """One event of a stream."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(content))


def _shown_by(request: HTTPConnection) -> tuple[Mapping[str, str], str | None, str]:
    """By what a request is let in: its headers, its session and its address."""
    return request.headers, request.cookies.get(cookie(request)), who(request)


def who(request: HTTPConnection) -> str:
    """The address that a request comes from."""
    return address_of(request.scope)
