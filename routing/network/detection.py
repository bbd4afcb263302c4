"""Rules and engine of a broker in a network: evaluated at the root, known everywhere.

Below the root a Detection's place is taken by what comes from there: composite events and marks
from the father; events and promises go the other way (:mod:`routing.network.router`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matcher.model import TIME_MIN, EventBatch
from routing.deployment import Deployed
from routing.detection import Detection
from routing.network.router import CLOSED, Router
from routing.sources import Source, Standing
from rules.engine.engine import Detections


class NetworkDetection(Detection):
    """A Detection that evaluates only where its broker is the root."""

    def __init__(self, router: Router, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._router = router

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark, as far as it is known here."""
        if self._router.is_root:
            return super().marks
        known = self._router.marks
        return {
            one.rule.name: known.get(one.rule.name, TIME_MIN) for one in self._deployments.rules
        }

    def due_mark(self, deployed: Deployed) -> int:
        """Up to where a rule's composite events have come, and are complete."""
        if self._router.is_root:
            return super().due_mark(deployed)
        return self._router.marks.get(deployed.rule.name, TIME_MIN)

    def push(self, batches: Sequence[EventBatch]) -> list[str]:
        """Give events to the engine, where it is here; the router takes them there otherwise."""
        return super().push(batches) if self._router.is_root else []

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        if self._router.is_root:
            super().keep_promise(source, mark, now)
        elif source.keep_promise(mark, now):
            self._router.promise(source.name, source.promise)

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more; one that has closed, nothing at all."""
        super().withdraw(source, names)
        if not self._router.is_root and source.standing is Standing.CLOSED:
            self._router.promise(source.name, CLOSED)

    def is_waited_for(self, source: Source, now: float) -> bool:
        """Whether rules wait for a source; only the root can tell, and it decides."""
        return self._router.is_root and super().is_waited_for(source, now)

    def advance(self, now: float) -> Detections | None:
        """What was detected here, or has come from where it was."""
        if not self._router.is_root:
            return self._router.take_detected()
        detections = super().advance(now)
        if detections is not None:
            self.tell(detections)
        return detections

    def forget_rules(self) -> None:
        """Take every rule out of the engine: others evaluate them, or nobody does."""
        for name in list(self._engine.marks):
            self._engine.remove(name)
        self.watermarks.forget_groups()

    def tell(self, detections: Detections) -> None:
        """Send composite events, and what marks they wait for, to the brokers below."""
        if not self._router.branches:
            return
        marks = {one.rule.name: self.due_mark(one) for one in self._deployments.rules}
        self._router.route_detected(detections, marks)
