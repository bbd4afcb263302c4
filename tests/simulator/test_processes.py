"""Work that is spread over processes ends with the one who waits for it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from simulator.processes import Processes

SLEEPERS = """
import os, time
from simulator.processes import Processes

def sleep(number):
    os.write(1, b"%d\\n" % number)  # whole, whatever the other writes
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


@pytest.fixture
def sleepers(tmp_path) -> Iterator[subprocess.Popen]:
    """A process that waits for two others; nothing of all that is to be left in the end."""
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
        yield running
    for _ in range(600):
        if not any_left(running.pid):
            return
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    raise AssertionError("a process was left behind")


@pytest.mark.parametrize("whom", [os.killpg, os.kill])
def test_an_interrupt_ends_all_of_them_without_a_word(sleepers, whom) -> None:
    """At a terminal all processes hear of it; from another program only the first does."""
    whom(sleepers.pid, signal.SIGINT)
    output, errors = sleepers.communicate(timeout=60)
    assert sleepers.returncode == -signal.SIGINT
    assert output == ""
    assert errors.count("Traceback") == 1  # of the one that waits, which has no command's guard


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_they_end_with_one_that_is_ended_by_force(sleepers, number) -> None:
    sleepers.send_signal(number)
    assert sleepers.communicate(timeout=60)[0] == ""
    assert sleepers.returncode == -number


def any_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
