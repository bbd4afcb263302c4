"""Names for rows that bear none, from what they hold: the same however they are partitioned.

Law: rows that hold the same are told apart by a number among themselves, and nothing else enters
a name: neither a partition, nor a place in it, nor an attempt, nor what types other than the row's
own there are. The digest is of 128 bits, from two
hashes of 64 with different beginnings.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, functions as f

from broker.spark.frames import ID, SOURCE, TIME, TYPE, Form

_FIRST, _SECOND = "rexmq", "qmxer"


def digest(columns: Sequence[Column]) -> Column:
    """32 hexadecimal digits of what the columns hold. Nulls are told from empty strings and from
    one another by their places.
    """
    parts = [part for column in columns for part in (column.isNull(), column)]
    halves = [f.lpad(f.hex(f.xxhash64(f.lit(word), *parts)), 16, "0") for word in (_FIRST, _SECOND)]
    return f.lower(f.concat(*halves))


def own_digest(form: Form) -> Column:
    """The digest of what a row of a wide frame holds in the columns of its own type."""
    common = [f.col(name) for name in (TIME, SOURCE, TYPE, ID)]
    made = digest(common)
    for event_type in form.types:
        own = [form.column(one) for one in sorted(event_type.attributes, key=lambda one: one.name)]
        named = digest([*common, *map(f.col, own)])
        made = f.when(f.col(TYPE) == event_type.name, named).otherwise(made)
    return made


def identified(
    frame: DataFrame, columns: Sequence[str] | None = None, name: str = "id"
) -> DataFrame:
    """The frame with a column of ids made from ``columns``, by default all of them.

    Rows that hold the same get numbers from 1 on (``...-2``), which takes a shuffle.
    """
    given = [f.col("`" + one.replace("`", "``") + "`") for one in columns or frame.columns]
    return numbered_by(frame, digest(given), name)


def numbered_by(frame: DataFrame, digests: Column, name: str) -> DataFrame:
    """The frame with a column of ids: digests, and numbers among those that are the same."""
    made, number = f"{name}__digest", f"{name}__number"
    among = Window.partitionBy(made).orderBy(f.lit(0))
    numbered = frame.withColumn(made, digests).withColumn(number, f.row_number().over(among))
    first = f.col(number) == 1
    text = f.when(first, f.col(made)).otherwise(f.concat_ws("-", made, number))
    return numbered.withColumn(name, text).drop(made, number)
