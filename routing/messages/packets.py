"""Numbered packets between neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from routing.messages.clients import Goodbye
from routing.messages.events import Awakening, Flow, Forward, PlanFollowed, RuleState, Shared
from routing.messages.links import LinkAck, LinkHello, LinkStates
from routing.messages.plans import (
    CheckpointCommitted,
    CheckpointProbe,
    Pause,
    Plan,
    Report,
    RootRequest,
)
from routing.messages.single_tree import (
    Answered,
    Asked,
    Awaited,
    Catalog,
    CatalogDelta,
    HandOver,
    Hold,
    NetworkAnswer,
    NetworkQuery,
    Stays,
    SubscriptionAck,
    SubscriptionUpdate,
)
from routing.messages.values import Sequence, Tag

Carried: TypeAlias = (
    Catalog
    | CatalogDelta
    | SubscriptionUpdate
    | SubscriptionAck
    | Flow
    | Asked
    | Answered
    | Pause
    | Report
    | Plan
    | Forward
    | Awakening
    | Awaited
    | Hold
    | Stays
    | RootRequest
    | CheckpointProbe
    | CheckpointCommitted
    | RuleState
    | PlanFollowed
    | Shared
    | NetworkQuery
    | NetworkAnswer
)
"""Messages between neighbours that are not the overlay's own business."""
Routed: TypeAlias = LinkStates | Carried
"""Messages that go in packets."""


class Packet(Struct, frozen=True, gc=False):
    """Message number ``sequence`` of a link, counted from 1 for each pair of incarnations, its
    ``tag``.

    ``acknowledged``: the sender has everything up to that number of the other direction.
    """

    tag: Tag
    sequence: Sequence
    acknowledged: Sequence
    message: Routed


FromNeighbour: TypeAlias = LinkHello | Packet | LinkAck | Goodbye
"""Frames that come over a link between brokers."""

LINK_KINDS: Mapping[int, type] = {
    48: LinkHello,
    50: LinkAck,
    51: LinkStates,
    56: SubscriptionUpdate,
    60: Pause,
    62: Plan,
    64: RootRequest,
    65: CheckpointProbe,
    67: CheckpointCommitted,
    68: SubscriptionAck,
    69: PlanFollowed,
    71: Awakening,
    73: Awaited,
    74: Hold,
    75: Stays,
    76: NetworkQuery,
    77: NetworkAnswer,
    79: HandOver,
}
"""Messages between brokers that are written as their fields, by kind."""
