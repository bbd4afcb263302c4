"""Automaton models into words for the kernels (thesis 5.6: Automaton Models, State Index)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from matcher.model import TIME_MIN
from rules.engine.chains.published import layout
from rules.engine.chains.published.models import Guard, Node, PublishedPlan
from rules.engine.kernels import layout as words_of_rows
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.automata import LinkedAutomaton
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.tables import BlockTable, RecordTable
from rules.planning.plan import Step, laid_out
from rules.planning.sequences import access_of, selections_of
from rules.terms import TERMINATOR


class PublishedTables:
    """Owner of the tables of automata as published; see :class:`rules.engine.linking.automata`."""

    def __init__(self, tables: ColumnTables) -> None:
        self._tables = tables
        self._automata = RecordTable(words_of_rows.AUTOMATON)
        self._words = BlockTable("int64")
        self._pools = BlockTable(words_of_rows.POOL)
        self._blocks: dict[int, tuple[int, int, int, int]] = {}

    def add(self, plan: PublishedPlan, step: int) -> LinkedAutomaton:
        """Enter an automaton whose own steps stand from number ``step`` on, behind those of the
        rule's plan and what belongs to them; it has taken in nothing yet.
        """
        widths = [
            1 + place for model in plan.models for place in range(1, len(model.path) + 1)
        ]  # a time, and a row for each event
        first_pool = self._pools.add([(0, 0, width, 0, 0) for width in widths])
        words = _Words(plan, self._tables, step, first_pool, len(widths)).made()
        first = self._words.add(words)
        linked = LinkedAutomaton(
            self._automata.add(taken_in=TIME_MIN, first_state=first, last_state=first + len(words))
        )
        self._blocks[linked.number] = (first, len(words), first_pool, len(widths))
        return linked

    def belongs(self, linked: LinkedAutomaton, rule: int) -> None:
        """Say which rule an automaton is of."""
        first, _, _, _ = self._blocks[linked.number]
        self._words.array[first + layout.RULE] = rule

    def pools(self, linked: LinkedAutomaton) -> slice:
        """The places of an automaton's pools."""
        _, _, first, count = self._blocks[linked.number]
        return slice(first, first + count)

    def remove(self, linked: LinkedAutomaton) -> None:
        """Take an automaton out, whose sequences have been forgotten."""
        first, length, first_pool, pools = self._blocks.pop(linked.number)
        record = self._automata.array[linked.number]
        record["first_state"] = record["last_state"] = 0
        self._automata.release(linked.number)
        self._words.release(first, length)
        self._pools.release(first_pool, pools)

    def show(self, arrays: Arrays) -> None:
        """Let the kernels see the tables as they now are."""
        arrays["automata"] = self._automata.array
        arrays["published"] = self._words.array
        arrays["pools"] = self._pools.array


class _Words:
    """Writes the words of one automaton; ``step`` is where its own steps begin."""

    def __init__(
        self, plan: PublishedPlan, tables: ColumnTables, step: int, pool: int, pools: int
    ) -> None:
        self._plan = plan
        self._tables = tables
        self._selections = {one.event: one for one in selections_of(plan.plan)}
        self._steps = list(plan.plan.steps)
        self._first_step = step - len(laid_out(self._steps))
        numbers = count(step)  # in the order of ``enumerations``
        self._tests = [[next(numbers) for _ in model.tests] for model in plan.models]
        self._choices = [[next(numbers) for _ in node.choices] for node in plan.nodes]
        self._bans = [[next(numbers) for _ in node.bans] for node in plan.nodes]
        self._guards = [next(numbers) for _ in plan.guards]
        self._words = [0] * layout.HEADER
        self._words[layout.FIRST_POOL], self._words[layout.POOLS] = pool, pools
        self._pool = pool

    def made(self) -> list[int]:
        plan, words = self._plan, self._words
        types, events = plan.plan.event_types, len(plan.plan.event_types)
        words[layout.EVENTS] = events
        words[layout.TYPES_AT] = self._put([self._tables.type_number(one) for one in types])
        durations = [self._selections[event].span.duration for event in range(1, events)]
        words[layout.DURATIONS_AT] = self._put([0, *durations])
        words[layout.MODELS] = len(plan.models)
        words[layout.MODELS_AT] = self._put(self._models())
        members = [0, *(self._put(self._spots(event)) for event in range(1, events))]
        words[layout.MEMBERS_AT] = self._put(members)
        words[layout.NODES] = len(plan.nodes)
        nodes = [self._put(self._node(*one)) for one in enumerate(plan.nodes)]
        words[layout.NODES_AT] = self._put(nodes)
        words[layout.GUARDS] = len(plan.guards)
        guards = [self._put(self._guard(*one)) for one in enumerate(plan.guards)]
        words[layout.GUARDS_AT] = self._put(guards)
        return words

    def _put(self, words: Sequence[int]) -> int:
        """Append words: where they begin."""
        self._words.extend(words)
        return len(self._words) - len(words)

    def _listed(self, words: Sequence[int], length: int) -> int:
        """Append a list of so many items."""
        return self._put([length, *words])

    def _models(self) -> list[int]:
        found, pool = [], self._pool
        for model, tests in zip(self._plan.models, self._tests, strict=True):
            found.append(self._put([pool, len(model.path), tests[-1], *model.path]))
            pool += len(model.path)
        return found

    def _spots(self, event: int) -> list[int]:
        """The models that an event is in, and its places there, behind how many they are."""
        spots = [
            (number, model.path.index(event))
            for number, model in enumerate(self._plan.models)
            if event in model.path
        ]
        return [len(spots), *(word for spot in spots for word in spot)]

    def _node(self, number: int, node: Node) -> list[int]:
        step = self._selections[node.event]
        models, *spots = self._spots(node.event)
        parts: list[int] = []
        for model, place in zip(spots[::2], spots[1::2], strict=True):
            parts += [model, place, self._tests[model][place]]
        like = [] if node.like is None else list(map(words_of_rows.offset_of, node.like))
        choices, bans = list[int](), list[int]()
        for step_number, choice in zip(self._choices[number], node.choices, strict=True):
            choices += [choice.event, step_number]
        for step_number, (_, in_plan) in zip(self._bans[number], node.bans, strict=True):
            bans += [step_number, self._first_step + in_plan]
        return [
            node.event,
            *self._looks(step),
            self._first_step + self._steps.index(step),
            self._listed(parts, models),
            self._listed(like, layout.NEVER_SUPERSEDES if node.like is None else len(like)),
            self._listed(choices, len(node.choices)),
            self._listed(bans, len(node.bans)),
        ]

    def _looks(self, step: Step) -> list[int]:
        """The type of a step's events, and the access that they come by."""
        access = access_of(step)
        return [
            self._tables.type_number(access.column.type),
            self._tables.access_number(access),
        ]

    def _guard(self, place: int, guard: Guard) -> list[int]:
        spots: list[int] = []
        for number, model in enumerate(self._plan.models):
            if guard.earlier in model.path:
                first, end = model.path.index(guard.earlier), len(model.path)
                if guard.later != TERMINATOR:
                    end = model.path.index(guard.later)
                spots += [number, first, end]
        type_, access = self._looks(guard.step)
        return [
            access,
            type_,
            guard.earlier,
            self._guards[place],
            self._first_step + guard.place,
            len(spots) // 3,
            *spots,
        ]
