"""Events on their way from broker to broker, and what is said behind them (7.3.6, 7.3.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from matcher.model import EventBatch, Int64s
from routing.messages.values import Name, Number, Sequence, Text, Time, Traces


class Flow(Struct, frozen=True, eq=False, gc=False):
    """Events on their way along a tree, and what is said behind them.

    ``order`` as in Delivery. ``marks``: rules, and up to where the receiver has all their composite
    events that it wants.
    """

    batches: tuple[EventBatch, ...] = ()
    order: Int64s | None = None
    marks: tuple[tuple[Name, Time], ...] = ()
    traces: Traces = ()


class Forward(Struct, frozen=True, eq=False, gc=False):
    """Events on the way up that fragments or subscribers above let pass (7.3.6), and then marks.

    The first ``fresh`` batches are published events that come the first time, and in the order of
    their sources; the others come for the sake of rules alone. ``marks``: types, and up to where
    the receiver has all of their events that it needs; one beyond everything says that nobody
    below publishes the type any more. ``answers``: rules, the number of the last Awakening of the
    plan that spoke of them, and a mark: of all masters before it that were asked for, everything
    before it has been sent (the thesis's End). ``came``, with ordering by arrival, int64[n]: when
    these events came to where they have waited; None: they come now.
    """

    batches: tuple[EventBatch, ...] = ()
    marks: tuple[tuple[Name, Time], ...] = ()
    fresh: Number = 0
    answers: tuple[tuple[Name, Sequence, Time], ...] = ()
    came: bytes | None = None
    traces: Traces = ()


class RuleState(Struct, frozen=True, eq=False, gc=False):
    """Composite events that a rule has found whose memory no window bounds, by which another broker
    can go on with it (routing.partition.rule_states).

    ``since``: they are all from there on, as far back as anybody needs them where it is TIME_MIN;
    ``mark``: and up to there, TIME_MIN where more follow.
    """

    rule: Name
    since: Time
    mark: Time
    batches: tuple[EventBatch, ...] = ()


OfRules: TypeAlias = tuple[
    tuple[Name, tuple[tuple[Time, Time, tuple[bool | int | float | Text, ...]], ...], Time], ...
]
"""Rules, first and last times of their masters, with values of theirs, and horizons."""


@dataclass(frozen=True, slots=True)
class Awakening:
    """Masters have come: what lies in the windows around them is to be sent (7.3.7).

    ``asked``: rules, first and last times of their masters with the values that what is asked for
    has to share (none: whatever it has), and a horizon: windows of masters that are earlier will
    not be asked for any more. ``trees``: the same along trees of brokers with sinks, each with its
    root.
    """

    asked: OfRules = ()
    trees: tuple[tuple[Name, OfRules], ...] = ()


@dataclass(frozen=True, slots=True)
class PlanFollowed:
    """The sender, a neighbour in trees of brokers with sinks, follows this plan: what it has sent
    before was said by earlier ones.
    """

    root: Name
    epoch: Sequence
    number: Sequence


class Part(Struct, array_like=True, frozen=True, gc=False):
    """The part of a Shared for one tree: a Forward, or a Flow of what was ``detected``.

    ``root``: of the tree. ``picks``: for each batch of the tree the place of one of the message's.
    ``marks`` as in Forward and Flow; ``order`` as in Delivery, as int32[n].
    """

    root: Name
    picks: tuple[Number, ...]
    marks: tuple[tuple[Name, Time], ...] = ()
    detected: bool = False
    order: bytes | None = None


class Shared(Struct, frozen=True, eq=False, gc=False):
    """Events that go up the trees of brokers with sinks over one link, each batch once.

    ``pulled``: the places of parts that
    have more of a Forward, with its answers and ``came``.
    """

    batches: tuple[EventBatch, ...]
    parts: tuple[Part, ...]
    pulled: tuple[tuple[Number, tuple[tuple[Name, Sequence, Time], ...], bytes | None], ...] = ()
    traces: Traces = ()
