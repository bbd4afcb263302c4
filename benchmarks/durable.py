"""A durable subscriber that writes what it gets, a line each, and says so once that is written.

python -m benchmarks.durable ENDPOINT NAME FILE FILTER...
"""

from __future__ import annotations

import json
import sys

from broker import Subscriber
from matcher.formats.printing import json_lines
from routing.delivery.remainder import event_numbers, places_of


def main(endpoint: str, name: str, path: str, *filters: str) -> None:
    """Write until killed."""
    with (
        open(path, "a", encoding="utf-8") as file,
        Subscriber(
            endpoint,
            *filters,
            name=name,
            durable=True,
            acks="explicit",
            connect_timeout_s=120.0,
            timeout_s=120.0,
        ) as subscriber,
    ):
        for delivery in subscriber.deliveries():
            lines = json_lines(delivery.batches, places_of(delivery)).decode().splitlines()
            for number, line in zip(event_numbers(delivery).tolist(), lines, strict=True):
                said = {"number": number, "again": delivery.again, "event": line}
                file.write(json.dumps(said) + "\n")
            file.flush()
            subscriber.acknowledge()


if __name__ == "__main__":
    main(*sys.argv[1:])
