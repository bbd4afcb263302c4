"""Errors of ours as Spark passes them on.

A worker's error comes to the user as text: a traceback of the worker, and around it Spark's own of
the driver; of a stream, its plan besides. Law: an error that we raise on purpose leaves a worker as
its sentence alone; and ``readable_errors`` lets nothing but that sentence through.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator

from pyspark.errors import PySparkException

from broker.errors import BrokerError
from matcher.errors import EventError
from rules.errors import RuleErrors

OURS: tuple[type[Exception], ...] = (BrokerError, EventError, RuleErrors)
"""Errors that say by themselves what is wrong."""
_HIDES = "SPARK_HIDE_TRACEBACK"
"""A variable that PySpark's workers look at as they end with an error, which they do not survive.
"""
_TOLD = re.compile(
    r"(?:broker|matcher|rules|routing)(?:\.\w+)+\.(\w+: .+?)(?=\s*SQLSTATE: |\n\tat |\Z)", re.DOTALL
)


class SparkFailed(BrokerError):
    """A task or a stream ended with an error of ours, which is the message."""


@contextlib.contextmanager
def in_a_sentence(*others: type[Exception]) -> Iterator[None]:
    """Let errors of ours, and ``others``, leave a worker of Spark's without its traceback."""
    try:
        yield
    except (*OURS, *others):
        if _is_worker():
            os.environ[_HIDES] = "1"
        raise


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Raise SparkFailed, in one sentence, where Spark raises an error of ours; any other error of
    Spark's goes on as it is.
    """
    try:
        yield
    except PySparkException as error:
        told = told_by(str(error))
        if told is None:
            raise
        raise SparkFailed(told) from None


def told_by(text: str) -> str | None:
    """The last error of ours in a text of Spark's; None where there is none."""
    found = _TOLD.findall(text)
    return found[-1].strip() if found else None


def _is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith(("pyspark.", "broker.spark.daemon"))
