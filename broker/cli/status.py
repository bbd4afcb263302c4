"""``rexmq status``: what a broker does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ENDPOINT, ConnectTimeout, Endpoint

EXAMPLE = "rexmq status --json"

SECTIONS = {
    "sources": ("name", "standing", "events", "late", "duplicates", "rejected", "promise"),
    "types": ("name", "sources", "events", "latest", "mark", "rules"),
    "rules": ("name", "type", "state", "version", "since", "mark", "waits_for", "held_by"),
    "sinks": ("name", "filters", "when_full", "queued", "limit", "delivered", "dropped"),
}
TIMES = frozenset({"promise", "latest", "mark", "since"})


def command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Everything, as one JSON object.")
    ] = False,
    broker: Endpoint = ENDPOINT,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Show sources and their promises, types, rules, sinks and their queues, and rates."""
    from broker import RuleManager

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        status = manager.status()
    print(json.dumps(status, indent=2) if as_json else page(status))


def page(status: Mapping[str, Any]) -> str:
    """The status as a page of tables, for people."""
    from broker.cli.table import table

    lines = [f"broker {status['broker']}: up {status['uptime_s']:.0f} s"]
    lines.append(f"clients: {len(status['clients'])}")
    for title in ("totals", "rates"):
        facts = ", ".join(f"{name} {value:,}" for name, value in status[title].items())
        lines.append(f"{'per second' if title == 'rates' else title}: {facts}")
    for section, columns in SECTIONS.items():
        if status[section]:
            rows = [_shown(row) for row in status[section]]
            lines += ["", f"{section}:", table(rows, columns)]
    return "\n".join(lines)


def rules_page(rules: Sequence[Mapping[str, Any]]) -> str:
    """The rules as a table."""
    from broker.cli.table import table

    return table(map(_shown, rules), SECTIONS["rules"])


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    from matcher.times import time_text

    shown = dict(row)
    for name in TIMES & set(row):
        shown[name] = None if row[name] is None else time_text(row[name])
    if "subscriptions" in row:
        shown["filters"] = [one["filter"] for one in row["subscriptions"]]
    if "held_by" in row:
        shown["held_by"] = [one["source"] for one in row["held_by"]]
    return shown
