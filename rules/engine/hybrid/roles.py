"""Which inputs each worker has, and in which order it looks at them: its roles.

An agent has two inputs, its events and its sequences. A rule of places 0 to k has the agents 1 to
k: place 0 has none, its events are sequences for the agent of place 1.

- ``static``: a worker is an event worker or a match worker of one agent, and has that input alone.
- ``state``: a worker is of one agent; it prefers one of both inputs, and has the other too.
- ``full``: a worker has all inputs; it begins with those of its own agent.

Law: every input has a worker, or the choice is refused: under ``static`` there are as many workers
as inputs at least, under ``state`` as agents.
"""

from __future__ import annotations

from collections.abc import Sequence

ROLES = ("static", "state", "full")


def workers_least(roles: str, units: int) -> int:
    """How few workers roles take, for so many agents."""
    return {"static": 2 * units, "state": units, "full": 1}[roles]


def inputs_of(
    roles: str, shares: Sequence[int], units: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The inputs of each worker: twice the place of an agent, and 1 more for its sequences.

    ``shares``: how many workers each unit has; a unit is an agent, or some that are fused.
    """
    if sum(shares) < workers_least(roles, len(units)):
        raise ValueError(
            f"roles {roles}: {len(units)} agents take {workers_least(roles, len(units))} threads "
            f"or more, found {sum(shares)}"
        )
    found = []
    for unit, share in zip(units, shares, strict=True):
        for number in range(share):
            is_of_events = number % 2 == 0
            own, other = _inputs(unit, is_of_events), _inputs(unit, not is_of_events)
            if roles == "static":
                found.append(own)
            elif roles == "state":
                found.append([*own, *other])
            else:
                rest = [one for agents in units if agents is not unit for one in _both(agents)]
                found.append([*own, *other, *rest])
    return found


def _inputs(unit: Sequence[int], is_of_events: bool) -> list[int]:
    return [2 * place + (0 if is_of_events else 1) for place in unit]


def _both(unit: Sequence[int]) -> list[int]:
    return [*_inputs(unit, False), *_inputs(unit, True)]
