"""``rexmq demo``: the main job on real data, start to end, on this machine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.lists import without_pandas

if TYPE_CHECKING:
    from broker.demo.flights import Log

EXAMPLE = "rexmq demo --from 2013-02-07 --days 4"

ENGINES = ("auto", "cdp", "aip", "aip-published", "naive")
FIRST_DAY, LAST_DAY = date(2013, 1, 1), date(2013, 12, 31)
"""The year that the data are of."""


def command(
    first: Annotated[
        str, typer.Option("--from", metavar="YYYY-MM-DD", help="The first day.")
    ] = f"{FIRST_DAY}",
    last: Annotated[
        str | None, typer.Option("--to", metavar="YYYY-MM-DD", help="The last day.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, metavar="N", help="So many days, instead.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="|".join(ENGINES), help="Which engine detects.")
    ] = "auto",
    brokers: Annotated[
        int, typer.Option("--brokers", min=1, max=50, metavar="N", help="So many, in a ring.")
    ] = 1,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="Where they evaluate rules.")
    ] = "centralized",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the composite events as JSON lines."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--record", metavar="DIR", help="Write the events to files, and end."),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="With keys, which are made for it and go with it.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Brokers have stores, in folders there."),
    ] = None,
    kill: Annotated[
        bool, typer.Option("--kill", help="One with a store is killed in the middle of it.")
    ] = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="No progress bar on the terminal.")
    ] = False,
) -> None:
    """Find what a year of flights and weather in New York amounts to.

    A broker is started with the rules of examples/flights.tesla. Three publishers replay the
    departures, arrivals and weather of 2013; the first composite events of each type are
    printed as a subscriber gets them, and a summary at the end. With several brokers, publishers
    and subscriber are at different ones, and what is found is the same. So it is where one of
    them is killed, and started again.
    """
    from broker.cli.outcome import UsageError, one_of, strategy_of

    one_of("--engine", engine, ENGINES)
    strategy_of("--strategy", strategy)
    if kill and data is None:
        raise UsageError("demo --kill: needs --data, a folder for what survives")
    span = _span(first, last, days)

    from broker.demo.flights import logs

    with without_pandas():
        recorded = logs(*span)
        if folder is None:
            where = _Where(engine, brokers, strategy, secure, data, kill)
            _run(recorded, where, output, not no_progress and sys.stdout.isatty())
        else:
            _record(recorded, folder)


def _span(first: str, last: str | None, days: int | None) -> tuple[date, date]:
    """The first and the last day that the options say."""
    from broker.cli.outcome import UsageError

    if last is not None and days is not None:
        raise UsageError("demo: give --to or --days, not both")
    start = _day("--from", first)
    end = LAST_DAY if last is None else _day("--to", last)
    if days is not None:
        end = min(start + timedelta(days=days - 1), LAST_DAY)
    if end < start:
        raise UsageError(f"demo: --to {end} is before --from {start}")
    return start, end


def _day(flag: str, text: str) -> date:
    from broker.cli.outcome import UsageError

    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        day = date.min
    if not FIRST_DAY <= day <= LAST_DAY:
        raise UsageError(f"demo {flag}: expected a day of 2013 as YYYY-MM-DD, found {text!r}")
    return day


@dataclass(frozen=True, slots=True)
class _Where:
    """The brokers that detect."""

    engine: str
    brokers: int
    strategy: str
    secure: bool
    data: Path | None
    kill: bool

    def __str__(self) -> str:
        alone = self.brokers == 1
        return "a broker" if alone else f"{self.brokers} brokers ({self.strategy})"


def _run(recorded: Sequence[Log], where: _Where, output: Path | None, shown: bool) -> None:
    from broker.cli.outcome import end_by
    from broker.demo.live import processes
    from broker.demo.pages import summary
    from broker.demo.progress import progress_bar
    from broker.demo.run import run
    from broker.log import start_logging
    from matcher.formats.outputs import replaced

    start_logging("error" if where.kill else "warning")
    end_by(signal.SIGTERM, signal.SIGHUP)  # as Ctrl-C does: the broker must not outlive the demo
    events = sum(map(len, recorded))
    print(f"{events:,} events of {', '.join(log.source for log in recorded)}; starting {where}.")
    print("(The first start after an installation compiles the engine: half a minute.)")
    sys.stdout.flush()
    with ExitStack() as opened:
        lines = None if output is None else opened.enter_context(replaced(output))
        bar = opened.enter_context(progress_bar(events, shown=shown))
        network = processes(
            where.engine, where.brokers, where.strategy, secure=where.secure, data=where.data
        )
        account = run(
            recorded,
            network,
            show=print,
            watch=bar.watch,
            lines=lines,
            durable=where.data is not None,
            kill=where.kill,
        )
    print()
    print(summary(account))
    if where.data is not None:
        print(f"  rexmq log list --data {where.data / 'b1'}\n{'':26}what a broker has stored")


def _record(recorded: Sequence[Log], folder: Path) -> None:
    from broker.demo.flights import record

    for batches, file in zip(
        (batch for log in recorded for batch in log.batches), record(recorded, folder), strict=True
    ):
        print(f"{len(batches):>9,} events: {file}")
