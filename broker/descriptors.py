"""File descriptors: how many clients they suffice for, and whether they have run out.

A client takes one. When a process has no more, the system keeps connections waiting, and nobody
hears of it; so a broker takes all that it may have, refuses clients by name while there are some
left, and says in its log when there are none.
"""

from __future__ import annotations

import errno
import os
import resource
import sys

from broker.log import log

KEPT = 16
"""Descriptors that clients are not let have: for operators, files, and those that are refused."""
LINK = 4
"""Descriptors of a link to another broker."""
LOOK_S = 1.0
"""How often, in seconds, it is looked whether there are any left."""


def raise_limit() -> int:
    """Let this process have as many as it may; gives how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def clients_max(limit: int, links: int) -> int:
    """How many clients there is room for beside what is open now and so many links; at least 1.

    ``limit``: descriptors that the process may have.
    """
    return max(1, limit - len(os.listdir("/dev/fd")) - LINK * links - KEPT)


class Lookout:
    """Says in the log when descriptors have run out, once a second at most."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        """One that is open all the while."""
        self.due_at = 0.0
        """When to look again, in seconds of its host's clock."""

    def look(self, now: float) -> None:
        """Look; ``now`` in seconds."""
        self.due_at = now + LOOK_S
        try:
            os.close(os.dup(self._descriptor))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            log("warning", "no file descriptors left: connections wait", {"reason": error.strerror})
