"""The state that the page shows, made at most once a second while somebody looks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.errors import BrokerUnreachable
from broker.monitoring.figures import Row, ordered
from broker.monitoring.gathered import Look
from broker.monitoring.history import History
from broker.monitoring.looks import FRESH_S, Looks
from broker.monitoring.view import view
from broker.monitoring.windows import Window, windowed
from matcher.model import MICROSECONDS

STALE_S = 10.0
"""An earlier look that is older tells no rates."""
OTHERS_S = 0.3
"""For so long the others are awaited; what they say later is in the next state."""


class Board:
    """The network as ``looks`` at the broker, and at its ``network``, tell of it. However many
    look, the broker is asked once a second, and none while nobody looks.
    """

    def __init__(self, looks: Looks, network: Looks) -> None:
        self._looks = looks
        self._network = network
        self._found = History()
        """Counts of composite events, by rule."""
        self._seen: dict[str, Look] = {}
        """The last look at each broker that has answered."""
        self._answer: Mapping[str, Any] = {}
        self._failures: Sequence[str] = ()
        self._asking: asyncio.Task[Mapping[str, Any]] | None = None
        self._state: Mapping[str, Any] = {}
        self._made_at = float("-inf")
        self._making: asyncio.Task[None] | None = None

    async def state(self) -> Mapping[str, Any]:
        """The state, of a look at most ``FRESH_S`` old. Raises BrokerUnreachable."""
        if time.monotonic() - self._made_at >= FRESH_S / 2:  # looks are bounded by themselves
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make())
            await asyncio.shield(self._making)
        return self._state

    async def shown(self, windows: Mapping[str, Window]) -> Row:
        """The state, and of its lists what the windows show. Raises BrokerUnreachable."""
        state = await self.state()
        kinds = {"brokers": state["brokers"], **state["lists"]}
        lists = {
            kind: windowed(kinds[kind], window) for kind, window in windows.items() if kind in kinds
        }
        for rule in lists["rules"]["rows"] if "rules" in lists else ():
            rule["line"] = self._found.line(rule["name"])
        return {**state, "lists": lists}

    async def close(self) -> None:
        """Hang up."""
        if self._asking is not None:
            self._asking.cancel()
        await self._network.close()

    async def _make(self) -> None:
        own = await self._looks.status()
        await self._hear_others(own)
        self._look([own])
        clock = round(time.time() * MICROSECONDS)
        seen, failures = dict(self._seen), self._failures
        state = await asyncio.to_thread(view, seen, own["broker"], clock, failures)
        rules = self._by_what_fires(state["lists"]["rules"])
        self._state = {**state, "lists": {**state["lists"], "rules": rules}}
        self._made_at = time.monotonic()

    async def _hear_others(self, own: Mapping[str, Any]) -> None:
        """Take in what the others have said, and ask again every NETWORK_S. Nobody waits long for
        them: the state has what they said last, and names those that do not answer (``b3: no
        answer``).
        """
        if len(own["network"]["brokers"]) < 2:
            self._take({"brokers": (), "silent": ()}, own["broker"])
            return
        if self._asking is None:
            self._asking = asyncio.create_task(self._network.status())
        await asyncio.wait([self._asking], timeout=OTHERS_S)
        if not self._asking.done():
            return
        asked, self._asking = self._asking, None
        try:
            answer = asked.result()
        except BrokerUnreachable as error:
            self._failures = [str(error)]
            return
        if answer is not self._answer:
            self._answer = answer
            self._take(answer, own["broker"])

    def _take(self, answer: Mapping[str, Any], own: str) -> None:
        others = [one for one in answer["brokers"] if one["broker"] != own]
        here = {one["broker"] for one in others if "totals" in one} | {own}
        self._seen = {name: look for name, look in self._seen.items() if name in here}
        self._look(one for one in others if "totals" in one)
        self._failures = [f"{name}: no answer" for name in answer["silent"]]

    def _look(self, statuses: Iterable[Mapping[str, Any]]) -> None:
        for status in statuses:
            last = self._seen.get(status["broker"])
            before = status if last is None else last.after
            if before is status and last is not None:
                continue  # it was looked at a moment ago
            seconds = status["uptime_s"] - before["uptime_s"]
            if not 0 < seconds < STALE_S:
                before = status  # it was started again, or nobody has looked for long
            self._seen[status["broker"]] = Look(before, status, max(seconds, FRESH_S / 2))

    def _by_what_fires(self, rules: Sequence[Row]) -> list[Row]:
        """Rules with the rate lately; those come first that have found most, then the dearest."""
        now, history = time.monotonic(), self._found
        counts = {rule["name"]: rule["events"] for rule in rules if rule["events"] is not None}
        history.note(counts, now)
        rates = {name: history.lately(name, count, now) for name, count in counts.items()}
        rows = [{**rule, "lately/s": rates.get(rule["name"])} for rule in ordered(rules, "name")]
        return ordered(ordered(rows, "cost_%"), "lately/s")
