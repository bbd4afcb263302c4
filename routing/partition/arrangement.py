"""The questions of a node's fragments to each event, put together for all (thesis 7.3.6).

Law: an event is held against each distinct predicate of its type once (predicate_index), whoever
asks for it. The arrangement is made anew when other fragments are in force.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from routing.partition.evaluation import Evaluation
from routing.partition.predicate_index import index_of
from routing.partition.predicates import Predicate
from routing.partition.pull_buffer import PullBuffer


@dataclass(frozen=True, slots=True, eq=False)
class Leaving:
    """A fragment whose place another has taken: it stays until the rule's mark is ``until``."""

    name: str
    evaluation: Evaluation
    until: int


@dataclass(slots=True, eq=False)
class Users:
    """The users of a predicate: whether its events pass by themselves, the buffers that keep them
    until they are asked for, and the evaluations that look at them, each with the predicate's
    place there.
    """

    passes: bool = False
    buffers: list[PullBuffer] = field(default_factory=list)
    looking: list[tuple[Evaluation, int]] = field(default_factory=list)


class Arrangement:
    """The arrangement that follows from fragments in force and those leaving."""

    def __init__(self, in_force: Mapping[str, Evaluation], leaving: Sequence[Leaving] = ()) -> None:
        self.running = running = (*in_force.values(), *(one.evaluation for one in leaving))
        # Which types are forwarded, and in what company fragments look at each (forwarder).
        self.company: dict[str, set[frozenset[str]]] = {}
        # With which types, be they pushed or kept.
        self.binding: dict[str, frozenset[str]] = {}
        for evaluation in in_force.values():
            fragment, binds = evaluation.fragment, evaluation.binds
            for name in sorted(fragment.pushed):
                company = self.company.setdefault(name, set())
                if name in binds:
                    company.add(binds)
            for name in fragment.forwards & binds:
                self.binding[name] = self.binding.get(name, binds) | binds
        self.bound = {name for one in running for name in one.binds}
        self.buffers = [one.buffer for one in in_force.values() if one.buffer is not None]
        self.stored = self.bound.union(*(one.fragment.kept for one in in_force.values()))
        self.reach: dict[frozenset[str], int] = {}  # by the types that fragments bind
        for evaluation in running:
            binds = evaluation.binds
            if binds:
                self.reach[binds] = max(self.reach.get(binds, 0), evaluation.fragment.reach)
        self.users: dict[str, dict[Predicate, Users]] = {}
        for evaluation in running:
            for place, predicate in enumerate(evaluation.predicates):
                self._users_of(predicate).looking.append((evaluation, place))
        for evaluation in in_force.values():
            self._let_pass(evaluation)
        for one in leaving:
            kept = in_force[one.name].fragment.kept  # it is for the new fragment to see to these
            for predicate in one.evaluation.fragment.plain:
                if predicate.type.name not in kept:
                    self._users_of(predicate).passes = True
        self.indices = {name: index_of(tuple(found)) for name, found in self.users.items()}

    def _let_pass(self, evaluation: Evaluation) -> None:
        """Arrange the predicates that pass by themselves, at once or when they are asked for."""
        kept, buffer = evaluation.fragment.kept, evaluation.buffer
        for predicate in evaluation.fragment.plain:
            users = self._users_of(predicate)
            if buffer is not None and predicate.type.name in kept:
                users.buffers.append(buffer)
            else:
                users.passes = True

    def _users_of(self, predicate: Predicate) -> Users:
        of_type = self.users.setdefault(predicate.type.name, {})
        return of_type.setdefault(predicate, Users())
