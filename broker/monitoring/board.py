"""The state that the page shows, made at most once a second while somebody looks.

Law: however many look, each broker is asked once a second, and none while nobody looks. Brokers
that cannot be asked are left out, and the state says which: ``http://127.0.0.1:9465: no answer``.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from broker.monitoring.figures import Row, ordered
from broker.monitoring.gathered import Look
from broker.monitoring.history import History
from broker.monitoring.looks import FRESH_S, Looks
from broker.monitoring.view import view
from broker.monitoring.windows import Window, windowed
from matcher.model import MICROSECONDS

STALE_S = 10.0
"""An earlier look that is older tells no rates."""
OTHERS_S = 2.0
"""For so long another broker's answer is awaited."""
ANSWER_BYTES_MAX = 64 * 2**20


class Board:
    """The network as ``looks`` at the broker, and the pages of ``others``, tell of it."""

    def __init__(self, looks: Looks, others: Sequence[str], token: str | None) -> None:
        self._looks = looks
        self._others = others
        self._token = token
        self._found = History()
        """Counts of composite events, by rule."""
        self._last: dict[str, tuple[Mapping[str, Any], float]] = {}
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

    async def _make(self) -> None:
        asked = [asyncio.to_thread(_status_at, one, self._token) for one in self._others]
        own, *others = await asyncio.gather(self._looks.status(), *asked)
        failures = [one for one in others if isinstance(one, str)]
        statuses = [own, *(one for one in others if not isinstance(one, str))]
        looks = {one["broker"]: self._look(one) for one in reversed(statuses)}
        clock = round(time.time() * MICROSECONDS)
        state = await asyncio.to_thread(view, looks, own["broker"], clock, failures)
        rules = self._by_what_fires(state["lists"]["rules"])
        self._state = {**state, "lists": {**state["lists"], "rules": rules}}
        self._made_at = time.monotonic()

    def _by_what_fires(self, rules: Sequence[Row]) -> list[Row]:
        """Rules with the rate lately; those come first that have found most, then the dearest."""
        now, history = time.monotonic(), self._found
        counts = {rule["name"]: rule["events"] for rule in rules if rule["events"] is not None}
        history.note(counts, now)
        rates = {name: history.lately(name, count, now) for name, count in counts.items()}
        rows = [{**rule, "lately/s": rates.get(rule["name"])} for rule in ordered(rules, "name")]
        return ordered(ordered(rows, "cost_%"), "lately/s")

    def _look(self, status: Mapping[str, Any]) -> Look:
        now = time.monotonic()
        before, at = self._last.get(status["broker"], (status, now))
        if before["uptime_s"] > status["uptime_s"] or now - at > STALE_S:
            before, at = status, now  # it was started again, or nobody has looked for long
        self._last[status["broker"]] = status, now
        return Look(before, status, max(now - at, FRESH_S / 2))


def _status_at(address: str, token: str | None) -> Mapping[str, Any] | str:
    """The status that another broker's page shows, or why there is none."""
    request = urllib.request.Request(f"{address}/status.json")
    if token is not None:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=OTHERS_S) as answer:
            found: Mapping[str, Any] = json.loads(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        return f"{address}: {error.code} {error.reason}"
    except (OSError, ValueError) as error:
        return f"{address}: {getattr(error, 'reason', error) or 'no answer'}"
    return found
