"""Trials of the playground, each in a process of its own that is ended when it takes too long."""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any

from broker.monitoring.trial import Request

TRIAL_S = 30.0
WAITING_MAX = 4
"""So many may have a trial, or wait for one."""
LONGEST_S = (WAITING_MAX + 1) * TRIAL_S
"""The longest that a trial takes with the wait for it."""


class Busy(Exception):
    """Another trial is under way."""


class Bench:
    """Runs trials.

    One runs at a time, for ``TRIAL_S`` at most. Who asks meanwhile waits for its turn, once, and
    behind those who have waited before; so who asks again and again has every second trial at most.
    A process that has its imports waits for the next one, so that ``run`` over a small file takes a
    part of a second, not two.
    """

    def __init__(self) -> None:
        self._running = asyncio.Lock()  # whose waiters have their turn in order
        self._asking: set[str] = set()
        self._spare: Process | None = None

    def verify_free(self, asker: str) -> None:
        """Raise Busy unless somebody has a place here."""
        if asker in self._asking or len(self._asking) >= WAITING_MAX:
            raise Busy

    async def run(self, request: Request, asker: str) -> dict[str, Any]:
        """The answer to a request of somebody. Raises Busy."""
        self.verify_free(asker)
        self._asking.add(asker)
        try:
            async with self._running:
                return await self._run(request)
        finally:
            self._asking.remove(asker)

    async def _run(self, request: Request) -> dict[str, Any]:
        process = self._spare or await self._start()
        self._spare = None
        try:
            async with asyncio.timeout(TRIAL_S):
                found, _ = await process.communicate(pickle.dumps(request))
        except TimeoutError:
            return {"error": f"it took longer than {TRIAL_S:g} s, and was ended"}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        self._spare = await self._start()
        if process.returncode:
            return {"error": f"it was ended: exit status {process.returncode}"}
        answer: dict[str, Any] = json.loads(found)
        return answer

    async def close(self) -> None:
        """End the process that waits."""
        if self._spare is not None and self._spare.returncode is None:
            self._spare.kill()
            await self._spare.wait()

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "broker.monitoring.trial",
            stdin=PIPE,
            stdout=PIPE,
            limit=2**26,
        )
