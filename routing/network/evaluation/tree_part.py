"""A broker's part in one tree, the single one or that of a broker with sinks: what it evaluates
there, and what it has of composite events that were found anywhere in that tree.

A mark of a rule here is worked out when composite events are found, or when somebody beyond a
neighbour may wait for it; until then it is owed (network.tables.deferred_watermarks, Law 1). b5 has
the Fires up to 12 s, and knows that none comes before 13 s: as Temps of 14 s and Smokes of 15 s
come, nobody asks how far fire is, until there is a Fire.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MIN
from routing.deployment import Deployed
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.network.agreement.rounds import raise_all
from routing.network.evaluation.router import Router
from routing.network.recovery.resume_points import from_resume_points_on
from routing.watermarks.ends import CLOSED
from rules.engine.engine import NOTHING, Detections


class TreePart:
    """The evaluator, and the router that takes its results along the tree."""

    def __init__(self, evaluator: TreeEvaluator, router: Router) -> None:
        self.evaluator = evaluator
        self.router = router
        self.resume_from: Mapping[str, int] = {}
        """From when on composite events of rules have to be found, since they began anew."""
        self._owed: set[str] = set()
        """The rules here that have moved since their marks were worked out."""
        self._outdated: set[str] = set()
        """The rules of the evaluator that are there no more, until the next plan."""

    def evaluates(self, name: str) -> bool:
        """Whether a rule is evaluated here."""
        return name in self.evaluator.rules and name not in self._outdated

    def mark_of(self, name: str) -> int:
        """Up to where this broker has a rule's composite events."""
        return self.marks_of((name,))[name]

    def marks_of(self, names: Collection[str]) -> dict[str, int]:
        """The same of several."""
        told, rules = self.router.marks, self.evaluator.rules.keys() - self._outdated
        marks = dict.fromkeys(names, TIME_MIN)
        marks.update(self.evaluator.progress.output_watermarks(rules & marks.keys()))
        raise_all(marks, [(name, told[name]) for name in told.keys() & marks.keys()])
        return marks

    def has_ended(self, name: str) -> bool:
        """Whether nobody publishes anything any more for a rule."""
        if self.evaluates(name):
            return name in self.evaluator.watermarks.ended_rules
        return name in self.router.ended

    def complete_to(self, rules: Sequence[Deployed]) -> int:
        """Up to where the composite events of all these rules are complete; CLOSED for no rule."""
        here, ended = self.evaluator.rules, self.evaluator.watermarks.ended_rules
        elsewhere, open_ones = self.router.ended, list[str]()
        for name in [deployed.rule.name for deployed in rules]:
            is_here = name in here and name not in self._outdated
            if name not in (ended if is_here else elsewhere):
                open_ones.append(name)
        return min(self.marks_of(open_ones).values()) if open_ones else CLOSED

    def resume_points(self, wanted: Iterable[str]) -> dict[str, int]:
        """Up to where this broker has the composite events of rules that are evaluated or wanted
        here; of those that it was told something about, and that may still give some.
        """
        names = {name for name in wanted if name in self.router.marks} - self.router.ended
        return self.due_from(sorted(names | self.evaluator.rules.keys()))

    def due_from(self, names: Collection[str]) -> dict[str, int]:
        """The same of some; of what is evaluated here, not before it began anew: all had that."""
        begun, marks = self.resume_from, self.marks_of(names)
        here = [name for name in begun.keys() & marks if self.evaluates(name)]
        raise_all(marks, [(name, begun[name]) for name in here])
        return marks

    def forget(self, name: str) -> None:
        """Forget a rule that is gone: nothing that was said or found of it counts."""
        self.router.forget(name)
        self.resume_from = {rule: time for rule, time in self.resume_from.items() if rule != name}
        if name in self.evaluator.rules:
            self._outdated.add(name)

    def settle(self) -> None:
        """The evaluator follows another division."""
        self._outdated.clear()

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> list[Detections]:
        """Evaluate what marks allow (TreeEvaluator.advance), and tell of it; gives what is new."""
        evaluator, router = self.evaluator, self.router
        detected = evaluator.advance(own, clock, now)
        if detected is None or not (detected.batches or evaluator.progress.have_rules_moved):
            self._tell_awaited()
            return self.take_relayed() if router.has_news else []
        if router.branches:
            self._owed.update(evaluator.progress.news(router.wanted_rules))
            if detected.batches or evaluator.progress.have_rules_changed:
                self._tell(detected, self._take_owed())
            else:
                self._tell_awaited()
        if detected.batches:
            detected = from_resume_points_on(detected, router.news_from)
            evaluator.engine.count(detected)
        return [detected, *self.take_relayed()] if router.has_news else [detected]

    def take_relayed(self) -> list[Detections]:
        """Give what others have found, and evaluate nothing."""
        elsewhere = self.router.take_detected() if self.router.has_news else None
        return [] if elsewhere is None else [elsewhere]

    def tell_marks(self) -> None:
        """Tell the marks of all rules here, and what others have told, to who has not heard it."""
        self._tell(NOTHING, sorted(self.evaluator.rules.keys() & self.router.wanted_rules))
        self.router.repeat_marks()

    def tell_all(self) -> None:
        """Tell all marks that are owed, whether anybody waits for them or not."""
        self._tell(NOTHING, self._take_owed())
        self.router.tell_all()

    def _tell_awaited(self) -> None:
        """Tell the marks that are owed, if somebody may wait for any."""
        if self._owed and self.router.awaits(self._owed):
            self._tell(NOTHING, self._take_owed())

    def _take_owed(self) -> Sequence[str]:
        owed, self._owed = sorted(self._owed & self.evaluator.rules.keys()), set()
        return owed

    def _tell(self, detected: Detections, rules: Collection[str]) -> None:
        marks = self.evaluator.progress.output_watermarks(rules)
        ended = self.evaluator.watermarks.ended_rules.intersection(rules)
        if self.resume_from:
            detected = from_resume_points_on(detected, self.resume_from)
        self.router.route_found(detected, marks, ended)
