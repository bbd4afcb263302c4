"""The process that Spark forks Python's workers from, with what they need imported before.

``local_session`` has Spark run it in place of its own, which imports nothing: each worker would
then take a second for the same modules, and again whenever Spark has let an idle one go.
"""

from __future__ import annotations

import gc
import importlib
import os

MODULES = (
    "broker.spark.detection",
    "broker.spark.memory",
    "broker.spark.source",
    "rules.engine.cdp",
)


def main() -> None:
    """Fork workers for as long as Spark asks for them."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for threads do not come into a fork
    for name in MODULES:
        importlib.import_module(name)
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
