"""Rules over frames and files, in one call (docs/dataframes.md)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from broker import costs
from broker.bars import bar
from broker.detection import EventSink, checked_over, defined_types, detect as run, read_rules
from broker.parallel import deployed
from broker.recorded import RecordedEvents
from matcher.errors import EventError
from matcher.formats.fields import told_in_fields
from matcher.formats.files import TablesOutput
from matcher.formats.frames import Frame
from matcher.formats.inputs import InputFile
from matcher.formats.layout import PLAIN, Layout
from matcher.formats.tables import Table
from matcher.formats.wallclock import undecided_text
from matcher.model import EventBatch
from rexmq.found import Counts, Found
from rules.explaining.moments import instants_of
from rules.explaining.recording import Recording
from rules.language import declared_in
from rules.pattern import RuleSet
from rules.syntax.parser import Reading
from rules.syntax.together import read_together

Input: TypeAlias = InputFile | Frame


@told_in_fields()
def detect(
    rules: str | Path | Sequence[Path],
    events: object,
    *,
    type: str | None = None,  # noqa: A002 - the event model's word
    layout: Layout = PLAIN,
    engine: str = "auto",
    device: str = "cpu",
    threads: int = 1,
    skip_bad: bool = False,
    until: int | None = None,
    progress: bool | None = None,
) -> Found:
    """The composite events that rules find in frames and files, as ``rexmq detect`` finds them.

    ``rules`` is TESLA text, or the paths of rules files. ``events`` is a frame (of pandas, polars,
    DuckDB or Arrow), a Path, or several of these: a list, or a dict by the types of their events.
    ``type`` names the type of events that name none; ``layout`` says what columns mean;
    ``skip_bad`` has bad events counted and skipped. Events later than ``until`` (microseconds) are
    left out. ``progress``: whether a bar is shown, by default in terminals and notebooks.

    Raises RuleErrors for rules that are refused, EventError for events that are, with frame, column
    and row, and OSError.
    """
    reading, layout = _reading(rules), _in_open_zone(layout)
    recorded = RecordedEvents(
        _inputs(events, type, layout),
        declared=declared_in(reading.file),
        type_name=type,
        skip_bad=skip_bad,
        layout=layout,
        until=until,
    )
    _warn(recorded, layout)
    checked = checked_over(reading, recorded)
    types = {one.name: one for one in defined_types(checked)}
    kept = {name: _Kept() for name in types}
    detector = deployed(engine, checked, threads, costs.of_this_machine(os.environ), device, _tell)
    with bar(sum(recorded.rows_by_file), progress) as tell:
        sink = EventSink(TablesOutput(kept))
        run(detector, recorded, kept.keys(), sink, perf_counter, tell)
    intake, instants = recorded.intake, instants_of(checked)
    return Found(
        [Table(types[name], kept[name].batches, instants[name]) for name in types],
        Counts(intake.events, dict(intake.bad), detector.duplicates - detector.conflicts),
        lambda: _recording(recorded, checked),
    )


class _Kept:
    """Takes composite events of one type as a file of them does, and keeps them."""

    def __init__(self) -> None:
        self.batches: list[EventBatch] = []

    def write(self, batch: EventBatch) -> None:
        self.batches.append(batch)

    def close(self) -> None:
        pass


def _reading(rules: str | Path | Sequence[Path]) -> Reading:
    if isinstance(rules, str):
        if rules.strip().endswith(".tesla") and len(rules.split()) == 1:
            raise EventError(f"rules are text or a Path: detect(Path({rules!r}), ...)")
        return read_together([("<rules>", rules)])
    return read_rules([rules] if isinstance(rules, Path) else rules)


def _inputs(events: object, type_name: str | None, layout: Layout) -> list[Input]:
    """The frames and files, each with the type that is said of it."""
    if isinstance(events, Mapping):
        if type_name is not None:
            raise EventError("type: the keys of the dict name the types of its frames")
        return [_input(data, str(name), layout) for name, data in events.items()]
    if isinstance(events, list | tuple):
        several = len(events) > 1
        return [
            _input(data, type_name, layout, number if several else None)
            for number, data in enumerate(events, start=1)
        ]
    return [_input(events, type_name, layout)]


def _input(data: object, type_name: str | None, layout: Layout, number: int | None = None) -> Input:
    if isinstance(data, Path):
        return InputFile(data, type_name)
    if isinstance(data, str):
        raise EventError(f"events are frames or a Path: Path({data!r})")
    return Frame.of(data, type_name, layout=layout, number=number)


def _in_open_zone(layout: Layout) -> Layout:
    """The layout with times that bear no zone taken for UTC, of which a warning tells."""
    times = layout.times
    return replace(layout, times=replace(times, zone=times.zone or ""))


def _warn(recorded: RecordedEvents, layout: Layout) -> None:
    """Warn of times that may mean something else than they were taken for."""
    intake = recorded.intake
    for name in intake.without_zone:
        warnings.warn(
            f"{name}: times without a time zone are taken for UTC; say theirs, or that it is so: "
            f"layout=Layout(times=TimeForm(zone='Europe/Rome'))",
            stacklevel=4,
        )
    for name, count in intake.undecided.items():
        warnings.warn(f"{name}: {undecided_text(count, layout.times.zone)}", stacklevel=4)


def _tell(what: str, why: str) -> None:
    warnings.warn(f"{what}: {why}", stacklevel=2)


def _recording(recorded: RecordedEvents, rules: RuleSet) -> Recording:
    """The events, read once more, and what the rules make of them."""
    batches = (batch for step in recorded.steps() for batch in step.batches)
    return Recording(rules, batches, on_conflict=recorded.refuse)
