"""Checks of rules as somebody types, by the compiler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from broker.monitoring.bench import Bench
from broker.monitoring.trial import Request, checked
from broker.monitoring.turns import Turns

QUICK_CHARACTERS = 2**14


class Checks:
    """Checks texts, the long ones on ``bench``.

    Nobody's texts keep the page from others. A text of up to ``QUICK_CHARACTERS`` is checked by the
    one thread that is there for it, in turns: of each who asks one text at a time. A longer one is
    a trial (broker.monitoring.bench), in a process that ends when it takes too long.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._turns = Turns()
        self._thread = ThreadPoolExecutor(1, "checks")

    async def problems(self, text: str, schemas: Sequence[str], asker: str) -> Mapping[str, Any]:
        """The problems of a text, and its rules. Raises Busy."""
        if len(text) + sum(map(len, schemas)) > QUICK_CHARACTERS:
            return await self._bench.run(Request("check", text=text, schemas=tuple(schemas)), asker)
        loop = asyncio.get_running_loop()
        async with self._turns.of(asker):
            return await loop.run_in_executor(self._thread, checked, text, schemas)

    async def names(self, text: str, schemas: Sequence[str], asker: str) -> Iterable[str]:
        """The names of the rules of a text; none if something is wrong with it. Raises Busy."""
        names: Iterable[str] = (await self.problems(text, schemas, asker)).get("rules", ())
        return names

    def close(self) -> None:
        """Check nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
