"""Pages that a broker gives back once its kernels are loaded."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.library_pages import _unwritten

SMAPS = Path("/proc/self/smaps")
MAPS = """\
10000-20000 r--p 00000000 08:01 5 /lib/libllvmlite.so
Rss:                  64 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
20000-50000 r-xp 00010000 08:01 5 /lib/libllvmlite.so
Anonymous:             0 kB
50000-60000 r--p 00040000 08:01 5 /lib/libllvmlite.so
Anonymous:            64 kB
60000-70000 rw-p 00050000 08:01 5 /lib/libllvmlite.so
Anonymous:             0 kB
70000-80000 r-xp 00000000 08:01 6 /lib/libz.so
Anonymous:             0 kB
80000-90000 rw-p 00000000 00:00 0
Anonymous:             0 kB
90000-a0000 r-xp 00000000 08:01 7 /lib/libllvmlite.so (deleted)
"""
COMPILES = """
import numba, sys
from runtime.library_pages import give_back
for add in (1, 2):
    function = numba.njit(lambda number: number + add)
    print(function(1))
    give_back()
"""
STARTED_MB = 150


def test_what_was_written_stays() -> None:
    assert [*_unwritten(MAPS, "libllvmlite")] == [(0x10000, 0x10000), (0x20000, 0x30000)]


def test_compiling_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "3"], done.stderr


@pytest.mark.skipif(not SMAPS.exists(), reason="it says what a process holds")
def test_a_broker_that_has_started_holds_little() -> None:
    command = [sys.executable, "-m", "broker", "broker", "--listen", "tcp://127.0.0.1:*"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()  # where it listens, once it has started
        status = Path(f"/proc/{broker.pid}/status").read_text()
        broker.terminate()
    held = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert held is not None
    assert int(held[1]) < STARTED_MB << 10
