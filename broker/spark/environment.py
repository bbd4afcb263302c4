"""What Spark needs of a machine, and a session on this one.

Spark's own words for a missing Java are a stack trace; ours are a sentence.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from broker.errors import BrokerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkUnavailable(BrokerError):
    """Spark cannot run here; the message says what to install."""


def missing() -> str | None:
    """What keeps Spark from running here, as a sentence; None when nothing does."""
    if importlib.util.find_spec("pyspark") is None:
        return "Spark needs the package pyspark, which is not installed: pip install rexmq[spark]"
    if _java() is None:
        return (
            "Spark needs Java 17 or later, and there is no java on the PATH nor under JAVA_HOME: "
            "install a runtime (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set "
            "JAVA_HOME to one"
        )
    return None


def local_session(
    cores: int = 2, memory: str = "2g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with ``cores`` cores of this machine; the one there is, if there is one.

    ``memory`` is that of Spark's own process, in Java's notation; Python's comes on top.
    ``settings`` go before ours. Raises SparkUnavailable.
    """
    reason = missing()
    if reason is not None:
        raise SparkUnavailable(reason)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    ours = {
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("rexmq")
    for key, value in {**ours, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        return str(program) if program.exists() else None
    return shutil.which("java")
