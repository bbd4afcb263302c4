"""How long each step of a worker takes: a table that was measured on the real kernels.

Law: a step costs the same whoever makes it, but for words that workers share: these cost more for
whoever comes after another, since they stand in that one's cache then, and all wait that come
meanwhile. Example: with ``lock_ns = 5`` and ``line_ns = 100``, three workers that want a ticket at
once have it after 100, 200 and 300 ns.

Not in it: that caches and the way to memory are shared by cores, and clocks that fall as more cores
work.
"""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

MEASURED = Path(__file__).parent / "measured.toml"


class ChainCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nanoseconds by what the rule and its events are: to evaluate a pair, and to take an event in
    before any worker sees it.
    """

    pair_ns: float
    event_ns: float


class StepCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nanoseconds of steps.

    Of workers: ``take_ns`` to take events or a chunk, ``visit_ns`` to look at a chunk or a range
    of events, ``try_ns`` to find which events a sequence may be tried with, ``put_ns`` to copy a
    sequence that has become longer. ``lock_ns`` and ``line_ns``: to have a word for oneself, after
    oneself or after another. ``wake_ns``: to have one more thread begin.

    Of the one thread that has the rest to do: ``slice_ns`` for a slice, ``stored_ns`` to look
    whether a sequence may be deleted, ``composite_ns`` for a composite event.
    """

    take_ns: float
    visit_ns: float
    try_ns: float
    put_ns: float
    lock_ns: float
    line_ns: float
    wake_ns: float
    slice_ns: float
    stored_ns: float
    composite_ns: float


class CostTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The costs of one machine; ``chains`` by the names of rules."""

    machine: str
    date: datetime.date
    steps: StepCosts
    chains: dict[str, ChainCosts]


@dataclass(slots=True)
class Counts:
    """The steps of a slice: how many of each kind."""

    takes: int = 0
    visits: int = 0
    tries: int = 0
    pairs: int = 0
    puts: int = 0
    stored: int = 0
    composites: int = 0


def work_ns(counts: Counts, steps: StepCosts, pair_ns: float) -> float:
    """Nanoseconds of a worker, but for words that are shared."""
    return (
        counts.takes * steps.take_ns
        + counts.visits * steps.visit_ns
        + counts.tries * steps.try_ns
        + counts.pairs * pair_ns
        + counts.puts * steps.put_ns
    )


def read(file: Path = MEASURED) -> CostTable:
    """The table of a file. ValueError names what is wrong with it."""
    try:
        return msgspec.convert(tomllib.loads(file.read_text("utf-8-sig")), CostTable, strict=True)
    except ValueError as error:  # of TOML, and of msgspec
        raise ValueError(f"{file}: {error}") from None
