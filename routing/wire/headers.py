"""Records of what stands before columns in a frame, with the limits that msgspec holds them to."""

from __future__ import annotations

from typing import Annotated

import msgspec

from routing.messages import ENTRIES_MAX, EVERYTHING, Name, Request, Rights
from routing.wire.schemas import Strings

EVENTS_MAX = 65_536
"""Events in one batch."""
CELLS_MAX = 2**23
"""Values in all columns of one message, constant ones included: bounds what a small frame costs."""


class CausesHeader(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Facts about the causes of a batch's composite events that the body's columns do not say."""

    count: Annotated[int, msgspec.Meta(ge=1, le=CELLS_MAX)]
    sources: Strings
    texts: Strings | None
    digest: bool


class BatchHeader(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Facts about a batch that the body's columns do not say.

    ``schema`` is a flat list: the type's name, then each attribute's name and kind. ``strings``
    are the dictionaries of the string attributes, in order.
    """

    schema: msgspec.Raw
    count: Annotated[int, msgspec.Meta(ge=1, le=EVENTS_MAX)]
    sources: Strings
    texts: Strings | None
    digest: bool
    strings: tuple[Strings, ...]
    causes: CausesHeader | None


class Nested(msgspec.Struct, array_like=True, frozen=True):
    """A message within another: on its way to the root, or back. ``rights``: see Asked."""

    path: Annotated[tuple[Name, ...], msgspec.Meta(max_length=ENTRIES_MAX)]
    number: Request
    client: Name
    message: bytes
    rights: Rights = EVERYTHING
