"""How far the terminators of a rule got in a whole recording, clause by clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter

from matcher.model import Event, EventBatch
from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import Scope, value_of
from rules.explaining.appraisal import NOWHERE, Appraisal, Enclosing
from rules.explaining.explainer import judge, walked
from rules.explaining.explanation import Stage, Summary
from rules.explaining.finder import Finder
from rules.explaining.recording import Firing, Recording, Since
from rules.explaining.rewording import Rewording
from rules.explaining.runs import Iterations
from rules.explaining.sight import Moment, Sight
from rules.explaining.ways import Ways
from rules.language import load
from rules.pattern import Clause, Constraint, Let, Negated, Policy, Rule, RuleSet, Selected, Timed
from rules.planning.variants import variants
from rules.terms import TERMINATOR, Expression

MATCHES_MAX = 10_000
"""So many matches of one terminator are tried."""
REASONS_MAX = 3
"""So many reasons are told for a clause."""


def summarise(
    rules: RuleSet | str,
    events: Iterable[EventBatch],
    *,
    rule: str,
    since: Since = None,
    engine: str = "auto",
) -> Summary:
    """How far all terminators of a rule got in a recording; arguments as of ``explain``."""
    ruleset = load(rules) if isinstance(rules, str) else rules
    return surveyed(Recording(ruleset, events, since=since, engine=engine), rule)


def surveyed(recording: Recording, rule: str) -> Summary:
    """How far the terminators of a rule got; RuleErrors when no rule has that name. A rule that is
    several (X1, X2) has a summary for each *way*: which of its events comes last, or of which types
    they are. A match takes one way; one event may be the terminator of several.
    """
    checked = recording.rule(rule)
    firings = recording.firings(checked)
    ways = variants(checked)
    if len(ways) == 1:
        return Survey(recording, checked, firings).summary()
    taken = Ways(recording, checked, ways)
    told = tuple(
        replace(Survey(recording, way, taken.firings(way)).summary(), way=taken.name(way))
        for way in ways
    )
    terminators = sum(1 for _ in recording.terminators(checked))
    fired = len({taken.terminator(firing) for firing in firings})
    return Summary(checked.name, checked.text, terminators, (), fired, len(firings), ways=told)


class Survey:
    """The survey of an ordinary rule, or of one way of a rule, and the ``firings`` of that.

    Which terminators fired is what the engine says. Of the others, the match that got furthest
    counts: through as many clauses as any, in the order in which ``explain`` walks them; of one
    terminator's matches at most ``MATCHES_MAX`` are tried.
    """

    def __init__(self, recording: Recording, rule: Rule, firings: Sequence[Firing]) -> None:
        self._recording = recording
        self._rule = rule
        self._firings = firings
        self._words = Rewording(rule)
        self._sight = Sight(recording, rule)
        self._appraisal = Appraisal(self._words)
        self._clauses = walked(rule)
        self._iterations = Iterations(rule, self._sight)
        self._finders = {
            turn: [Finder(use, self._sight) for use in _uses(one.clause)]
            for turn, one in enumerate(self._clauses)
        }
        self._left = 0

    def summary(self) -> Summary:
        """The summary of all terminators."""
        firings = self._firings
        fired = {firing.causes[self._rule.latest] for firing in firings}
        failures: list[Counter[str]] = [Counter() for _ in range(len(self._clauses) + 2)]
        examples: dict[tuple[int, str], Occurrence] = {}
        terminators = 0
        for terminator in self._recording.terminators(self._rule):
            terminators += 1
            if (terminator.source, terminator.id) not in fired:
                stage, reason = self._failure(terminator)
                failures[stage][reason] += 1
                examples.setdefault((stage, reason), terminator)
        return Summary(
            self._rule.name,
            self._rule.text,
            terminators,
            tuple(self._stages(terminators, failures, examples)),
            len(fired),
            len(firings),
        )

    def _stages(
        self,
        terminators: int,
        failures: list[Counter[str]],
        examples: dict[tuple[int, str], Occurrence],
    ) -> Iterator[Stage]:
        places = [0, *(one.place for one in self._clauses), len(self._clauses) + 1]
        texts = [
            f"from {self._words.terminator()}",
            *(f"{one.place}. {self._words.clause(one.clause)}" for one in self._clauses),
            "where",
        ]
        reached = terminators
        for stage, (place, text) in enumerate(zip(places, texts, strict=True)):
            passed = reached - failures[stage].total()
            reasons = dict(failures[stage].most_common(REASONS_MAX))
            example: Event | None = None
            if reasons:
                example = self._recording.row(examples[stage, next(iter(reasons))])
            yield Stage(place, text, reached, passed, reasons, example)
            reached = passed

    # --- one terminator ----------------------------------------------------------------------

    def _failure(self, terminator: Occurrence) -> tuple[int, str]:
        """The stage at which a terminator that did not fire failed, and why."""
        scope = Scope(Moment(self._sight, terminator.time, self._iterations), (terminator,))
        if terminator.time < self._sight.since:
            return 0, "earlier than the rule"
        if self._sight.consumed_by(terminator, terminator.time) is not None:
            return 0, "consumed"
        enclosing = Enclosing(TERMINATOR, self._rule.terminator)
        for condition in self._rule.conditions:
            if value_of(condition, scope) is not True:
                return 0, self._untrue(condition, scope, enclosing)
        self._left = MATCHES_MAX
        turn, furthest = self._explore(scope, 0)
        return turn + 1, self._reason(turn, furthest)

    def _explore(self, scope: Scope, turn: int) -> tuple[int, Scope]:
        """How far a match gets that has passed the clauses before a turn."""
        self._left -= 1
        furthest = turn, scope
        if turn < len(self._clauses):
            for longer in self._continuations(turn, scope):
                furthest = max(furthest, self._explore(longer, turn + 1), key=itemgetter(0))
                if self._left <= 0:
                    break
        return furthest

    def _continuations(self, turn: int, scope: Scope) -> Iterator[Scope]:
        clause = self._clauses[turn].clause
        match clause:
            case Selected():
                bound = scope.with_run if clause.iteration else scope.with_event
                for event in self._selected(turn, clause, scope):
                    if event.type == clause.type:  # and not a rival's (X2)
                        yield bound(event)
            case Negated():
                (finder,) = self._finders[turn]
                if next(finder.fitting(scope), None) is None:
                    yield scope
            case _:
                longer = judge(clause, scope)
                if longer is not None:
                    yield longer

    def _selected(self, turn: int, clause: Selected, scope: Scope) -> Iterator[Occurrence]:
        """The events that a clause selects of its own and its rivals'."""
        if clause.iteration is not None:
            fitting = self._iterations.of(clause.event).selected(scope)
            return _of_rank(clause, fitting)
        backwards = clause.policy is Policy.LAST
        found = [finder.fitting(scope, backwards) for finder in self._finders[turn]]
        fitting = merge(*found, key=attrgetter("moment"), reverse=backwards)
        return _of_rank(clause, fitting)

    # --- reasons -----------------------------------------------------------------------------

    def _reason(self, turn: int, scope: Scope) -> str:
        if turn == len(self._clauses):
            return self._valueless(scope)
        clause: Clause = self._clauses[turn].clause
        match clause:
            case Selected():
                if (chosen := next(self._selected(turn, clause, scope), None)) is not None:
                    return f"the one it takes is a {chosen.type.name}"
                return self._finders[turn][0].reason(scope, self._appraisal)
            case Negated():
                return f"negated by {clause.type.name}"
            case Timed():
                return f"{self._rule.event_names[clause.event]} is outside the window"
            case Constraint():
                return self._untrue(clause.condition, scope)
            case Let():
                return f"undefined: {self._appraisal.undefined(clause.value, scope)}"

    def _untrue(self, condition: Expression, scope: Scope, enclosing: Enclosing = NOWHERE) -> str:
        if value_of(condition, scope) is None:
            return f"undefined: {self._appraisal.undefined(condition, scope, enclosing)}"
        return f"{self._appraisal.text(condition, enclosing)} is false"

    def _valueless(self, scope: Scope) -> str:
        for name, value in zip(self._rule.defines.names, self._rule.values, strict=True):
            if value_of(value, scope) is None:
                return f"{name} is undefined: {self._appraisal.undefined(value, scope)}"
        raise AssertionError(f"a match at which the engine did not fire: {self._rule.name}")


def _of_rank(clause: Selected, fitting: Iterator[Occurrence]) -> Iterator[Occurrence]:
    """The events that a clause selects of those that fit, which come in its order."""
    if clause.policy is Policy.EACH:
        return fitting
    return islice(fitting, clause.rank - 1, clause.rank)


def _uses(clause: Clause) -> Sequence[Selected | Negated]:
    """The parts that a clause looks for: of its own type, and of its rivals' (X2)."""
    match clause:
        case Selected():
            return clause, *clause.rivals
        case Negated():
            return (clause,)
        case _:
            return ()
