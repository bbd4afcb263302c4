"""The parts of a broker, each made of those before it, and which of them hears what.

A part knows the parts that it is made of and no others. What has to go the other way, a need
that is met at the root say, goes through a table that is filled in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.durability.log_reading import LogReading
from routing.messages import (
    Answered,
    Asked,
    Awaited,
    Awakening,
    Catalog,
    CatalogDelta,
    Committed,
    Flow,
    Forward,
    Hold,
    NameContested,
    Need,
    Needed,
    Pause,
    Plan,
    PlanFollowed,
    Report,
    RuleState,
    Shared,
    SubscriptionAck,
    SubscriptionUpdate,
    Survey,
)
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.back_pressure import BackPressure
from routing.network.brokers.catalog_sync import CatalogSync
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.following import Following
from routing.network.brokers.gathering import Gathering
from routing.network.brokers.inputs import Inputs
from routing.network.brokers.measuring import Measuring
from routing.network.brokers.needs import Needs
from routing.network.brokers.passing import Passing
from routing.network.brokers.pausing import Pausing
from routing.network.brokers.planning import Planning
from routing.network.brokers.pulled_progress import PulledProgress
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.requests import Requests
from routing.network.brokers.resending import Resending
from routing.network.brokers.sink_tree_traffic import SinkTreeTraffic
from routing.network.brokers.subscription_sync import SubscriptionSync
from routing.network.brokers.surveying import Surveying
from routing.network.brokers.trees import SinkTrees
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.strategy import chosen_by

Hear = Callable[[str, Any], None]
"""Takes in what a neighbour of this name has sent."""


@dataclass(frozen=True, slots=True)
class Parts:
    """One broker's; ``measuring`` is None where the strategy needs none."""

    needs: Needs
    registry: SourceRegistry
    reading: LogReading
    subscription_sync: SubscriptionSync
    catalog_sync: CatalogSync
    requests: Requests
    passing: Passing
    sink_traffic: SinkTreeTraffic
    trees: SinkTrees
    gathering: Gathering
    measuring: Measuring | None
    surveying: Surveying
    resending: Resending
    inputs: Inputs
    pulled_progress: PulledProgress
    back_pressure: BackPressure
    pausing: Pausing

    @property
    def timed(self) -> Sequence[Surveying | Resending | Inputs | Measuring]:
        """Parts that do something at a time of their own."""
        measuring = () if self.measuring is None else (self.measuring,)
        return (self.surveying, self.resending, self.inputs, *measuring)


def parts_of(context: BrokerContext, agreed: Agreed, timer: UpdateTimer) -> Parts:
    """The parts of a broker with this strategy."""
    needs, registry = Needs(context), SourceRegistry(context)
    subscription_sync = SubscriptionSync(context, timer)
    catalog_sync = CatalogSync(context, agreed, timer, registry)
    reading = LogReading(context, agreed)
    requests = Requests(context, timer, registry, reading)
    passing = Passing(context, agreed, registry)
    sink_traffic = SinkTreeTraffic(context)
    trees = SinkTrees(context, agreed, timer, needs, subscription_sync, sink_traffic)
    measures = bool(chosen_by(agreed.strategy))
    measuring = Measuring(context, agreed, timer, needs, trees) if measures else None
    gathering = Gathering(context)
    surveying = Surveying(context, agreed, timer, needs, gathering, measuring)
    inputs = Inputs(context, timer)
    planning = Planning(context, agreed, inputs, registry, catalog_sync, requests, trees, measuring)
    following = Following(
        context, agreed, subscription_sync, catalog_sync, passing, surveying, trees, measuring
    )
    reasons = (requests, surveying, inputs, trees, *(() if measuring is None else (measuring,)))
    pausing = Pausing(
        context,
        agreed,
        timer,
        needs,
        gathering,
        subscription_sync,
        surveying,
        planning,
        following,
        trees,
        reasons,
    )
    needs.are_met_by(
        {
            Needed.PLAN: pausing.meet,
            Needed.SURVEY: pausing.meet_survey,
            Needed.RELEASE: inputs.meet,
            Needed.END: pausing.meet,
            Needed.LEAVE: inputs.let_go,
            Needed.TREES: trees.meet,
        }
    )
    return Parts(
        needs=needs,
        registry=registry,
        reading=reading,
        subscription_sync=subscription_sync,
        catalog_sync=catalog_sync,
        requests=requests,
        passing=passing,
        sink_traffic=sink_traffic,
        trees=trees,
        gathering=gathering,
        measuring=measuring,
        surveying=surveying,
        resending=Resending(context),
        inputs=inputs,
        pulled_progress=PulledProgress(context),
        back_pressure=BackPressure(context, timer, sink_traffic),
        pausing=pausing,
    )


def heard_by(parts: Parts) -> Mapping[type, Hear]:
    """Messages of neighbours, and the part that hears each."""
    return {
        SubscriptionUpdate: parts.subscription_sync.hear_update,
        SubscriptionAck: parts.subscription_sync.hear_ack,
        Asked: parts.requests.hear_asked,
        Answered: parts.requests.hear_answered,
        Catalog: parts.catalog_sync.hear_catalog,
        CatalogDelta: parts.catalog_sync.hear_delta,
        Flow: parts.passing.hear_flow,
        Forward: parts.passing.hear_forward,
        Awakening: parts.sink_traffic.hear_awakening,
        Shared: parts.sink_traffic.hear_shared,
        PlanFollowed: parts.sink_traffic.hear_followed,
        Pause: parts.pausing.hear_pause,
        Report: parts.gathering.hear_report,
        Plan: parts.pausing.hear_plan,
        Survey: parts.surveying.hear_survey,
        Committed: parts.surveying.hear_committed,
        RuleState: parts.surveying.hear_state,
        Awaited: parts.pulled_progress.hear_awaited,
        Hold: parts.back_pressure.hear,
        NameContested: parts.registry.hear_name_contested,
        Need: parts.needs.hear,
    }
