"""DataFrames whose columns are called otherwise, brought to the names that everything here goes by.

A :class:`matcher.formats.layout.Layout` says which column is what, as it does of files. Of a frame
the columns with a role (time, source, ...) come under the roles' own names, and attributes under
theirs; where an attribute is called like a role, or its column has one because an option says so,
its name gets a beginning of its own (``frames.held``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import DataFrame

from broker.spark.frames import DECLARED, TIME, Frames, check_frames, column_name, quoted
from matcher.errors import EventError
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm

Layouts: TypeAlias = Layout | Mapping[str, Layout]
"""A layout of all frames, or of each by its type."""


def laid_out(
    events: Frames, layout: Layouts | None, time: str, time_zone: str | None
) -> tuple[Frames, str, TimeForm]:
    """The frames, the column of their times, and how these are written.

    ``layout`` says all of it, or else ``time`` and ``time_zone`` do. Raises SchemaError for a
    column that is not there, and ValueError where both are given, the zone is none, or the layouts
    do not fit the frames.
    """
    check_frames(events)
    if layout is None:
        return events, time, _in_zone(time_zone)
    if time != TIME or time_zone is not None:
        raise ValueError("give either a layout, or time and time_zone")
    if isinstance(events, Mapping):
        layouts = _by_type(events, layout)
        named = {name: _named(frame, layouts[name], name) for name, frame in events.items()}
        return named, TIME, _times_of([*layouts.values()])
    if isinstance(layout, Mapping):
        raise ValueError("layouts by type are for frames by type")
    return _named(events, layout, None), TIME, _times_of([layout])


def _by_type(events: Mapping[str, DataFrame], layout: Layouts) -> Mapping[str, Layout]:
    """The layout of each frame."""
    if isinstance(layout, Layout):
        return dict.fromkeys(events, layout)
    if layout.keys() != events.keys():
        raise ValueError(
            f"there are layouts of {', '.join(sorted(layout))}, and frames of "
            f"{', '.join(sorted(events))}; expected one of each"
        )
    return layout


def _times_of(layouts: Sequence[Layout]) -> TimeForm:
    """How the times of all are written."""
    first = layouts[0].times if layouts else TimeForm()
    if any(one.times != first for one in layouts):
        raise ValueError("the layouts of one call write times alike; make timestamps of the others")
    # Nothing is assumed of a zone that is left open: no task could tell of it.
    return replace(first, zone=first.zone or None)


def _in_zone(name: str | None) -> TimeForm:
    try:
        return TimeForm(zone=name)
    except EventError:
        raise ValueError(
            f"time_zone is a name such as 'UTC' or 'Europe/Rome', or an offset such as '+02:00', "
            f"not {name!r}"
        ) from None


def _named(frame: DataFrame, layout: Layout, type_name: str | None) -> DataFrame:
    """A frame, all of whose rows are of ``type_name`` where it is one of several."""
    where = "the frame" if type_name is None else f"the frame of {type_name}"
    roles = layout.roles(frame.columns, where, type_name)
    columns = [quoted(column).alias(role) for role, column in roles.roles.items()]
    for name, column in roles.attributes.items():
        name = column_name(name) if name in roles.guessed else DECLARED + name
        columns.append(quoted(column).alias(name))
    return frame.select(columns)
