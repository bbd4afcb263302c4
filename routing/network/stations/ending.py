"""A Detection at whose root rules that have ended may linger (routing.network.brokers.lingering).

Law 1: what has ended is remembered until the plan asks for it, with how far this broker was. By
arrival versions of a rule are told apart where they are evaluated, and nothing is said of instants.

Law 2: where somebody is out of reach who publishes what a rule needs, or what those above it need,
nobody here can say how far that has been evaluated there, so neither from which instant on the rule
would hold nor up to which it has held: it is neither deployed nor removed. By arrival there is no
such instant, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from routing.config import Ordering
from routing.errors import Refusal
from routing.messages import Code
from routing.serving.deployment import Deployed, Ended
from routing.serving.detection import Basis, Detection
from rules.pattern import TIMER, RuleSet

OUT_OF_REACH = "is out of reach"
"""What a refusal by Law 2 says of a broker; nothing has been done then."""


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
        """Remove a rule; Refusal when there is none of that name, and where Law 2 forbids it."""
        deployed = self._deployments.find(name)
        if deployed is not None and not deployed.has_ended:
            self._check_reach((), [deployed])
        return super().remove(name)

    def _check(self, rules: RuleSet, replaced: Sequence[Deployed]) -> None:
        super()._check(rules, replaced)
        if self.out_of_reach:
            published = {*self._published()}.union(*self.out_of_reach.values())
            needs = self._deployments.needs_of_new(rules, published).values()
            above = self._deployments.needs_above({one.defines.name for one in rules.rules})
            self._check_reach(above.union(*needs), replaced)

    def _check_reach(self, needs: Collection[str], ending: Sequence[Deployed]) -> None:
        """Raise Refusal where somebody is out of reach who publishes one of these types, or one for
        a rule that is to end, or who evaluates that, too, since it goes by the clock alone.
        """
        if self._by_arrival:
            return
        before = [self._deployments.needs(one.rule.name) for one in ending]
        every = frozenset(needs).union(*before)
        for broker, published in self.out_of_reach.items():
            missed = sorted(every.intersection(published))
            if missed:
                reason = f"broker {broker} {OUT_OF_REACH}, which has published {', '.join(missed)}"
                raise Refusal(Code.SILENT, reason)
            if any(one <= {TIMER.name} for one in before):
                reason = f"broker {broker} {OUT_OF_REACH}, where the rule goes by the clock, too"
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
