"""The command ``rexmq connect`` as a process."""

import asyncio
import subprocess
from contextlib import contextmanager

from forked import started

from broker.connect.systems import Pending


@contextmanager
def connected(file, **options):
    """The connectors of a file, killed at last."""
    with started("connect", str(file), stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


async def confirmed(taker, message):
    """Send one message, and wait until it is confirmed; raises why it never will be."""
    done = asyncio.get_running_loop().create_future()

    def told(_, error):
        done.set_result(None) if error is None else done.set_exception(error)

    await taker.send([Pending(message, 1, told)])
    await done
