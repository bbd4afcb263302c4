"""Filters that each broker of a tree wants of its neighbours, and when they are in force.

A broker wants what its sinks want and what its other neighbours do (router, Law 1). It tells that
while a plan is in force, and as the tree pauses for the next one: to the father before the report,
to children before the plan. So whoever is told goes by the same tree, and nothing is lost. A want
is in force once all who were told have confirmed it (agreement.confirmations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from routing.messages import Confirmed, SubscriptionAck, SubscriptionUpdate
from routing.network.agreement.confirmations import Client, Confirmations, Neighbour, Waiter
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.tables.branch import Branch
from routing.serving.link import Link


class SubscriptionSync:
    """Tells, and hears, what is wanted."""

    def __init__(self, context: BrokerContext, timer: UpdateTimer) -> None:
        self._context = context
        self._router = context.router
        self._timer = timer
        self.confirmations = Confirmations()
        self._wanted_by_father: tuple[Branch, int] | None = None
        """The part of the father's wants that the evaluator was told of last."""

    def index(self) -> None:
        """Types, rules, subscriptions or neighbours have changed."""
        context, router = self._context, self._router
        router.index(context.advertisements.schemas, context.deployments.defining)
        father = router.branches.get(router.father or "")
        version = None if father is None else (father, father.wanted_version)
        if father is None:
            context.detection.evaluator.want({})
        elif version != self._wanted_by_father:
            context.detection.evaluator.want(father.demands)
        self._wanted_by_father = version

    # --- updates ---

    def tell(self, to: Sequence[str] | None = None) -> None:
        """Tell what is news to these neighbours; None for all."""
        for branch, update in self._router.updates(self._context.filters, to):
            branch.told_number = self.confirmations.next_number(branch.neighbour)
            self._context.send(branch.neighbour, replace(update, number=branch.told_number))

    def hear_update(self, neighbour: str, update: SubscriptionUpdate) -> None:
        """A neighbour wants something else."""
        if self._router.hear_update(neighbour, update):
            self._timer.look_again()
            self.confirmations.add(Neighbour(neighbour, update.number))

    def hear_ack(self, neighbour: str, ack: SubscriptionAck) -> None:
        """Hear that what a neighbour was told is in force with it."""
        if neighbour in self._router.branches:
            self._confirm(self.confirmations.confirm(neighbour, ack.number))

    def leave(self, neighbour: str) -> None:
        """A neighbour is in the tree no more."""
        self._confirm(self.confirmations.leave(neighbour))

    # --- who waits for them ---

    def confirm_subscription(self, link: Link, answer: Confirmed, *, is_planned: bool) -> None:
        """Answer a client once what it has subscribed to is in force. ``is_planned``: the last plan
        has what sinks here want.
        """
        if is_planned and self._router.is_root and not self._router.branches:
            self._context.outlet.send(link.peer, answer)
        else:
            self.confirmations.add(Client(partial(self._context.answer, link.peer, answer)))

    def once_in_force(self, go_on: Callable[[], object]) -> None:
        """Do something once all that sinks here want by now is in force everywhere."""
        self.confirmations.add(Client(go_on))
        self._timer.tell_soon()

    def confirm(self, *, is_planned: bool) -> None:
        """All that is wanted has been told: answer whoever waits for nothing more. ``is_planned``
        as in confirm_subscription: else clients wait on.
        """
        self._confirm(self.confirmations.take_done(clients=is_planned))

    def _confirm(self, waiters: Iterable[Waiter]) -> None:
        context, begun = self._context, list[Client]()
        for waiter in waiters:
            if isinstance(waiter, Neighbour):
                context.send(waiter.name, SubscriptionAck(waiter.number))
            else:
                begun.append(waiter)
        if begun:
            # What they get begins here, though nothing may have been told of it yet.
            context.detection.count_on(context.wanted_rules)
        for one in begun:
            one.go_on()
