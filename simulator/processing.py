"""Times that brokers' processors spend on messages, a table that was measured on the real code.

``measured.toml`` is the table of one machine; ``python -m benchmarks.processing_costs`` makes one
of any other. What sockets cost is in ``waking_us`` alone; what timers do beside the messages that
they send is in nothing.
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
from simulator.hosts import FREE, Costs
from simulator.lanes import Frames

MEASURED = Path(__file__).parent / "measured.toml"
"""The table that scenarios name ``measured``."""
_KIND = 3
"""Where a frame that begins a message says of what kind that is."""


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row: so much a message and so much a byte of it; where rules are evaluated so much more,
    and so much for each of them; so much for a further message of a step, where rules are evaluated
    or not (None: as for the first).
    """

    message_us: float
    byte_ns: float
    evaluating_us: float = 0.0
    rule_us: float = 0.0
    further_us: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            _refuse_below_nothing(name, getattr(self, name) or 0.0)

    def seconds(self, size: int, rules: int, is_further: bool) -> float:
        """Seconds that a message of so many bytes costs a broker that evaluates so many rules."""
        if is_further and self.further_us is not None:
            spent_us = self.further_us
        else:
            spent_us = self.message_us
            if rules:
                spent_us += self.evaluating_us + self.rule_us * rules
        return spent_us / 1e6 + self.byte_ns * size / 1e9


def _refuse_below_nothing(name: str, found: float) -> None:
    if not 0 <= found < math.inf:
        raise ValueError(f"{name}: expected 0 or more, found {found}")


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
    waking_us: float = 0.0

    def __post_init__(self) -> None:
        _refuse_below_nothing("waking_us", self.waking_us)


@dataclass(frozen=True, slots=True)
class ProcessingTable:
    """The costs of one machine, beside ``others`` of all messages. A message costs by what it is,
    by its bytes, and by what is evaluated where it comes, all of which follow from its frames; so
    the costs of a run are a function of its scenario, its seed and the table. A message that goes
    to ten sinks costs its sender ten deliveries.
    """

    machine: str
    date: datetime.date
    incoming: Received
    outgoing: Sent
    waking_s: float = 0.0
    others: Costs = FREE

    def step(self) -> Step:
        """The bill of a step."""
        return Step(self)

    def beside(self, others: Costs) -> ProcessingTable:
        """The same, and what others say."""
        return replace(self, others=others)


class Step:
    """The bill of one step by a table.

    The first message of a row finds the code of its row in no cache, and has all done that is done
    once for what is taken in together; each further one of that row costs ``further_us`` in their
    place. Three Publish that wait for b1 cost ``message_us``, ``evaluating_us`` and ``rule_us``
    once and ``further_us`` twice, and ``byte_ns`` for the bytes of all three. A step for which the
    processor has to be woken costs ``waking_us`` more.
    """

    def __init__(self, table: ProcessingTable) -> None:
        self._table = table
        self._come = set[str]()
        """The rows that it has had a message of."""
        self._gone = set[str]()

    def of(self, frames: Frames, rules: int) -> float:
        """The seconds for a message that a broker takes in that evaluates so many rules."""
        name, table = what_comes(frames), self._table
        is_further = name in self._come
        self._come.add(name)
        row: Cost = getattr(table.incoming, name)
        size = sum(map(len, frames))
        return row.seconds(size, rules, is_further) + table.others.of(frames, rules)

    def sent(self, frames: Frames) -> float:
        """The seconds for a message that is sent."""
        name, table = what_goes(frames), self._table
        is_further = name in self._gone
        self._gone.add(name)
        row: Cost = getattr(table.outgoing, name)
        return row.seconds(sum(map(len, frames)), 0, is_further) + table.others.sent(frames)


def place(name: str, folder: Path) -> Path:
    """The file that a scenario means, in whose folder paths begin."""
    return MEASURED if name == "measured" else folder / name


def read(file: Path) -> ProcessingTable:
    """The table of a file. ValueError names what is wrong with it, and what was expected."""
    try:
        document = tomllib.loads(file.read_text("utf-8-sig"))
        found = msgspec.convert(document, _File, strict=True)
    except OSError as error:
        expected = 'expected "measured" or the file of a table'
        raise ValueError(f"{expected}: {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, and of msgspec
        raise ValueError(f"{file}: {error}") from None
    waking_s = found.waking_us / 1e6
    return ProcessingTable(found.machine, found.date, found.received, found.sent, waking_s)


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
