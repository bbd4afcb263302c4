"""One run of the demo, from the broker's start to its end, with its account."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import BinaryIO

from broker.client.sink import rows
from broker.demo.account import Account
from broker.demo.flights import Log
from broker.demo.live import Demo, Network
from broker.demo.pages import FirstOnes, sentence
from matcher.formats.printing import json_lines
from routing.delivery.delivery_batch import places_of
from routing.messages import Delivery

KILLED = "(broker {broker} was killed, by SIGKILL, and is back)"


def run(
    logs: Sequence[Log],
    network: Network,
    *,
    show: Callable[[str], None],
    watch: Callable[[int, int], None],
    lines: BinaryIO | None = None,
    durable: bool = False,
    kill: bool = False,
) -> Account:
    """Publish the logs to these brokers, and take what they detect.

    ``durable``: the brokers have stores; ``kill``: the first of them is killed in the middle, and
    started again.

    ``show`` is given the sentences to print; ``watch``, again and again, how many events are
    published and where in event time (microseconds) the slowest publisher is. Every composite
    event goes to ``lines`` as a JSON line, in the order that the subscriber got it in.
    """
    first_ones = FirstOnes()
    with Demo(network, durable=durable) as demo:

        def halfway() -> None:
            if kill:
                network.restart(demo.names[0])
                show(KILLED.format(broker=demo.names[0]))

        account = Account(demo.types)
        begun = time.perf_counter()
        with demo.publish(logs, halfway) as publishing:
            for delivered in demo.deliveries(publishing):
                watch(publishing.published, publishing.moment)
                if delivered is None:
                    continue
                delivery, new = delivered
                taken_at = time.perf_counter()
                for event in [*rows(delivery)][-new:]:
                    account.add(event, taken_at, publishing.handovers)
                    if first_ones.takes(event):
                        show(sentence(event))
                if lines is not None:
                    _write(delivery, new, lines)
        account.published = publishing.published
        account.seconds = time.perf_counter() - begun
    return account


def _write(delivery: Delivery, new: int, lines: BinaryIO) -> None:
    written = json_lines(delivery.batches, places_of(delivery)).splitlines(keepends=True)
    lines.writelines(written[-new:])
