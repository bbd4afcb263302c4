"""List, check, export and trim the log of a broker's store."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.lists import without_pandas
from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address
    from broker.store.damage import Report
    from broker.store.ordered import Log, Ordered, Wanted
    from broker.store.values import Entry
    from matcher.formats.files import EventOutput

EXAMPLE = "rexmq log export --data /var/lib/rexmq/b1 --from 2026-11-27T08:00:00Z --output b1.jsonl"

FORMATS = ("jsonl", "parquet")
COLUMNS = ("position", "from", "to", "source", "numbers", "types", "events", "bytes")
SHOWN = 1_000
"""Entries of a table; its columns are as wide as what is in them, so all are held."""

Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder of the store.")]


def list_entries(
    data: Data,
    as_json: Annotated[bool, typer.Option("--json", help="All entries, a JSON line each.")] = False,
) -> None:
    """List the entries of the log: positions, times, sources, types, events and bytes.

    Without --json, the last thousand, and the sum of all.
    """
    from broker.store import Reader

    with Reader.open(data) as reader:
        if as_json:
            for entry in reader.outlines():
                print(json.dumps(_described(entry)))
            return
        summary = reader.summary()
        after = max(summary.first - 1, summary.last - SHOWN)
        _print_table(reader.outlines(after))
        if summary.entries > SHOWN:
            print(f"the last {SHOWN} of {summary.entries} entries; all: --json")
        print(
            f"{summary.entries} entries, {summary.events} events, {summary.bytes} bytes, "
            f"positions {summary.first} to {summary.last}"
        )


def _described(entry: Entry) -> dict[str, Any]:
    from matcher.times import time_text

    return {
        "position": entry.position,
        "from": time_text(entry.first_time),
        "to": time_text(entry.last_time),
        "stored": time_text(entry.stored_at),
        "source": entry.source,
        "first": entry.first_sequence,
        "last": entry.last_sequence,
        "types": list(entry.types),
        "events": entry.events,
        "bytes": entry.bytes,
    }


def _print_table(entries: Iterable[Entry]) -> None:
    from broker.cli.table import table

    rows = [_described(entry) for entry in entries]
    print(table(({**row, "numbers": _numbers(row)} for row in rows), COLUMNS))


def _numbers(row: dict[str, Any]) -> str:
    return f"{row['first']}" if row["first"] == row["last"] else f"{row['first']} to {row['last']}"


def check(
    data: Data,
    repair: Annotated[
        bool, typer.Option("--repair", help="Keep what is sound, and put the rest aside.")
    ] = False,
) -> None:
    """Read the whole store, and say what is not what was written.

    With --repair a damaged store is made anew of what is sound; the damaged file stays beside it.
    """
    from broker.cli.outcome import REFUSED
    from broker.escaping import escaped_lines
    from broker.store import damage

    report = damage.repair(data) if repair else damage.check(data)
    for problem in report.problems:
        print(escaped_lines(problem), file=sys.stderr)
    _print_found(report)
    if report.problems and report.aside is None:
        raise typer.Exit(REFUSED)


def _print_found(report: Report) -> None:
    for first, last in report.lost:
        print(f"entries {first} to {last} were lost before, as an earlier repair has told")
    sound = f"{report.entries} entries with {report.events} events, {report.values} values"
    if report.aside is not None:
        print(f"repaired: kept {sound}; the damaged file is {report.aside}")
    else:
        print(f"{'sound' if report.is_sound else 'damaged; sound are'}: {sound}")


@takes_broker
def export(
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The folder of the store.")
    ] = None,
    network: Annotated[
        bool, typer.Option("--network", help="The logs of all brokers, read through one of them.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMATS), help="What is written, and how."),
    ] = None,
    from_time: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Events from then on.")
    ] = None,
    to_time: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Events before then.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Events of this type alone.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where it is written to.")
    ] = None,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Write the events of the log, in the order of their times, as `rexmq detect` reads them.

    Of a store (--data), or of all stores of a network (--network): a broker that cannot be reached,
    or has no store, is an error that names it. Without --format the ending of --output decides, and
    without both JSON lines are printed. A table holds one type: where there are several, each has a
    file of its own.
    """
    from broker.cli.outcome import UsageError, writing
    from broker.store.ordered import Ordered, Wanted

    if network == (data is not None):
        raise UsageError("either --data DIR or --network")
    form = _form(form, output)
    wanted = Wanted(
        frozenset(types) if types else None,
        _time("--from", from_time),
        _time("--to", to_time),
    )
    place = _of_network(broker, connect_timeout_s, wanted) if data is None else _of_store(data)
    with without_pandas(), place as logs:
        ordered = Ordered(logs, wanted)
        with writing(output), _output(form, output, ordered) as target:
            for step in ordered.steps():
                target.write(step.batches, step.order)


@contextmanager
def _of_store(data: Path) -> Iterator[Sequence[Log]]:
    from broker.store import Reader

    with Reader.open(data) as reader:
        yield [reader]


@contextmanager
def _of_network(broker: Address, timeout_s: float, wanted: Wanted) -> Iterator[Sequence[Log]]:
    from broker import RuleManager
    from broker.client.logs import NetworkLogs

    with RuleManager(broker, connect_timeout_s=timeout_s) as manager:
        yield NetworkLogs(manager, wanted).all


def _form(form: str | None, output: Path | None) -> str:
    """``lines``, or ``table`` for what the output's ending says."""
    from broker.cli.outcome import UsageError, one_of
    from matcher.errors import EventError
    from matcher.formats.files import form_written
    from matcher.formats.inputs import names_file

    if form is not None:
        one_of("--format", form, FORMATS)
    if output is None or not names_file(output):
        if form == "parquet":
            raise UsageError("--format parquet goes to a file: --output FILE.parquet")
        return "lines"
    try:
        ending, _ = form_written(output)
    except EventError as error:
        if form == "jsonl":
            return "lines"
        raise UsageError(f"--output {error}") from None
    if form is not None and ending != f".{form}":
        raise UsageError(f"--format {form} goes to a file that ends in .{form}, not {ending}")
    return "table"


@contextmanager
def _output(form: str, output: Path | None, ordered: Ordered) -> Iterator[EventOutput]:
    from broker.escaping import escaped_json
    from matcher.formats.files import LinesOutput, output_to
    from matcher.formats.outputs import replaced

    if output is None:
        yield LinesOutput(sys.stdout.buffer, shown_by=escaped_json, traces=ordered.traces)
    elif form == "table":
        with output_to(output, list(ordered.types.values()), composite=False) as tables:
            yield tables
    else:
        with replaced(output) as lines:
            yield LinesOutput(lines, traces=ordered.traces)


def _time(flag: str, text: str | None) -> int | None:
    from broker.cli.outcome import time_given
    from matcher.formats.timeform import TimeForm

    return None if text is None else time_given(flag, text, TimeForm())


def trim(
    data: Data,
    before: Annotated[
        str, typer.Option("--before", metavar="TIME", help="Entries whose events are earlier.")
    ],
) -> None:
    """Let the first entries of the log go, up to the first that has an event of that time or later.

    Entries that a rule of the broker needs stay, whatever their time.
    """
    from broker.store.trim import trim

    time = _time("--before", before)
    assert time is not None, "--before is required"
    trimmed = trim(data, time)
    print(f"{trimmed.entries} entries trimmed")
    if trimmed.needed is not None:
        print(
            f"rexmq: entries from position {trimmed.needed} on stay, some of them earlier: rules "
            f"of the broker need them",
            file=sys.stderr,
        )


EXAMPLES = {
    "list": "rexmq log list --data /var/lib/rexmq/b1",
    "check": "rexmq log check --data /var/lib/rexmq/b1 --repair",
    "export": EXAMPLE,
    "trim": "rexmq log trim --data /var/lib/rexmq/b1 --before 2026-11-20T00:00:00Z",
}

commands = {"list": list_entries, "check": check, "export": export, "trim": trim}
