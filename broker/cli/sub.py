"""``rexmq sub``: print matching events as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from datetime import datetime

    from broker import Subscriber
    from broker.client.address import Address
    from routing.messages import Delivery

EXAMPLE = "rexmq sub 'Temp(value > 20)' --count 10 --for 1min"


@takes_broker
def command(
    filters: Annotated[
        list[str], typer.Argument(metavar="FILTER...", help="What to print: 'Temp(value > 20)'.")
    ],
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="End after N events.")
    ] = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End after so long: 10s, 500ms, 2min."),
    ] = None,
    when_full: Annotated[
        str,
        typer.Option(
            "--when-full", metavar="block|drop-oldest|disconnect", help="When it is full."
        ),
    ] = "block",
    queue: Annotated[
        int,
        typer.Option(
            "--queue", min=1, metavar="EVENTS", help="Events that may wait at the broker."
        ),
    ] = 65_536,
    cause: Annotated[
        str, typer.Option("--cause", metavar="ids|full", help="Causes as ids, or as source#id.")
    ] = "ids",
    time: Annotated[
        str, typer.Option("--time", metavar="rfc3339|seconds", help="How times are printed.")
    ] = "rfc3339",
    durable: Annotated[
        str | None,
        typer.Option(
            "--durable", metavar="NAME", help="Go on where the last of that name had come to."
        ),
    ] = None,
    queue_bytes: Annotated[
        str | None,
        typer.Option(
            "--queue-bytes", metavar="SIZE", help="With --durable: and so much of them: 500MB."
        ),
    ] = None,
    queue_age: Annotated[
        str | None,
        typer.Option(
            "--queue-age", metavar="AGE", help="With --durable: older events are dropped: 7d."
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="NAME", help="Share the events with all others of that group."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="ATTRIBUTE", help="With --group: equal values go to the same one."
        ),
    ] = None,
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Begin then, from the brokers' logs; or: earliest."
        ),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--last", metavar="ATTRIBUTE,...", help="Of the past the last event by these alone."
        ),
    ] = None,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Print matching events as JSON lines, as they come.

    Until it is interrupted, N have come, the time is over, or its reader has gone. '*' is all
    events of all types. When the broker's queue for this command is full, sources wait (block), the
    oldest events are dropped and counted on standard error (drop-oldest), or it is sent away
    (disconnect). With --from events of the past come first, read from the logs of all brokers of
    the network; with --last only the last one of each type with equal values of these attributes
    (source: of each source), of all that are kept unless --from says since when. With --durable the
    broker, which needs a store, keeps what comes while this command does not run, and what it has
    not printed. With --group each event goes to one of the commands and programs that name the same
    group and filter.
    """
    from broker import Subscriber
    from broker.cli.outcome import UsageError, amount_of, counted, duration_of, one_of
    from broker.cli.streams import closing_with_reader
    from broker.escaping import escaped, escaped_json
    from broker.log import start_logging
    from matcher.formats.printing import json_lines
    from routing.delivery.delivery_batch import places_of
    from routing.delivery.remainder import positions_of

    one_of("--when-full", when_full, ("block", "drop-oldest", "disconnect"))
    one_of("--cause", cause, ("ids", "full"))
    one_of("--time", time, ("rfc3339", "seconds"))
    seconds = None if lasting is None else duration_of("--for", lasting)
    size = None if queue_bytes is None else amount_of("--queue-bytes", queue_bytes, "SIZE")
    age = None if queue_age is None else amount_of("--queue-age", queue_age, "AGE")
    if durable is None and (size or age):
        raise UsageError("--queue-bytes and --queue-age are bounds of --durable subscriptions")
    if last is not None and durable is not None:
        raise UsageError("--last is for subscriptions that are not --durable")
    if by is not None and group is None:
        raise UsageError("--by says how a --group shares events")
    has_past = from_time is not None or last is not None
    if group is not None and (durable is not None or has_past or len(filters) > 1):
        raise UsageError("a --group has one filter, and no --durable, --from or --last")
    start_logging("warning")
    wanted, dropped = count, 0
    with (
        Subscriber(
            broker,
            *filters,
            when_full=when_full,  # type: ignore[arg-type]
            queue=queue,
            name=durable or "",
            durable=durable is not None,
            acks="explicit",
            queue_bytes=None if size is None else int(size),
            queue_age_s=age,
            group=group or "",
            by=by or "",
            start=_start(from_time),
            last=[] if last is None else [name.strip() for name in last.split(",")],
            connect_timeout_s=connect_timeout_s,
        ) as subscriber,
        closing_with_reader(subscriber.close),
    ):
        for number, missing in subscriber.waits_for.items():
            text = (
                f"{filters[number - 1]} waits: nobody publishes {', '.join(missing)} for its rules"
            )
            print(f"rexmq: {escaped(text)}", file=sys.stderr)
        for delivery in _deliveries(subscriber, seconds):
            order = places_of(delivery)[:wanted]
            wanted = None if wanted is None else wanted - len(order)
            lines = json_lines(
                delivery.batches,
                order,
                full_cause=cause == "full",
                seconds=time == "seconds",
                traces=delivery.traces,
            )
            sys.stdout.buffer.write(escaped_json(lines))
            sys.stdout.buffer.flush()
            if durable is not None and len(order):
                subscriber.acknowledge(positions_of(delivery)[len(order) - 1])
            if subscriber.dropped > dropped:
                dropped = subscriber.dropped
                print(f"rexmq: {counted(dropped, 'event')} dropped so far", file=sys.stderr)
            if wanted == 0:
                return


def _start(text: str | None) -> str | datetime:
    from broker.cli.outcome import datetime_given

    if text in (None, "earliest"):
        return text or "new"
    return datetime_given("--from", text)


def _deliveries(subscriber: Subscriber, seconds: float | None) -> Iterator[Delivery]:
    """Deliveries until the subscriber is closed, or for so long."""
    from time import monotonic

    from broker.errors import ClientClosed

    ends_at = None if seconds is None else monotonic() + seconds
    while True:
        try:
            left = None if ends_at is None else max(0.0, ends_at - monotonic())
            delivery = subscriber.receive_delivery(left)
        except (ClientClosed, TimeoutError):
            return
        yield delivery
