"""A network as the page shows it, from what its brokers say of themselves: plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from broker.monitoring.figures import Row, ordered
from broker.monitoring.gathered import Facts, Look, blocked_stores, connected, gathered
from broker.monitoring.layout import places

RULES_AT_BROKER_MAX = 50
"""Names of rules that are sent for one broker."""
TREES_MAX = 50


def view(looks: Mapping[str, Look], own: str, clock: int, failures: Sequence[str] = ()) -> Row:
    """The network as the broker called ``own`` and the others in ``looks`` tell of it. ``clock`` is
    in microseconds; ``failures`` say in words which others could not be asked.

    What only a broker itself knows, its sources, sinks and rates, is shown of those whose status is
    there (``known``). With b1's status alone b2 stands in the drawing, with the rules that all
    brokers know to be there, and without rates. The lists are whole, the most pressing first; a
    browser is sent the page of each that it looks at (``windows``).
    """
    status = looks[own].after
    network = status["network"]
    lists = gathered(looks, own, clock)
    links = list(_links(network, lists.pop("links")))
    brokers = sorted({own, *(one["name"] for one in network["brokers"])})
    return {
        "broker": own,
        "version": status["version"],
        "uptime_s": status["uptime_s"],
        "clock": clock,
        "rated": looks[own].is_rated,
        "strategy": network["strategy"],
        "root": network["root"],
        "settled": network["settled"],
        "totals": status["totals"],
        "rates": _summed_rates(looks),
        "lines": _summed_lines(looks),
        "brokers": list(_brokers(brokers, status, looks)),
        "links": links,
        "trees": list(_trees(looks))[:TREES_MAX],
        "lists": {
            **lists,
            "links": links,
            "clients": ordered(status["clients"], "connected_s"),
            "durable": ordered(status.get("durable", ()), "queued"),
        },
        "unknown": [name for name in brokers if name not in looks],
        "failures": list(failures),
        "overruns": list(status.get("overruns", ())),
        "closed": list(status.get("closed", ())),
        "blocked": list(blocked_stores(looks)),
    }


def _summed_rates(looks: Mapping[str, Look]) -> Mapping[str, float] | None:
    """Rates of the network: the sums over the brokers that have told of theirs."""
    rates = [rates for look in looks.values() if (rates := look.rates) is not None]
    return {name: round(sum(one[name] for one in rates), 1) for name in rates[0]} if rates else None


def _summed_lines(looks: Mapping[str, Look]) -> Mapping[str, Sequence[float]]:
    """The rates of the last minutes of the network, the oldest first. Brokers that were started
    later have shorter lines, which end where the others do.
    """
    histories = [look.after.get("history", {}) for look in looks.values()]
    found = {}
    for name in histories[0]:
        backwards = zip_longest(*(one[name][::-1] for one in histories if one), fillvalue=0.0)
        found[name] = [round(sum(step), 2) for step in backwards][::-1]
    return found


# --- the drawing ---


def _brokers(names: Sequence[str], status: Facts, looks: Mapping[str, Look]) -> Iterator[Row]:
    network = status["network"]
    told = {one["name"]: one for one in network["brokers"]}
    links = frozenset(
        (min(one, far["name"]), max(one, far["name"]))
        for one, facts in told.items()
        for far in facts["neighbours"]
        if far["name"] in told
    )
    where = places(frozenset(names), links)
    rules = _rules_at(network)
    for name in names:
        look = looks.get(name)
        here = look.after if look is not None else {}
        evaluated = sorted({*rules.get(name, ()), *here.get("evaluates", ())})
        if len(names) == 1:
            evaluated = [rule["name"] for rule in status["rules"]]
        yield {
            "name": name,
            "x": where[name][0],
            "y": where[name][1],
            "reachable": name not in told or told[name]["reachable"],
            "known": look is not None,
            "rules": evaluated[:RULES_AT_BROKER_MAX],
            "rules_count": len(evaluated),
            "fragments": len(network.get("fragments", {}).get(name, ())),
            "rates": None if look is None else look.rates,
            "line": here.get("history", {}).get("received", ()),
            "clients": None if look is None else connected(here),
            "waits": _waits(here.get("rules", ())),
        }


def _rules_at(network: Facts) -> dict[str, set[str]]:
    """By broker, the rules that are evaluated there, on the single tree or for sinks."""
    found: dict[str, set[str]] = {}
    for division in (network, *network.get("sink_trees", ())):
        for rule, place in division.get("places", {}).items():
            found.setdefault(place, set()).add(rule)
    return found


def _waits(rules: Iterable[Facts]) -> list[str]:
    """Sentences of the rules that wait for something."""
    stuck = ("waiting", "stalled")
    said = [f"{one['name']}: {one['says']}" for one in rules if one["state"] in stuck]
    return said[:RULES_AT_BROKER_MAX]


def _links(network: Facts, rows: Iterable[Row]) -> Iterator[Row]:
    """Each link once, with what goes over it either way as far as one of its ends is known."""
    told = {(row["broker"], row["name"]): row for row in rows}
    ends: dict[tuple[str, str], Row] = {}
    for one in network["brokers"]:
        for far in one["neighbours"]:
            pair = min(one["name"], far["name"]), max(one["name"], far["name"])
            ends.setdefault(pair, {"delay_us": far["delay_us"], "ends": 0})["ends"] += 1
    for (first, second), facts in sorted(ends.items()):
        there, back, buffered = None, None, 0
        for end, other in ((first, second), (second, first)):
            if (row := told.get((end, other))) is None:
                continue
            buffered += row["waiting"]
            ways = row["sent/s"], row["received/s"]
            there, back = ways if end == first else ways[::-1]
        yield {
            "ends": [first, second],
            "up": facts["ends"] == 2,
            "delay_us": facts["delay_us"],
            "rates": None if there is None else [there, back],
            "buffered": buffered,
        }


def _trees(looks: Mapping[str, Look]) -> Iterator[Row]:
    """The single tree and those of sinks, with the edges (child, father) that are known."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for name, look in looks.items():
        network = look.after["network"]
        for kind, trees in (("single", network["trees"]), ("sinks", network.get("sink_trees", ()))):
            for tree in trees:
                edges = found.setdefault((kind, tree["root"]), set())
                edges |= {(child, name) for child in tree["children"]}
                edges |= {(name, tree["father"])} if tree["father"] else set()
    for (kind, root), edges in sorted(found.items(), reverse=True):
        label = f"single tree, root {root}" if kind == "single" else f"for sinks at {root}"
        yield {"id": f"{kind}/{root}", "root": root, "label": label, "edges": sorted(edges)}
