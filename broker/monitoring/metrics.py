"""The status of a broker as metrics, in the form of Prometheus.

Names and units follow its conventions: ``rexmq_`` first, seconds and bytes, ``_total`` for what
only grows. ``process_*`` are of the broker's process.

The number of series is bounded, whatever clients do. Of each kind the first ``SERIES_MAX`` by name
have series of their own; the others are counted: with 1,500 types there are 1,000 series
``rexmq_type_events_total``, and ``rexmq_series_omitted{kind="type"} 500``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from broker.escaping import escaped_in
from broker.monitoring.figures import holder
from matcher.model import MICROSECONDS

SERIES_MAX = 1_000
"""Types, rules, sinks and neighbours with series of their own, of each."""

Facts: TypeAlias = Mapping[str, Any]
Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily

_TOTALS = {
    "received": ("events_received", "Events taken in from sources here."),
    "detected": ("events_detected", "Composite events that were found here, each once."),
    "delivered": ("events_delivered", "Events given to sinks here."),
    "dropped": ("events_dropped", "Events that full queues of sinks have dropped."),
    "duplicates": ("events_duplicate", "Events that had come before, and were left out."),
    "malformed": ("messages_malformed", "Messages that were none; each cost its sender the link."),
    "ended": ("rules_ended", "Rules that have ended by themselves; the log and status say why."),
    "not_allowed": ("requests_not_allowed", "Requests that the rights of users did not allow."),
}


def registry_of(status: Facts, pid: int) -> CollectorRegistry:
    """The metrics of a broker, which is the process ``pid``, at the moment of its status."""
    registry = CollectorRegistry()
    registry.register(_Fixed(families(escaped_in(status))))
    ProcessCollector(pid=lambda: pid, registry=registry)
    return registry


class _Fixed(Collector):
    """Families that are known beforehand."""

    def __init__(self, found: Iterable[Family]) -> None:
        self._found = list(found)

    def collect(self) -> Sequence[Family]:
        """The families."""
        return self._found


def families(status: Facts) -> Iterator[Family]:
    """The metrics of a broker's status."""
    network = status["network"]
    labels = {"broker": status["broker"], "strategy": network["strategy"] or "none"}
    yield _gauge("broker_info", "The broker and its network's strategy.", [(labels, 1)])
    yield _gauge("uptime_seconds", "Seconds since the broker started.", [({}, status["uptime_s"])])
    yield _gauge("clients", "Clients that are connected here.", [({}, len(status["clients"]))])
    for name, value in status["totals"].items():
        metric, text = _TOTALS[name]
        yield _counter(metric, text, [({}, value)])
    omitted: list[tuple[dict[str, str], float]] = []
    for kind, rows, make in (
        ("user", status["users"], _users),
        ("type", status["types"], _types),
        ("rule", status["rules"], _rules),
        ("sink", _by_name(status["sinks"]), _sinks),
        ("neighbour", network["links"], _links),
    ):
        omitted.append(({"kind": kind}, max(0, len(rows) - SERIES_MAX)))
        yield from make(rows[:SERIES_MAX])
    yield _gauge("series_omitted", "Those without series of their own, of each kind.", omitted)
    yield from _counts(status)
    yield from _engine(status)
    yield from _store(status)
    yield from _network(status, network)


def _users(users: Sequence[Facts]) -> Iterator[Family]:
    def rows(of: str) -> list[tuple[dict[str, str], float]]:
        return [({"user": one["name"]}, one[of]) for one in users]

    text = "Seconds of this broker that the messages of a user have taken."
    yield _counter("user_work_seconds", text, rows("work_s"))
    text = "Work of evaluating the rules of a user here, in units of rexmq_rule_cost_total."
    yield _counter("user_rules_cost", text, rows("cost"))


def _types(types: Sequence[Facts]) -> Iterator[Family]:
    events = [({"type": one["name"]}, one["events"]) for one in types]
    text = "Events of a type that have come here, or were found here."
    yield _counter("type_events", text, events)
    late = [({"type": one["name"]}, one["late"]) for one in types]
    yield _counter("type_events_late", "Events of a type that came too late for rules.", late)
    text = "Event time up to which a type is known to be complete."
    yield _gauge("type_watermark_timestamp_seconds", text, _marks("type", types))


def _rules(rules: Sequence[Facts]) -> Iterator[Family]:
    text = "Event time up to which a rule has been evaluated."
    yield _gauge("rule_watermark_timestamp_seconds", text, _marks("rule", rules))
    text = "Bytes that a rule's columns, partial sequences and stored events take here."
    yield _gauge("rule_memory_bytes", text, _known("memory", rules))
    text = "Work of evaluating a rule here, in units that are alike for all rules of the broker."
    yield _counter("rule_cost", text, _known("cost", rules))
    for state, text in (
        ("stalled", "1 where events wait for a source that says nothing."),
        ("waiting", "1 where a type that the rule needs was never advertised."),
    ):
        rows = [({"rule": one["name"]}, int(one["state"] == state)) for one in rules]
        yield _gauge(f"rule_{state}", text, rows)
    held = [
        ({"rule": one["name"], "holder": holder(one["held_by"][0])}, 1)
        for one in rules
        if one["state"] == "stalled" and one["held_by"]
    ]
    yield _gauge("rule_stalled_by", "The first source or broker that a rule waits for, 1.", held)


def _sinks(sinks: Sequence[Facts]) -> Iterator[Family]:
    def rows(of: str) -> list[tuple[dict[str, str], float]]:
        return [({"sink": one["name"]}, one[of]) for one in sinks]

    yield _counter("sink_events_delivered", "Events given to sinks of a name.", rows("delivered"))
    yield _counter("sink_events_dropped", "Events dropped by their full queues.", rows("dropped"))
    yield _gauge("sink_queue_events", "Events that wait in their queues.", rows("queued"))
    text = "How full the fullest of their queues is, from 0 to 1."
    yield _gauge("sink_queue_fill_ratio", text, rows("fill"))


def _links(links: Sequence[Facts]) -> Iterator[Family]:
    rows = [({"neighbour": one["neighbour"]}, one["buffered"]) for one in links]
    yield _gauge("link_buffered_messages", "Messages to a neighbour that are on their way.", rows)


def _counts(status: Facts) -> Iterator[Family]:
    standing = Counter(one["standing"] for one in status["sources"])
    yield _gauge("sources", "Sources here, by standing.", _counted("standing", standing))
    lost = sum(one["closed_by"] == "lost" for one in status["sources"])
    yield _gauge("sources_given_up", "Lost sources that rules go on without.", [({}, lost)])
    late = sum(one["late"] for one in status["sources"])
    yield _gauge("source_events_late", "Late events of the sources that are known.", [({}, late)])
    states = Counter(one["state"] for one in status["rules"])
    yield _gauge("rules", "Rules in force, by state.", _counted("state", states))
    yield _gauge("sinks", "Sinks here.", [({}, len(status["sinks"]))])


def _engine(status: Facts) -> Iterator[Family]:
    kept = [({"kind": name}, count) for name, count in status["memory"].items() if "/" not in name]
    yield _gauge("engine_kept", "What the engine keeps, by kind.", kept)
    text = "Events of sources here that are kept for brokers that may need them again."
    yield _gauge("replay_buffer_events", text, [({}, status.get("kept", 0))])


def _store(status: Facts) -> Iterator[Family]:
    """Of the store; without one there are no samples."""
    blocked, behind = status.get("store_problem"), status.get("store_behind_bytes", 0)
    for name, text, value in (
        ("store_blocked", "1 while the store takes nothing more.", int(blocked is not None)),
        ("store_behind_bytes", "Bytes of events that the store has yet to take.", behind),
    ):
        yield _gauge(name, text, [({}, value)] if status["store"] else [])


def _network(status: Facts, network: Facts) -> Iterator[Family]:
    reachable = Counter("yes" if one["reachable"] else "no" for one in network["brokers"])
    text = "Brokers that are known, by whether they can be reached."
    yield _gauge("network_brokers", text, _counted("reachable", reachable))
    text = "1 where the broker knows its place in the network."
    yield _gauge("network_settled", text, [({}, int(network["settled"]))])
    is_root = network["root"] == status["broker"]
    yield _gauge("network_root", "1 at the root of the single tree.", [({}, int(is_root))])
    is_draining = status["draining"] is not None
    yield _gauge("draining", "1 while the broker drains.", [({}, int(is_draining))])
    closed = len(status.get("closed", ()))
    yield _gauge("network_inputs_closed", "Inputs that rules go on without.", [({}, closed)])


def _by_name(sinks: Sequence[Facts]) -> list[Facts]:
    """Sinks, those of one name together; ``fill`` is of the fullest queue."""
    found: dict[str, dict[str, Any]] = {}
    for sink in sinks:
        name = sink["name"]
        one = found.setdefault(name, {"name": name, "delivered": 0, "dropped": 0, "queued": 0})
        for key in ("delivered", "dropped", "queued"):
            one[key] += sink[key]
        one["fill"] = max(one.get("fill", 0.0), sink["queued"] / sink["limit"])
    return list(found.values())


def _marks(label: str, rows: Iterable[Facts]) -> list[tuple[dict[str, str], float]]:
    return [
        ({label: one["name"]}, one["mark"] / MICROSECONDS)
        for one in rows
        if one["mark"] is not None
    ]


def _known(fact: str, rules: Iterable[Facts]) -> list[tuple[dict[str, str], float]]:
    return [({"rule": one["name"]}, one[fact]) for one in rules if one.get(fact) is not None]


def _counted(label: str, counts: Mapping[str, int]) -> list[tuple[dict[str, str], float]]:
    return [({label: name}, count) for name, count in sorted(counts.items())]


def _gauge(name: str, text: str, rows: Iterable[tuple[dict[str, str], float]]) -> Family:
    return _filled(GaugeMetricFamily(f"rexmq_{name}", text), rows)


def _counter(name: str, text: str, rows: Iterable[tuple[dict[str, str], float]]) -> Family:
    return _filled(CounterMetricFamily(f"rexmq_{name}", text), rows)


def _filled(family: Family, rows: Iterable[tuple[dict[str, str], float]]) -> Family:
    for labels, value in rows:
        name = f"{family.name}_total" if isinstance(family, CounterMetricFamily) else family.name
        family.add_sample(name, labels, value)
    return family
