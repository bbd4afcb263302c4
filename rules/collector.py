"""Garbage collection, put off while very many small objects are made that are there to stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection meanwhile; also a decorator, ``@collector_paused()``.

    Tokens, trees and checked rules hold no cycles, and the collector would walk through them
    over and over while they are made: for half of the time that it takes to make them. Whoever
    finds it paused already leaves it so.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
