"""``rexmq pub``: publish one event, or a file of events."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.options import (
    CONNECT_TIMEOUT_S,
    ConnectTimeout,
    TypeName,
    takes_broker,
    takes_layout,
)

if TYPE_CHECKING:
    from broker.client.address import Address
    from matcher.formats.layout import Layout
    from matcher.model import EventType

EXAMPLE = "rexmq pub Temp area=a1 value=46.5"


@takes_broker
@takes_layout
def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TYPE ATTR=VALUE...", help="An event, stamped now unless --time."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="EVENTS", help="Publish this file's events.")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", help="X times the file's own pace; else full speed."),
    ] = None,
    type_name: TypeName = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="SOURCE", help="Publish as this source."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="RFC 3339, or a number.")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The event's id.")
    ] = None,
    traceparent: Annotated[
        str | None,
        typer.Option("--traceparent", metavar="TRACE", help="Its trace context (W3C)."),
    ] = None,
    acks: Annotated[
        str, typer.Option("--acks", metavar="broker|committed|none", help="What to wait for.")
    ] = "broker",
    *,
    layout: Layout,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and skip bad events of the file.")
    ] = False,
    is_replay: Annotated[
        bool, typer.Option("--replay", help="Events may be ahead of the broker's clock.")
    ] = False,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Publish one event, or a file of events.

    Waits until the broker has them, with --acks committed until all that follows from them has
    come to its sinks, or into their stores, with --acks none for nothing. A value is an int, a
    float, true, false or else a text, unless ATTR:TYPE=VALUE says int, float, bool or string; a
    type that the broker knows decides. The events of a file are published as the sources that they
    bear, unless --name is given.
    """
    from broker.cli.outcome import UsageError, one_of, report_zones
    from matcher.spelling import unquoted

    one_of("--acks", acks, ("broker", "committed", "none"))

    if (words is None) == (file is None):
        raise UsageError("pub: give either TYPE ATTR=VALUE... or --file EVENTS")
    if file is not None:
        whose = type_name, name, speed, skip_bad, layout, is_replay, acks
        _publish_file(file, *whose, broker, connect_timeout_s)
        return
    if not words:
        raise UsageError("pub: which event type?")
    # In microseconds; times on a command line are RFC 3339 or numbers (tesla.md E2).
    moment = None if time is None else layout.times.time_of(time)
    report_zones(["--time"] if moment is not None and moment.lacks_zone else [])
    at = None if moment is None else moment.time
    what = unquoted(words[0]), words[1:], name, at, event_id, is_replay, traceparent, acks
    _publish_one(*what, broker, connect_timeout_s)


def _publish_file(
    file: Path,
    type_name: str | None,
    name: str | None,
    speed: float | None,
    skip_bad: bool,
    layout: Layout,
    is_replay: bool,
    acks: str,
    broker: Address,
    connect_timeout_s: float,
) -> None:
    from broker.cli.outcome import REFUSED, UsageError, counted, report_times
    from broker.escaping import escaped_lines
    from broker.recorded import RecordedEvents
    from broker.replay import Account, replay
    from matcher.formats.inputs import verify_files

    verify_files([file])
    if speed is not None and not speed > 0:
        raise UsageError(f"pub: --speed must be positive, not {speed:g}")
    # The broker's schemas go before what the file's first event looks like: 46 may be a float.
    known = _known_types(broker, connect_timeout_s)
    events = RecordedEvents(
        [file], declared=known, type_name=type_name, skip_bad=skip_bad, layout=layout
    )
    report_times(events.intake, layout.times.zone)
    account = Account()
    try:
        replay(
            events,
            broker,
            account,
            name=name,
            speed=speed,
            is_replay=is_replay,
            acks=acks,  # type: ignore[arg-type]
            connect_timeout_s=connect_timeout_s,
        )
    finally:  # also where it ends in the midst of the file
        print(f"{counted(account.taken, 'event')} published", flush=True)
        if skipped := sum(events.intake.bad.values()):
            print(f"rexmq: {counted(skipped, 'bad event')} skipped", file=sys.stderr)
        if account.refused:
            text = f"{counted(account.refused, 'event')} refused: {account.take_reason()}"
            print(escaped_lines(f"rexmq: {text}"), file=sys.stderr)
    if account.refused:
        raise typer.Exit(REFUSED)


def _publish_one(
    type_name: str,
    pairs: list[str],
    name: str | None,
    at: int | None,
    event_id: str | None,
    is_replay: bool,
    traceparent: str | None,
    acks: str,
    broker: Address,
    connect_timeout_s: float,
) -> None:
    import os
    import socket

    from broker import Publisher, RefusedError
    from broker.cli.literals import event_of
    from broker.schemas import known_in

    source = name or f"pub/{socket.gethostname()}/{os.getpid()}"

    def publish(known: EventType | None) -> None:
        event_type, data = event_of(type_name, pairs, known)
        with Publisher(
            broker,
            name=source,
            types=[event_type],
            replay=is_replay,
            acks=acks,  # type: ignore[arg-type]
            increasing=True,  # of one event; with "committed" rules have to come to it
            connect_timeout_s=connect_timeout_s,
        ) as publisher:
            publisher.publish(type_name, data, at=at, id=event_id, traceparent=traceparent)

    # A guess makes no type another that somebody has subscribed to.
    known = _known_types(broker, connect_timeout_s, former=True).get(type_name)
    try:
        publish(known)
    except RefusedError as refusal:
        told = known_in(refusal)
        if known is not None or told is None:
            raise
        publish(told)


def _known_types(
    broker: Address, connect_timeout_s: float, *, former: bool = False
) -> Mapping[str, EventType]:
    """The types that the broker knows, by their names; none if the user may publish, and not ask
    for the status: then the broker refuses a type that it knows as another one, and names that.

    ``former``: also those that nobody publishes now and somebody has subscribed to, as they were
    last. A file goes without them: what they lack would be left out of its events in silence.
    """
    from broker import RefusedError, RuleManager
    from broker.schemas import type_of
    from routing.messages import Code

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        try:
            status = manager.status()
        except RefusedError as refusal:
            if refusal.code != Code.NOT_ALLOWED.value:
                raise
            return {}
    known = [*(status["former_types"] if former else ()), *status["types"]]
    return {one["name"]: type_of(one["schema"]) for one in known}
