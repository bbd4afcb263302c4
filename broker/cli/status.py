"""``rexmq status``: what a broker does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address

EXAMPLE = "rexmq status --json"

SECTIONS = {
    "sources": (
        "name",
        "standing",
        "events",
        "late",
        "ahead",
        "duplicates",
        "rejected",
        "promise",
    ),
    "types": ("name", "sources", "events", "latest", "mark", "rules"),
    "rules": ("name", "type", "state", "version", "since", "mark", "waits_for", "held_by"),
    "sinks": ("name", "filters", "when_full", "queued", "limit", "delivered", "dropped"),
    "matching": ("type", "to", "filters", "method", "device", "device_from_events"),
}
NETWORK = {
    "brokers": ("name", "reachable", "neighbours"),
    "trees": ("root", "epoch", "father", "children"),
    "links": ("neighbour", "link", "buffered"),
}
SINK_TREES = ("root", "number", "father", "children", "wants", "rules")
FILTERS_SHOWN = 3
"""Of a sink with more subscriptions the others are counted; of a tree, too, and of its rules."""
TREES_SHOWN = 20
"""Of trees of sinks: with more, the others are counted."""
RULES_SHOWN_HERE, RULES_SHOWN = 40, 5
"""At the broker that is asked, and at each other: of so many rules the fragments are shown."""
UNSTORED = "no store (--data): what it knows is kept in memory alone"
TIMES = frozenset({"promise", "latest", "mark", "since"})


@takes_broker
def command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Everything, as one JSON object.")
    ] = False,
    *,
    broker: Address,
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
    from broker.escaping import escaped_in
    from broker.monitoring.health import blocked

    status = escaped_in(status)
    note = "" if status.get("store", True) else f"; {UNSTORED}"
    lines = [f"broker {status['broker']}: up {status['uptime_s']:.0f} s{note}"]
    lines.append(f"clients: {len(status['clients'])}")
    for title in ("totals", "rates"):
        facts = ", ".join(f"{name} {value:,}" for name, value in status[title].items())
        lines.append(f"{'per second' if title == 'rates' else title}: {facts}")
    if len(parts := status["parts"]) > 1:
        lines.append(f"rules by threads: {', '.join(map(str, parts))}")
    kept = {name: count for name, count in status["memory"].items() if "/" not in name}
    lines.append(f"kept: {', '.join(f'{name} {count:,}' for name, count in kept.items())}")
    if problem := status.get("store_problem"):
        lines.append(blocked(problem))
    lines += [f"ended: {text}" for text in status.get("overruns", ())]
    lines += [f"not told: {count:,} {name}" for name, count in status.get("left_out", {}).items()]
    network = status["network"]
    is_alone = len(network["brokers"]) <= 1
    for section, columns in SECTIONS.items():
        if status.get(section):
            rows = [_shown(row) for row in status[section]]
            if section == "rules":
                columns = _columns_of_rules(rows, is_alone=is_alone)
            lines += ["", f"{section}:", table(rows, columns)]
    return "\n".join(lines if is_alone else [*lines, *_network_lines(network, status["broker"])])


def _columns_of_rules(
    rules: Sequence[Mapping[str, Any]], *, is_alone: bool = True
) -> tuple[str, ...]:
    """The columns of a table of rules: ``place`` in a network, ``owner`` where users deployed
    them, and ``evaluated_on`` where there is a device.
    """
    said = [one for one in ("owner", "evaluated_on") if any(rule.get(one) for rule in rules)]
    return (*SECTIONS["rules"], *(() if is_alone else ("place",)), *said)


def _network_lines(network: Mapping[str, Any], broker: str) -> Iterator[str]:
    """Overlay, trees, and what is done for rules where, as this broker tells it."""
    from broker.cli.table import table

    root = network["root"] or "none yet"
    yield f"\nnetwork: strategy {network['strategy']}, the rules' root is {root}"
    for section, columns in NETWORK.items():
        if network[section]:
            rows = [_shown(row) for row in network[section]]
            yield f"\n{section}:\n{table(rows, columns)}"
    trees = network.get("sink_trees", ())
    yield from _sink_tree_lines(trees, broker)
    for at, fragments in sorted(_fragments(network, trees).items()):
        yield f"\nfragments at {at}:"
        yield from _limited(fragments, RULES_SHOWN_HERE if at == broker else RULES_SHOWN)


def _sink_tree_lines(trees: Sequence[Mapping[str, Any]], broker: str) -> Iterator[str]:
    """The trees of brokers with sinks, those first that this broker has most to do with."""
    from broker.cli.table import table

    if not trees:
        return

    def rank(tree: Mapping[str, Any]) -> tuple[bool, bool, str]:
        is_here = broker in tree["fragments"] or broker in tree["places"].values()
        return tree["root"] != broker, not is_here, tree["root"]

    shown = sorted(trees, key=rank)[:TREES_SHOWN]
    rows = [
        {**tree, "wants": _some(tree["filters"]), "rules": _places(tree["places"])}
        for tree in shown
    ]
    yield f"\ntrees of sinks:\n{table(rows, SINK_TREES)}"
    if more := len(trees) - len(shown):
        yield f"{more:,} more"


def _places(places: Mapping[str, str]) -> list[str]:
    """Lines of brokers with the rules that each evaluates, the busiest first."""
    rules: dict[str, list[str]] = {}
    for rule, place in places.items():
        rules.setdefault(place, []).append(rule)
    fullest = sorted(rules.items(), key=lambda one: (-len(one[1]), one[0]))
    return _some([f"{place}: {' '.join(_some(names))}" for place, names in fullest])


def _some(names: Sequence[str]) -> list[str]:
    """The first ones; the others are counted."""
    more = len(names) - FILTERS_SHOWN
    return [*names[:FILTERS_SHOWN], *([f"{more:,} more"] if more > 0 else [])]


def _fragments(
    network: Mapping[str, Any], trees: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, list[str]]]:
    """By broker and rule, what is let pass: on the single tree, and for which trees of sinks."""
    found: dict[str, dict[str, list[str]]] = {}
    for broker, fragments in network.get("fragments", {}).items():
        found[broker] = {rule: list(lines) for rule, lines in fragments.items()}
    roots: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for tree in trees:
        for broker, fragments in tree["fragments"].items():
            for rule, lines in fragments.items():
                roots.setdefault((broker, rule, tuple(lines)), []).append(tree["root"])
    for (broker, rule, same), names in roots.items():
        of = f"tree{'s' if len(names) > 1 else ''} of {', '.join(_some(names))}"
        told = found.setdefault(broker, {}).setdefault(rule, [])
        told += [f"{line} ({of})" for line in same]
    return found


def _limited(fragments: Mapping[str, Sequence[str]], rules_max: int) -> Iterator[str]:
    """Fragments line by line, of so many rules at most; the others are counted."""
    for rule, lines in sorted(fragments.items())[:rules_max]:
        # Where all goes to one broker that is for no rule in particular.
        yield from (f"  {rule}: {line}" if rule else f"  {line}" for line in lines)
    if (more := len(fragments) - rules_max) > 0:
        yield f"  {more:,} more rules"


def rules_page(rules: Sequence[Mapping[str, Any]]) -> str:
    """The rules as a table."""
    from broker.cli.table import table

    rows = [_shown(rule) for rule in rules]
    return table(rows, _columns_of_rules(rows))


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    from matcher.times import time_text

    shown = dict(row)
    for name in TIMES & set(row):
        shown[name] = None if row[name] is None else time_text(row[name])
    if row.get("closed_by") == "lost":
        shown["standing"] = f"{row['standing']} (lost)"
    if "subscriptions" in row:
        shown["filters"] = _some([_filter(one) for one in row["subscriptions"]])
    if "held_by" in row:
        shown["held_by"] = [_holder(one) for one in row["held_by"]]
    if row.get("evaluated_why"):
        shown["evaluated_on"] = f"{row['evaluated_on']} ({row['evaluated_why']})"
    if row.get("device_failed"):
        shown["device"] = f"failed ({row['device_failed']})"
    if "neighbours" in row:
        shown["neighbours"] = [one["name"] for one in row["neighbours"]]
    return shown


def _filter(subscription: Mapping[str, Any]) -> str:
    return f"{subscription['filter']}{' (paused)' if subscription['paused'] else ''}"


def _holder(holder: Mapping[str, Any]) -> str:
    from routing.serving.status import origins_text

    origins = [dict(one) for one in holder.get("origins", ())]
    beyond = origins_text(origins) if origins else f"broker {holder['broker']}"
    whom = holder["source"] or beyond
    return f"{whom} ({', '.join(holder['types'])})"
