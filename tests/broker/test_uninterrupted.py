"""Sections of the main thread: handlers of signals run behind them, and in their sleeps."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from broker.client import uninterrupted
from broker.client.uninterrupted import interruptible, whole


class Rung(Exception):
    pass


def ring(*_: object) -> None:
    raise Rung


@pytest.fixture(autouse=True)
def bell() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, ring)
    yield
    signal.signal(signal.SIGUSR1, before)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def test_what_a_handler_raises_comes_out_behind_the_section() -> None:
    steps = []

    def action() -> None:
        kill()
        steps.append("whole")

    with pytest.raises(Rung):
        whole(whole, action)
    assert steps == ["whole"]
    assert signal.getsignal(signal.SIGUSR1) is ring


def test_a_sleep_is_interrupted_and_what_follows_it_is_whole() -> None:
    steps = []

    def action() -> None:
        try:
            interruptible(time.sleep, 30)
        finally:
            kill()
            steps.append("whole")

    threading.Timer(0.1, kill).start()
    begun = time.monotonic()
    with pytest.raises(Rung):
        whole(action)
    assert steps == ["whole"]
    assert time.monotonic() - begun < 20


def test_what_came_before_the_sleep_is_heard_in_it() -> None:
    def action() -> None:
        kill()
        interruptible(pytest.fail, "it slept")

    with pytest.raises(Rung):
        whole(action)


def test_a_handler_that_is_changed_meanwhile_stays_changed() -> None:
    heard = []

    def change(*_: object) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))

    signal.signal(signal.SIGUSR1, change)
    whole(interruptible, kill)
    whole(kill)
    kill()
    assert heard == [1, 1]


def test_every_step_of_many_sections_is_whole() -> None:
    """Signals come as fast as they can, at any step of what leads in and out, too."""
    steps = [0, 0]

    def action() -> None:
        steps[0] += 1
        interruptible(int)
        steps[1] += 1

    rung, until = 0, time.monotonic() + 1
    signal.signal(signal.SIGALRM, ring)
    while time.monotonic() < until:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0001)
            for _ in range(1_000):
                whole(action)
        except Rung:
            rung += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert rung > 50
    assert uninterrupted._main.depth == 0
    assert steps[0] - steps[1] <= rung  # a sleep that was interrupted is none


def test_other_threads_are_not_concerned() -> None:
    def action() -> None:
        thread = threading.Thread(target=whole, args=(kill,))
        thread.start()
        thread.join()
        assert uninterrupted._main.depth == 1

    with pytest.raises(Rung):
        whole(action)


def test_a_child_that_is_forked_in_a_section_is_in_none() -> None:
    def fork() -> int:
        child = os.fork()
        if child == 0:
            try:
                kill()
                os._exit(1)
            except Rung:
                os._exit(7)
        return child

    found: list[int] = []

    def in_thread() -> None:
        found.append(whole(fork))

    def action() -> None:
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()

    whole(action)
    assert os.waitstatus_to_exitcode(os.waitpid(found[0], 0)[1]) == 7
