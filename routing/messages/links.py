"""Messages that keep the overlay: greetings, acknowledgements, link states, trees (7.3.1).

A link between brokers starts with ``LinkHello`` from both sides; everything else that the brokers
tell one another is then numbered, in a ``Packet``.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from routing.messages.values import Delay, Name, Number, Seconds, Sequence, Tag


@dataclass(frozen=True, slots=True)
class LinkHello:
    """A broker greets a neighbour, or answers its greeting (``answers``).

    ``life`` is a number that grows whenever the sender forgets what it knew of this link: its
    starting time. ``knows`` is the neighbour's life that it has heard of (0: none), ``received``
    the last packet that it has, in order, of those that this life sent to that one. ``terms``
    name what all brokers of a network must share.
    """

    version: Number
    name: Name
    life: Sequence
    knows: Sequence
    received: Sequence
    answers: bool
    heartbeat_s: Seconds
    terms: Name = ""


class LinkAck(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """Everything up to ``acknowledged`` has come; also the sign of life of an idle link."""

    tag: Tag
    acknowledged: Sequence


class LinkState(Struct, array_like=True, frozen=True, order=True):
    """One broker's word of itself to the whole network, by floods; the newest version counts.

    ``neighbours`` are pairs of name and delay, in order. ``epoch`` is that of the tree of which
    the broker, taking itself for the centre, is the root (0: of none). ``broken`` are pairs of root
    and epoch: trees of which the broker has lost a link.
    """

    origin: Name
    version: Sequence
    neighbours: tuple[tuple[Name, Delay], ...] = ()
    epoch: Sequence = 0
    broken: tuple[tuple[Name, Sequence], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkStates:
    """Link states that the sender thinks are news."""

    states: tuple[LinkState, ...]


@dataclass(frozen=True, slots=True)
class CreateTree:
    """The sender is in the tree of ``root`` and offers to be the receiver's father (7.3.1)."""

    root: Name
    epoch: Sequence


@dataclass(frozen=True, slots=True)
class TreeAck:
    """The receiver is the sender's father in this tree."""

    root: Name
    epoch: Sequence


@dataclass(frozen=True, slots=True)
class TreeNack:
    """The sender has another father in this tree, or knows a later one of the same root."""

    root: Name
    epoch: Sequence
