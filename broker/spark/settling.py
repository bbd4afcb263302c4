"""Objects that a worker of Python's has loaded are kept out of its collector's way.

Spark has its workers collect after each task, walking through all that they have loaded: a tenth of
a second each time, most of a short task.

Law: with the first task of each kind, what lives by then is frozen, once garbage has been let go:
the collector looks at it no more. That is done so few times that whatever becomes a ring of garbage
afterwards is little; everything else goes when nothing refers to it.
"""

from __future__ import annotations

import functools
import gc

from pyspark import TaskContext


def settle(kind: str) -> None:
    """Freeze what has been loaded by the end of the first task of this ``kind``; does nothing
    outside of Spark's workers.
    """
    if TaskContext.get() is not None:
        _freeze(kind)


@functools.cache
def _freeze(kind: str) -> None:
    gc.collect()
    gc.freeze()
