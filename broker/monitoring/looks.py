"""The last status of a broker, or of all of its network, asked for when somebody looks and it is
old.

Requests that come while an answer is awaited share it. Where the broker gives none within
``ANSWER_S``, each look raises BrokerUnreachable, and the next one connects anew; where who looks
may not, RefusedError.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from broker.client.address import Address
from broker.client.manager import AsyncRuleManager
from broker.errors import BrokerError, BrokerUnreachable, RefusedError

NOT_ALLOWED = "not-allowed"
FRESH_S = 1.0
"""For so long a status is shown again."""
NETWORK_S = 2.0
"""For so long what other brokers have said is shown again: it crosses the network."""
ANSWER_S = 3.0
"""For so long an answer is awaited."""


class Looks:
    """Looks at the broker at ``address``. ``clock`` is in seconds; ``ask`` gives what is looked at,
    and ``fresh_s`` says for how long it is shown again.
    """

    def __init__(
        self,
        address: Address,
        clock: Callable[[], float] = time.monotonic,
        *,
        ask: Callable[[AsyncRuleManager], Awaitable[Mapping[str, Any]]] = AsyncRuleManager.status,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._address = address
        self._clock = clock
        self._question, self._fresh_s = ask, fresh_s
        self._manager: AsyncRuleManager | None = None
        self._status: Mapping[str, Any] = {}
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def status(self) -> Mapping[str, Any]:
        """The broker's status, at most ``fresh_s`` old. Raises BrokerUnreachable, or RefusedError
        for who may not look.
        """
        if self._clock() - self._asked_at >= self._fresh_s:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._look())
            await asyncio.shield(self._asking)  # it is others' as well
        return self._status

    async def _look(self) -> None:
        now = self._clock()
        self._status = await self._ask()
        self._asked_at = now

    async def _ask(self) -> Mapping[str, Any]:
        try:
            if self._manager is None:
                self._manager = await AsyncRuleManager(
                    self._address, timeout_s=ANSWER_S, connect_timeout_s=ANSWER_S
                ).open()
            return await self._question(self._manager)
        except BrokerError as error:
            if isinstance(error, RefusedError) and error.code == NOT_ALLOWED:
                raise
            await self.close()
            raise BrokerUnreachable(str(error)) from None

    async def close(self) -> None:
        """Hang up."""
        manager, self._manager = self._manager, None
        if manager is not None:
            await manager.close()


def looks_at_network(address: Address) -> Looks:
    """Looks at what each broker of the network of the broker at ``address`` does."""
    return Looks(address, ask=AsyncRuleManager.network, fresh_s=NETWORK_S)
