"""Tests of studies that compute on a device, under numba's simulator of one.

It must be on before numba is imported, so they run in a process of their own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(1200)
def test_everything_holds_under_the_simulator() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o"]
    done = subprocess.run(
        [*command, "timeout=600", str(ROOT / "studies" / "tests" / "device")],
        cwd=ROOT,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(\d+) passed", done.stdout), done.stdout
