"""Masters that follow what is published (thesis 7.3.8).

Where other masters would cost clearly less at the rates that were measured, the tree pauses,
and a plan follows that bears these. Every broker works out the masters from it, so all change at
one instant. On the single tree nothing else changes, and nothing begins anew; the trees of brokers
with sinks have each its own masters, and begin anew with others.
"""

from __future__ import annotations

from collections.abc import Mapping

from routing.messages import Plan
from routing.network.agreement.rounds import Tally
from routing.network.brokers.agreed import Agreed
from routing.network.strategy import RATES_S, Choice
from routing.partition.choosing import Weights

BETTER = 0.8
"""Masters are changed for others that cost no more than this part of what the old ones do."""


class Masters:
    """A Chooser of rates, by which every broker finds the masters."""

    def __init__(self, agreed: Agreed) -> None:
        self._agreed = agreed

    def add_to(self, tally: Tally) -> None:
        """Rates are all that is needed."""

    def would_pay(self, rates: Mapping[str, float], seconds: float, tally: Tally) -> bool:
        """As Chooser."""
        now = then = 0.0
        for root, division in self._agreed.divisions:
            rules = [one.rule for one in division.rules]
            weights = Weights(division.tree(root), division.published, rules, rates)
            pulls = division.partition.pulls
            now += weights.cost({name: pull.number for name, pull in pulls.items()})
            then += weights.cost(weights.choose())
        pays = then < BETTER * now
        if pays:
            said = tuple((name, round(rate * RATES_S)) for name, rate in rates.items())
            self._agreed.choice = Choice(rates=said)
        return pays

    def note(self, tally: Tally) -> None:
        """Nothing of it is needed later."""

    def choose(self) -> None:
        """Do nothing: it has been chosen already."""

    def follow(self, plan: Plan) -> bool:
        """Where all begins anew, other brokers may have joined, and left."""
        return plan.anew
