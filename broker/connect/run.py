"""Running the connectors of a file until a signal, or until one of them fails."""

from __future__ import annotations

import asyncio
import signal

from broker.connect.configuration import Connectors
from broker.connect.pumps import SinkPump, SourcePump


def run(connectors: Connectors) -> None:
    """Pump until SIGTERM or SIGINT, or until all that there is to pump was. Raises BrokerError."""
    asyncio.run(_run(connectors))


async def _run(connectors: Connectors) -> None:
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    pumps: list[SourcePump | SinkPump] = [*connectors.sources, *connectors.sinks]
    tasks = [asyncio.create_task(pump.run(connectors.address)) for pump in pumps]
    over = asyncio.create_task(asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION))
    ending = asyncio.create_task(end.wait())
    await asyncio.wait([over, ending], return_when=asyncio.FIRST_COMPLETED)
    for task in (*tasks, over, ending):
        task.cancel()
    failures = await asyncio.gather(*tasks, return_exceptions=True)
    for failure in failures:
        _raise(failure)


def _raise(failure: object) -> None:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, Exception):
        raise failure
