"""``rexmq detect``: run rules over recorded events."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.options import Rules, TypeName, takes_layout

if TYPE_CHECKING:
    from broker.detection import Progress, Sink
    from broker.recorded import RecordedEvents
    from matcher.formats.layout import Layout
    from matcher.model import EventType
    from rules.engine import Detector
    from rules.pattern import RuleSet

EXAMPLE = "rexmq detect --rules fire.tesla --events temps.jsonl smoke.parquet"

ENGINES = ("auto", "cdp", "aip", "aip-published", "hybrid", "naive")
DEVICES = ("cpu", "gpu", "auto")
RULES_SHOWN = 40
"""Of more rules it is not said one by one where they are evaluated."""
FORMATS = ("jsonl", "parquet", "count", "checksum")


@takes_layout
def command(
    rules: Rules,
    events: Annotated[
        list[Path],
        typer.Option("--events", metavar="[TYPE=]FILE...", help="Files of events, or folders."),
    ],
    more_events: Annotated[list[Path] | None, typer.Argument(hidden=True, metavar="FILE")] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="|".join(ENGINES), help="Which engine detects.")
    ] = "auto",
    device: Annotated[
        str, typer.Option("--device", metavar="|".join(DEVICES), help="Where it computes.")
    ] = "auto",
    threads: Annotated[
        int, typer.Option("--threads", min=1, metavar="N", help="Threads to compute with.")
    ] = 1,
    types: Annotated[
        str | None, typer.Option("--types", metavar="T,...", help="Print these types alone.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMATS), help="What is printed, and how."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Where it is printed to."),
    ] = None,
    type_name: TypeName = None,
    cause: Annotated[
        str, typer.Option("--cause", metavar="ids|full", help="Causes as ids, or as source#id.")
    ] = "ids",
    time: Annotated[
        str, typer.Option("--time", metavar="rfc3339|seconds", help="How times are printed.")
    ] = "rfc3339",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Go no further; Timers tick up to there."),
    ] = None,
    *,
    layout: Layout,
    explain_input: Annotated[
        bool, typer.Option("--explain-input", help="Tell how the files are read, and why.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and skip bad events.")
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print a summary to standard error.")
    ] = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="No progress bar on the terminal.")
    ] = False,
) -> None:
    """Run rules over recorded events.

    Prints the composite events in order. Without --format, the ending of --output decides (jsonl,
    parquet, arrow or csv; gz and zst too), and without both, JSON lines are printed.
    """
    import os
    from time import perf_counter

    from broker import costs, last_words
    from broker.bars import bar
    from broker.cli.outcome import (
        one_of,
        report_duplicates,
        report_times,
        say,
        time_given,
        writing,
    )
    from broker.detection import checked_over, detect, read_rules
    from broker.parallel import deployed
    from broker.recorded import RecordedEvents
    from matcher.formats.files import path_of_type
    from matcher.formats.inputs import inputs_of, verify_files
    from rules.language import declared_in

    _check_engine(engine, device, threads)
    one_of("--cause", cause, ("ids", "full"))
    one_of("--time", time, ("rfc3339", "seconds"))
    last = None if until is None else time_given("--until", until, layout.times)
    form = _format(form, output)
    files = inputs_of([*events, *(more_events or ())])
    paths = [*rules, *(one.path for one in files)]
    verify_files(paths, [] if output is None else [output])
    begun = perf_counter()
    reading = read_rules(rules)
    declared = declared_in(reading.file)
    recorded = RecordedEvents(
        files,
        declared=declared,
        type_name=type_name,
        skip_bad=skip_bad,
        layout=layout,
        until=last,
    )
    if explain_input:
        _explain_input(recorded)
    report_times(recorded.intake, layout.times.zone)
    _warn_of_disorder(recorded)
    checked = checked_over(reading, recorded)
    printed = _printed_types(checked, types)
    if output is not None and form == "table":
        verify_files(paths, [path_of_type(output, one, printed) for one in printed])
    known = costs.of_this_machine(os.environ)
    processors = os.cpu_count() or 1
    if engine == "hybrid" and threads > processors:
        say(f"--threads {threads}", f"there are {processors} processors, which they share")
    detector = deployed(engine, checked, threads, known, device, say)
    if engine != "naive":
        last_words.tell()
    names = {event_type.name for event_type in printed}
    style = {
        "full_cause": cause == "full",
        "seconds": time == "seconds",
        "traces": recorded.intake.traces,
    }
    is_drawn = not no_progress and _is_drawn(form, output)
    with writing(output), _sink(form, output, printed, style) as sink:
        with bar(sum(recorded.rows_by_file), None if is_drawn else False) as tell:
            progress = detect(detector, recorded, names, sink, perf_counter, tell)
        sink.finish()
    _report_bad(recorded)
    report_duplicates(detector.duplicates - detector.conflicts)
    if stats:
        names_of_rules = [rule.name for rule in checked.rules]
        _report(progress, recorded, detector, perf_counter() - begun, names_of_rules)


def _is_drawn(form: str, output: Path | None) -> bool:
    """Whether a bar is drawn on a terminal to which no composite events go meanwhile."""
    is_free = output is not None or form in ("count", "checksum") or not sys.stdout.isatty()
    return is_free and sys.stderr.isatty()


def _check_engine(engine: str, device: str, threads: int) -> None:
    from broker.cli.outcome import UsageError, one_of
    from matcher.gpu.device import NoDevice
    from rules.engine import settled, verify

    one_of("--engine", engine, ENGINES)
    one_of("--device", device, DEVICES)
    try:
        verify(engine, device, threads)
        if device == "gpu":
            settled(device)
    except (ValueError, NoDevice) as error:
        raise UsageError(f"--{error}") from None


def _format(form: str | None, output: Path | None) -> str:
    """The format to print: a member of FORMATS, or ``table`` for what the output's ending says."""
    from broker.cli.outcome import UsageError, one_of
    from matcher.errors import EventError
    from matcher.formats.files import form_written
    from matcher.formats.inputs import names_file

    if form is None and output is None:
        return "jsonl"
    if form is not None:
        one_of("--format", form, FORMATS)
    if form == "parquet" and _ending_of(output) != ".parquet":
        raise UsageError("--format parquet goes to a file: --output FILE.parquet")
    if output is not None and form in (None, "parquet"):
        try:
            return "jsonl" if form_written(output)[0] == ".jsonl" else "table"
        except EventError as error:
            if form is None and not names_file(output):
                return "jsonl"
            raise UsageError(f"--output {error}") from None
    assert form is not None
    return form


def _ending_of(output: Path | None) -> str | None:
    """The form that the name of the output says; None where it says none."""
    from matcher.errors import EventError
    from matcher.formats.files import form_written

    try:
        return None if output is None else form_written(output)[0]
    except EventError:
        return None


def _printed_types(checked: RuleSet, types: str | None) -> list[EventType]:
    """The types that the rules define, those of ``--types`` alone where it is given."""
    from broker.cli.outcome import UsageError
    from broker.detection import defined_types

    defined = defined_types(checked)
    if types is None:
        return defined
    wanted = {name.strip() for name in types.split(",")}
    unknown = wanted - {event_type.name for event_type in defined}
    if unknown:
        names = ", ".join(event_type.name for event_type in defined)
        raise UsageError(f"--types {', '.join(sorted(unknown))}: the rules define {names}")
    return [event_type for event_type in defined if event_type.name in wanted]


@contextmanager
def _sink(
    form: str, output: Path | None, types: Sequence[EventType], style: Mapping[str, Any]
) -> Iterator[Sink]:
    from broker.detection import ChecksumSink, CountSink, EventSink
    from broker.escaping import escaped_json
    from matcher.formats.files import LinesOutput, output_to
    from matcher.formats.outputs import replaced, replaced_text

    if form in ("count", "checksum"):
        with nullcontext(sys.stdout) if output is None else replaced_text(output) as text:
            yield CountSink(types, text) if form == "count" else ChecksumSink(types, text)
    elif output is None:
        yield EventSink(LinesOutput(sys.stdout.buffer, shown_by=escaped_json, **style))
    elif form == "table" or _ending_of(output) == ".jsonl":
        with output_to(output, types, composite=True, **style) as tables:
            yield EventSink(tables)
    else:
        with replaced(output) as lines:
            yield EventSink(LinesOutput(lines, **style))


def _explain_input(recorded: RecordedEvents) -> None:
    from broker.escaping import escaped_lines
    from matcher.formats.files import EventFile
    from matcher.formats.looks import schemas_told, told

    for file, rows in zip(recorded.files, recorded.rows_by_file, strict=True):
        if isinstance(file, EventFile):
            lines = told(file, recorded.intake, rows)
            print(*map(escaped_lines, lines), sep="\n", file=sys.stderr)
    print(*map(escaped_lines, schemas_told(recorded.intake)), sep="\n", file=sys.stderr)


def _warn_of_disorder(recorded: RecordedEvents) -> None:
    from broker.escaping import escaped

    for path, setback in recorded.disordered.items():
        print(
            f"rexmq: {escaped(str(path))} is not in order of time (by up to {setback / 1e6:g} s): "
            f"its events wait in memory until none before them can come",
            file=sys.stderr,
        )


def _report_bad(recorded: RecordedEvents) -> None:
    from broker.cli.outcome import counted
    from broker.escaping import escaped

    bad = recorded.intake.bad
    if bad:
        print(f"rexmq: {counted(bad.total(), 'bad event')} skipped", file=sys.stderr)
    for reason, count in bad.most_common():
        print(f"  {count}: {escaped(reason)}", file=sys.stderr)


def _report(
    progress: Progress,
    recorded: RecordedEvents,
    detector: Detector,
    seconds: float,
    rules: Sequence[str],
) -> None:
    figures = {
        "events": progress.events,
        "composites": progress.composites,
        "seconds": f"{seconds:.3f}",
        "events/s": f"{progress.events / seconds:.0f}",
        "engine seconds": f"{progress.engine_s:.3f}",
        "engine p50 us per event": f"{progress.per_event_us(0.50):.3f}",
        "engine p99 us per event": f"{progress.per_event_us(0.99):.3f}",
        "bad events": recorded.intake.bad.total(),
        "duplicates": detector.duplicates - detector.conflicts,
        "surplus attributes": recorded.intake.surplus,
        **{f"kept {name}": count for name, count in detector.memory().items()},
        **_placements(detector, rules),
    }
    for name, figure in figures.items():
        print(f"{name}\t{figure}", file=sys.stderr)


def _placements(detector: Detector, rules: Sequence[str]) -> Mapping[str, str | int]:
    """How many rules are evaluated on a device, and where each is, and why, up to RULES_SHOWN;
    nothing where there is the processor alone.
    """
    found = {name: place for name in rules if (place := detector.placement(name)) is not None}
    if not found:
        return {}
    told = {
        f"evaluated on {place.device}: {name}": place.reason or "as it was told"
        for name, place in islice(found.items(), RULES_SHOWN)
    }
    more = len(found) - RULES_SHOWN
    counted = {"more rules": more} if more > 0 else {}
    return {
        "rules on the device": sum(one.device == "gpu" for one in found.values()),
        **told,
        **counted,
    }
