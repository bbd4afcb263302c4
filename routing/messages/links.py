"""Messages that keep the overlay: greetings, acknowledgements, link states with their trees.

A link between brokers starts with ``LinkHello`` from both sides; everything else that the brokers
tell one another is then numbered, in a ``Packet``.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from routing.messages.values import Delay, Name, NameOfPeer, Number, Seconds, Sequence, Tag


@dataclass(frozen=True, slots=True)
class LinkHello:
    """A broker greets a neighbour, or answers its greeting.

    ``number`` counts greetings, from 1, and is 0 in an answer; ``answers`` is the number of what is
    answered, and 0 in a greeting. ``incarnation`` is a number that grows whenever the sender
    forgets what it knew of this link: its starting time. ``knows`` is the neighbour's incarnation
    that it has heard of (0: none), ``received`` the last packet that it has, in order, of those
    that this incarnation sent to that one. ``terms`` name what all brokers of a network must share.
    """

    version: Number
    name: NameOfPeer
    incarnation: Sequence
    knows: Sequence
    received: Sequence
    answers: Number
    heartbeat_s: Seconds
    terms: Name = ""
    number: Number = 0


class LinkAck(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """Everything up to ``acknowledged`` has come; also the sign of life of an idle link."""

    tag: Tag
    acknowledged: Sequence


class LinkState(Struct, array_like=True, frozen=True, order=True):
    """One broker's word of itself to the whole network, by flooding; the newest version counts.

    ``neighbours`` are pairs of name and delay, in order. ``epoch`` is that of the tree of which
    the broker, taking itself for the centre, is the root (0: of none), ``fathers`` pairs of name
    and father of all others in it. ``broken`` are pairs of root and epoch: trees of which the
    broker has lost a link. ``durables`` are the names of its durable sinks, in order.
    """

    origin: Name
    version: Sequence
    neighbours: tuple[tuple[Name, Delay], ...] = ()
    epoch: Sequence = 0
    broken: tuple[tuple[Name, Sequence], ...] = ()
    fathers: tuple[tuple[Name, Name], ...] = ()
    durables: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkStates:
    """Link states that the sender thinks are news."""

    states: tuple[LinkState, ...]
