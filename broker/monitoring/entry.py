"""Entry to a broker's pages: tokens and codes, signing in, and who may ask from where."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from broker.documents import content_of
from broker.errors import ConfigurationError
from broker.security.keys import check_secret

TOKEN_MIN = 16
"""Characters of a token, at least."""
UNGUESSABLE = 32
"""Characters of a token that is not found by trying, drawn at random as ``openssl rand`` does."""
TRIES, TRY_AGAIN_S = 5, 10.0
SESSIONS_MAX, SESSION_S = 20, 12 * 3600.0
"""So many sessions has a user at a time, each for so long; its first one gives way to one more."""
ADDRESSES_MAX = 1_000
"""Addresses whose wrong tokens are remembered."""
UNAUTHORIZED, FORBIDDEN, TOO_MANY = 401, 403, 429
OPERATOR = ""
"""The name of whoever has the token of the pages, or needs none."""


class NoEntry(Exception):
    """A request that is refused: the status to answer with, and why."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(reason)


def load_token(file: Path) -> str:
    """The token in a file. Raises ConfigurationError for one that is none, or that others may
    read.
    """
    try:
        token = content_of(file).removeprefix(codecs.BOM_UTF8).decode("ascii").strip()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: not ASCII") from None
    if len(token) < TOKEN_MIN or not token.isprintable() or " " in token:
        raise ConfigurationError(
            f"{file}: expected a token of at least {TOKEN_MIN} characters without blanks: "
            f"openssl rand -hex 32 > {file}"
        )
    check_secret(file)
    return token


@dataclass(eq=False, slots=True)
class _Session:
    """Somebody who is signed in, until ``end``; ``stays``: what it has opened, and ends with it."""

    end: float
    user: str
    stays: set[asyncio.Timeout] = field(default_factory=set)


class Entry:
    """Lets in who may see the pages; everybody where there is no token. ``clock``: seconds.

    ``token``: that of the pages; ``users``: names of users by the SHA-256 of their tokens, in hex.
    ``takes_keys``: whether users sign in by keys, too.

    Where there are tokens or keys nobody sees or changes anything who has not shown a token, in the
    header ``Authorization: Bearer TOKEN`` or by signing in, or signed in by a key
    (broker.security.codes). A token is that of the pages, or a user's, of which the SHA-256 alone
    is known.
    """

    def __init__(
        self,
        token: str | None,
        clock: Callable[[], float] = time.monotonic,
        users: Mapping[str, str] = MappingProxyType({}),
        *,
        takes_keys: bool = False,
    ) -> None:
        own = {} if token is None else {digest(token): OPERATOR}
        self._users = {**users, **own}
        self.takes_keys = takes_keys
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        """Sessions of users who are signed in, by their numbers."""
        self._tries: dict[str, tuple[float, float]] = {}
        """By address, wrong tokens that it has left, and when that was so."""

    @property
    def asks(self) -> bool:
        """Whether a token is to be shown, or a key."""
        return bool(self._users) or self.takes_keys

    def verify(self, headers: Mapping[str, str], session: str | None, address: str) -> str:
        """Let in a request that bears a token or a session; gives whose. Raises NoEntry."""
        user = self.known(headers, session)
        if user is not None:
            return user
        token = _shown(headers)
        if token is None:
            raise NoEntry(UNAUTHORIZED, "a token is asked for: Authorization: Bearer TOKEN")
        return self._compare(token, address)

    def known(self, headers: Mapping[str, str], session: str | None) -> str | None:
        """The user of a request that bears a session, or a token that nobody can guess; else None.
        It takes no try: whoever tries shorter tokens learns nothing here.
        """
        if not self.asks:
            return OPERATOR
        own = self._session(session)
        if own is not None:
            return own.user
        token = _shown(headers) or ""
        return self._users.get(digest(token)) if len(token) >= UNGUESSABLE else None

    def sign_in(self, token: str, address: str) -> str:
        """The number of a new session, for a token. Raises NoEntry."""
        return self.open_session(self._compare(token, address))

    def open_session(self, user: str) -> str:
        """The number of a new session of a user who has shown who it is. The number goes into a
        cookie that scripts cannot read and other sites cannot have sent; it is drawn at random, and
        is worth nothing once the process has ended.
        """
        now = self._clock()
        for one in [one for one, other in self._sessions.items() if other.end <= now]:
            self.sign_out(one)
        own = [one for one, other in self._sessions.items() if other.user == user]
        for one in own[: max(0, len(own) + 1 - SESSIONS_MAX)]:
            self.sign_out(one)
        session = secrets.token_urlsafe(32)
        self._sessions[session] = _Session(now + SESSION_S, user)
        return session

    def sign_out(self, session: str | None) -> None:
        """End a session, and what it has opened."""
        own = self._sessions.pop(session or "", None)
        for stay in own.stays if own is not None else ():
            if not stay.expired():
                stay.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def stay(
        self, headers: Mapping[str, str], session: str | None, address: str
    ) -> AsyncIterator[None]:
        """Let in a request (``verify``) that lasts. Raises NoEntry when its session ends."""
        self.verify(headers, session, address)
        own = self._session(session)
        if own is None:  # it has shown a token
            yield
            return
        stay = asyncio.timeout(own.end - self._clock())
        try:
            async with stay:
                own.stays.add(stay)
                yield
        except TimeoutError:
            if stay.expired():
                raise NoEntry(UNAUTHORIZED, "the session has ended") from None
            raise
        finally:
            own.stays.discard(stay)

    def verify_site(self, headers: Mapping[str, str]) -> None:
        """Refuse what another site has a browser ask. Raises NoEntry."""
        host, origin = headers.get("host", ""), headers.get("origin")
        is_foreign = origin is not None and origin.partition("://")[2] != host
        if is_foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise NoEntry(FORBIDDEN, "a change that another site asks for")

    def verify_origin(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """Refuse a change that another site asks for, or one that is not JSON. Raises NoEntry."""
        if not changes:
            return
        self.verify_site(headers)
        if headers.get("content-type", "").partition(";")[0] != "application/json":
            raise NoEntry(FORBIDDEN, "expected Content-Type: application/json")

    def spend_try(self, address: str) -> None:
        """Take one of the tries of an address, for a token or a code that may be wrong. Raises
        NoEntry where none is left: an address (``origin_of``) has ``TRIES`` at once and then one in
        ``TRY_AGAIN_S``. A right one that nobody can guess, a token of ``UNGUESSABLE`` characters or
        a code, gets in all the same: a program that scrapes goes on beside somebody at its address
        who tries tokens. A shorter one waits, even if it is right.
        """
        left = self._tries_left(address)
        if left < 1:
            raise NoEntry(TOO_MANY, f"too many wrong tokens; try again in {TRY_AGAIN_S:g} s")
        self._tries.pop(address, None)
        while len(self._tries) >= ADDRESSES_MAX:
            del self._tries[next(iter(self._tries))]
        self._tries[address] = left - 1, self._clock()

    def return_try(self, address: str) -> None:
        """Give a try back: it was right."""
        left = self._tries_left(address) + 1
        if left < TRIES:
            self._tries[address] = left, self._clock()
        else:
            self._tries.pop(address, None)

    def _session(self, session: str | None) -> _Session | None:
        """The session of this number that has not ended."""
        own = self._sessions.get(session or "")
        return None if own is None or own.end <= self._clock() else own

    def _compare(self, token: str, address: str) -> str:
        # What a hash is compared with tells nothing of a token that has it.
        user = self._users.get(digest(token))
        if user is not None and len(token) >= UNGUESSABLE:
            return user
        self.spend_try(address)
        if user is None:
            raise NoEntry(UNAUTHORIZED, "this is not the token")
        self.return_try(address)
        return user

    def _tries_left(self, address: str) -> float:
        left, at = self._tries.get(address, (float(TRIES), self._clock()))
        return min(float(TRIES), left + (self._clock() - at) / TRY_AGAIN_S)


def _shown(headers: Mapping[str, str]) -> str | None:
    """The token that a request bears."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def digest(token: str) -> str:
    """The SHA-256 of a token, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()
