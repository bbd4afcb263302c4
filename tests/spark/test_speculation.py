"""Speculation on a cluster of two hosts: Spark starts no second attempt on that of the first."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from quick_java import QUICK

from broker import RuleManager, Subscriber
from broker.process import BrokerProcess

HOME = Path(pyspark.__file__).parent
ROWS = 40_000
DRIVER = f"""
import sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions as f
from broker.spark import register

def hang(batches):
    context = TaskContext.get()
    for number, batch in enumerate(batches):
        yield batch
        if number == 1 and context.partitionId() == 1 and context.attemptNumber() == 0:
            time.sleep(3600)

settings = {{
    "ui.enabled": "false", "executor.memory": "512m", "executor.cores": "1",
    "driver.memory": "512m", "driver.host": "127.0.0.1", "speculation": "true",
    "speculation.quantile": "0.5", "speculation.minTaskRuntime": "1s",
    "sql.execution.arrow.maxRecordsPerBatch": "2000",
    "sql.session.timeZone": "UTC", "driver.extraJavaOptions": sys.argv[3],
    "executor.extraJavaOptions": sys.argv[3],
}}
builder = SparkSession.builder.master(sys.argv[1])
for name, value in settings.items():
    builder = builder.config("spark." + name, value)
spark = builder.getOrCreate()
register(spark)
n = f.col("id")
rows = spark.range(0, {ROWS}, 1, 2).select(f.timestamp_seconds(n).alias("time"), n.alias("n"))
written = rows.mapInArrow(hang, rows.schema).write.format("rexmq")
written.options(broker=sys.argv[2], type="Row", id="n").mode("append").save()
"""


@pytest.fixture
def cluster(tmp_path) -> Iterator[str]:
    """The address of a cluster of Spark's own, of two hosts with a core each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port)]
    size = ["--cores", "1", "--memory", "1g"]
    workers = [
        ["worker.Worker", "--host", host, *size, "--work-dir", str(tmp_path / host), address]
        for host in ("127.0.0.2", "127.0.0.3")
    ]
    named = os.environ | {"SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m"}
    named["SPARK_DAEMON_JAVA_OPTS"] = QUICK
    with ExitStack() as stack:
        for arguments in (master, *workers):
            program = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{arguments[0]}"]
            process = subprocess.Popen(
                [*program, *arguments[1:], "--webui-port", "0"],
                env=named,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield address


def test_a_task_that_hangs_is_superseded_by_its_second_attempt(cluster):
    """The first hangs with a part of its rows published: no row is lost, none comes twice, and no
    part is left behind for which rules would wait.
    """
    python = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with BrokerProcess("--engine", "naive") as broker:
        with Subscriber(broker.endpoint, "Row()") as subscriber:
            subprocess.run(
                [sys.executable, "-c", DRIVER, cluster, broker.endpoint, QUICK],
                env=python,
                check=True,
                timeout=500,
            )
            values: list[int] = []
            while len(values) < ROWS:
                for batch in subscriber.receive_delivery(timeout_s=60).batches:
                    values += batch.columns[0].tolist()
        assert sorted(values) == [*range(ROWS)]
        with RuleManager(broker.endpoint) as manager:
            sources = {one["name"]: one for one in manager.status()["sources"]}
        assert {one["standing"] for one in sources.values()} == {"closed"}
        assert sum(one["events"] for one in sources.values()) == ROWS
