"""The parts of a broker, each made of those before it, and which of them hears what.

A part knows the parts that it is made of and no others. What has to go the other way, a need
that is met at the root say, goes through a table that is filled in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.messages import (
    Answered,
    Asked,
    Awaited,
    Awakening,
    Catalog,
    CatalogDelta,
    CheckpointCommitted,
    CheckpointProbe,
    Flow,
    Forward,
    Hold,
    Pause,
    Plan,
    PlanFollowed,
    Report,
    RootRequest,
    RootTask,
    RuleState,
    Shared,
    Stays,
    SubscriptionAck,
    SubscriptionUpdate,
)
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.back_pressure import BackPressure
from routing.network.brokers.catalog_sync import CatalogSync
from routing.network.brokers.checkpoints import Checkpoints
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.giver import Giver
from routing.network.brokers.inputs import Inputs
from routing.network.brokers.log_reader import LogReader
from routing.network.brokers.measurements import Measurements
from routing.network.brokers.pauses import Pauses
from routing.network.brokers.plan_follower import PlanFollower
from routing.network.brokers.planner import Planner
from routing.network.brokers.pulled_progress import PulledProgress
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.report_collector import ReportCollector
from routing.network.brokers.requests import Requests
from routing.network.brokers.resending import Resending
from routing.network.brokers.root_requests import RootRequests
from routing.network.brokers.single_tree_traffic import SingleTreeTraffic
from routing.network.brokers.sink_tree_traffic import SinkTreeTraffic
from routing.network.brokers.subscription_sync import SubscriptionSync
from routing.network.brokers.taker import Taker
from routing.network.brokers.trees import SinkTrees
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.strategy import chosen_by
from routing.serving.slices import Slices, Timed

Hear = Callable[[str, Any], None]
"""Takes in what a neighbour of this name has sent."""
Prepare = Callable[[str, Any], Iterator[None]]
"""Prepares to take it in (serving.slices, Law 1)."""


@dataclass(frozen=True, slots=True)
class Parts:
    """One broker's; ``measuring`` is None where the strategy needs none."""

    root_requests: RootRequests
    registry: SourceRegistry
    log_reader: LogReader
    subscription_sync: SubscriptionSync
    catalog_sync: CatalogSync
    requests: Requests
    single_traffic: SingleTreeTraffic
    sink_traffic: SinkTreeTraffic
    trees: SinkTrees
    collector: ReportCollector
    measurements: Measurements | None
    checkpoints: Checkpoints
    resending: Resending
    slices: Slices
    inputs: Inputs
    pulled_progress: PulledProgress
    back_pressure: BackPressure
    pauses: Pauses
    giver: Giver
    taker: Taker

    @property
    def timed(self) -> Sequence[Timed]:
        """Parts that do something at a time of their own."""
        measurements = () if self.measurements is None else (self.measurements,)
        durable = self.log_reader, self.giver, self.taker
        return (
            self.checkpoints,
            self.slices,
            self.resending,
            self.inputs,
            *durable,
            *measurements,
        )


def parts_of(context: BrokerContext, agreed: Agreed, timer: UpdateTimer) -> Parts:
    """The parts of a broker with this strategy."""
    root_requests, registry = RootRequests(context), SourceRegistry(context)
    slices = Slices(context.moment, context.callbacks.settle)
    subscription_sync = SubscriptionSync(context, timer)
    catalog_sync = CatalogSync(context, agreed, timer, registry)
    log_reader = LogReader(context, agreed)
    requests = Requests(context, timer, registry, log_reader, slices)
    single_traffic = SingleTreeTraffic(context, agreed)
    sink_traffic = SinkTreeTraffic(context)
    trees = SinkTrees(context, agreed, timer, root_requests, subscription_sync, sink_traffic)
    measures = bool(chosen_by(agreed.strategy))
    measurements = Measurements(context, agreed, timer, root_requests, trees) if measures else None
    collector = ReportCollector(context)
    checkpoints = Checkpoints(context, agreed, timer, root_requests, collector, measurements)
    deduplicator = single_traffic.deduplicator
    registry.heard_of = lambda: deduplicator.numbers
    giver = Giver(context, agreed, deduplicator, checkpoints, requests.addressed.say)
    taker = Taker(context, subscription_sync, checkpoints, deduplicator)
    requests.addressed.hears, requests.addressed.takes = giver.hear, taker.take
    inputs = Inputs(context, timer)
    planner = Planner(
        context, agreed, inputs, registry, catalog_sync, requests, trees, measurements
    )
    follower = PlanFollower(
        context,
        agreed,
        subscription_sync,
        catalog_sync,
        single_traffic,
        checkpoints,
        trees,
        measurements,
    )
    reasons = (
        requests,
        checkpoints,
        inputs,
        trees,
        *(() if measurements is None else (measurements,)),
    )
    pauses = Pauses(
        context,
        agreed,
        timer,
        root_requests,
        collector,
        subscription_sync,
        checkpoints,
        planner,
        follower,
        trees,
        slices,
        registry,
        reasons,
    )
    root_requests.are_handled_by(
        {
            RootTask.PLAN: pauses.handle_request,
            RootTask.CHECKPOINT: pauses.begin_checkpoint,
            RootTask.RELEASE: inputs.handle_request,
            RootTask.END: pauses.handle_request,
            RootTask.LEAVE: inputs.let_go,
            RootTask.TREES: trees.handle_request,
        }
    )
    return Parts(
        root_requests=root_requests,
        registry=registry,
        log_reader=log_reader,
        subscription_sync=subscription_sync,
        catalog_sync=catalog_sync,
        requests=requests,
        single_traffic=single_traffic,
        sink_traffic=sink_traffic,
        trees=trees,
        collector=collector,
        measurements=measurements,
        checkpoints=checkpoints,
        resending=Resending(context),
        slices=slices,
        inputs=inputs,
        pulled_progress=PulledProgress(context),
        back_pressure=BackPressure(context, timer, sink_traffic),
        pauses=pauses,
        giver=giver,
        taker=taker,
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
        Flow: parts.single_traffic.hear_flow,
        Forward: parts.single_traffic.hear_forward,
        Awakening: parts.sink_traffic.hear_awakening,
        Shared: parts.sink_traffic.hear_shared,
        PlanFollowed: parts.sink_traffic.hear_followed,
        Pause: parts.pauses.hear_pause,
        Report: parts.collector.hear_report,
        Plan: parts.pauses.hear_plan,
        CheckpointProbe: parts.checkpoints.hear_probe,
        CheckpointCommitted: parts.checkpoints.hear_committed,
        RuleState: parts.checkpoints.hear_state,
        Awaited: parts.pulled_progress.hear_awaited,
        Hold: parts.back_pressure.hear,
        Stays: parts.catalog_sync.hear_stays,
        RootRequest: parts.root_requests.hear,
    }


def prepared_by(parts: Parts) -> Mapping[type, Prepare]:
    """Messages that take long to be heard, and the part that prepares for each."""
    return {
        Catalog: parts.catalog_sync.prepare_catalog,
        CatalogDelta: parts.catalog_sync.prepare_delta,
        Plan: parts.pauses.prepare_plan,
    }
