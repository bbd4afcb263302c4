"""Events along the single tree: up to where rules are evaluated, down to who wants them.

Law 1: a published event crosses a link once: upwards as a Forward, for those above that want it and
for rules alike, downwards as a Flow, for those below that want it. Each broker offers what it has
not seen to its own sinks (deduplicator). A Temp of b1 goes to b2 once, though a rule at b2 and a
sink at b3 beyond want it.

Law 2: what a father has sent before it answered a pause may come to a child that has answered it.
It passes at once: every broker has it before the plan, and whatever rules may end with that. b3 has
answered, and a Fire comes that b2 sent before: sinks at b3 get it.

Law 3: what a neighbour sent before it took part in the plan as it is comes before its answer to the
pause, and is void. b3 has a new father b2: what it sent before it answered the pause b2 drops.
"""

from __future__ import annotations

from matcher.model import EventBatch
from routing.delivery.deduplicator import Deduplicator
from routing.messages import Flow, Forward, Stays
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.order import in_sequence


class SingleTreeTraffic:
    """The way of events and marks through this broker."""

    def __init__(self, context: BrokerContext, agreed: Agreed) -> None:
        self._context = context
        self._moment = context.moment
        self._router = context.router
        self._detection = context.detection
        self._agreed = agreed
        self.deduplicator = Deduplicator(context.config.repeat_ids_max, context.config.sources_max)

    def configure(self, repeat_ids_max: int) -> None:
        """Remember so many ids from now on."""
        self.deduplicator.ids_max = repeat_ids_max

    # --- what comes ---

    def hear_flow(self, neighbour: str, flow: Flow) -> None:
        """Events and marks have come along the tree."""
        if neighbour not in self._router.branches:
            return  # of a tree that is no more
        if not self._agreed.is_planned or neighbour not in self._router.partners:
            return
        self._context.check_schemas(flow.batches)
        if any(batch.is_composite for batch in flow.batches):
            self._router.pass_detected(flow.batches, flow.order, neighbour)
        elif flow.batches:
            self._pass_published(flow.batches, neighbour)
        if flow.marks:
            self._router.pass_marks(flow.marks, neighbour)

    def hear_forward(self, neighbour: str, message: Forward) -> None:
        """Events have come from below, for rules here or further up."""
        if self._works_with(neighbour):
            self._context.check_schemas(message.batches)
            if message.fresh:
                self._pass_published(message.batches[: message.fresh], neighbour)
            self._detection.evaluator.take(neighbour, message, self._moment.now)

    def _works_with(self, neighbour: str) -> bool:
        """Law 3."""
        return self._detection.is_at_work and neighbour in self._router.partners

    def _pass_published(self, batches: tuple[EventBatch, ...], sender: str) -> None:
        order, news = in_sequence(batches), self.deduplicator.news(batches)
        self._context.sinks.offer(news, order if news is batches else in_sequence(news))
        self._router.route_down(batches, order, sender)

    # --- what goes ---

    def say_who_left(self) -> None:
        """Tell the root which local sources have closed, behind the last of their events."""
        context = self._context
        stays = [context.accounts.find(source.name) for source in self._detection.take_leaving()]
        # Others have gone on elsewhere meanwhile.
        left = [stay for stay in stays if stay is not None and stay.home == context.name]
        context.send_flows()
        if (father := self._router.father) is not None:
            for part in Stays.in_parts(left):
                context.send(father, part)
