"""DataFrames whose columns are called otherwise, brought to the names that everything here goes by.

A :class:`matcher.formats.layout.Layout` says which column is what, as it does of files. Of a frame
the columns with a role (time, source, ...) come under the roles' own names, and attributes under
theirs; where an attribute is called like a role, or its column has one because an option says so,
its name gets a beginning of its own (``frames.held``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from broker.spark.frames import DECLARED, TIME, Frames, check_frames, column_name, quoted
from matcher.errors import EventError
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm


def laid_out(
    events: Frames, layout: Layout | None, time: str, time_zone: str | None
) -> tuple[Frames, str, TimeForm]:
    """The frames, the column of their times, and how these are written.

    ``layout`` says all of it, or else ``time`` and ``time_zone`` do. Raises SchemaError for a
    column that is not there, and ValueError where both are given or the zone is none.
    """
    check_frames(events)
    if layout is None:
        return events, time, _in_zone(time_zone)
    if time != TIME or time_zone is not None:
        raise ValueError("give either a layout, or time and time_zone")
    # Nothing is assumed of a zone that is left open: no task could tell of it.
    times = replace(layout.times, zone=layout.times.zone or None)
    if isinstance(events, Mapping):
        named = {name: _named(frame, layout, name) for name, frame in events.items()}
        return named, TIME, times
    return _named(events, layout, None), TIME, times


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
