"""``rexmq trace``: the path of an event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address

EXAMPLE = "rexmq trace t#7 --broker tcp://127.0.0.1:7461,tcp://127.0.0.1:7462"


@takes_broker
def command(
    event: Annotated[
        str, typer.Argument(metavar="ID", help="SOURCE#ID, or an id alone, of whatever source.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a broker and event.")
    ] = False,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Show the path of an event through the brokers that are named, with commas between.

    Where it entered, where it went and when, its causes, what followed, and the traces (W3C) that
    it belongs to. Brokers keep that if they are told to (trace_events_max).
    """
    from dataclasses import replace

    from broker import RuleManager
    from broker.cli.outcome import UsageError

    if not event:
        raise UsageError("trace: which event?")
    found: list[dict[str, Any]] = []
    silent: list[str] = []
    for one in broker.all:
        with RuleManager(replace(one, others=()), connect_timeout_s=connect_timeout_s) as manager:
            answer, name = manager.trace(event), manager.status()["broker"]
        found += [{"broker": name, **facts} for facts in answer["events"]]
        silent += [] if answer["traced"] else [name]
    if as_json:
        for facts in found:
            print(json.dumps(facts))
        return
    print(page(event, found, silent))


def page(event: str, found: Sequence[Mapping[str, Any]], silent: Sequence[str]) -> str:
    """The answers of brokers as a page; ``silent`` are those that trace nothing."""
    lines = [*_events(found)] or [f"{event} is not kept, or not any more"]
    if silent:
        lines.append(f"no traces are kept at {', '.join(silent)} (trace_events_max)")
    return "\n".join(lines)


def _events(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from matcher.times import time_text

    names = dict.fromkeys(facts["event"] for facts in found)
    for name in names:
        own = [facts for facts in found if facts["event"] == name]
        yield f"{own[0]['type']} {name} at {time_text(own[0]['time'])}"
        for word, key in (("trace", "traceparent"), ("links", "links"), ("causes", "causes")):
            values = _joined(own, key)
            if values:
                yield f"  {word} {', '.join(values)}"
        steps = [(step, facts["broker"]) for facts in own for step in facts["steps"]]
        for (at, what, whom), broker in sorted(steps, key=lambda one: one[0][0]):
            yield f"  {time_text(at)}  {broker}  {what} {whom}".rstrip()
        for followed in _joined(own, "followed"):
            yield f"  followed by {followed}"


def _joined(facts: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """The values of several brokers, each once."""
    found: dict[str, None] = {}
    for one in facts:
        value = one[key]
        found |= dict.fromkeys(value if isinstance(value, list) else [value] if value else [])
    return list(found)
