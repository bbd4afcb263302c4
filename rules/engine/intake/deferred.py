"""Terminators that came before the marks of their rules, until these have passed them (S14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from matcher.model import TIME_MAX, AnyArray
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.switching import renumbered
from rules.engine.order.groups import Groups
from runtime.memory import sheltered


class Deferred:
    """Owner of the terminators of one engine that wait; ``records`` is layout.DEFERRED_TRIGGER[n].
    They stand in the order of time and, within an instant, in that in which they came.
    """

    def __init__(self, records: AnyArray | None = None) -> None:
        self.records: AnyArray = (
            np.empty(0, layout.DEFERRED_TRIGGER) if records is None else records
        )
        self._is_any_given = False  # what kernels have of them, when they were given some last

    def __len__(self) -> int:
        return len(self.records)

    def give(self, arrays: Arrays, rules: AnyArray, groups: Groups, until: int) -> None:
        """Let kernels have those earlier than ``until`` that the marks of their rules have passed.

        ``rules`` is the table of layout.RULE.
        """
        records = self.records
        if not (len(records) or self._is_any_given):
            return
        ready = records["time"] < groups.marks[rules["group"][records["rule"]]]
        if until != TIME_MAX:
            ready &= records["time"] < until
        stored = records[ready]
        if len(stored) or self._is_any_given:
            arrays["stored"] = sheltered(stored)
            arrays.counters[layout.STORED] = 0
            self.records = records[~ready]
        self._is_any_given = len(stored) > 0

    def keep(self, arrays: Arrays) -> None:
        """Keep those that kernels came upon and did not evaluate."""
        counters = arrays.counters
        if count := counters[layout.DEFERRED]:
            later = np.concatenate([self.records, arrays["deferred"][:count]])
            if len(later) > 1:
                later = later[np.argsort(later["time"], kind="stable")]
            self.records = later
            counters[layout.DEFERRED] = 0

    def forget(self, rules: Iterable[int]) -> None:
        """Forget those of rules, by their numbers."""
        self.records = self.records[~np.isin(self.records["rule"], list(rules))]

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Follow rules that have been linked anew."""
        self.records["rule"] = renumbered(self.records["rule"], numbers)
