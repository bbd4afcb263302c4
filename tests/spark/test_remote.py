"""Spark Connect: a session without a JVM of its own, at a server, finds what any session finds."""

import importlib.util
import os
import subprocess
import sys

import pytest
from quick_java import QUICK

from broker.process import BrokerProcess

CLIENT = """
import sys
from pyspark.sql import SparkSession, functions as f
from broker.spark import detect, explain_plan, of_type, publish, register
from broker.spark import readable_errors
from matcher.errors import EventError

endpoint, folder = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
spark.conf.set("spark.sql.shuffle.partitions", "2")
register(spark)
rules = '''event T(area: string, value: float)
rule hot: define Hot(area: string, n: int) from T(area = $a, value > 45) as t
where area = $a, n = Count(T(area = $a) within 1 min from t)'''
n = f.col("id")
rows = spark.range(2000).select(
    f.timestamp_seconds(1.7e9 + n).alias("time"), f.lit("s").alias("source"), n.alias("sequence"),
    f.concat(f.lit("a"), (n % 3).cast("string")).alias("area"),
    (n % 50).cast("double").alias("value"),
)
rows.write.parquet(folder + "/rows")
files = spark.read.parquet(folder + "/rows")
told = explain_plan({"T": files}, rules)
assert "read by Spark, for Spark Connect does not show its plan" in told
assert of_type(detect({"T": files}, rules), "Hot").count() == 160
assert publish({"T": rows}, endpoint).events == 2000
log = {"broker": endpoint, "subscribe": "T()"}
assert spark.read.format("rexmq").options(**log).load().count() == 2000
try:
    with readable_errors():
        detect({"T": rows.withColumn("value", f.lit(None).cast("double"))}, rules).count()
except EventError as error:
    assert "attribute value: expected float, found null" in str(error), error
spark.stop()
"""


@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="no pyspark[connect]")
def test_a_session_of_spark_connect_does_what_any_session_does(tmp_path):
    python = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with BrokerProcess("--data", str(tmp_path / "store"), "--engine", "naive") as broker:
        subprocess.run(
            [sys.executable, "-c", CLIENT, broker.endpoint, str(tmp_path)],
            env=python | {"SPARK_SUBMIT_OPTS": QUICK},  # of the server, which it starts
            check=True,
            timeout=550,
        )
