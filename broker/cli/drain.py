"""``rexmq drain``: let a broker leave its network when nobody needs it any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address
    from broker.client.manager import RuleManager

EXAMPLE = "rexmq drain --broker tcp://127.0.0.1:7462"

LOOK_S = 0.5
ANSWER_S = 3.0
"""A broker that says nothing for so long has left."""


@takes_broker
def command(*, broker: Address, connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S) -> None:
    """Let a broker send its clients to others, and leave its network.

    Says what it waits for, until it has left. Ctrl-C ends this command alone: the broker goes on
    draining. SIGUSR1 to the broker does the same.
    """
    from broker import RuleManager
    from broker.escaping import escaped

    with RuleManager(broker, timeout_s=ANSWER_S, connect_timeout_s=connect_timeout_s) as manager:
        manager.drain()
        for obstacles in _changes(manager):
            print(escaped("; ".join(["draining", *obstacles])), flush=True)
    print("the broker has left")


def _changes(manager: RuleManager) -> Iterator[Sequence[str]]:
    """Obstacles that the broker tells, whenever they have changed, until it has left."""
    import time

    from broker.errors import BrokerUnreachable, RefusedError

    told: Sequence[str] | None = None
    while True:
        try:
            obstacles = manager.status()["draining"]
        except (BrokerUnreachable, RefusedError):
            return
        if obstacles is None:  # another one has taken its place
            return
        if obstacles != told:
            told = obstacles
            yield obstacles
        time.sleep(LOOK_S)
