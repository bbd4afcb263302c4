"""Rules and brokers for Apache Spark: the engine over DataFrames, and a data source.

``detect`` runs rules over recorded events that outgrow one machine, and finds what
``rexmq detect`` finds. Each module has one responsibility: ``frames`` brings DataFrames into one
form, ``identity`` names their rows, ``look`` takes a first look at them, ``cells`` cuts them,
``task`` runs the engine over a piece, ``composites`` gives its results in columns, ``detection``
puts these together. ``environment`` says what is missing where Spark cannot run.

pyspark is imported in this package alone, and by nothing outside it; what is exported here is
imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.spark.composites import of_type
    from broker.spark.detection import detect, explain_plan, rejected
    from broker.spark.environment import SparkUnavailable, local_session

_HOMES = {
    "SparkUnavailable": "broker.spark.environment",
    "detect": "broker.spark.detection",
    "explain_plan": "broker.spark.detection",
    "local_session": "broker.spark.environment",
    "of_type": "broker.spark.composites",
    "rejected": "broker.spark.detection",
}

__all__ = [
    "SparkUnavailable",
    "detect",
    "explain_plan",
    "local_session",
    "of_type",
    "rejected",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'broker.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
