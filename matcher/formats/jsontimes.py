"""The times of JSON events, read together (tesla.md E2).

A number with a fraction or an exponent is a float, as it is to every program that reads JSON; any
other number is an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from matcher.formats.jsondata import REFUSED
from matcher.formats.timeform import Read, TimeForm
from matcher.times import decimal_of

_TIMES = msgspec.json.Decoder(list[str | float | int])


def times_in(envelopes: Sequence[Any], form: TimeForm) -> Read | None:
    """The times, given as ``Raw``, of envelopes; None when one needs a closer look (time_of)."""
    text = b",".join(map(attrgetter("time"), envelopes))
    try:
        values = _TIMES.decode(b"[" + text + b"]")
    except REFUSED:
        return None
    return form.times_of(values)


def number_of(text: str) -> object:
    """The number that a text of JSON's grammar stands for, however large it is."""
    is_whole = text.removeprefix("-").isdecimal()
    return decimal_of(text) if is_whole else float(text)
