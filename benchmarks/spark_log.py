"""What Spark's own log of a session tells of its work: what was shuffled, and memory."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

LOGGED = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
    "spark.eventLog.logStageExecutorMetrics": "true",
    "spark.executor.processTreeMetrics.enabled": "true",
    "spark.executor.metrics.pollingInterval": "200ms",
}
"""The settings of a session that tells what was shuffled and how much memory its workers took; the
log is at ``spark.eventLog.dir``.
"""


def used(log: Path) -> dict[str, float]:
    """What Spark's log of a session tells: bytes shuffled by the stage that shuffled the most, and
    the most that Python's workers had in memory together, as far as it was looked at.
    """
    shuffled: Counter[int] = Counter()
    memory = 0
    for path in log.iterdir():
        for line in path.open(encoding="utf-8"):
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd":
                written = (event.get("Task Metrics") or {}).get("Shuffle Write Metrics", {})
                shuffled[event["Stage ID"]] += written.get("Shuffle Bytes Written", 0)
            elif event["Event"] == "SparkListenerStageExecutorMetrics":
                peaks = event["Executor Metrics"]
                memory = max(memory, peaks.get("ProcessTreePythonRSSMemory", 0))
    return {"shuffled, bytes": max(shuffled.values(), default=0), "workers, bytes": memory}
