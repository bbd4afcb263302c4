"""``rexmq explain``: why a rule fired, or did not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.options import Rules, TypeName, takes_layout

if TYPE_CHECKING:
    from broker.recorded import RecordedEvents
    from matcher.formats.layout import Layout
    from rules.explaining.explanation import Explanation, Summary
    from rules.explaining.recording import Recording
    from rules.syntax.parser import Reading

EXAMPLE = "rexmq explain --rules fire.tesla --events temps.jsonl --rule fire --event 17"

ENGINES = ("auto", "cdp", "aip", "aip-published", "naive")
FORMATS = ("text", "json")


@takes_layout
def command(
    rules: Rules,
    events: Annotated[
        list[Path],
        typer.Option("--events", metavar="[TYPE=]FILE...", help="Files of events, or folders."),
    ],
    rule: Annotated[str, typer.Option("--rule", metavar="NAME", help="The rule.")],
    more_events: Annotated[list[Path] | None, typer.Argument(hidden=True, metavar="FILE")] = None,
    event: Annotated[
        str | None,
        typer.Option("--event", metavar="ID", help="The terminator, as ID or SOURCE#ID."),
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="How far all terminators got, clause by clause.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="What is printed.")
    ] = "text",
    candidates: Annotated[
        int, typer.Option("--candidates", min=0, metavar="N", help="Events listed for a clause.")
    ] = 8,
    branches: Annotated[
        int, typer.Option("--branches", min=1, metavar="N", help="Branches of 'each' walked.")
    ] = 12,
    engine: Annotated[
        str, typer.Option("--engine", metavar="|".join(ENGINES), help="Which engine detects.")
    ] = "auto",
    type_name: TypeName = None,
    *,
    layout: Layout,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count and skip bad events.")
    ] = False,
) -> None:
    """Say why a rule fired, or did not, at a terminator.

    Clause by clause: which events were considered, what excluded each of them, and the matches
    if there are any. With --summary, how far all terminators of the rule got.
    """
    from broker.cli.outcome import UsageError, one_of, report_times
    from broker.detection import read_rules
    from broker.recorded import RecordedEvents
    from matcher.formats.inputs import inputs_of, verify_files
    from rules.explaining.explainer import explained
    from rules.explaining.survey import surveyed
    from rules.language import declared_in

    one_of("--format", form, FORMATS)
    one_of("--engine", engine, ENGINES)
    if (event is None) != summary:
        raise UsageError("explain: give --event ID, or --summary")
    files = inputs_of([*events, *(more_events or ())])
    verify_files([*rules, *(one.path for one in files)])
    reading = read_rules(rules)
    recorded = RecordedEvents(
        files,
        declared=declared_in(reading.file),
        type_name=type_name,
        skip_bad=skip_bad,
        layout=layout,
    )
    report_times(recorded.intake, layout.times.zone)
    recording = _recording(reading, recorded, rule, engine)
    if event is None:
        _print(surveyed(recording, rule), form)
    else:
        _print(explained(recording, rule, event, candidates=candidates, branches=branches), form)


def _recording(reading: Reading, recorded: RecordedEvents, rule: str, engine: str) -> Recording:
    """The events, and what the rules made of them."""
    from broker.cli.outcome import counted, report_duplicates
    from broker.detection import checked_over
    from broker.recorded import CONFLICTS
    from rules.explaining.recording import Recording, rule_named

    checked = checked_over(reading, recorded)
    batches = [batch for step in recorded.steps() for batch in step.batches]
    rule_named(rule, checked.rules, reading.file.name)  # before the rules are run over everything
    recording = Recording(checked, batches, engine=engine, on_conflict=recorded.refuse)
    if recording.conflicts:
        skipped = counted(recording.conflicts, "bad event")
        print(f"rexmq: {skipped} skipped: {CONFLICTS}", file=sys.stderr)
    report_duplicates(recording.duplicates - recording.conflicts)
    return recording


def _print(found: Explanation | Summary, form: str) -> None:
    import json

    from broker.escaping import escaped_lines
    from rules.explaining.document import document
    from rules.explaining.explanation import Explanation
    from rules.explaining.telling import told, told_summary

    if form == "json":
        text = json.dumps(document(found), ensure_ascii=False, indent=2)
    else:
        text = told(found) if isinstance(found, Explanation) else told_summary(found)
    print(escaped_lines(text))
