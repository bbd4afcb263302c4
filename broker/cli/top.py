"""``rexmq top``: what a broker does, as it does it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address

EXAMPLE = "rexmq top --sort dropped/s"

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sinks": ("name", "full_%", "queued", "events/s", "dropped/s", "when_full"),
    "rules": (
        "name",
        "cost_%",
        "behind_s",
        "memory_kB",
        "events/s",
        "state",
        "held_up_by",
        "type",
        "place",
    ),
    "types": ("name", "events/s", "behind_s", "sources", "rules"),
    "sources": ("name", "events/s", "late/s", "withheld", "standing"),
    "links": ("name", "waiting", "sent/s", "received/s"),
}
"""The tables, the most pressing first, and their columns; the second sorts each unless told."""
ROWS_MAX = 10
"""Of each table; the others are counted."""
INTERVAL_MIN_S = 0.1


@takes_broker
def command(
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN", help="Tables that have it are sorted by it."),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="Between two looks.")
    ] = 1.0,
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="End after N looks.")
    ] = None,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Show what a broker does, once a second: slow subscribers, rules, types, sources, links.

    Until it is interrupted. On a terminal it fills the screen; elsewhere each look is printed.
    """
    from broker import RuleManager
    from broker.cli.outcome import UsageError

    known = sorted({column for columns in COLUMNS.values() for column in columns})
    if sort is not None and sort not in known:
        raise UsageError(f"top --sort: expected one of {', '.join(known)}, not {sort!r}")
    if not interval >= INTERVAL_MIN_S:
        raise UsageError(f"top --interval: expected at least {INTERVAL_MIN_S:g} s")
    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        _show(_frames(manager.status, interval, sort), count)


def _show(frames: Iterator[str], count: int | None) -> None:
    from itertools import islice

    shown = islice(frames, count)
    if not sys.stdout.isatty():
        for frame in shown:
            print(f"{frame}\n", flush=True)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(screen=True, auto_refresh=False) as live:
        for frame in shown:
            live.update(Text(frame, no_wrap=True, overflow="ellipsis"), refresh=True)


def _frames(look: Any, interval: float, sort: str | None) -> Iterator[str]:
    """One look after the other; the first one comes after one interval."""
    import time

    from matcher.model import MICROSECONDS

    before, looked_at = look(), time.monotonic()
    while True:
        time.sleep(interval)
        after, now = look(), time.monotonic()
        yield frame(before, after, now - looked_at, round(time.time() * MICROSECONDS), sort)
        before, looked_at = after, now


def frame(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    seconds: float,
    clock: int,
    sort: str | None = None,
) -> str:
    """Two statuses of a broker, taken so many ``seconds`` apart, as a page. ``clock``: the time of
    the second, in microseconds.
    """
    from broker.cli.table import table
    from broker.monitoring.figures import ordered, tables

    lines = [*_head(before, after, seconds)]
    for name, rows in tables(before, after, seconds, clock).items():
        if rows:
            columns = COLUMNS[name]
            shown = ordered(rows, sort if sort in columns else columns[1])
            lines += ["", f"{name}:", table(shown[:ROWS_MAX], columns)]
            if more := len(rows) - ROWS_MAX:
                lines += [f"{more:,} more"] if more > 0 else []
    return "\n".join(lines)


def _head(before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> Iterator[str]:
    network = after["network"]
    yield (
        f"broker {after['broker']}  up {after['uptime_s']:,.0f} s  clients {len(after['clients'])}"
    )
    if len(network["brokers"]) > 1:
        away = sum(not one["reachable"] for one in network["brokers"])
        settled = "" if network["settled"] else "  not settled"
        yield (
            f"network {network['strategy']}  root {network['root'] or '-'}  "
            f"brokers {len(network['brokers'])}  out of reach {away}{settled}"
        )
    rates = (
        f"{name} {(value - before['totals'][name]) / seconds:,.0f}"
        for name, value in after["totals"].items()
    )
    yield f"per second  {'  '.join(rates)}"
