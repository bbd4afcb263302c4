"""Garbage collection, put off where very many small objects are made that hold no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 50_000
"""So many new objects, and more, are not looked through when they are done."""
PATIENT = 500_000, 20, 20
"""So many new objects before a walk through the young ones, and so many walks through a generation
before one through the next, where the collector is patient."""


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
            if gc.get_count()[0] > MANY:
                _let_age()
            gc.enable()


@contextmanager
def collector_patient() -> Iterator[None]:
    """Fewer garbage collections meanwhile; also a decorator, ``@collector_patient()``.

    Messages, marks and events come and go by the million and hold no cycles, and each of the many
    walks through the young ones leads to some through all that a simulated network is made of.
    """
    before = gc.get_threshold()
    gc.set_threshold(*PATIENT)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _let_age() -> None:
    """Count all objects as old, without the walk through them that would be due at once.

    What there is of garbage among them waits for the next look at old ones. So this is not for a
    few objects, lest it be done time and again and that look never come; nor where somebody has
    frozen objects, which would have to be thawed.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
