"""Why a rule fired at an event, or did not: the oracle's search, told step by step (S1 to S12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from matcher.model import Event, EventBatch
from matcher.times import time_text
from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import Scope, in_window, value_of
from rules.explaining.appraisal import Appraisal, Enclosing
from rules.explaining.consideration import Consideration, Ruling, ends
from rules.explaining.explanation import NULL, Branch, Check, Explanation, Fate, Match, Step, Term
from rules.explaining.recording import Recording, Since
from rules.explaining.rewording import Rewording, elapsed_text
from rules.explaining.runs import Iterations
from rules.explaining.sight import Moment, Sight
from rules.language import load
from rules.pattern import Clause, Constraint, Let, Negated, Policy, Rule, RuleSet, Selected, Timed
from rules.planning.variants import in_the_text, variants
from rules.terms import TERMINATOR

CANDIDATES = 8
"""So many events of a window are listed for a clause."""
BRANCHES = 12
"""So many branches of the ``each`` clauses are walked in an explanation."""


def explain(
    rules: RuleSet | str,
    events: Iterable[EventBatch],
    *,
    rule: str,
    event: str,
    since: Since = None,
    engine: str = "auto",
    candidates: int = CANDIDATES,
    branches: int = BRANCHES,
) -> Explanation:
    """Why the rule called ``rule`` fired at an event of a recording, or did not.

    ``rules`` are checked or TESLA text; ``event`` is an ``id`` or ``source#id``, of a composite
    event or a tick too. ``since``: from when the rules hold, in microseconds (S15). Raises
    RuleErrors and EventError, for what does not exist too.
    """
    ruleset = load(rules) if isinstance(rules, str) else rules
    recording = Recording(ruleset, events, since=since, engine=engine)
    return explained(recording, rule, event, candidates=candidates, branches=branches)


def explained(
    recording: Recording,
    rule: str,
    event: str,
    *,
    candidates: int = CANDIDATES,
    branches: int = BRANCHES,
) -> Explanation:
    """The same for a recording over which the rules were run already."""
    checked = recording.rule(rule)
    terminator = recording.find(event, checked)
    return Explainer(recording, checked, candidates, branches).explain(terminator)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A clause and its place in the text, from 1."""

    place: int
    clause: Clause


def walked(rule: Rule) -> tuple[Numbered, ...]:
    """The clauses of a rule in the order in which they are looked at. A negation is looked at in
    its place in the text, unless a clause after it selects events of the same type, which would not
    count as the negated one once they are selected (S6): then it is looked at right after the last
    such clause. The matches are the same.
    """
    numbered = [Numbered(place, clause) for place, clause in enumerate(rule.clauses, start=1)]

    def turn(one: Numbered) -> tuple[int, int]:
        if not isinstance(one.clause, Negated):
            return one.place, 0
        rivals = (
            other.place
            for other in numbered
            if isinstance(other.clause, Selected) and other.clause.type == one.clause.type
        )
        latest = max(rivals, default=0)
        return (latest, one.place) if latest > one.place else (one.place, 0)

    return tuple(sorted(numbered, key=turn))


class Explainer:
    """Explains one rule over a recording; ``branches`` is a bound for each explanation.

    The walk is that of ``naive_match``: clause by clause in the order of the text, on the oracle's
    own arithmetic, over the events that the rule sees; so what is told is what the engines do. So
    many events are listed for a clause and so many branches are walked; what lies beyond is
    counted.
    """

    def __init__(
        self,
        recording: Recording,
        rule: Rule,
        candidates: int = CANDIDATES,
        branches: int = BRANCHES,
    ) -> None:
        self._recording = recording
        self._rule = rule
        self._words = Rewording(rule)
        self._sight = Sight(recording, rule)
        self._iterations = Iterations(rule, self._sight)
        plain = Consideration(self._sight, Appraisal(self._words), candidates)
        self._appraisal = Appraisal(self._words, plain.aggregated)
        self._consideration = plain
        self._clauses = walked(rule)
        self._variants: tuple[Explainer, ...] | None = None
        self._candidates = candidates
        self._bound = branches
        self._left = branches

    def explain(self, terminator: Occurrence) -> Explanation:
        """Everything about one event."""
        rule = self._rule
        if rule.together is not None or rule.alternatives:
            return self._explain_variants(terminator)
        self._left = self._bound
        scope = Scope(Moment(self._sight, terminator.time, self._iterations), (terminator,))
        own = self._terminator(terminator, scope)
        root = Branch(None, (own,)) if not own.passed else self._branch(scope, 0, None, (own,))
        texts = (self._words.terminator(), *map(self._words.clause, rule.clauses))
        return Explanation(rule.name, rule.text, texts, self._recording.row(terminator), root)

    def _explain_variants(self, event: Occurrence) -> Explanation:
        """Everything about one event of a rule that is several rules (X1, X2).

        A branch for each name that it may have as the latest of a match, or for each way to choose
        the types of the other events; without the branching where there is but one.
        """
        if self._variants is None:
            self._variants = tuple(
                Explainer(self._recording, variant, self._candidates, self._bound)
                for variant in variants(self._rule)
            )
        told = [
            part.explain(event) for part in self._variants if part._rule.terminator == event.type
        ]
        row = self._recording.row(event)
        if len(told) == 1:
            return told[0]
        if told:
            branches = tuple(replace(one.branch, chosen=row) for one in told)
            return replace(told[0], clauses=(), branch=Branch(None, (), branches))
        names = " or ".join(dict.fromkeys(type_.name for type_ in self._rule.opening))
        text = self._words.opening()
        whose = "terminator is" if self._rule.together is None else "events are"
        because = f"a {event.type.name}, and the rule's {whose} {names}"
        root = Branch(None, (Step(0, text, False, because),))
        return Explanation(self._rule.name, self._rule.text, (text,), row, root)

    # --- the walk ----------------------------------------------------------------------------

    def _branch(
        self, scope: Scope, turn: int, chosen: Event | None, steps: tuple[Step, ...] = ()
    ) -> Branch:
        """The branch of a match that has got as far as the clause of a turn."""
        for later in range(turn, len(self._clauses)):
            step, scopes = self._step(self._clauses[later], scope)
            steps = (*steps, step)
            if not scopes:
                return Branch(chosen, steps)
            if len(scopes) > 1:
                return self._fork(scopes, later + 1, chosen, steps)
            (scope,) = scopes
        where, match = self._where(scope)
        return Branch(chosen, (*steps, where), match=match)

    def _fork(
        self, scopes: Sequence[Scope], turn: int, chosen: Event | None, steps: tuple[Step, ...]
    ) -> Branch:
        """The branches of an ``each``: those within the bound, and a count of the others."""
        branches, more, more_matches = [], 0, 0
        for scope in scopes:
            if self._left > 0:
                self._left -= 1
                event = self._recording.row(scope.events[-1])
                branches.append(self._branch(scope, turn, event))
            else:
                more += 1
                more_matches += self._count(scope, turn)
        return Branch(chosen, steps, tuple(branches), more, more_matches)

    def _count(self, scope: Scope, turn: int) -> int:
        """How many matches come of a branch that is not told."""
        if turn == len(self._clauses):
            return int(all(value_of(value, scope) is not None for value in self._rule.values))
        return sum(
            self._count(longer, turn + 1)
            for longer in self._continuations(self._clauses[turn].clause, scope)
        )

    def _continuations(self, clause: Clause, scope: Scope) -> list[Scope]:
        """The match after one clause: none when it fails, several when it selects ``each``."""
        match clause:
            case Selected() | Negated():
                return self._after(clause, scope, self._rulings(clause, scope))
            case _:
                longer = judge(clause, scope)
                return [] if longer is None else [longer]

    def _after(
        self, clause: Selected | Negated, scope: Scope, rulings: Sequence[Ruling]
    ) -> list[Scope]:
        """The match after a clause that has ruled so."""
        if isinstance(clause, Negated):
            return [scope] if all(ruling.fate for ruling in rulings) else []
        bound = scope.with_run if clause.iteration else scope.with_event
        return [bound(event) for event in choose(clause, rulings) if event.type == clause.type]

    def _rulings(self, clause: Selected | Negated, scope: Scope) -> list[Ruling]:
        """The fate of all events that a clause looks at, in order: of rivals too (X2)."""
        uses = (clause, *clause.rivals) if isinstance(clause, Selected) else (clause,)
        found = [ruling for use in uses for ruling in self._consideration.rulings(use, scope)]
        return sorted(found, key=lambda ruling: ruling.event.moment)

    # --- telling -----------------------------------------------------------------------------

    def _step(self, one: Numbered, scope: Scope) -> tuple[Step, list[Scope]]:
        """One clause told, and the match after it."""
        clause, text = one.clause, self._words.clause(one.clause)
        if isinstance(clause, Selected | Negated):
            rulings = self._rulings(clause, scope)
            scopes = self._after(clause, scope, rulings)
            step = Step(one.place, text, bool(scopes), "")
            if isinstance(clause, Negated):
                return self._told_negation(step, clause, scope, rulings), scopes
            return self._told_selection(step, clause, scope, rulings), scopes
        scopes = self._continuations(clause, scope)
        step = Step(one.place, text, bool(scopes), "")
        match clause:
            case Timed():
                return replace(step, because=_told_time(clause, scope)), scopes
            case Constraint():
                check = self._appraisal.check(clause.condition, scope)
                return replace(step, because=_truth(check), checks=(check,)), scopes
            case Let():
                term = self._appraisal.term(clause.value, scope)
                because = "undefined" if term.value is None else "has a value"
                return replace(step, because=because, values=(term,)), scopes

    def _told_selection(
        self, step: Step, clause: Selected, scope: Scope, rulings: Sequence[Ruling]
    ) -> Step:
        chosen = choose(clause, rulings)
        taken = set(chosen)
        fits = sum(ruling.fate is None for ruling in rulings)
        decided = [
            replace(
                ruling,
                fate=ruling.fate or (Fate.CHOSEN if ruling.event in taken else Fate.PASSED_OVER),
            )
            for ruling in rulings
            if ruling.event.type == clause.type
        ]
        considered = self._consideration.considered(clause, scope, decided, (Fate.CHOSEN,))
        because = _selection(clause, fits)
        if chosen and chosen[0].type != clause.type:  # X2
            because = f"of {fits} that fit, the one it takes is a {chosen[0].type.name}"
        return replace(step, because=because, considered=considered)

    def _told_negation(
        self, step: Step, clause: Negated, scope: Scope, rulings: Sequence[Ruling]
    ) -> Step:
        decided = [replace(one, fate=one.fate or Fate.VIOLATES) for one in rulings]
        considered = self._consideration.considered(clause, scope, decided, (Fate.VIOLATES,))
        count = considered.counts.get(Fate.VIOLATES, 0)
        because = f"{count} {'is' if count == 1 else 'are'} there" if count else "there is none"
        return replace(step, because=because, considered=considered)

    def _terminator(self, terminator: Occurrence, scope: Scope) -> Step:
        """Whether an event is a terminator of the rule."""
        step = Step(0, self._words.terminator(), False, "")
        if terminator.type != self._rule.terminator:
            return replace(step, because=self._other_type(terminator.type.name))
        if terminator.time < self._sight.since:
            return replace(
                step, because=f"the rule holds from {time_text(self._sight.since)} (S15)"
            )
        firing = self._sight.consumed_by(terminator, terminator.time)
        if firing is not None:
            event = firing.event
            because = f"consumed by {event.type} {event.id} at {time_text(event.time)} (S11)"
            return replace(step, because=because)
        enclosing = Enclosing(TERMINATOR, self._rule.terminator)
        checks = tuple(
            self._appraisal.check(condition, scope, enclosing)
            for condition in self._rule.conditions
        )
        failing = [check for check in checks if check.result is not True]
        because = f"{failing[0].text} is {_truth(failing[0])}" if failing else "a terminator"
        return replace(step, passed=not failing, because=because, checks=checks)

    def _other_type(self, name: str) -> str:
        places = [
            str(place)
            for place, clause in enumerate(self._rule.clauses, start=1)
            if isinstance(clause, Selected | Negated) and clause.type.name == name
        ]
        part = f"; clause {' and '.join(places)} looks for {name}" if places else ""
        return f"a {name}, and the rule's terminator is {self._rule.terminator.name}{part}"

    def _where(self, scope: Scope) -> tuple[Step, Match | None]:
        """The values of the composite event, or why there are none (S9)."""
        rule = self._rule
        # What is behind the declared attributes says which of them are null, and is always known
        # where these are.
        texts = [self._words.value(place) for place in range(len(rule.defines.presences))]
        worth = [value_of(value, scope) for value in rule.values]
        values = tuple(
            Term(text, None, NULL)
            if presence >= 0 and worth[presence] is False
            else replace(self._appraisal.term(value, scope), text=text)
            for text, value, presence in zip(
                texts, rule.values, rule.defines.presences, strict=False
            )
        )
        missing = [term.text for term in values if term.value is None and term.because != NULL]
        because = f"{missing[0]} is undefined" if missing else "the rule fires"
        step = Step(len(rule.clauses) + 1, "where", not missing, because, values=values)
        if missing:
            return step, None
        data = {
            attribute.name: term.value
            for attribute, term in zip(rule.defines.declared, values, strict=True)
        }
        # In the order of the text, where the terminator of a variant stands elsewhere (X1).
        order = sorted(range(len(scope.events)), key=partial(in_the_text, rule.latest))
        names = tuple(rule.event_names[place] for place in order)
        events = tuple(self._recording.row(scope.events[place]) for place in order)
        pairs = zip(data, values, strict=True)
        instants = frozenset(name for name, term in pairs if term.is_instant)
        return step, Match(names, events, data, instants)


def choose(clause: Selected, rulings: Sequence[Ruling]) -> list[Occurrence]:
    """The events that a clause selects of those that fit, which are in order (S1, S2)."""
    fitting = [ruling.event for ruling in rulings if ruling.fate is None]
    if clause.policy is Policy.EACH:
        return fitting
    if clause.policy is Policy.LAST:
        fitting.reverse()
    return fitting[clause.rank - 1 : clause.rank]  # none when there are fewer


def judge(clause: Timed | Constraint | Let, scope: Scope) -> Scope | None:
    """The match after a clause that neither selects nor negates; None when it fails."""
    match clause:
        case Timed():  # S7
            time = scope.event(clause.event).time
            return scope if in_window(time, clause.window, scope) else None
        case Constraint():  # S9
            return scope if value_of(clause.condition, scope) is True else None
        case Let():  # S9
            value = value_of(clause.value, scope)
            return None if value is None else scope.with_slot(clause.slot, value)


def _selection(clause: Selected, fits: int) -> str:
    if fits == 0:
        return "none fits"
    if clause.policy is Policy.EACH:
        return f"{fits} fit" if fits > 1 else "1 fits"
    if fits < clause.rank:
        return f"only {fits} of the {clause.rank} that it takes"
    return f"chosen of {fits} that fit" if fits > 1 else "1 fits"


def _truth(check: Check) -> str:
    return "undefined" if check.result is None else "true" if check.result else "false"


def _told_time(clause: Timed, scope: Scope) -> str:
    """How an event lies to a window (S7)."""
    time, (start, end) = scope.event(clause.event).time, ends(clause.window, scope)
    if start <= time <= end:
        return f"{elapsed_text(end - time)} before" if time < end else "at the same instant"
    if time < start:
        return f"{elapsed_text(start - time)} too early"
    return f"{elapsed_text(time - end)} after it"
