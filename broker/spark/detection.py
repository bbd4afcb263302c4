"""``detect``: rules over DataFrames, with the results of ``rexmq detect`` over the whole.

The rules say how events can be cut (``rules.splitting``), a first look how full the cells are;
each cell is one task's, which runs the engine over its rows in order of time.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from broker.spark.cells import CELL, cut
from broker.spark.composites import spark_schema
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, TYPE, Form, Frames
from broker.spark.identity import digest
from broker.spark.look import Look, look
from broker.spark.request import (
    checked_rules,
    contents,
    wanted_types,
    warn_unordered,
    warn_whole,
    wide_of,
)
from broker.spark.task import DIGEST, Task
from matcher.model import TIME_MIN, EventType
from rules.engine.timers import uses_timer
from rules.looks import looked_at
from rules.splitting import WAYS, ByKey, Pass, split
from rules.variants import variants

OnBad = Literal["refuse", "drop"]
CELLS_A_CORE = 4
"""So many cells for each core, so that none waits long for the last of the others."""


def detect(
    events: Frames,
    rules: str | Path,
    partition_by: str | None = None,
    *,
    types: Collection[str] | None = None,
    time: str = TIME,
    time_zone: str | None = None,
    on_bad: OnBad = "refuse",
    cells: int | None = None,
    ways: Sequence[str] = WAYS,
    full_cause: bool = False,
) -> DataFrame:
    """The composite events that ``rules`` find in ``events``, as ``rexmq detect`` finds them.

    ``events``: a frame with a column ``type``, or a frame for each type, by name; with ``time``
    (timestamps, RFC 3339 text or seconds; ``time_zone`` for timestamps without one), a column for
    each attribute, and ``source`` and ``sequence``, by which simultaneous events are ordered
    (tesla.md E4). Without these they are ordered by all that they hold, and a warning says so.
    ``id`` is optional; without ids and numbers, events are named after what they hold.

    ``rules``: TESLA text, or the path of a file. Types that they do not declare follow from the
    frames, if these are given by type.

    ``partition_by``: an attribute that is to be the key of every rule; else keys and slices of
    time are found from the rules (``explain_plan``). ``ways``: which of ``key`` and ``time`` may
    be taken, the preferred first. ``cells``: into how many pieces; the default is CELLS_A_CORE for
    each core, and fewer where the rules look far back.

    ``types``: these composite types alone. ``on_bad``: whether rows that are no events (without
    time, with null or an infinite number in an attribute) are refused (BadEvent) or dropped with
    a warning that counts them; ``rejected`` shows them.

    The result has the columns ``type``, ``time``, ``source``, ``id``, ``cause`` (ids of the causes,
    terminator first; ``full_cause``: ``source#id``) and a struct of its attributes for each type;
    ``of_type`` makes a table of one type. Its rows are in no order, as in any DataFrame.

    The frames are read once for a first look, at once, and once for each pass, when the result is
    used: cache what is costly to make. Raises RuleErrors, SchemaError (a column that is missing or
    of another kind, by name), BadEvent and ValueError.
    """
    if on_bad not in ("refuse", "drop"):
        raise ValueError(f"on_bad is 'refuse' or 'drop', not {on_bad!r}")
    if cells is not None and cells < 1:
        raise ValueError(f"cells is at least 1, not {cells}")
    ruleset = checked_rules(rules, events, time)
    splitting = split(ruleset, ways, partition_by)
    wanted = wanted_types(ruleset, types)
    wide, form = wide_of(events, ruleset, time, time_zone)
    if ways:
        warn_whole(splitting)
    warn_unordered(form)
    first_look = look(wide)
    _judge(first_look, on_bad)
    good = wide.where(f.col(BAD).isNull()).drop(BAD)
    if not form.has_sequence:
        good = good.withColumn(DIGEST, digest([f.col(one) for one in contents(form)]))
    found = [
        _run(part, good, form, first_look, cells, wanted, full_cause) for part in splitting.passes
    ]
    if not found:
        return wide.sparkSession.createDataFrame([], spark_schema(wanted))
    return functools.reduce(DataFrame.unionAll, found)


def explain_plan(
    events: Frames,
    rules: str | Path,
    partition_by: str | None = None,
    *,
    time: str = TIME,
    ways: Sequence[str] = WAYS,
) -> str:
    """How ``detect`` would cut the events for each rule, and why: a line a rule."""
    ruleset = checked_rules(rules, events, time)
    splitting = split(ruleset, ways, partition_by)
    passes = [
        f"pass {place}: {', '.join(sorted(part.owned))}"
        for place, part in enumerate(splitting.passes, 1)
    ]
    return "\n".join([str(splitting), *passes])


def rejected(
    events: Frames, rules: str | Path, *, time: str = TIME, time_zone: str | None = None
) -> DataFrame:
    """The rows that are no events: ``reason``, ``type``, ``time`` in microseconds, ``source``,
    ``sequence``, ``id`` and, as text, ``data``, the attributes that are there.
    """
    ruleset = checked_rules(rules, events, time)
    wide, form = wide_of(events, ruleset, time, time_zone)
    data = f.to_json(
        f.struct(
            *(
                f.col(form.column(attribute)).alias(f"{attribute.name}")
                for attribute in {one.name: one for one in form.attributes}.values()
            )
        )
    )
    return wide.where(f.col(BAD).isNotNull()).select(
        f.col(BAD).alias("reason"), TYPE, TIME, SOURCE, SEQUENCE, ID, data.alias("data")
    )


# --- before the pass ---------------------------------------------------------------------------


def _judge(seen: Look, on_bad: OnBad) -> None:
    if on_bad == "refuse":
        seen.refuse_bad()
    elif seen.bad:
        warnings.warn(f"{seen.told()}: left out", stacklevel=3)


# --- a pass ------------------------------------------------------------------------------------


def _run(
    part: Pass,
    good: DataFrame,
    form: Form,
    seen: Look,
    cells: int | None,
    wanted: Sequence[EventType],
    full_cause: bool,
) -> DataFrame:
    session = good.sparkSession
    names = [type_.name for type_ in form.types if type_.name in part.used_types]
    used = good.where(f.col(TYPE).isin(names))
    if form.has_sequence:  # else rows are ordered by all that they hold
        used = used.drop(*_unseen(part, form))
    count = cells or CELLS_A_CORE * session.sparkContext.defaultParallelism
    pieces = cut(used, form, part, seen.whole, count, exactly=cells is not None)
    times = seen.whole.times or (1, 0)
    task = Task(
        part,
        form,
        pieces.cells,
        pieces.overlap,
        times[0],
        times[-1],
        tuple(wanted),
        full_cause,
    )
    rows = pieces.frame
    if any(uses_timer(ordinary) for rule in part.rules.rules for ordinary in variants(rule)):
        rows = rows.unionByName(_markers(rows, len(pieces.cells)), allowMissingColumns=True)
    within = [TIME] if form.has_sequence else [TIME, *contents(form)]
    return (
        rows.repartitionById(len(pieces.cells), f.col(CELL))
        .sortWithinPartitions(*dict.fromkeys(within))
        .mapInArrow(task, spark_schema(wanted))
    )


def _unseen(part: Pass, form: Form) -> list[str]:
    """The columns that no rule of a pass looks at: they need not be moved."""
    looks = looked_at(part.rules.rules)
    seen = {
        form.column(type_.attributes[place])
        for type_ in form.types
        for place in looks.get(type_.name, ())
    }
    if isinstance(part.way, ByKey):
        attributes = dict(part.way.attributes)
        seen |= {
            form.column(type_.attributes[attributes[type_.name]])
            for type_ in form.types
            if type_.name in attributes
        }
    unseen = [one for one in form.values if one not in seen]
    return unseen if form.has_id else [*unseen, ID]


def _markers(rows: DataFrame, cells: int) -> DataFrame:
    """A row without a type for each cell, before all others, so that every cell has a task."""
    return rows.sparkSession.range(cells).select(
        f.col("id").cast("int").alias(CELL), f.lit(TIME_MIN).alias(TIME), f.lit("").alias(SOURCE)
    )
