"""Times that brokers' processors spend on messages, a table that was measured on the real code.

Law 1: a message costs by what it is, by its bytes, and by what is evaluated where it comes: rows of
a table say how much. What a broker sends costs too, for whoever has it sent; so a message that goes
to ten sinks costs ten deliveries.

Law 2: what a message is follows from its frames alone, so the costs of a run are a function of its
scenario, its seed and the table.

``measured.toml`` is the table of one machine; ``python -m benchmarks.processing_costs`` makes one
of any other. Receiving from a socket and sending to one is not in it, nor is what timers do beside
the messages that they send.
"""

from __future__ import annotations

import datetime
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from routing.messages import (
    Acknowledged,
    Awakening,
    Credit,
    DealtWith,
    Delivery,
    Flow,
    Forward,
    Heartbeat,
    LinkAck,
    Promise,
    Publish,
    Shared,
)
from routing.wire import CODECS, MAGIC
from simulator.hosts import FREE, Pricing
from simulator.lanes import Frames

MEASURED = Path(__file__).parent / "measured.toml"
"""The table that scenarios name ``measured``."""
_KIND = 3
"""Where a frame that begins a message says of what kind that is."""


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row: so much a message and so much a byte of it; where rules are evaluated so much more,
    and so much for each of them.
    """

    message_us: float
    byte_ns: float
    evaluating_us: float = 0.0
    rule_us: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name}: expected 0 or more, found {getattr(self, name)}")

    def seconds(self, size: int, rules: int) -> float:
        """Seconds that a message of so many bytes costs a broker that evaluates so many rules."""
        rest_us = self.evaluating_us + self.rule_us * rules if rules else 0.0
        return (self.message_us + rest_us) / 1e6 + self.byte_ns * size / 1e9


class Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Costs of messages that come in: clients' events; neighbours' events, or marks alone;
    what asks for events (push and pull); signs of life, credit and acknowledgements; all others.
    """

    published: Cost
    events: Cost
    marks: Cost
    awakenings: Cost
    signs: Cost
    others: Cost


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Costs of messages that go out: to sinks; all others."""

    deliveries: Cost
    others: Cost


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    machine: str
    date: datetime.date
    received: Received
    sent: Sent


@dataclass(frozen=True, slots=True)
class ProcessingTable:
    """The costs of one machine, beside ``others`` of all messages."""

    machine: str
    date: datetime.date
    incoming: Received
    outgoing: Sent
    others: Pricing = FREE

    def of(self, frames: Frames, rules: int) -> float:
        """The seconds for a message that a broker takes in that evaluates so many rules."""
        row: Cost = getattr(self.incoming, what_comes(frames))
        return row.seconds(sum(map(len, frames)), rules) + self.others.of(frames, rules)

    def sent(self, frames: Frames) -> float:
        """The seconds for a message that is sent."""
        row: Cost = getattr(self.outgoing, what_goes(frames))
        return row.seconds(sum(map(len, frames)), 0) + self.others.sent(frames)

    def beside(self, others: Pricing) -> ProcessingTable:
        """The same, and what others say."""
        return replace(self, others=others)


def place(name: str, folder: Path) -> Path:
    """The file that a scenario means, in whose folder paths begin."""
    return MEASURED if name == "measured" else folder / name


def read(file: Path) -> ProcessingTable:
    """The table of a file. ValueError names what is wrong with it, and what was expected."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
        found = msgspec.convert(document, _File, strict=True)
    except OSError as error:
        expected = 'expected "measured" or the file of a table'
        raise ValueError(f"{expected}: {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, and of msgspec
        raise ValueError(f"{file}: {error}") from None
    return ProcessingTable(found.machine, found.date, found.received, found.sent)


# --- what a message is ---------------------------------------------------------------------------

_KINDS = {codec.message: codec.kind for codec in CODECS}
_DELIVERY = _KINDS[Delivery]
_BEARS_EVENTS = frozenset(_KINDS[message] for message in (Flow, Forward, Shared))
"""Without events they bear marks alone."""
_ROWS: Mapping[int, str] = {
    _KINDS[Publish]: "published",
    _KINDS[Promise]: "marks",
    _KINDS[Awakening]: "awakenings",
    **dict.fromkeys(
        (_KINDS[one] for one in (Acknowledged, DealtWith, Credit, Heartbeat, LinkAck)), "signs"
    ),
}


def what_comes(frames: Frames) -> str:
    """The row of Received that a message belongs to."""
    place = _first(frames)
    kind = frames[place][_KIND]
    if kind in _BEARS_EVENTS:
        return "events" if len(frames) > place + 1 else "marks"
    return _ROWS.get(kind, "others")


def what_goes(frames: Frames) -> str:
    """The row of Sent that a message belongs to."""
    return "deliveries" if frames[_first(frames)][_KIND] == _DELIVERY else "others"


def _first(frames: Frames) -> int:
    """Where a message begins: behind the frame of its packet, if it is in one."""
    return 1 if len(frames) > 1 and frames[1].startswith(MAGIC) else 0
