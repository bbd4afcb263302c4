"""Changes of the root's catalog, as a message and back (messages.CatalogDelta).

Law: who has what was known before and is told the delta has what is known now, every table in
its order. A table whose order has changed is told whole, as gone and come. Rules r1, r2 were known,
r3 comes and r1 goes: place 0 is gone, r3 comes to place 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from routing.errors import ProtocolError, WireError
from routing.messages import Catalog, CatalogDelta, Code, TableDelta
from routing.runs import common_start
from routing.wire.schemas import event_type_of, flat_schema

_Row = TypeVar("_Row")


def delta_between(before: Catalog, after: Catalog) -> CatalogDelta:
    """The change from ``before`` to ``after``."""
    gone, new = difference(before.types, after.types)
    return CatalogDelta(
        (gone, tuple((place, tuple(flat_schema(schema))) for place, schema in new)),
        difference(before.rules, after.rules),
        difference(before.ended, after.ended),
        difference(before.homes, after.homes),
        difference(before.closed, after.closed),
    )


def with_delta(before: Catalog, message: CatalogDelta) -> Catalog:
    """The catalog after a change of ``before``; ProtocolError when it is of something else.

    Tables that stay as they are stay the same objects.
    """
    gone, new = message.types
    try:
        types = tuple((place, event_type_of(flat)) for place, flat in new)
    except WireError as error:
        raise ProtocolError(Code.PROTOCOL, str(error)) from None
    return Catalog(
        changed(before.types, (gone, types)),
        changed(before.rules, message.rules),
        changed(before.ended, message.ended),
        changed(before.homes, message.homes),
        changed(before.closed, message.closed),
    )


def difference(before: Sequence[_Row], after: Sequence[_Row]) -> TableDelta[_Row]:
    """The change of one table."""
    if before is after:
        return (), ()
    same = common_start(before, after)
    olds, news = before[same:], after[same:]
    common = set(olds) & set(news)
    if [one for one in olds if one in common] != [one for one in news if one in common]:
        common = set()  # their order is another
    return (
        tuple(place for place, one in enumerate(olds, same) if one not in common),
        tuple((place, one) for place, one in enumerate(news, same) if one not in common),
    )


def changed(before: tuple[_Row, ...], change: TableDelta[_Row]) -> tuple[_Row, ...]:
    """A table after a change; ProtocolError when the change is of another one."""
    gone, new = change
    if not (gone or new):
        return before
    if gone and max(gone) >= len(before):
        raise ProtocolError(Code.PROTOCOL, f"place {max(gone)} of {len(before)} is gone")
    leaving = frozenset(gone)
    kept = [one for place, one in enumerate(before) if place not in leaving]
    for place, one in new:
        if place > len(kept):
            raise ProtocolError(Code.PROTOCOL, f"something comes to place {place} of {len(kept)}")
        kept.insert(place, one)
    return tuple(kept)
