"""The parts of a broker, each made of those before it, and which of them hears what.

A part knows the parts that it is made of and no others. What has to go the other way, a need
that is met at the root say, goes through a table that is filled in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from routing import messages
from routing.messages import RootTask
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
from routing.network.brokers.pulling import Pulling
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
"""Prepares to take it in (serving.slices)."""


class Parts:
    """One broker's; ``measurements`` is None where the strategy needs none."""

    def __init__(self, context: BrokerContext, agreed: Agreed, timer: UpdateTimer) -> None:
        measures = bool(chosen_by(agreed.strategy))
        self.root_requests = root = RootRequests(context)
        self.registry = SourceRegistry(context)
        self.slices = Slices(context.moment, context.service.settle)
        self.subscription_sync = wants = SubscriptionSync(context, timer)
        self.catalog_sync = CatalogSync(context, agreed, timer, self.registry)
        self.log_reader = LogReader(context, agreed)
        self.requests = Requests(context, timer, self.registry, self.log_reader, self.slices)
        self.single_traffic = SingleTreeTraffic(context, agreed)
        self.sink_traffic = SinkTreeTraffic(context)
        self.trees = SinkTrees(context, agreed, timer, root, self.sink_traffic)
        self.measurements = (
            Measurements(context, agreed, timer, root, self.trees) if measures else None
        )
        self.collector = ReportCollector(context)
        self.checkpoints = Checkpoints(
            context, agreed, timer, root, self.collector, self.measurements
        )
        deduplicator = self.single_traffic.deduplicator
        self.registry.heard_of = lambda: deduplicator.numbers
        addressed = self.requests.addressed
        self.giver = Giver(context, agreed, deduplicator, self.checkpoints, addressed.say)
        self.taker = Taker(context, wants, self.checkpoints, deduplicator)
        addressed.hears, addressed.takes = self.giver.hear, self.taker.take
        self.inputs = Inputs(context, timer)
        self.resending = Resending(context)
        self.pulling = Pulling(context)
        self.back_pressure = BackPressure(context, timer)
        self.pauses = self._pauses_of(context, agreed, timer)
        root.are_handled_by(
            {
                RootTask.PLAN: self.pauses.handle_request,
                RootTask.CHECKPOINT: lambda _: self.checkpoints.begin(),
                RootTask.RELEASE: self.inputs.handle_request,
                RootTask.END: self.pauses.handle_request,
                RootTask.LEAVE: self.inputs.let_go,
                RootTask.TREES: self.trees.handle_request,
            }
        )

    def _pauses_of(self, context: BrokerContext, agreed: Agreed, timer: UpdateTimer) -> Pauses:
        planner = Planner(
            context,
            agreed,
            self.inputs,
            self.registry,
            self.catalog_sync,
            self.requests,
            self.trees,
            self.measurements,
        )
        follower = PlanFollower(
            context,
            agreed,
            self.subscription_sync,
            self.catalog_sync,
            self.single_traffic,
            self.checkpoints,
            self.trees,
            self.measurements,
        )
        return Pauses(
            context,
            agreed,
            timer,
            self.root_requests,
            self.collector,
            self.subscription_sync,
            self.checkpoints,
            planner,
            follower,
            self.trees,
            self.slices,
            self.registry,
            (self.requests, self.checkpoints, self.inputs, self.trees, *self._measuring),
        )

    @property
    def _measuring(self) -> Sequence[Measurements]:
        return () if self.measurements is None else (self.measurements,)

    @property
    def timed(self) -> Sequence[Timed]:
        """Parts that do something at a time of their own."""
        others = self.resending, self.inputs, self.log_reader, self.giver, self.taker
        return self.checkpoints, self.slices, *others, *self._measuring


def heard_by(parts: Parts) -> Mapping[type, Hear]:
    """Messages of neighbours, and the part that hears each."""
    return {
        messages.SubscriptionUpdate: parts.subscription_sync.hear_update,
        messages.SubscriptionAck: parts.subscription_sync.hear_ack,
        messages.Asked: parts.requests.hear_asked,
        messages.Answered: parts.requests.hear_answered,
        messages.Catalog: parts.catalog_sync.hear_catalog,
        messages.CatalogDelta: parts.catalog_sync.hear_delta,
        messages.Flow: parts.single_traffic.hear_flow,
        messages.Forward: parts.single_traffic.hear_forward,
        messages.Awakening: parts.pulling.hear_awakening,
        messages.Shared: parts.sink_traffic.hear_shared,
        messages.PlanFollowed: parts.sink_traffic.hear_followed,
        messages.Pause: parts.pauses.hear_pause,
        messages.Report: parts.collector.hear_report,
        messages.Plan: parts.pauses.hear_plan,
        messages.CheckpointProbe: parts.checkpoints.hear_probe,
        messages.CheckpointCommitted: parts.checkpoints.hear_committed,
        messages.RuleState: parts.checkpoints.hear_state,
        messages.Awaited: parts.pulling.hear_awaited,
        messages.Hold: parts.back_pressure.hear,
        messages.Stays: parts.catalog_sync.hear_stays,
        messages.RootRequest: parts.root_requests.hear,
    }


def prepared_by(parts: Parts) -> Mapping[type, Prepare]:
    """Messages that take long to be heard, and the part that prepares for each."""
    return {
        messages.Catalog: parts.catalog_sync.prepare_catalog,
        messages.CatalogDelta: parts.catalog_sync.prepare_delta,
        messages.Plan: parts.pauses.prepare_plan,
    }
