"""The order of rules at one instant, and the events that a cycle of rules may see (S12).

Rules form a graph over event types: a rule *defines* one type and *uses* others. At one instant
all rules of a type run before the rules that use it, so types are ranked along the uses. Types
that depend on each other form a cycle (a strongly connected component). Within it, selected,
negated and aggregated uses see strictly earlier events only, so they order nothing; only the
terminator uses do, and a cycle made of those alone is refused. Events that come together are
terminators, all of them (X1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from rules.checking.graphs import Graph, components, cycle_through, generations
from rules.errors import Problem, RuleErrors
from rules.pattern import Clause, Constraint, Let, Negated, Rule, Selected, Timed, uses_of
from rules.terms import Aggregate, Expression, with_operands


@dataclass(frozen=True, slots=True)
class Arrangement:
    """``rules`` in their given order with every ``strict`` decided; ``ranks`` beside them.

    At one instant, rules run in ascending (rank, position).
    """

    rules: tuple[Rule, ...]
    ranks: tuple[int, ...]


class TerminatorCycles(RuleErrors):
    """Types whose rules wait for each other as terminators, and so could never fire (S12).

    ``cycles`` holds the types of each, every one the terminator of a rule of the next, and the
    last of one of the first.
    """

    def __init__(self, cycles: Sequence[tuple[str, ...]]) -> None:
        super().__init__([Problem(describe_cycle(cycle)) for cycle in cycles])
        self.cycles = tuple(cycles)

    def __reduce__(self) -> tuple[type[RuleErrors], tuple[Any, ...]]:
        """Pickled by its parts."""
        return TerminatorCycles, (self.cycles,)


def describe_cycle(cycle: Sequence[str]) -> str:
    """The message for one cycle."""
    path = " -> ".join((*cycle, cycle[0]))
    return f"a cycle of terminators could never fire: {path} (tesla.md S12)"


def arrange(rules: Sequence[Rule]) -> Arrangement:
    """Rank rules and decide what is strict; TerminatorCycles where rules could never fire."""
    if _are_apart(rules):
        return Arrangement(tuple(rules), (1,) * len(rules))
    uses = _graph({rule.wiring[:2] for rule in rules})
    cycle_of = {
        name: frozenset(component)
        for component in components(uses)
        for name in component
        if len(component) > 1 or name in uses[name]
    }
    decided, ordering = [], set()
    for rule in rules:
        cycle, names = cycle_of.get(rule.defines.name, frozenset()), rule.wiring.used
        if cycle or rule.is_strict:  # seldom
            rule = _decide(rule, cycle)
            waited = [use.type.name for use in uses_of(rule) if not use.strict]
            names = frozenset([*waited, *rule.wiring.opening])
        decided.append(rule)
        ordering.add((rule.defines.name, names))
    order = _graph(ordering)  # strict uses order nothing within one instant
    cycles = _cycles(order)
    if cycles:
        raise TerminatorCycles(cycles)
    rank_of = {name: rank for rank, names in enumerate(generations(order)) for name in names}
    return Arrangement(tuple(decided), tuple(rank_of[rule.defines.name] for rule in decided))


def _are_apart(rules: Sequence[Rule]) -> bool:
    """Whether no rule uses what another defines, as with most: there is nothing to find out."""
    wirings = {rule.wiring for rule in rules}
    used = frozenset[str]().union(*(one.used for one in wirings))
    is_apart = used.isdisjoint(one.defined for one in wirings)
    return is_apart and not any(map(attrgetter("is_strict"), rules))


def _graph(rules: Iterable[tuple[str, Iterable[str]]]) -> Graph:
    """From the types that rules wait for or use to those that they define, in one order always.
    ``rules``: the type that each defines, and those; many have the same.
    """
    graph: dict[str, set[str]] = {}
    for defined, used in rules:
        graph.setdefault(defined, set())
        for name in used:
            graph.setdefault(name, set()).add(defined)
    return {name: sorted(graph[name]) for name in sorted(graph)}


def _cycles(graph: Graph) -> list[tuple[str, ...]]:
    """One cycle of each knot of a graph, each from its least name on, in order."""
    found = (cycle_through(graph, min(component)) for component in components(graph))
    return sorted(cycle for cycle in found if cycle)


def _decide(rule: Rule, cycle: frozenset[str]) -> Rule:
    """The rule with ``strict`` set on every use of a type of ``cycle``, and nowhere else."""
    return replace(
        rule,
        clauses=tuple(
            _decide_clause(clause, cycle, rule.together is None) for clause in rule.clauses
        ),
        values=tuple(_decide_expression(value, cycle) for value in rule.values),
        alternatives=tuple(_decide(one, cycle) for one in rule.alternatives),
    )


def _decide_clause(clause: Clause, cycle: frozenset[str], may_be_strict: bool) -> Clause:
    match clause:
        case Selected():
            return _decide_selected(clause, cycle, may_be_strict)
        case Negated():
            return replace(
                clause,
                conditions=tuple(_decide_expression(item, cycle) for item in clause.conditions),
                strict=clause.type.name in cycle,
            )
        case Constraint():
            return replace(clause, condition=_decide_expression(clause.condition, cycle))
        case Let():
            return replace(clause, value=_decide_expression(clause.value, cycle))
        case Timed():
            return clause


def _decide_selected(clause: Selected, cycle: frozenset[str], may_be_strict: bool) -> Selected:
    return replace(
        clause,
        conditions=tuple(_decide_expression(item, cycle) for item in clause.conditions),
        strict=may_be_strict and clause.type.name in cycle,
        rivals=tuple(_decide_selected(one, cycle, may_be_strict) for one in clause.rivals),
    )


def _decide_expression(expression: Expression, cycle: frozenset[str]) -> Expression:
    def decide(node: Expression) -> Expression:
        return _decide_expression(node, cycle)

    if isinstance(expression, Aggregate):
        return replace(
            expression,
            conditions=tuple(map(decide, expression.conditions)),
            strict=expression.type.name in cycle,
        )
    return with_operands(expression, decide)
