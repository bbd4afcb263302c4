"""From when on events are of use: what bounds the memory of an engine.

A rule that has run up to its mark looks back from there, in each of its accesses, as far as its
windows reach, and never before the instant from which it holds (tesla.md S15). What none looks
at any more may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, AnyArray, Int64s
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.tables import RecordTable

PLACE = np.dtype([(name, np.int64) for name in ("source", "rank", "since", "position", "variant")])
"""The order of rules, beside their records; ``source`` is -1 where there is no rule."""
HOLD = np.dtype([("rule", np.int64), ("access", np.int64), ("reach", np.int64)])
"""How long, in microseconds, a rule may look back in an access; ``rule`` is -1 for none."""


@dataclass(frozen=True, slots=True, eq=False)
class Horizons:
    """The times from which on events are of use: by access, by type, and to anybody.

    TIME_MAX where no rule looks; times are microseconds.
    """

    accesses: Int64s
    types: Int64s
    least: int


class Lookbacks:
    """Owner of the rows that say where rules stand and how far they look back. Questions that
    concern all of them are computed on whole columns; no Python walks over rules one by one.
    """

    def __init__(self) -> None:
        self._places = RecordTable(PLACE)  # beside the table of rules
        self._holds = RecordTable(HOLD)

    def __len__(self) -> int:
        """How many rows there are, or were, of how far a rule looks back in an access."""
        return len(self._holds)

    @property
    def holds(self) -> AnyArray:
        """How long each rule may look back in each access: HOLD[n]."""
        held: AnyArray = self._holds.array[: len(self._holds)]
        return held[held["rule"] >= 0]

    def add(self, rule: int, source: int, reaches: Mapping[int, int]) -> tuple[int, ...]:
        """Enter a rule that looks back so far, in microseconds, in each access; gives its holds."""
        place = self._places.add(source=source)
        assert place == rule, "places stand beside rules"
        return tuple(
            self._holds.add(rule=rule, access=access, reach=reach)
            for access, reach in reaches.items()
        )

    def remove(self, rule: int, holds: tuple[int, ...]) -> None:
        """Take a rule out."""
        for hold in holds:
            self._holds.array[hold]["rule"] = -1
            self._holds.release(hold)
        self._places.array[rule]["source"] = -1
        self._places.release(rule)

    def place(self, rule: int, rank: int, since: int, position: int, variant: int) -> None:
        """Say where a rule stands, or one of its variants (X1)."""
        record = self._places.array[rule]
        record["rank"], record["since"], record["position"] = rank, since, position
        record["variant"] = variant

    def order(self) -> tuple[Int64s, Int64s]:
        """The rules in the order in which they run at one instant, by rank and then place; and
        the sources of their composite events by place alone (E4, S15).
        """
        places = self._places.array[: len(self._places)]
        alive = np.flatnonzero(places["source"] >= 0)
        places = places[alive]
        order = np.lexsort((places["variant"], places["position"], places["since"], places["rank"]))
        sources: Int64s = places["source"][np.lexsort((places["position"], places["since"]))]
        return alive[order], sources

    def horizons(
        self, until: int, groups: AnyArray, rules: AnyArray, tables: ColumnTables
    ) -> Horizons:
        """From when on events are of use to rules that will not look at instants before their
        marks, nor, for the present, at any before ``until``.

        ``groups`` and ``rules`` are the tables of layout.GROUP and layout.RULE.
        """
        places = self._places.array[: len(self._places)]
        alive, holds = np.flatnonzero(places["source"] >= 0), self.holds
        marks = np.empty(len(places), np.int64)
        floors, numbers = rules["floor"][alive], rules["group"][alive]
        marks[alive] = np.minimum(until, np.maximum(floors, groups["mark"][numbers]))

        accesses = np.full(len(tables.accesses), TIME_MAX, np.int64)
        late, reach = marks[holds["rule"]], holds["reach"]
        looks = np.maximum(late, TIME_MIN + reach) - reach  # nothing is before TIME_MIN
        # A rule sees nothing before it holds (S15).
        np.minimum.at(accesses, holds["access"], np.maximum(looks, rules["since"][holds["rule"]]))

        types = np.full(len(tables.types), TIME_MAX, np.int64)
        type_of = tables.columns.array["type"]
        np.minimum.at(types, type_of[rules["column"][alive]], marks[alive])
        columns = tables.accesses.array["column"][: len(accesses)]
        np.minimum.at(types, type_of[columns], accesses)
        return Horizons(accesses, types, int(types.min(initial=TIME_MAX)))
