"""Work that is spread over processes, which end with the one that waits for them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from types import TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
INTERRUPT = (signal.SIGINT,)


class Processes(ProcessPoolExecutor):
    """Up to ``count`` fresh processes, each of which prepares first. Used by one thread.

    If whoever waits for them leaves off, by Ctrl-C above all, no process is left behind, and none
    says a word of it. A process sees by itself that its parent was ended by force.
    """

    def __init__(self, count: int, prepare: Callable[[], None] | None = None) -> None:
        super().__init__(count, get_context("spawn"), _begin, (prepare,))
        self._others = set(active_children())

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As of any executor, but for ever: it cannot be cancelled.

        Python 3.11 prints a traceback where processes are gone that cancelled work was waiting for.
        """
        with _uninterrupted():  # it may begin a process, which then is deaf until it has begun
            future = super().submit(fn, *args, **kwargs)
        future.cancel = _refuse  # type: ignore[method-assign]
        return future

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if kind is not None:
            for process in set(active_children()) - self._others:
                process.terminate()
        return super().__exit__(kind, error, trace)


def _refuse() -> bool:
    return False


def _begin(prepare: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which ends it without a traceback
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
    Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let SIGINT wait, here and in what is begun meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
