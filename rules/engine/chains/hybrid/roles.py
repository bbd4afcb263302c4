"""The roles of workers: which inputs each has, and in which order it looks at them.

An agent has two inputs, its events and its sequences. A rule of places 0 to k has the agents 1 to
k: place 0 has none, its events are sequences for the agent of place 1.

- ``static``: a worker is an event worker or a match worker of one agent, and has that input alone.
- ``state``: a worker is of one agent; it prefers one of both inputs, and has the other too.
- ``full``: a worker has all inputs; it begins with those of its own agent.

Agents may be *fused* to units, whose workers do for all of them what they would do for one.

Law: every input has a worker, or the choice is refused: under ``static`` a unit takes two workers,
under ``state`` one. Example: six states are five agents, ten threads under ``static``; two threads
do if all five are fused.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST = {"static": 2, "state": 1, "full": 0}
"""How few workers each unit takes, by roles."""


def verify_roles(roles: str, threads: int, units: int) -> None:
    """Raise ValueError where some input would have no worker."""
    if roles not in LEAST:
        raise ValueError(f"roles: expected one of {', '.join(LEAST)}, found {roles!r}")
    least = max(1, LEAST[roles] * units)
    if threads < least:
        raise ValueError(
            f"roles {roles}: {units} agents take {least} threads or more, found {threads}; "
            "fuse some, or say roles full"
        )


def inputs_of(roles: str, shares: Sequence[int], units: Sequence[Sequence[int]]) -> list[list[int]]:
    """The inputs of each worker: twice the place of an agent, and 1 more for its sequences.

    ``shares``: how many workers each unit has; a unit is an agent, or some that are fused.
    """
    verify_roles(roles, sum(shares), len(units))
    found = []
    for unit, share in zip(units, shares, strict=True):
        others = [place for one in units if one is not unit for place in one]
        for number in range(share):
            is_of_events = number % 2 == 0
            inputs = _inputs(unit, is_of_events)
            if roles != "static":
                inputs += _inputs(unit, not is_of_events)
            if roles == "full":
                inputs += [*_inputs(others, False), *_inputs(others, True)]
            found.append(inputs)
    return found


def _inputs(unit: Sequence[int], is_of_events: bool) -> list[int]:
    return [2 * place + (0 if is_of_events else 1) for place in unit]
