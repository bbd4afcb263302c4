"""When nothing was heard of a peer, and when nobody listened.

A host that was kept from its work, by a long computation, a full machine or a suspended process,
has not heard its peers in that time either. So what it was late by is nobody's silence: else it
would wake up, take all its peers for dead, and read what they had said afterwards.
"""

from __future__ import annotations


def excused(heard_at: float, due: float, now: float) -> float:
    """When a peer counts as heard last, where the timer that was ``due`` is handled ``now``.

    All in seconds of ``now``. A host that is always late by as much as its timers are apart
    notices a dead peer after twice the time, and no later than that.
    """
    return heard_at if now <= due else min(now, heard_at + now - due)
