"""``rexmq trace``: the path of an event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address

EXAMPLE = "rexmq trace t#7"


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
    """Show the path of an event through all brokers of the network.

    Where it entered, where it went and when, its causes, what followed, and the traces (W3C) that
    it belongs to. Brokers keep that if they are told to (trace_events_max).
    """
    from broker import RuleManager
    from broker.cli.outcome import UsageError
    from broker.escaping import escaped_in

    if not event:
        raise UsageError("trace: which event?")
    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        answer = manager.trace(event)
    found = [
        {"broker": one["broker"], **facts} for one in answer["brokers"] for facts in one["events"]
    ]
    if as_json:
        for facts in found:
            print(json.dumps(facts))
        return
    off = [one["broker"] for one in answer["brokers"] if not one["traced"]]
    print(page(*escaped_in([event, found, off, answer["silent"]])))


def page(
    event: str,
    found: Sequence[Mapping[str, Any]],
    off: Sequence[str],
    silent: Sequence[str],
) -> str:
    """The answers of brokers as a page; ``off`` are those that trace nothing, ``silent`` those that
    have not answered.
    """
    lines = [*_events(found)] or [f"{event} is not kept, or not any more"]
    if off:
        lines.append(f"no traces are kept at {', '.join(off)} (trace_events_max)")
    if silent:
        lines.append(f"no answer of {', '.join(silent)}")
    return "\n".join(lines)


def _events(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from matcher.times import time_text

    names = dict.fromkeys(facts["event"] for facts in found)
    for name in names:
        own = [facts for facts in found if facts["event"] == name]
        yield f"{own[0]['type']} {name} at {time_text(own[0]['time'])}"
        for key in ("traces", "causes"):
            if values := _joined(own, key):
                yield f"  {key} {', '.join(values)}"
        steps = [(step, facts["broker"]) for facts in own for step in facts["steps"]]
        for (at, what, whom), broker in sorted(steps, key=lambda one: one[0][0]):
            yield f"  {time_text(at)}  {broker}  {what} {whom}".rstrip()
        for followed in _joined(own, "followed"):
            yield f"  followed by {followed}"


def _joined(facts: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """The values of several brokers, each once."""
    return list(dict.fromkeys(value for one in facts for value in one[key]))
