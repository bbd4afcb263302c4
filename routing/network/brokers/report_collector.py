"""The report collector: a question of the root goes down the single tree, and all that is reported
comes up.

A broker reports once all of its children have. One question is under way at a time; another takes
its place, and reports of what is no longer asked are left out. b1 asks for a checkpoint, and lets
the tree pause before b3 has answered that: what b3 says of the checkpoint is void.
"""

from __future__ import annotations

from collections.abc import Callable

from routing.messages import CheckpointProbe, Pause, Report
from routing.network.brokers.context import BrokerContext

Conclude = Callable[[list[Report]], None]
"""Does what follows once all children have reported."""


class ReportCollector:
    """The question that is under way at this broker."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self.question: Pause | CheckpointProbe | None = None
        """The question that children have yet to answer."""
        self._awaited: set[str] = set()
        self._reports: list[Report] = []
        self._conclude: Conclude = list.clear

    def ask(self, question: Pause | CheckpointProbe, conclude: Conclude) -> None:
        """Ask all children; ``conclude`` is called at once where there are none."""
        children = [branch.neighbour for branch in self._context.router.children]
        self.question, self._conclude = question, conclude
        self._awaited, self._reports = set(children), []
        for child in children:
            self._context.send(child, question)
        self._look()

    def hear_report(self, neighbour: str, report: Report) -> None:
        """A child answers, for all below it."""
        question, epoch = self.question, self._context.router.epoch
        said = report.root, report.epoch, report.number
        if question is not None and epoch is not None and said == (*epoch, question.number):
            self._reports.append(report)
            self._awaited.discard(neighbour)
            self._look()

    def stop(self) -> None:
        """Nothing is asked any more: the tree is another, or has a plan."""
        self.question = None

    def _look(self) -> None:
        if self.question is not None and not self._awaited:
            self.question = None
            self._conclude(self._reports)
