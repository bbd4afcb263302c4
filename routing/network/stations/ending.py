"""A Detection at whose root rules that have ended may linger (routing.network.brokers.lingering).

Law 1: what has ended is remembered until the plan asks for it, with how far this broker was. By
arrival versions of a rule are told apart where they are evaluated, and nothing is said of instants.

Law 2: where somebody is out of reach who publishes what a rule needs, nobody here can say how far
that has been evaluated there, so neither from which instant on the rule would hold nor up to which
it has held: it is neither deployed nor removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from routing.config import Ordering
from routing.errors import Refusal
from routing.messages import Code
from routing.serving.deployment import Deployed, Ended
from routing.serving.detection import Basis, Detection
from rules.pattern import RuleSet


class EndingDetection(Detection):
    """Owner of what has ended since the last plan."""

    def __init__(self, basis: Basis) -> None:
        super().__init__(basis)
        self._by_arrival = self._config.ordering is Ordering.ARRIVAL
        self._ended: list[tuple[Ended, int]] = []
        self.out_of_reach: Mapping[str, Collection[str]] = {}
        """At the root: the brokers that are out of reach, and what is published there."""

    def reached(self, rule: str) -> int:
        """Up to where this broker has a rule's composite events."""
        raise NotImplementedError

    def forget(self, names: Iterable[str]) -> None:
        """These names mean no rule any more, or another than before."""
        raise NotImplementedError

    def take_ended(self) -> list[tuple[Ended, int]]:
        """The rules that have ended since this was last asked, and ``reached`` of each."""
        ended, self._ended = self._ended, []
        return ended

    def linger(self, new: Iterable[Deployed], gone: Sequence[str]) -> None:
        """Let rules that have ended linger, and others no more."""
        for one in map(self._deployments.let_go, gone):
            self._advertisements.exchange(one.mentions, ())
        for one in new:
            self._advertisements.exchange((), one.mentions)
            self._deployments.keep(one)
        self.forget(gone)
        self._rules_changed()

    # --- who is out of reach (Law 2) ---

    def remove(self, name: str) -> Ended:
        """The same; Refusal also for a rule that needs what is out of reach."""
        if self.out_of_reach and self._deployments.find(name) is not None:
            self._check_reach(self._deployments.needs(name))
        return super().remove(name)

    def _check(self, rules: RuleSet, replaced: Sequence[Deployed]) -> None:
        super()._check(rules, replaced)
        if self.out_of_reach:
            published = {*self._published(), *(n for ns in self.out_of_reach.values() for n in ns)}
            needs = self._deployments.needs_of_new(rules, published).values()
            before = [self._deployments.needs(one.rule.name) for one in replaced]
            self._check_reach(frozenset[str]().union(*needs, *before))

    def _check_reach(self, needs: Collection[str]) -> None:
        for broker, published in self.out_of_reach.items():
            missed = sorted({*published}.intersection(needs))
            if missed and not self._by_arrival:
                reason = f"broker {broker} is out of reach, where {', '.join(missed)} is published"
                raise Refusal(Code.SILENT, reason)

    # --- what has ended (Law 1) ---

    def _beyond_ends(
        self, sinces: Mapping[str, int | None], ended: Iterable[Ended]
    ) -> Mapping[str, int | None]:
        return sinces if self._by_arrival else super()._beyond_ends(sinces, ended)

    def _take_out(self, gone: Sequence[Deployed], rules: RuleSet) -> Sequence[Ended]:
        reached = [self.reached(one.rule.name) for one in gone]
        ended = super()._take_out(gone, rules)
        self._ended += zip(ended, reached, strict=True)
        self.forget([one.rule.name for one in gone])
        return ended
