"""Codes by which the owner of a key signs in at the pages of a broker.

A code proves nothing, a key does. ``rexmq page`` draws a code and connects to the broker with
alice's key, under the code's digest as its name. CURVE's handshake challenges whoever connects to
show that it has the key, and the broker says whose connection it is: so whoever brings the pages
the code is alice, or was told it by her. What others see of it in the status is the digest.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

CODE_S = 60.0
"""Seconds for which a code is good."""
STALE_S = 1.0
"""For so long the clients of a status may have been known."""
USED_MAX = 1_000
"""Codes of one user that may be used within twice as long."""
PREFIX = "page-"


def new_code() -> str:
    """A code that nobody else has."""
    return secrets.token_urlsafe(32)


def client_name(code: str) -> str:
    """The name of the client that shows a key for a code."""
    return PREFIX + hashlib.sha256(code.encode()).hexdigest()


class Codes:
    """Owner of the codes that were used. ``clock``: seconds. Of each user's it keeps ``USED_MAX``
    digests, as long as a connection could bear them; of wrong ones nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._used: dict[str, tuple[float, str | None]] = {}
        """Names of clients, until when each is remembered, and whose it was."""

    def take(self, code: str, clients: Iterable[Mapping[str, Any]]) -> str | None:
        """The user whose key was shown for a code, by the clients of the broker's status; None
        where it is not good. A code is good once, while that connection stands, and for ``CODE_S``
        at most. Of connections that are older than the process which serves nobody knows whether
        their codes have been used, and they are good for nothing.
        """
        now, name = self._clock(), client_name(code)
        self._used = {one: used for one, used in self._used.items() if used[0] > now}
        most = min(CODE_S, now - self._begun - STALE_S)
        users = {
            one["user"] for one in clients if one["name"] == name and one["connected_s"] < most
        }
        if name in self._used or len(users) != 1:
            return None
        user: str | None = users.pop()
        if sum(1 for _, own in self._used.values() if own == user) >= USED_MAX:
            return None
        self._used[name] = now + 2 * CODE_S, user
        return user
