"""What is missing is told in a sentence. Where Spark cannot run, this module alone is collected."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest

from broker.spark.environment import (
    SparkUnavailable,
    local_session,
    missing,
    missing_java,
    verify_workers,
)


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


@pytest.mark.parametrize(
    ("told", "said"),
    [("1.8.0_392", "version 8:"), ("11.0.2", "version 11:"), ("17.0.15", None), ("25", None)],
)
def test_a_java_that_is_too_old_is_told_with_its_version(monkeypatch, tmp_path, told, said):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{told}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    reason = missing_java()
    assert reason is None if said is None else said in reason


def test_a_missing_pyspark_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SparkUnavailable, match=r"pip install rexmq\[spark\]"):
        local_session()


class Session:
    """A session, of which the check looks at the context alone."""

    def __init__(self, program: str) -> None:
        self._sc = SimpleNamespace(master="local[2]", pythonExec=program)


def test_workers_without_rexmq_are_refused_in_a_sentence(tmp_path):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E -P "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(SparkUnavailable, match=r"bare .*is not installed: set PYSPARK_PYTHON="):
        verify_workers(Session(str(bare)))


def test_workers_of_this_python_are_taken():
    verify_workers(Session(sys.executable))


def test_another_python_that_has_rexmq_is_taken(tmp_path):
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    verify_workers(Session(str(other)))
