"""Numbered packets between neighbours."""

from __future__ import annotations

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
