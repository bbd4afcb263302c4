"""``rexmq match``: content-based matching alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.options import TypeName, takes_layout
from broker.keys import DEVICES, MATCHERS

if TYPE_CHECKING:
    from matcher.formats.layout import Layout
    from matcher.methods.matcher import Matcher, Matches

EXAMPLE = "rexmq match --filters filters.jsonl --events events.jsonl"

FORMATS = ("jsonl", "count")


@takes_layout
def command(
    filters: Annotated[Path, typer.Option("--filters", metavar="FILE", help="A file of filters.")],
    events: Annotated[Path, typer.Option("--events", metavar="FILE", help="A file of events.")],
    matcher: Annotated[
        str, typer.Option("--matcher", metavar="|".join(MATCHERS), help="Which one matches.")
    ] = "auto",
    device: Annotated[
        str, typer.Option("--device", metavar="|".join(DEVICES), help="Where it computes.")
    ] = "cpu",
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="What is printed.")
    ] = "jsonl",
    type_name: TypeName = None,
    *,
    layout: Layout,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print a summary to standard error.")
    ] = False,
) -> None:
    """Match recorded events against filters.

    Prints, for each event in order, the interfaces and the filters that want it; with --format
    count, how many events each interface wants, and their total.
    """
    from collections import Counter
    from time import perf_counter

    from broker.cli.outcome import one_of, report_times
    from matcher.formats.inputs import verify_files
    from matcher.formats.matchfiles import MatchFile, presences_of, read_events, read_filters

    one_of("--matcher", matcher, MATCHERS)
    one_of("--format", form, FORMATS)
    one_of("--device", device, DEVICES)
    verify_files([filters, events])
    begun = perf_counter()
    deployed = read_filters(filters)
    chosen = _made(matcher, device)
    chosen.add_all(deployed)
    wanted: Counter[int] = Counter(dict.fromkeys(deployed.interfaces.tolist(), 0))
    count, matching_s = 0, 0.0
    file = MatchFile(events, layout, type_name, presences_of(deployed))
    for ids, piece in read_events(file):
        started = perf_counter()
        found = chosen.match(piece, filters=form == "jsonl")
        matching_s += perf_counter() - started
        count += len(ids)
        if form == "jsonl":
            _print_lines(ids, found)
        else:
            wanted.update(interface for row in found.interface_lists() for interface in row)
    report_times(file.intake, layout.times.zone)
    if form == "count":
        _print_counts(wanted)
    if stats:
        figures = {
            "events": count,
            "seconds": f"{perf_counter() - begun:.3f}",
            "matching seconds": f"{matching_s:.3f}",
            **chosen.figures,
        }
        _print_table(figures.items(), sys.stderr)


def _made(name: str, device: str) -> Matcher:
    """The matcher; with ``auto`` and no GPU, that of the processor, after saying so."""
    from broker.cli.outcome import UsageError, say
    from matcher.gpu.device import NoDevice
    from matcher.matching import Matching

    try:
        return Matching(name, device, say).settled().make()
    except (ValueError, NoDevice) as error:
        raise UsageError(f"--{error}") from None


def _print_lines(ids: Sequence[Any], found: Matches) -> None:
    import msgspec

    from broker.escaping import escaped_json

    lines = [
        {"id": one, "interfaces": interfaces, "filters": filters}
        for one, interfaces, filters in zip(
            ids, found.interface_lists(), found.filter_lists(), strict=True
        )
    ]
    text = b"\n".join(map(msgspec.json.encode, lines))
    sys.stdout.write(escaped_json(text).decode() + "\n" if lines else "")


def _print_counts(wanted: Mapping[int, int]) -> None:
    _print_table(sorted(wanted.items()), sys.stdout)
    _print_table([("total", sum(wanted.values()))], sys.stdout)


def _print_table(rows: Iterable[tuple[object, object]], stream: Any) -> None:
    for name, figure in rows:
        print(f"{name}\t{figure}", file=stream)
