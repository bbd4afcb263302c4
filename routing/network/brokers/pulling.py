"""Asking for what is kept below (7.3.7), along the single tree and those of sinks in one message;
and telling those who would ask how far that has come.

What waits to be asked for, for masters, waits where nobody evaluates the rule. Who keeps it says so
when it is far ahead of them (evaluation.skew): to the root, and the root tells all. Who would ask
says from when on it may still do so, and takes what is kept for having come if there are no masters
any more. What is said counts until more is kept; nobody says anything while masters keep up.
"""

from __future__ import annotations

from routing.messages import Awaited, Awakening
from routing.network.brokers.context import BrokerContext
from routing.partition.questions import AskedSpans


class Pulling:
    """Asks, and hears who asks; tells how far what is kept here has come, and hears where else
    something is kept.
    """

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._router = context.router
        self._detection = context.detection

    # --- questions ---

    def ask(self) -> None:
        """Ask for what waits below; who is out of reach sends it when all is anew."""
        evaluator, branches = self._detection.evaluator, self._router.branches
        found = evaluator.take_asked() if evaluator.is_pulling else {}
        single = {child: of for child, of in found.items() if child in branches} if found else {}
        others: dict[str, list[tuple[str, AskedSpans]]] = {}
        for tree in self._detection.tree_table.news:
            for child, asked in tree.take_asked().items() if tree.evaluator.is_pulling else ():
                others.setdefault(child, []).append((tree.root, asked))
        for child in sorted({*single, *others}) if single or others else ():
            message = Awakening(single.get(child, ()), tuple(others.get(child, ())))
            self._context.send(child, message)

    def hear_awakening(self, neighbour: str, message: Awakening) -> None:
        """A father asks for what waits here."""
        detection, router, tree_table = self._detection, self._router, self._detection.tree_table
        is_partner = neighbour == router.father and neighbour in router.partners
        if message.asked and is_partner and detection.is_at_work:
            detection.evaluator.awake(message.asked)
        for root, asked in message.trees:
            tree = tree_table.trees.get(root)
            if tree is not None and tree.father == neighbour and tree.is_open:
                tree_table.touch(root)
                tree.evaluator.awake(asked)

    # --- what is kept ---

    def tell_kept(self) -> None:
        """Tell how far what is kept for masters has come."""
        kept = self._detection.skew_limit.take_kept()
        if kept:
            self._pass_on(Awaited(tuple(sorted(kept.items()))))

    def hear_awaited(self, neighbour: str, message: Awaited) -> None:
        """Hear what is kept elsewhere, as a broker below says to the root, or the root to all."""
        if neighbour == self._router.father:
            self._spread(message)
        elif neighbour in self._router.branches:
            self._pass_on(message)

    def _pass_on(self, message: Awaited) -> None:
        """On to the root, and from there to all."""
        if self._router.is_root:
            self._spread(message)
        elif self._router.father is not None:
            self._context.send(self._router.father, message)

    def _spread(self, message: Awaited) -> None:
        for evaluator in self._detection.evaluators:
            evaluator.hear_awaited(message.types)
        self._detection.tree_table.touch_users([name for name, _ in message.types])
        for branch in self._router.children:
            self._context.send(branch.neighbour, message)
