"""Places of clients, or of sources, if all are taken: a user who has less than a quarter of them
gets one more, from the user who has the most. So nobody uses up others' places, and whoever has
many loses a quarter of them at most to each user. mallory has 39 of 40, alice one: she gets ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

SHARE = 4
"""A user is sure of so much of all places: a quarter."""


def who_gives_way(counts: Mapping[str, int], user: str, places: int) -> str | None:
    """The user who gives up a place to another, by how many of the places each user has; None if
    nobody does.
    """
    own = counts.get(user, 0)
    most, count = max(counts.items(), key=itemgetter(1), default=("", 0))
    return most if own < max(1, places // SHARE) and count > own + 1 else None
