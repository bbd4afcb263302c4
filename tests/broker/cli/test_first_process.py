"""A command that is the first process of a container ends when it is told to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
WAIT_S = 30.0


def can_unshare() -> bool:
    return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


def child_of(process: subprocess.Popen[bytes]) -> int:
    """The first process of the namespace, once it is there."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    ends_at = time.monotonic() + WAIT_S
    while not (found := children.read_text().split()):
        assert time.monotonic() < ends_at
        time.sleep(0.01)
    return int(found[0])


@pytest.mark.skipif(not can_unshare(), reason="a namespace of processes cannot be made here")
@pytest.mark.parametrize("words", [("sub", "Temp()"), ("top", "--interval", "0.1")])
def test_it_ends_by_sigterm(endpoint: str, words: tuple[str, ...]) -> None:
    command = [*UNSHARE, sys.executable, "-m", "broker", *words, "--broker", endpoint]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        first = child_of(process)
        caught = Path(f"/proc/{first}/status")
        ends_at = time.monotonic() + WAIT_S
        while not _catches(caught.read_text(), signal.SIGTERM):
            assert time.monotonic() < ends_at
            time.sleep(0.01)
        os.kill(first, signal.SIGTERM)
        assert process.wait(WAIT_S) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert process.stderr.read() == b""


def _catches(status: str, number: int) -> bool:
    """Whether a process handles a signal, as its status in /proc says."""
    (line,) = (line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
