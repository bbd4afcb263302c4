"""States of the rules whose memory no window bounds, as a broker keeps them for whoever evaluates
them next (routing.partition.rule_states).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import TIME_MIN, Bools, EventBatch
from routing.deployment import Deployed
from routing.evaluation.outbox import message_sized
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import RuleState
from routing.order import greatest_time
from routing.partition.replay_starts import replay_starts, state_groups
from routing.partition.rule_states import ResumedRule
from routing.watermarks.ends import CLOSED
from routing.wire.extent import fitting


@dataclass(frozen=True, slots=True, eq=False)
class StatePiece:
    """A part of a rule's state, and its number in the store."""

    number: int
    state: RuleState

    def is_before(self, time: int) -> bool:
        """Whether all that was found in it is earlier."""
        return all(greatest_time(one) < time for one in self.state.batches)


class StateTable:
    """Owner of the states that a broker has.

    A state says all that a rule has found before its *mark*, as far back as anybody needs it. A
    broker that has let go of events for the sake of a state has that state: it goes by its own
    states when it lets go, and by the latest that any broker has when rules begin anew.
    """

    def __init__(self) -> None:
        self._pieces: dict[str, list[StatePiece]] = {}
        self._marks: dict[str, int] = {}
        self._next = 0
        self._added: list[StatePiece] = []
        self._gone: list[int] = []

    @property
    def marks(self) -> Mapping[str, int]:
        """The mark of each rule's state."""
        return self._marks

    def take_changes(self) -> tuple[Sequence[StatePiece], Sequence[int]]:
        """Give the pieces that are new since the last call, and the numbers of those that are no
        more.
        """
        found, self._added, self._gone = (self._added, self._gone), [], []
        return found

    def recall(self, number: int, state: RuleState) -> None:
        """The store has this piece; pieces come in order."""
        self._next = number + 1
        self._add(StatePiece(number, state))

    def take(self, state: RuleState) -> None:
        """Take in what a rule has found, where that begins with the rule, or where the state that
        there is ends, or before that. fire is known up to 30 s: what is found from 20 s to 40 s is
        taken in, what is from 35 s on is not.
        """
        known = self._marks.get(state.rule, TIME_MIN)
        if state.since > known:
            return
        batches = self._unknown(state) if state.since < known or state.since == TIME_MIN else None
        found = state.batches if batches is None else batches
        if not found and state.mark <= known:
            return
        piece = StatePiece(self._next, RuleState(state.rule, state.since, state.mark, found))
        self._next += 1
        last = self._pieces.get(state.rule, [])[-1:]
        if last and not last[0].state.batches:
            self._drop(state.rule, last)
        self._add(piece)
        self._added.append(piece)

    def _add(self, piece: StatePiece) -> None:
        rule = piece.state.rule
        self._pieces.setdefault(rule, []).append(piece)
        self._marks[rule] = max(piece.state.mark, self._marks.get(rule, TIME_MIN))

    def _unknown(self, state: RuleState) -> tuple[EventBatch, ...]:
        """The composite events of a state that are not known."""
        known = {key for one in self._found(state.rule) for key in _keys(one)}
        if not known:
            return state.batches
        masks = [
            np.array([key not in known for key in _keys(one)], np.bool_) for one in state.batches
        ]
        return tuple(
            one.take(mask) for one, mask in zip(state.batches, masks, strict=True) if mask.any()
        )

    def _found(self, rule: str) -> Iterator[EventBatch]:
        return (one for piece in self._pieces.get(rule, ()) for one in piece.state.batches)

    def resumed(self, marks: Mapping[str, int]) -> Mapping[str, ResumedRule]:
        """The rules that go on from these marks, with what they have found before."""
        return {
            name: ResumedRule(
                mark, [cut for one in self._found(name) if len(cut := _before(mark, one))]
            )
            for name, mark in marks.items()
        }

    def beyond(self, marks: Mapping[str, int]) -> Iterator[RuleState]:
        """The whole states of the rules that are known up to beyond these marks."""
        for rule, mark in self._marks.items():
            if mark > marks.get(rule, TIME_MIN):
                for piece in self._pieces[rule]:
                    if piece.state.batches:
                        yield RuleState(rule, TIME_MIN, TIME_MIN, piece.state.batches)
                yield RuleState(rule, TIME_MIN, mark)

    def let_go(self, rules: Sequence[Deployed], starts: Mapping[str, int]) -> None:
        """Let go of what is earlier than the rules of its group see, each from its start.
        ``rules``: all that there are. A piece stays whole, and goes when all of it is earlier: r1
        finds Spreads of single Cs, r3 of the Spreads of 3 s: at 11 s a Spread of r1 from 8 s stays.
        """
        if not self._pieces:
            return
        groups = state_groups(rules)
        for rule in starts.keys() & self._pieces.keys():
            start = min(starts[one] for one in groups.get(rule, (rule,)) if one in starts)
            pieces = self._pieces[rule]
            self._drop(rule, [one for one in pieces[:-1] if one.is_before(start)])

    def forget(self, rules: Collection[str]) -> None:
        """Forget rules that are gone."""
        for rule in rules:
            self._drop(rule, self._pieces.get(rule, []))
            self._pieces.pop(rule, None)
            self._marks.pop(rule, None)

    def _drop(self, rule: str, pieces: Sequence[StatePiece]) -> None:
        if pieces:
            gone = {one.number for one in pieces}
            self._pieces[rule] = [one for one in self._pieces[rule] if one.number not in gone]
            self._added = [one for one in self._added if one.number not in gone]
            self._gone += sorted(gone)


def _keys(batch: EventBatch) -> list[tuple[int, int]]:
    """The keys of composite events."""
    digest = batch.ids.digest
    assert digest is not None, "composite events have digests"
    return list(map(tuple, digest.tolist()))


def _before(mark: int, batch: EventBatch) -> EventBatch:
    """The composite events of a batch that are earlier than a mark."""
    is_before: Bools = batch.time < mark
    return batch if is_before.all() else batch.take(is_before)


def put_down(
    table: StateTable, evaluator: TreeEvaluator, rules: Sequence[Deployed], due: Mapping[str, int]
) -> list[RuleState]:
    """Raise the states of rules that an evaluator has, by what it has found up to where everybody
    has what he wants; gives what is new of them. ``rules``: all that there are; ``due``: up to
    where their composite events have arrived.
    """
    found: list[RuleState] = []
    there, groups, known = replay_starts(rules, due, None), state_groups(rules), table.marks
    found_to = _found_to(evaluator, groups)
    farther = {
        one
        for one in groups
        if min(there.marks.get(one, CLOSED), found_to.get(one, CLOSED)) > known.get(one, TIME_MIN)
    }
    for group in dict.fromkeys([group for one, group in groups.items() if one in farther]):
        wanted = min([there.marks[one] for one in group if one in there.marks], default=CLOSED)
        mark = min([wanted, *(found_to[one] for one in group if one in found_to)])
        first = min([there.starts[one] for one in group if one in there.starts], default=wanted)
        start = first - (wanted - mark)
        if mark < CLOSED and all(_is_noted(table, evaluator, one, start) for one in group):
            for name in sorted(group):
                found += _noted(table, evaluator, name, mark)
    for one in found:
        table.take(one)
    evaluator.note_told()
    return found


def _found_to(evaluator: TreeEvaluator, rules: Mapping[str, object]) -> Mapping[str, int]:
    """Up to when rules have been evaluated since they began anew, but for those that are over."""
    here = evaluator.rules
    marks = evaluator.progress.output_watermarks(rules.keys() & here.keys())
    ends = {name: one.until for name, one in here.items() if one.until is not None}
    return {name: mark for name, mark in marks.items() if mark < ends.get(name, CLOSED)}


def _is_noted(table: StateTable, evaluator: TreeEvaluator, rule: str, start: int) -> bool:
    """Whether what a rule has found is known, from where anybody needs it."""
    known = table.marks.get(rule, start)
    return evaluator.notes.are_whole_from(rule, max(known, start))


def _noted(
    table: StateTable, evaluator: TreeEvaluator, rule: str, mark: int
) -> Iterator[RuleState]:
    """A rule's state up to a mark, from where the state that there is ends."""
    known, notes = table.marks.get(rule, TIME_MIN), evaluator.notes
    if mark <= known:
        return
    since = known if notes.are_whole_from(rule, known) else TIME_MIN
    masks = [(one, one.time >= known) for one in notes.take_until(rule, mark)]
    batches = [one.take(mask) for one, mask in masks if mask.any()]
    *parts, last = [*message_sized(fitting(batches))] or [()]
    for part in parts:
        yield RuleState(rule, since, TIME_MIN, part)
    yield RuleState(rule, since, mark, last)
