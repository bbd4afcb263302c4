"""The command ``rexmq connect`` as a process."""

import subprocess
from contextlib import contextmanager

from forked import started


@contextmanager
def connected(file):
    """The connectors of a file, killed at last."""
    with started("connect", str(file), stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()
