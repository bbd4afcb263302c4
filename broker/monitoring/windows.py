"""Windows on lists: the page that is looked at of a list that is searched and sorted.

A page is asked for with each stream, so the browser is sent no more rows than it shows. Of 505
rules with ``Window(search="fri", page=1)`` it gets the second fifty of those that have ``fri`` in
any text, and hears that there are 505 in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from broker.monitoring.figures import Row, ordered

PAGE_ROWS = 50
WINDOWS_MAX = 10
"""Lists that one stream may ask for."""
Short = Annotated[str, Meta(max_length=200)]
Listed = Annotated[str, Meta(max_length=20)]


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page, counted from 0, of the rows that have ``search`` in a text, sorted by the column
    ``sort``: the greatest number first, or with ``-`` before it the least. ``chosen``: the name of
    a row that is wanted wherever it stands.
    """

    search: Short = ""
    sort: Short = ""
    page: Annotated[int, Meta(ge=0)] = 0
    chosen: str | None = None


_Windows = Annotated[dict[Listed, Window], Meta(max_length=WINDOWS_MAX)]


def windows_of(text: str) -> Mapping[str, Window]:
    """The windows that a query asks for, by list. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(text or "{}", type=_Windows)


def windowed(rows: Sequence[Row], window: Window) -> Row:
    """The page of ``rows`` that a window asks for; one that sorts by nothing leaves their order. A
    page beyond the last one is the last one; a column that no row has sorts nothing.
    """
    word = window.search.casefold()
    found = [row for row in rows if word in "\n".join(texts(row)).casefold()] if word else rows
    if column := window.sort.removeprefix("-"):
        found = ordered(found, column, reverse=window.sort.startswith("-"))
    last = max(0, len(found) - 1) // PAGE_ROWS
    page = min(window.page, last)
    return {
        "rows": found[page * PAGE_ROWS : (page + 1) * PAGE_ROWS],
        "count": len(rows),
        "found": len(found),
        "first": page * PAGE_ROWS + 1,
        "page": page,
        "pages": last + 1,
        "sort": window.sort,
        "wanted": window.chosen,
        "chosen": next((row for row in rows if row.get("name") == window.chosen), None),
    }


def texts(value: Any) -> Iterator[str]:
    """All texts in a row, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts(one)
