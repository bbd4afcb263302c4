"""``rexmq status``: what a broker does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
NETWORK = {
    "brokers": ("name", "reachable", "neighbours"),
    "trees": ("root", "epoch", "father", "children", "complete"),
    "links": ("neighbour", "link", "buffered"),
}
FILTERS_SHOWN = 3
"""Of a sink with more subscriptions the others are counted."""
TIMES = frozenset({"promise", "latest", "mark", "since"})


def command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Everything, as one JSON object.")
    ] = False,
    broker: Endpoint = ENDPOINT,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Show what a broker knows, and what it waits for.

    Sources and their promises, types, rules, sinks and their queues, rates, the network.
    """
    from broker import RuleManager

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        status = dict(manager.status())
        if any(rule["state"] == "elsewhere" for rule in status["rules"]):
            status["rules"] = _completed(status["rules"], manager.list())
    print(json.dumps(status, indent=2) if as_json else page(status))


def _completed(
    here: Sequence[Mapping[str, Any]], at_root: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The rules as this broker tells of them, or where it cannot, as the root does."""
    found = {rule["name"]: rule for rule in at_root}
    return [
        found.get(rule["name"], rule) if rule["state"] == "elsewhere" else rule for rule in here
    ]


def page(status: Mapping[str, Any]) -> str:
    """The status as a page of tables, for people."""
    from broker.cli.table import table

    lines = [f"broker {status['broker']}: up {status['uptime_s']:.0f} s"]
    lines.append(f"clients: {len(status['clients'])}")
    for title in ("totals", "rates"):
        facts = ", ".join(f"{name} {value:,}" for name, value in status[title].items())
        lines.append(f"{'per second' if title == 'rates' else title}: {facts}")
    if len(parts := status["parts"]) > 1:
        lines.append(f"rules by threads: {', '.join(map(str, parts))}")
    kept = {name: count for name, count in status["memory"].items() if "/" not in name}
    lines.append(f"kept: {', '.join(f'{name} {count:,}' for name, count in kept.items())}")
    network = status["network"]
    is_alone = len(network["brokers"]) <= 1
    for section, columns in SECTIONS.items():
        if status[section]:
            rows = [_shown(row) for row in status[section]]
            if section == "rules" and not is_alone:
                columns = (*columns, "place")
            lines += ["", f"{section}:", table(rows, columns)]
    return "\n".join(lines if is_alone else [*lines, *_network_lines(network)])


def _network_lines(network: Mapping[str, Any]) -> Iterator[str]:
    """Overlay, trees, and what is done for rules where."""
    from broker.cli.table import table

    root = network["root"] or "none yet"
    yield f"\nnetwork: strategy {network['strategy']}, the rules' root is {root}"
    for section, columns in NETWORK.items():
        if network[section]:
            rows = [_shown(row) for row in network[section]]
            yield f"\n{section}:\n{table(rows, columns)}"
    for broker, fragments in network.get("fragments", {}).items():
        yield f"\nfragments at {broker}:"
        for rule, lines in fragments.items():
            # Where all goes to one broker that is for no rule in particular.
            yield from (f"  {rule}: {line}" if rule else f"  {line}" for line in lines)


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
        filters = [one["filter"] for one in row["subscriptions"]]
        more = len(filters) - FILTERS_SHOWN
        shown["filters"] = filters[:FILTERS_SHOWN] + ([f"{more:,} more"] if more > 0 else [])
    if "held_by" in row:
        shown["held_by"] = [_holder(one) for one in row["held_by"]]
    if "neighbours" in row:
        shown["neighbours"] = [one["name"] for one in row["neighbours"]]
    return shown


def _holder(holder: Mapping[str, Any]) -> str:
    whom = holder["source"] or f"broker {holder['broker']}"
    return f"{whom} ({', '.join(holder['types'])})"
