"""Work that is spread over processes, which an interrupt ends with the one that waits for them.

Law: who leaves off waiting for what is under way, by Ctrl-C above all, leaves no process behind,
and none of them says a word of it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from types import TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
INTERRUPT = (signal.SIGINT,)


class Processes(ProcessPoolExecutor):
    """Up to ``count`` fresh processes, each of which prepares first. Used by one thread."""

    def __init__(self, count: int, prepare: Callable[[], None] | None = None) -> None:
        super().__init__(count, get_context("spawn"), _begin, (prepare,))
        self._others = set(active_children())

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As of any executor. It may begin a process, which then is deaf until it has begun."""
        with _uninterrupted():
            return super().submit(fn, *args, **kwargs)

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


def _begin(prepare: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which ends it without a traceback
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
    if prepare is not None:
        prepare()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let SIGINT wait, here and in what is begun meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
