"""Portions of the events for each pass, and the parts of the frames to read for all of them.

Law: a column that no rule of a pass looks at is not moved for it, unless rows are ordered and named
by all that they hold; and one that no pass wants is not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.spark.blocks import PIECES, Portion
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, TYPE, Form
from broker.spark.task import DIGEST
from rules.cutting.looks import looked_at
from rules.cutting.splitting import ByKey, Pass


def portions_of(passes: Sequence[Pass], form: Form, count: int) -> tuple[Portion, ...]:
    """A portion for each pass: ``count`` buckets where a key cuts; else one bucket, whose blocks
    are to be cut into so many slices of time.
    """
    portions, first = [], 0
    for part in passes:
        is_keyed = isinstance(part.way, ByKey)
        buckets = count if is_keyed else 1
        portions.append(
            Portion(
                part.used_types,
                _columns(part, form),
                _keys(part, form),
                first,
                buckets,
                PIECES if is_keyed else PIECES * count,
            )
        )
        first += buckets
    return tuple(portions)


def columns_of(form: Form, portions: Sequence[Portion], row_type: str | None) -> list[str]:
    """The columns of a wide frame that the portions are made of; those of a frame whose rows are
    all of one type are without the type, and without what other types alone have.
    """
    wanted = {name for portion in portions for name in portion.columns}
    if row_type is None:
        own = set(form.values)
        wanted |= {name for portion in portions for name in portion.keys.values()}
    else:
        own = {
            form.column(attribute)
            for type_ in form.types
            if type_.name == row_type
            for attribute in type_.attributes
        }
        wanted |= {portion.keys[row_type] for portion in portions if row_type in portion.keys}
        wanted.discard(TYPE)
    ordered = (TYPE, SOURCE, SEQUENCE, ID, DIGEST, *(one for one in form.values if one in own))
    always = [TIME, BAD] if row_type is not None or TYPE in wanted else [TIME, BAD, TYPE]
    return [*always, *(name for name in ordered if name in wanted)]


def _columns(part: Pass, form: Form) -> tuple[str, ...]:
    """The columns that are moved for a pass."""
    if not form.has_sequence:
        values = set(form.values)
    else:
        looks = looked_at(part.rules.rules)
        values = {
            form.column(type_.attributes[place])
            for type_ in form.types
            for place in looks.get(type_.name, ())
        }
    return (
        TYPE,
        TIME,
        SOURCE,
        SEQUENCE if form.has_sequence else DIGEST,
        *([ID] if form.has_id or not form.has_sequence else []),
        *(name for name in form.values if name in values),
    )


def _keys(part: Pass, form: Form) -> dict[str, str]:
    """By type, the column of its key."""
    if not isinstance(part.way, ByKey):
        return {}
    types = {type_.name: type_ for type_ in form.types}
    return {
        name: form.column(types[name].attributes[place])
        for name, place in part.way.attributes
        if name in types
    }
