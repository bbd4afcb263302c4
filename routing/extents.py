"""How far a batch reaches. The record stands apart from what makes it (routing.order), which can be
compiled; records of msgspec cannot.
"""

from __future__ import annotations

from msgspec import Struct


class Extent(Struct, frozen=True, gc=False):
    """A batch's event times, and its first and last sequence number."""

    least: int
    greatest: int
    first: int
    last: int
