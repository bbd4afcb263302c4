"""Work that is spread over processes ends with the one who waits for it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from simulator.processes import Processes

SLEEPERS = """
import sys, time
from simulator.processes import Processes

def sleep(number):
    print(number, flush=True)
    time.sleep(600)

if __name__ == "__main__":
    with Processes(2) as pool:
        list(pool.map(sleep, range(8)))
"""


def test_results_come_in_the_order_of_the_tasks() -> None:
    with Processes(2) as pool:
        assert list(pool.map(abs, range(-20, 0), chunksize=3)) == list(range(20, 0, -1))


def test_an_error_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ZeroDivisionError), Processes(2) as pool:
        list(pool.map(divmod, [4, 1], [2, 0]))


@pytest.mark.parametrize("whom", [os.killpg, os.kill])
def test_an_interrupt_ends_all_of_them_without_a_word(tmp_path, whom) -> None:
    """At a terminal all processes hear of it; from another program only the first does."""
    (tmp_path / "sleepers.py").write_text(SLEEPERS)
    running = subprocess.Popen(
        [sys.executable, str(tmp_path / "sleepers.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with running:
        assert {running.stdout.readline() for _ in range(2)} == {"0\n", "1\n"}
        whom(running.pid, signal.SIGINT)
        output, errors = running.communicate(timeout=60)
        assert running.returncode == -signal.SIGINT
        assert output == ""
        assert errors.count("Traceback") == 1  # of the one that waits, which has no command's guard
    for _ in range(100):
        if not any_left(running.pid):
            return
        time.sleep(0.1)
    raise AssertionError("a process was left behind")


def any_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
