"""Needs of Spark on a machine, and a session on this one.

Spark's own words for a missing Java are a stack trace; ours are a sentence.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from broker.errors import BrokerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


JAVA_MIN = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class SparkUnavailable(BrokerError):
    """Spark cannot run here; the message says what to install."""


def missing() -> str | None:
    """The reason why Spark cannot run here, as a sentence; None when nothing does."""
    if importlib.util.find_spec("pyspark") is None:
        return "Spark needs the package pyspark, which is not installed: pip install rexmq[spark]"
    return missing_java()


def missing_java() -> str | None:
    """The same of Java alone, whether or not pyspark is installed."""
    program = _java()
    if program is None:
        found = "there is no java on the PATH nor under JAVA_HOME"
    else:
        version = _version(program)
        if version >= JAVA_MIN:
            return None
        found = f"{program} is of version {version or 'none that it tells'}"
    return (
        f"Spark needs Java {JAVA_MIN} or later, and {found}: install a runtime (Debian, Ubuntu: "
        f"apt install openjdk-17-jre-headless), or set JAVA_HOME to one"
    )


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
        "spark.python.daemon.module": "broker.spark.daemon",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("rexmq")
    for key, value in {**ours, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def cores_of(session: SparkSession) -> int:
    """How many tasks run at once, as Spark assumes where nothing else is said."""
    context = getattr(session, "_sc", None)
    if context is not None:
        return int(context.defaultParallelism)
    from pyspark.sql.functions import spark_partition_id  # Spark Connect has no context

    return session.range(1 << 16).select(spark_partition_id()).distinct().count()


def verify_workers(session: SparkSession) -> None:
    """Raise SparkUnavailable where the Python that workers of this machine run has no RexMQ.

    A session that was not told which Python to run takes ``python3`` from the PATH, also where this
    program runs in a virtual environment. What workers on other machines run is not looked at.
    """
    context = getattr(session, "_sc", None)
    if context is not None and context.master.startswith("local"):
        _verify_worker(context.pythonExec)


@cache
def _verify_worker(program: str) -> None:
    found = shutil.which(program)
    if found == sys.executable or (found is not None and _has_rexmq(found)):
        return
    raise SparkUnavailable(
        f"Spark's Python workers run {program} ({found or 'not found'}), where RexMQ is not "
        f"installed: set PYSPARK_PYTHON={sys.executable} before the session is made, or make it "
        f"with broker.spark.local_session()"
    )


def _has_rexmq(program: str) -> bool:
    looked = "import importlib.util, sys; sys.exit(importlib.util.find_spec('broker') is None)"
    return subprocess.run([program, "-c", looked], capture_output=True, check=False).returncode == 0


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        return str(program) if program.exists() else None
    return shutil.which("java")


def _version(program: str) -> int:
    """The major version that a Java tells; 0 where it tells none."""
    try:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(told.stderr)
    return int(found[1]) if found else 0
