"""Rules and brokers for Apache Spark: the engine over DataFrames, and a data source.

``detect`` runs rules over recorded events that outgrow one machine, and finds what
``rexmq detect`` finds; ``detect_stream`` does so over structured streams. The data source ``rexmq``
writes DataFrames and streams to brokers and reads from them; ``publish`` writes recorded events in
order of time.

Each module has one responsibility. ``frames`` brings DataFrames into one form, ``instants`` reads
their times, ``identity`` names their rows, ``request`` checks what is asked, ``columns`` goes
between Arrow and events, ``mixing`` hashes keys. For ``detect``, ``portions`` tells what each pass
wants, ``scans`` finds frames that are nothing but Parquet files, which workers read by ``parquet``,
``blocks`` makes few rows of many events in as few bytes as ``narrowing`` finds, ``look`` takes a
first look at these, ``cells`` cuts them, ``direct`` lets tasks read files without any of this where
that is better, ``task`` runs the engine over a piece, ``composites`` gives its results in columns,
and ``detection`` puts these together.
For ``detect_stream``, ``packing`` makes few rows of a micro-batch, ``memory`` is what a cell keeps,
``remaining`` reads that out of a checkpoint, and ``streaming`` puts these together. For the data
source, ``options`` are read, ``outgoing`` makes events of rows, ``delivery`` gets them to a broker,
``writers`` and ``reading`` are what ``source`` gives to Spark, and ``publishing`` sorts and cuts
what is written. ``environment`` says what is missing where Spark cannot run, ``errors`` what went
wrong where it did.

pyspark is imported in this package alone, and by nothing outside it; what is exported here is
imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.spark.composites import of_type, write_by_type
    from broker.spark.detection import detect, explain_plan, rejected
    from broker.spark.environment import SparkUnavailable, local_session
    from broker.spark.errors import SparkFailed, readable_errors
    from broker.spark.identity import identified
    from broker.spark.publishing import publish
    from broker.spark.source import register
    from broker.spark.streaming import detect_remaining, detect_stream

_HOMES = {
    "SparkFailed": "broker.spark.errors",
    "SparkUnavailable": "broker.spark.environment",
    "detect": "broker.spark.detection",
    "detect_remaining": "broker.spark.streaming",
    "detect_stream": "broker.spark.streaming",
    "explain_plan": "broker.spark.detection",
    "identified": "broker.spark.identity",
    "local_session": "broker.spark.environment",
    "of_type": "broker.spark.composites",
    "publish": "broker.spark.publishing",
    "readable_errors": "broker.spark.errors",
    "register": "broker.spark.source",
    "rejected": "broker.spark.detection",
    "write_by_type": "broker.spark.composites",
}

__all__ = [
    "SparkFailed",
    "SparkUnavailable",
    "detect",
    "detect_remaining",
    "detect_stream",
    "explain_plan",
    "identified",
    "local_session",
    "of_type",
    "publish",
    "readable_errors",
    "register",
    "rejected",
    "write_by_type",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'broker.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
