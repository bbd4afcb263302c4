"""A source that counts, and writes down up to where its broker has acknowledged: one that is killed
and started again counts on from there, and publishes some numbers a second time.

python -m tests.counting ENDPOINT FILE
"""

import os
import sys
from pathlib import Path

from broker import Publisher
from matcher import EventType

A = EventType.of("A", n="int")
BEGIN_US = 1_700_000_000_000_000
AT_ONCE = 5
PATIENT = {"timeout_s": 60.0, "connect_timeout_s": 60.0}


def acknowledged(path: Path) -> int:
    """How many numbers the source knows to have been acknowledged."""
    return int(path.read_text()) if path.exists() else 0


def main(endpoint: str, path: Path) -> None:
    """Count until killed: what a number's event is follows from the number."""
    first = acknowledged(path)
    with Publisher(endpoint, name="counter", types=[A], **PATIENT) as publisher:
        while True:
            for n in range(first, first + AT_ONCE):
                publisher.publish("A", n=n, id=f"n{n}", at=BEGIN_US + n)
            publisher.wait()
            first += AT_ONCE
            beside = path.with_suffix(".new")
            beside.write_text(str(first))
            os.replace(beside, path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
