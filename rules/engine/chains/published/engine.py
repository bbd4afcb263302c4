"""AIP as the thesis describes it (5.3, 5.6): a reference, to be measured beside today's engines.

Events move sequence instances from state to state as they come; an instance is duplicated at each
transition, deleted when it has expired, when a negation or a consumed event forbids it; and those
that a terminator completes are joined there. Everything else, taking events in, the static index,
stored events and what becomes of matches, is that of :mod:`rules.engine.cdp`, so both algorithms
are measured with the same surroundings, as in the thesis.

Law 1: it detects what the other engines detect, to the last bit.

Law 2: an event is taken in once the marks of its rule have passed it, whether a terminator asks for
it or not: then all events before it have come (the thesis assumes that they come in order).

Where the thesis leaves a thing open, or its words would detect something else:

- ``first`` and ``last`` choose among all events that fit, and not among those that have a sequence
  behind them (tesla.md S3); a newer event supersedes an older one only if it has the same
  parameters, and ``models`` says when else it does not;
- a negation deletes sequences as its event comes only where no event of a match is of its type
  (S6), and its conditions can be told then; otherwise it is looked at when sequences are joined;
- aggregates are computed over the stored events, of which there is one copy for all rules.

Rules over events in any order, of either type, or that repeat, are refused: these are no sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from rules.engine.cdp import CdpEngine
from rules.engine.chains.published import kernels
from rules.engine.chains.published.models import PublishedPlan, published_of
from rules.engine.chains.published.tables import PublishedTables
from rules.engine.kernels import layout
from rules.engine.linking.linker import LinkedRule, Linker
from rules.engine.linking.loading import pointer_to
from rules.engine.memory import growth
from rules.engine.memory.footprints import WORD, segments
from rules.engine.order.catalogue import Deployed
from rules.errors import Problem, RuleErrors
from rules.pattern import Rule, RuleSet
from rules.planning.plan import RulePlan

NEVER_SUMMARISED = 2**62
"""Windows of up to so many events are scanned for aggregates."""


class AipPublished(CdpEngine):
    """A Detector; see :class:`rules.engine.engine.Detector`."""

    _linker: PublishedLinker

    def __init__(self, *, composites_max: int | None = None) -> None:
        super().__init__(incremental=True, composites_max=composites_max)

    def _new_linker(self) -> PublishedLinker:
        return PublishedLinker(self._strings)

    def fresh(self) -> AipPublished:
        """A new engine of the same kind and choices."""
        return AipPublished(composites_max=self._yield_max)

    def refuse(self, rules: RuleSet) -> None:
        """Raise RuleErrors for rules that are no sequences."""
        problems = [
            Problem(
                f"rule {rule.name}: {reason} form no sequence, which AIP as published needs",
                hint="aip-published is a reference: let another engine have this rule",
            )
            for rule in rules.rules
            if (reason := _reason(rule))
        ]
        if problems:
            raise RuleErrors(problems)

    def joined(self, others: Sequence[CdpEngine], rules: Iterable[Deployed]) -> CdpEngine:
        """As the other engines': what rules have consumed leaves the stored events last."""
        engine = super().joined(others, rules)
        assert isinstance(engine, AipPublished)
        engine._forget_sequences(engine._linker.by_number.values())
        return engine

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._forget_sequences(self._linker.linked.get(name, ()))
        super().remove(name)

    def footprints(self) -> Mapping[str, int]:
        """As the other engines'; and the pools that sequences wait in."""
        found = dict(super().footprints())
        pools = self._arrays["pools"]
        words = segments(pools["capacity"] * pools["width"])
        for name, variants in self._linker.linked.items():
            found[name] += WORD * sum(int(words[self._linker.pools(one)].sum()) for one in variants)
        return found

    def switch(self, changes: Mapping[str, bool]) -> None:
        """Nothing: every rule has an automaton."""

    def _rearrange(self, linked_anew: Sequence[Deployed] = ()) -> None:
        for number, address in self._late().items():
            self._arrays["late"][number] = address
        self._arrays["counters"][layout.SCAN_MAX] = NEVER_SUMMARISED
        super()._rearrange(linked_anew)
        self._forget_sequences(self._linker.take_turned())

    def _late(self) -> Mapping[int, int]:
        """The kernels that stand in for those of the other engines, by number."""
        return _addresses()

    def _forget_sequences(self, rules: Iterable[LinkedRule]) -> None:
        for one in rules:
            assert one.automaton is not None
            kernels.forget(self._arrays.state, one.automaton.number)

    def evaluate(self) -> None:
        """The second step: evaluate what is complete, and take in what no terminator asked for."""
        super().evaluate()
        while (status := kernels.take_in_all(self._arrays.state)) != layout.DONE:
            growth.grow(self._arrays, status)


class PublishedLinker(Linker):
    """A Linker whose rules all have an automaton as published."""

    _automata: PublishedTables  # type: ignore[assignment]

    def _tables_of_automata(self) -> PublishedTables:  # type: ignore[override]
        self._turned: list[LinkedRule] = []
        return PublishedTables(self.tables)

    def _model_of(self, plan: RulePlan, incremental: bool) -> PublishedPlan:  # type: ignore[override]
        return published_of(plan)

    def _link(
        self, deployed: Deployed, source: int, plan: RulePlan, incremental: bool
    ) -> LinkedRule:
        linked = super()._link(deployed, source, plan, incremental)
        assert linked.automaton is not None
        self._automata.belongs(linked.automaton, linked.number)
        return linked

    def _decide_strict(self, linked: LinkedRule, plan: RulePlan) -> None:
        super()._decide_strict(linked, plan)
        self._turned.append(linked)

    def pools(self, linked: LinkedRule) -> slice:
        """The places of a rule's pools."""
        assert linked.automaton is not None
        return self._automata.pools(linked.automaton)

    def take_turned(self) -> list[LinkedRule]:
        """The rules that have become part of a cycle, or are none any more, since the last call:
        other sequences are deleted then.
        """
        turned, self._turned = self._turned, []
        return turned


def _reason(rule: Rule) -> str:
    if rule.together is not None:
        return "events in any order (all ... within)"
    if any(clause.iteration for clause in rule.selected):
        return "events that repeat (n..m)"
    return "events of either type (or)" if rule.alternatives else ""


@cache
def _addresses() -> Mapping[int, int]:
    return {
        layout.LATE_DETECT: pointer_to(kernels.late_detect),
        layout.LATE_AUTOMATA: pointer_to(kernels.late_automata),
    }
