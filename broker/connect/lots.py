"""Lots: the attributes of many messages of one type at once, a column at a time.

A lot has the values that its messages have one by one (``reading.Reading``), at a fraction of the
cost. A lot in which one value does not fit has none here: its messages are read one by one, where
the fault gets its words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET

from broker.client.outbox import TEXTS_MAX
from matcher.model import Kind, Value
from matcher.rows import INT_MAX, INT_MIN

Columns: TypeAlias = Sequence[tuple[str, Kind, str]]
"""Attributes, their kinds and the columns that hold them."""
_TYPES: Mapping[Kind, type] = {
    Kind.INT: int,
    Kind.FLOAT: float,
    Kind.BOOL: bool,
    Kind.STRING: str,
}
_WORDS = {"true": True, "false": False}


def rows_of(
    columns: Columns, members: Sequence[Mapping[str, Any]], texts: Sequence[Mapping[str, str]]
) -> list[tuple[Value, ...]] | None:
    """The values of each message, by its members and behind them its texts; None if one does not
    fit.
    """
    lists = []
    for _, kind, column in columns:
        values = _fitting(kind, held(column, members, texts, kind))
        if values is None:
            return None
        lists.append(values)
    return [*zip(*lists, strict=True)]


def held(
    column: str,
    members: Sequence[Mapping[str, Any]],
    texts: Sequence[Mapping[str, str]],
    kind: Kind = Kind.STRING,
) -> list[Any]:
    """The values of a column, texts as values of the kind; UNSET if a message has none."""
    values = [member.get(column, UNSET) for member in members]
    if UNSET not in values:
        return values
    return [
        value_of(kind, text[column]) if value is UNSET and column in text else value
        for value, text in zip(values, texts, strict=True)
    ]


def value_of(kind: Kind, text: str) -> Any:
    """A text as a value of this kind; as it is if it is none."""
    if kind is Kind.STRING:
        return text
    if kind is Kind.BOOL:
        return _WORDS.get(text, text)
    try:
        return int(text) if kind is Kind.INT else float(text)
    except ValueError:
        return text


def _fitting(kind: Kind, values: list[Any]) -> Sequence[Value] | None:
    """Values of an attribute of this kind; None if one does not fit, or needs a closer look."""
    types = {*map(type, values)}
    if kind is Kind.FLOAT and int in types and types <= {int, float}:
        try:
            values, types = [*map(float, values)], {float}
        except OverflowError:
            return None
    if types != {_TYPES[kind]}:
        return None
    if kind is Kind.FLOAT:
        return values if all(map(math.isfinite, values)) else None
    if kind is Kind.INT:
        return values if min(values) >= INT_MIN and max(values) <= INT_MAX else None
    if kind is Kind.STRING:
        text = "".join(values)
        return values if text.isascii() and len(text) <= TEXTS_MAX else None
    return values
