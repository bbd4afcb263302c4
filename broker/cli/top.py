"""``rexmq top``: what brokers do, as they do it.

Where several brokers are named (``--broker tcp://b1:7461,tcp://b2:7461``) it shows all of them
together, as the page does (broker.monitoring.gathered).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address
    from broker.monitoring.gathered import Look

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
    "users": ("name", "work_%", "connections", "subscriptions", "rules"),
    "types": ("name", "events/s", "behind_s", "sources", "rules"),
    "sources": ("name", "events/s", "late/s", "withheld", "standing"),
    "links": ("name", "waiting", "sent/s", "received/s"),
}
"""The tables, the most pressing first, and their columns; the second sorts each unless told."""
BROKERS = ("name", "reachable", "clients", "received/s", "detected/s", "delivered/s")
ROWS_MAX = 10
"""Of each table; the others are counted."""
INTERVAL_MIN_S = 0.1
ANSWER_S = 3.0
"""For so long a broker's answer is awaited."""

Seen: TypeAlias = tuple[dict[str, Mapping[str, Any]], Sequence[str]]
"""The statuses of brokers by name, the first one's first; and in words who could not be asked."""


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
    """Show what brokers do, once a second.

    Slow subscribers, rules, types, sources and links, the most pressing first.

    All that --broker names, with commas between them. Until it is interrupted. On a terminal it
    fills the screen; elsewhere each look is printed.
    """
    from contextlib import ExitStack

    from broker.cli.outcome import UsageError

    known = sorted({column for columns in COLUMNS.values() for column in columns})
    if sort is not None and sort not in known:
        raise UsageError(f"top --sort: expected one of {', '.join(known)}, not {sort!r}")
    if not interval >= INTERVAL_MIN_S:
        raise UsageError(f"top --interval: expected at least {INTERVAL_MIN_S:g} s")
    with ExitStack() as stack:
        look = _looking(broker.all, connect_timeout_s, stack)
        _show(_frames(look, interval, sort), count)


def _looking(
    addresses: Sequence[Address], connect_timeout_s: float, stack: Any
) -> Callable[[], Seen]:
    """How to look at the brokers at all addresses, at once. Raises BrokerUnreachable where none of
    them answers.
    """
    from concurrent.futures import ThreadPoolExecutor

    from broker import RuleManager
    from broker.client.address import Address
    from broker.errors import BrokerUnreachable

    at_once = stack.enter_context(ThreadPoolExecutor(len(addresses)))

    def opened(address: Address) -> RuleManager | BrokerUnreachable:
        one = Address(address.endpoint, address.curve)
        try:
            return RuleManager(one, timeout_s=ANSWER_S, connect_timeout_s=connect_timeout_s)
        except BrokerUnreachable as error:
            return error

    def status(manager: RuleManager) -> Mapping[str, Any] | str:
        try:
            return manager.status()
        except BrokerUnreachable as error:
            return str(error)

    found = list(at_once.map(opened, addresses))
    managers = [stack.enter_context(one) for one in found if isinstance(one, RuleManager)]
    failures = [one for one in found if isinstance(one, BrokerUnreachable)]
    if not managers:
        raise failures[0]

    def look() -> Seen:
        answers = list(at_once.map(status, managers))
        statuses = [one for one in answers if not isinstance(one, str)]
        silent = [one for one in answers if isinstance(one, str)]
        if not statuses:
            raise BrokerUnreachable(silent[0])
        return {one["broker"]: one for one in statuses}, [*map(str, failures), *silent]

    return look


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


def _frames(look: Callable[[], Seen], interval: float, sort: str | None) -> Iterator[str]:
    """One look after the other; the first one comes after one interval."""
    import time

    from broker.escaping import escaped_in
    from broker.monitoring.gathered import Look
    from matcher.model import MICROSECONDS

    (before, _), looked_at = escaped_in(look()), time.monotonic()
    while True:
        time.sleep(interval)
        (after, failures), now = escaped_in(look()), time.monotonic()
        looks = {
            name: Look(before.get(name, status), status, now - looked_at)
            for name, status in after.items()
        }
        yield frame(looks, round(time.time() * MICROSECONDS), sort, failures)
        before, looked_at = after, now


def frame(
    looks: Mapping[str, Look], clock: int, sort: str | None = None, failures: Sequence[str] = ()
) -> str:
    """Looks at brokers of a network as a page, the first of which tells of the network. ``clock``:
    the time of the looks, in microseconds; ``failures`` say who could not be looked at.
    """
    from broker.cli.table import table
    from broker.monitoring.figures import ordered
    from broker.monitoring.gathered import blocked_stores, broker_rows, gathered

    own = next(iter(looks))
    lines = [*_head(looks[own]), *(f"not known: {one}" for one in failures)]
    lines += blocked_stores(looks)
    if len(looks) > 1:
        lines += ["", "brokers:", table(broker_rows(looks, own), BROKERS)]
    rows_of = gathered(looks, own, clock)
    for name, columns in COLUMNS.items():
        rows = rows_of[name]
        if not rows:
            continue
        if len(looks) > 1 and name != "rules":  # which have a place
            columns = (*columns, "broker")
        shown = ordered(rows, sort if sort in columns else columns[1])
        lines += ["", f"{name}:", table(shown[:ROWS_MAX], columns)]
        if (more := len(rows) - ROWS_MAX) > 0:
            lines.append(f"{more:,} more")
    return "\n".join(lines)


def _head(look: Look) -> Iterator[str]:
    after, network = look.after, look.after["network"]
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
        f"{name} {(value - look.before['totals'][name]) / look.seconds:,.0f}"
        for name, value in after["totals"].items()
    )
    yield f"per second  {'  '.join(rates)}"
