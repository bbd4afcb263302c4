"""The times of JSON events, read together and to the last digit (tesla.md E2).

A decoder takes a number for the nearest float: 1.00000000000000001 is 1 then, and 1e-400 is 0.
So the texts of the times are kept until it is clear that their floats say all that they do:

Law: two decimals of up to 15 significant digits have one float only if it is 0. A time whose
float names a microsecond, with no more digits, is that microsecond; and so is one with no more
than six digits of fraction (of a second; three of a millisecond, none of what is finer). What is
left has a longer fraction, or else an exponent after many digits or in a 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from matcher.formats.jsondata import REFUSED
from matcher.formats.timeform import Read, TimeForm
from matcher.model import Int64s

_TIMES = msgspec.json.Decoder(list[str | float | int])
_LONG_FRACTION = re.compile(rb"\.\d{6}0*[1-9]")
_LONG_FRACTIONS = {"ms": re.compile(rb"\.\d{3}0*[1-9]")} | dict.fromkeys(
    ("us", "ns"), re.compile(rb"\.0*[1-9]")
)
_LONG_WITH_EXPONENT = re.compile(rb"[\d.]{16}[eE]")


def times_in(envelopes: Sequence[Any], form: TimeForm) -> Read | None:
    """The times, given as ``Raw``, of envelopes; None when one needs a closer look (time_of)."""
    text = b",".join(map(attrgetter("time"), envelopes))
    try:
        values = _TIMES.decode(b"[" + text + b"]")
    except REFUSED:
        return None
    read = form.times_of(values)
    if read is None or set(map(type, values)) == {str}:  # a text is there to its last digit
        return read
    return None if _may_hide_digits(text, read.times, form.unit) else read


def _may_hide_digits(text: bytes, times: Int64s, unit: str) -> bool:
    """Whether a time of ``text`` may have digits that the float which it was read as lacks."""
    byte = np.frombuffer(text, np.uint8)
    if unit != "s" and (byte == ord(".")).any() and _LONG_FRACTIONS[unit].search(text):
        return True
    # Expressions would look at them one by one; most files have nothing to look for.
    is_digit = byte - np.uint8(ord("0")) <= 9
    two = is_digit[:-1] & is_digit[1:]
    four = two[:-2] & two[2:]
    seven = four[:-3] & four[3:]
    if ((byte[:-7] == ord(".")) & seven[1:]).any() and _LONG_FRACTION.search(text):
        return True
    if not (byte | 0x20 == ord("e")).any():
        return False
    return not times.all() or _LONG_WITH_EXPONENT.search(text) is not None
