"""How much a micro-batch of a stream takes, in the words of Spark 4.2; Spark 4.1 has none of them.

There a stream takes all that there is with each micro-batch, and ``AvailableNow`` is one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

__all__ = ["BOUNDED", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]

BOUNDED = True
"""Whether Spark tells a stream how much to take."""
try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ModuleNotFoundError:
    BOUNDED = False
    if not TYPE_CHECKING:

        class ReadLimit:
            """How much a micro-batch takes."""

        class ReadAllAvailable(ReadLimit):
            """All that there is."""

        @dataclass
        class ReadMaxRows(ReadLimit):
            """So many rows at most."""

            max_rows: int

        class SupportsTriggerAvailableNow:
            """A stream that can end with what there is."""
