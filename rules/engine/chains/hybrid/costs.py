"""The cost model: what each agent has to do, and how many threads that is (the paper's section 4).

Rates are of a unit of time; an agent is known by its place, from 1 on. ``expected`` is the model
before anything has been measured, ``measured`` what workers have counted.

Where the paper's equations are corrected:

- A pair is evaluated once, by whoever comes second; the paper counts it for the event and for the
  sequence, and so twice. In a sequence of events only those after it can complete it: ``e m W``
  pairs in a unit of time, not ``2 e m W``.
- Its share of the load is a share; threads are whole: ``shares_of`` gives each agent what it takes
  at least, and the rest by the largest remainders.
- A lock is taken for what comes at once, not for each item: ``batch`` divides that term.

Example: agents of loads 6, 3 and 1 share five threads as 3, 1, 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EVALUATION, LOCK, QUEUE = 1.0, 0.3, 0.5
"""To evaluate a pair of a cheap condition (some 40 ns), to look into another worker's sub-buffer,
and to pass a sequence on: as multiples of the first."""


@dataclass(frozen=True, slots=True)
class AgentWork:
    """An agent in a unit of time: its events, its sequences, the pairs that it evaluates, and the
    sequences that it passes on.
    """

    events: float
    sequences: float
    evaluations: float
    sent: float

    def load(self, threads: float, batch: float) -> float:
        """The cost of all of it when ``threads`` work at it."""
        locks = (self.events + self.sequences) / batch * threads / 2
        return EVALUATION * self.evaluations + LOCK * locks + QUEUE * self.sent


def expected(
    rates: Sequence[float], selectivities: Sequence[float], window: float
) -> list[AgentWork]:
    """The agents of a sequence: ``rates`` of all places' events, and the shares of pairs that fit,
    agent by agent. Sequences come to the first agent as fast as first events; to the next, as fast
    as pairs fit.
    """
    found, sequences = [], rates[0]
    for events, selectivity in zip(rates[1:], selectivities, strict=True):
        evaluations = events * sequences * window
        sent = evaluations * selectivity
        found.append(AgentWork(events, sequences, evaluations, sent))
        sequences = sent
    return found


def loads_of(agents: Sequence[AgentWork], threads: int, batch: int) -> list[float]:
    """The load of each agent, all having as many threads: nobody knows how many it will have."""
    return [one.load(threads / len(agents), batch) for one in agents]


def units_of(loads: Sequence[float], most: int) -> list[list[int]]:
    """Agents, by their places, fused until there are no more units than ``most``: always the two
    neighbours that have least to do.
    """
    units = [([place], load) for place, load in enumerate(loads, 1)]
    while len(units) > most:
        pairs = range(len(units) - 1)
        at = min(pairs, key=lambda one: units[one][1] + units[one + 1][1])
        (some, one), (others, other) = units[at : at + 2]
        units[at : at + 2] = [(some + others, one + other)]
    return [places for places, _ in units]


def shares_of(loads: Sequence[float], threads: int, least: int) -> list[int]:
    """How many of the threads each unit has: ``least`` at least, the others in proportion to what
    is not served by these, by largest remainders.
    """
    total = sum(loads) or 1.0
    wanted = [threads * load / total for load in loads]
    shares = [max(least, int(one)) for one in wanted]
    while sum(shares) > threads:
        spare = [place for place, share in enumerate(shares) if share > least]
        shares[max(spare, key=lambda place: shares[place] - wanted[place])] -= 1
    while sum(shares) < threads:
        shares[max(range(len(shares)), key=lambda place: wanted[place] - shares[place])] += 1
    return shares
