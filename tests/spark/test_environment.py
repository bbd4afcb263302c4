"""What is missing is told in a sentence. Where Spark cannot run, this module alone is collected."""

import importlib.util

import pytest

from broker.spark.environment import SparkUnavailable, local_session, missing


def test_spark_can_run_here():
    reason = missing()
    if reason is not None:
        pytest.skip(f"the tests of Spark are left out: {reason}")
    assert importlib.util.find_spec("pyspark") is not None


def test_a_missing_java_is_told_in_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=r"Spark needs Java 17 or later.*install a runtime"):
        local_session()


def test_a_missing_pyspark_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SparkUnavailable, match=r"pip install rexmq\[spark\]"):
        local_session()
