"""Rule managers: deploy, list and remove rules, and ask for status. See docs/clients.md."""

from __future__ import annotations

import builtins
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeAlias

from broker.client.address import Address, address_of
from broker.client.connection import Connection
from broker.client.looped import Looped
from broker.client.rule_requests import Steps, deploying, removing
from broker.client.scope import AsyncScoped, Scoped
from broker.client.threaded import Threaded
from broker.errors import RefusedError
from broker.sockets import CONNECTED_MISSED_MAX
from matcher.times import time_of
from routing.config import SessionConfig
from routing.messages import (
    Drain,
    KeepDurable,
    ListRules,
    LogPart,
    ReadLog,
    RemoveDurable,
    ResendDurable,
    SendAway,
    ShowLog,
    ShowNetwork,
    ShowQueue,
    ShowRule,
    ShowTrace,
    ShowUsers,
    StatusRequest,
)
from routing.requests import ClientRequest

Since: TypeAlias = str | int | float | datetime
TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0


def _connection(address: Address, name: str) -> Connection:
    config = SessionConfig(
        name=name,
        instance=random.getrandbits(63),
        heartbeats_missed_max=CONNECTED_MISSED_MAX,
    )
    return Connection(address, config, lambda result: None)


class RuleManager(Scoped):
    """Deploys, lists and removes the rules of a running broker.

    Raises BrokerUnreachable when no broker answers, and RefusedError, with every problem and its
    place, for rules that are refused. Where a network changes, or a link breaks, before the answer
    to a change of rules has come, the list of rules says what became of it. ``key`` and
    ``server_key`` are those of ``Publisher``; ``name`` is shown in the broker's status.

    >>> with RuleManager(endpoint) as manager:
    ...     deployed = manager.add('''
    ...         rule hot: define Hot(area: string) from Temp(value > 45) as t where area = t.area
    ...     ''')
    ...     [rule["name"] for rule in manager.list()]
    ...     manager.remove("hot")["name"]
    ['hot']
    'hot'
    """

    def __init__(
        self,
        endpoint: str | Address | None = None,
        *,
        key: str | Path | None = None,
        server_key: str | Path | None = None,
        name: str = "",
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        connection = _connection(address_of(endpoint, key, server_key), name)
        self._session = connection.session
        self._timeout_s = timeout_s
        self._driver = Threaded(connection)
        self._driver.open(connect_timeout_s)

    def add(
        self, text: str, *, file: str = "<rules>", since: Since | None = None
    ) -> Mapping[str, Any]:
        """Deploy the rules of ``text``, all or none; gives their names, ``since`` and version.

        ``file`` is the name that errors point at. ``since``, a time (RFC 3339, seconds since the
        epoch, a datetime): they hold from then on, and find in the brokers' logs what they would
        have found; RefusedError where a log does not go back so far.
        """
        begin = None if since is None else time_of(since)
        return self._take(deploying(self._session, text, False, file, begin))

    def replace(
        self, text: str, *, file: str = "<rules>", remove: Sequence[str] = ()
    ) -> Mapping[str, Any]:
        """Deploy rules in the place of those of the same names; others are added, and those named
        in ``remove`` are removed: all of it, or nothing.
        """
        return self._take(deploying(self._session, text, True, file, None, remove))

    def remove(self, name: str) -> Mapping[str, Any]:
        """Remove a rule; gives up to where (``until``, microseconds) it was evaluated."""
        return self._take(removing(self._session, name))

    def list(self) -> list[Mapping[str, Any]]:
        """The rules in their order: name, type, since, version, and whether they run."""
        return list(self._ask(ListRules)["rules"])

    def show(self, name: str) -> Mapping[str, Any]:
        """One rule, with its canonical ``text``."""
        return self._ask(ShowRule, name)

    def durables(self) -> builtins.list[Mapping[str, Any]]:
        """The durable subscriptions of the network, each with its name and its ``home``; of those
        at this broker the filters, clients, and how many events wait, were given and not
        acknowledged, and were dropped, too.
        """
        return durables_in(self.status())

    def remove_durable(self, name: str) -> Mapping[str, Any]:
        """Remove a durable subscription that no client uses, with what waits for it."""
        return self._ask(RemoveDurable, name)

    def keep_durable(self, name: str) -> Mapping[str, Any]:
        """Go on with a durable subscription at this broker, which was handing it over to one that
        does not come back.
        """
        return self._ask(KeepDurable, name)

    def resend_durable(self, name: str) -> Mapping[str, Any]:
        """Queue the dead letters of a durable subscription once more; gives how many they are, as
        ``queued``.
        """
        return self._ask(ResendDurable, name)

    def status(self) -> Mapping[str, Any]:
        """The broker's status: plain data (protocol.md section 7)."""
        return self._ask(StatusRequest)

    def network(self) -> Mapping[str, Any]:
        """The status of each broker, in short: ``brokers``, and those that are ``silent``."""
        return self._ask(ShowNetwork)

    def users(self) -> builtins.list[Mapping[str, Any]]:
        """The users of the broker's access file, each with what it may do; none without keys."""
        return builtins.list(self._ask(ShowUsers)["users"])

    def log_lines(self) -> builtins.list[str]:
        """The last lines of the broker's log."""
        return builtins.list(self._ask(ShowLog)["lines"])

    def waiting(self, name: str) -> Mapping[str, Any]:
        """The first events that wait in a durable subscription at this broker: ``events``, and how
        many are ``hidden``, since the user may not read their types.
        """
        return self._ask(ShowQueue, name)

    def send_away(self, client: int) -> Mapping[str, Any]:
        """Have a client go: the one with this ``number`` in the status."""
        return self._ask(SendAway, client)

    def trace(self, event: str) -> Mapping[str, Any]:
        """The path of an event, ``source#id`` or an id, through this broker, if it is kept."""
        return self._ask(ShowTrace, event)

    def read_log(
        self,
        broker: str = "",
        after: int = 0,
        *,
        since: int | None = None,
        types: Sequence[str] = (),
        outlined: bool = False,
        at: Sequence[int] = (),
    ) -> LogPart:
        """A part of the log of a broker of the network ("": this one), from behind a position on:
        see ``broker.client.logs``, which reads all of one.
        """
        asked: dict[str, Any] = {"since": since, "types": types, "outlined": outlined, "at": at}
        part: LogPart = self._driver.ask(
            lambda: self._session.ask(ReadLog, broker, after, **asked), self._timeout_s
        )
        return part

    def drain(self) -> Mapping[str, Any]:
        """Have the broker send its clients to others and leave; ``status`` says how far it is."""
        return self._ask(Drain)

    def _take(self, steps: Steps) -> Mapping[str, Any]:
        try:
            request = next(steps)
            while True:
                try:
                    answer = self._carry(request)
                except RefusedError as refusal:
                    request = steps.throw(refusal)
                else:
                    request = steps.send(answer)
        except StopIteration as done:
            found: Mapping[str, Any] = done.value
            return found

    def _ask(self, kind: type[ClientRequest], *asked: object) -> Mapping[str, Any]:
        return self._carry(lambda: self._session.ask(kind, *asked))

    def _carry(self, request: Callable[[], int]) -> Mapping[str, Any]:
        detail: Mapping[str, Any] = self._driver.ask(request, self._timeout_s)
        return detail


class AsyncRuleManager(AsyncScoped):
    """``RuleManager`` for asyncio; it connects when it is entered or ``open`` is awaited.

    >>> import asyncio
    >>> async def names():
    ...     async with AsyncRuleManager(endpoint) as manager:
    ...         return [rule["name"] for rule in await manager.list()]
    >>> asyncio.run(names())
    []
    """

    def __init__(
        self,
        endpoint: str | Address | None = None,
        *,
        key: str | Path | None = None,
        server_key: str | Path | None = None,
        name: str = "",
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        connection = _connection(address_of(endpoint, key, server_key), name)
        self._session = connection.session
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._driver = Looped(connection)

    async def open(self) -> Self:
        """Connect."""
        await self._driver.open(self._connect_timeout_s)
        return self

    async def add(
        self, text: str, *, file: str = "<rules>", since: Since | None = None
    ) -> Mapping[str, Any]:
        """See ``RuleManager.add``."""
        begin = None if since is None else time_of(since)
        return await self._take(deploying(self._session, text, False, file, begin))

    async def replace(
        self, text: str, *, file: str = "<rules>", remove: Sequence[str] = ()
    ) -> Mapping[str, Any]:
        """See ``RuleManager.replace``."""
        return await self._take(deploying(self._session, text, True, file, None, remove))

    async def remove(self, name: str) -> Mapping[str, Any]:
        """See ``RuleManager.remove``."""
        return await self._take(removing(self._session, name))

    async def list(self) -> list[Mapping[str, Any]]:
        """See ``RuleManager.list``."""
        return list((await self._ask(ListRules))["rules"])

    async def show(self, name: str) -> Mapping[str, Any]:
        """See ``RuleManager.show``."""
        return await self._ask(ShowRule, name)

    async def durables(self) -> builtins.list[Mapping[str, Any]]:
        """See ``RuleManager.durables``."""
        return durables_in(await self.status())

    async def remove_durable(self, name: str) -> Mapping[str, Any]:
        """See ``RuleManager.remove_durable``."""
        return await self._ask(RemoveDurable, name)

    async def keep_durable(self, name: str) -> Mapping[str, Any]:
        """See ``RuleManager.keep_durable``."""
        return await self._ask(KeepDurable, name)

    async def resend_durable(self, name: str) -> Mapping[str, Any]:
        """See ``RuleManager.resend_durable``."""
        return await self._ask(ResendDurable, name)

    async def status(self) -> Mapping[str, Any]:
        """See ``RuleManager.status``."""
        return await self._ask(StatusRequest)

    async def network(self) -> Mapping[str, Any]:
        """See ``RuleManager.network``."""
        return await self._ask(ShowNetwork)

    async def users(self) -> builtins.list[Mapping[str, Any]]:
        """See ``RuleManager.users``."""
        return builtins.list((await self._ask(ShowUsers))["users"])

    async def log_lines(self) -> builtins.list[str]:
        """See ``RuleManager.log_lines``."""
        return builtins.list((await self._ask(ShowLog))["lines"])

    async def waiting(self, name: str) -> Mapping[str, Any]:
        """See ``RuleManager.waiting``."""
        return await self._ask(ShowQueue, name)

    async def send_away(self, client: int) -> Mapping[str, Any]:
        """See ``RuleManager.send_away``."""
        return await self._ask(SendAway, client)

    async def trace(self, event: str) -> Mapping[str, Any]:
        """See ``RuleManager.trace``."""
        return await self._ask(ShowTrace, event)

    async def read_log(
        self,
        broker: str = "",
        after: int = 0,
        *,
        since: int | None = None,
        types: Sequence[str] = (),
        outlined: bool = False,
        at: Sequence[int] = (),
    ) -> LogPart:
        """See ``RuleManager.read_log``."""
        asked: dict[str, Any] = {"since": since, "types": types, "outlined": outlined, "at": at}
        part: LogPart = await self._driver.ask(
            lambda: self._session.ask(ReadLog, broker, after, **asked), self._timeout_s
        )
        return part

    async def drain(self) -> Mapping[str, Any]:
        """See ``RuleManager.drain``."""
        return await self._ask(Drain)

    async def _take(self, steps: Steps) -> Mapping[str, Any]:
        try:
            request = next(steps)
            while True:
                try:
                    answer = await self._carry(request)
                except RefusedError as refusal:
                    request = steps.throw(refusal)
                else:
                    request = steps.send(answer)
        except StopIteration as done:
            found: Mapping[str, Any] = done.value
            return found

    async def _ask(self, kind: type[ClientRequest], *asked: object) -> Mapping[str, Any]:
        return await self._carry(lambda: self._session.ask(kind, *asked))

    async def _carry(self, request: Callable[[], int]) -> Mapping[str, Any]:
        detail: Mapping[str, Any] = await self._driver.ask(request, self._timeout_s)
        return detail


def durables_in(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The durable subscriptions of a status: those of its broker, then the others by name."""
    own = [{"home": status["broker"], **one} for one in status["durable"]]
    others = sorted(status["durable_elsewhere"].items())
    return [*own, *({"name": name, "home": home} for name, home in others)]
