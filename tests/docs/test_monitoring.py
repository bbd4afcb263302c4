"""Metrics are those of the page, and examples for operators use no others."""

import json
import re
from pathlib import Path

from lone import lone

from broker.monitoring.metrics import families
from routing.config import NodeConfig

ROOT = Path(__file__).parents[2]
METRIC = re.compile(r"\b(?:rexmq|process)_\w+")
PAGE = (ROOT / "docs" / "monitoring.md").read_text()


def shown() -> set[str]:
    """The names of all metrics of a broker, as they are scraped."""
    status = lone(NodeConfig(name="b1")).status(1.0)
    return {f"{one.name}_total" if one.type == "counter" else one.name for one in families(status)}


def test_the_page_lists_every_metric() -> None:
    listed = set(METRIC.findall(PAGE.partition("## Metrics")[2]))
    assert {name for name in listed if name.startswith("rexmq")} == shown()


def test_alerts_and_dashboard_use_what_there_is() -> None:
    operations = ROOT / "examples" / "operations"
    dashboard = json.loads((operations / "grafana.json").read_text())
    queries = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    used = set(METRIC.findall((operations / "alerts.yml").read_text()))
    used |= {name for query in queries for name in METRIC.findall(query)}
    process = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    assert used - shown() <= process
    assert len(used) > 10
