"""Explanations as text, to be read from top to bottom.

Every clause is a line that begins with ``ok``, with ``NO`` where it failed, or with ``--`` where
the match had failed before it was looked at; below it stands why. Events are named by
``source#id``; when they occurred is told from the terminator's point of view.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from matcher.model import Datum, Event, Value
from matcher.times import time_text
from rules.explaining.explanation import (
    NULL,
    Branch,
    Candidate,
    Check,
    Considered,
    Explanation,
    Fate,
    Stage,
    Step,
    Summary,
    Term,
)
from rules.explaining.rewording import elapsed_text

PASSED, FAILED, UNSEEN = "ok", "NO", "--"

_COUNTED: Mapping[Fate, str] = {
    Fate.CHOSEN: "chosen",
    Fate.COUNTED: "counted",
    Fate.VIOLATES: "that must not be",
    Fate.PASSED_OVER: "fit but passed over",
    Fate.APART: "not of this run",
    Fate.TAKEN: "in the match already",
    Fate.SIMULTANEOUS: "not strictly earlier",
    Fate.CONSUMED: "consumed",
    Fate.NOT_IN_FORCE: "before the rule holds",
}
"""How a number of events is told that no condition excluded."""

_SINGLE: Mapping[Fate, str] = {
    Fate.CHOSEN: "chosen",
    Fate.COUNTED: "counted",
    Fate.VIOLATES: "it must not be",
    Fate.PASSED_OVER: "fits, but another was chosen",
    Fate.APART: "is not of this run (X4)",
    Fate.TAKEN: "is in the match already (S1, S6)",
    Fate.SIMULTANEOUS: "is not strictly earlier, in a cycle of rules (S12)",
    Fate.NOT_IN_FORCE: "is earlier than the rule (S15)",
}


def told(explanation: Explanation) -> str:
    """An explanation as text, without a line end after it."""
    event = explanation.event
    lines = [
        f"rule {explanation.rule} at {event.type} {_name(event)} of {time_text(event.time)}",
        *([f"    {_data(event.data)}"] if event.data else []),
        "",
        *_Teller(explanation).branch(explanation.branch, ""),
        "",
        _outcome(explanation),
    ]
    return "\n".join(lines)


def told_summary(summary: Summary) -> str:
    """A summary as text, without a line end after it."""
    lines = [f"rule {summary.rule}: how far its terminators got", ""]
    width = len(f"{summary.terminators:,}")
    for way in summary.ways or (summary,):
        lines += [f"where {way.way}:"] if way.way else []
        for stage in way.stages:
            lines += _stage(stage, width)
        lines += [_fired(way), ""] if summary.ways else [""]
    return "\n".join([*lines, _fired(summary)])


def _fired(summary: Summary) -> str:
    if not summary.terminators and summary.stages:
        name = summary.stages[0].text.removeprefix("from ").partition("(")[0]
        return f"no terminator: the recording has no {name}"
    fired, composites = summary.fired, summary.composites
    return f"{_count(fired, 'terminator')} fired: {_count(composites, 'composite event')}"


def value_text(value: Value | None) -> str:
    """A value as TESLA writes it."""
    return "undefined" if value is None else json.dumps(value, ensure_ascii=False)


class _Teller:
    """Tells the branches of one explanation, each a step further in."""

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._at = explanation.event.time

    def branch(self, branch: Branch, margin: str) -> Iterator[str]:
        for step in branch.steps:
            yield from (margin + line for line in self._step(step))
        if not branch.branches and not branch.more:
            if branch.match is None:
                yield from (margin + line for line in self._unseen(branch))
            return
        count = len(branch.branches) + branch.more
        for number, inner in enumerate(branch.branches, start=1):
            assert inner.chosen is not None  # it began the branch
            yield f"{margin}    with {_name(inner.chosen)}, {number} of {count}:"
            yield from self.branch(inner, margin + "    ")
        if branch.more:
            matches = _count(branch.more_matches, "match")
            yield f"{margin}    and {branch.more:,} more, with {matches}"

    def _unseen(self, branch: Branch) -> Iterator[str]:
        seen = {step.clause for step in branch.steps}
        last = branch.steps[-1].clause
        for place, text in enumerate(self._explanation.clauses):
            if place not in seen and place > last:
                yield f"{UNSEEN}  {_numbered(place, text)}"

    def _step(self, step: Step) -> Iterator[str]:
        is_clause = step.clause < len(self._explanation.clauses)
        text = _numbered(step.clause, step.text) if is_clause else step.text
        yield f"{PASSED if step.passed else FAILED}  {text}"
        details = [*self._checks(step), *self._values(step)]
        if step.considered is not None:
            details += [step.because, *self._considered(step.considered)]
        elif not details and not (step.clause == 0 and step.passed):
            details = [step.because]
        yield from (f"       {line}" for line in details)

    def _checks(self, step: Step) -> Iterator[str]:
        for check in step.checks:
            yield _checked(check)
            for term in check.terms:
                yield from self._term(term)

    def _values(self, step: Step) -> Iterator[str]:
        for term in step.values:
            yield f"{term.text} {_valued(term)}"
            yield from self._term(term)

    def _term(self, term: Term) -> Iterator[str]:
        if term.considered is not None:
            yield from (f"  {line}" for line in self._considered(term.considered))

    def _considered(self, considered: Considered) -> Iterator[str]:
        start, end = time_text(considered.start), time_text(considered.end)
        after = "after " if considered.after_start else ""
        counts = [
            f"{considered.counts[fate]:,} {words}"
            for fate, words in _COUNTED.items()
            if considered.counts.get(fate)
        ]
        counts += [f"{count:,} without {text}" for text, count in considered.failed.items()]
        outside = considered.counts.get(Fate.OUTSIDE, 0)
        yield (
            f"{considered.type} from {after}{start} to {end}: {', '.join(counts) or 'none'}"
            f" ({outside:,} outside)"
        )
        for candidate in considered.candidates:
            mark = "*" if candidate.fate in _FITTING else "-"
            yield f"{mark} {self._candidate(candidate)}"

    def _candidate(self, candidate: Candidate) -> str:
        event = candidate.event
        return f"{_name(event)}, {self._when(event)}: {_fate(candidate)}"

    def _when(self, event: Event) -> str:
        away = event.time - self._at
        if away == 0:
            return "at the same instant"
        return f"{elapsed_text(abs(away))} {'before' if away < 0 else 'later'}"


_FITTING = (Fate.CHOSEN, Fate.COUNTED, Fate.VIOLATES)


def _fate(candidate: Candidate) -> str:
    if candidate.fate is Fate.OUTSIDE:
        side = "before" if candidate.distance < 0 else "after"
        beyond = f"{elapsed_text(abs(candidate.distance))} {side} the window"
        also = f", and {_checked(candidate.check)}" if candidate.check else ", would fit otherwise"
        return beyond + also
    if candidate.check is not None:
        return _checked(candidate.check)
    words = _SINGLE.get(candidate.fate, "")
    if candidate.by is not None:
        when = time_text(candidate.by.time)
        words = f"consumed by {candidate.by.type} {candidate.by.id} at {when} (S11)"
    return f"{words} ({_data(candidate.event.data)})" if candidate.event.data else words


def _checked(check: Check) -> str:
    """A condition, what it came to, and the values that made it so."""
    verdict = "undefined" if check.result is None else "true" if check.result else "false"
    terms = ", ".join(f"{term.text} {_valued(term)}" for term in check.terms)
    return f"{check.text} is {verdict}" + (f": {terms}" if terms else "")


def _valued(term: Term) -> str:
    if term.because == NULL:
        return f"= {NULL}"
    if term.value is None:
        return f"is undefined ({term.because})"
    return f"= {_shown(term.value, as_instant=term.is_instant)}"


def _outcome(explanation: Explanation) -> str:
    if not explanation.fired:
        return "It does not fire."
    matches = explanation.matches
    count = explanation.count
    lines = [f"It fires: {_count(count, 'match')}."]
    for match in matches:
        events = zip(match.names, match.events, strict=True)
        told = ", ".join(f"{name} {_name(event)}" for name, event in events)
        lines.append(f"    {told} -> {_data(match.data, match.instants) or 'no attributes'}")
    if count > len(matches):
        lines.append(f"    and {count - len(matches):,} more")
    return "\n".join(lines)


def _stage(stage: Stage, width: int) -> Sequence[str]:
    lines = [f"{stage.passed:>{width},} of {stage.reached:>{width},}  {stage.text}"]
    margin = " " * (2 * width + 6)
    for place, (reason, count) in enumerate(stage.reasons.items()):
        example = stage.example if place == 0 else None
        such = f", as at {_name(example)}" if example is not None else ""
        lines.append(f"{margin}{count:,} failed: {reason}{such}")
    return lines


def _count(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def _numbered(place: int, text: str) -> str:
    return f"from {text}" if place == 0 else f"{place}. {text}"


def _name(event: Event) -> str:
    return f"{event.source}#{event.id}"


def _data(data: Mapping[str, Datum], instants: Collection[str] = ()) -> str:
    return ", ".join(
        f"{name} = {_shown(value, as_instant=name in instants)}" for name, value in data.items()
    )


def _shown(value: Datum, *, as_instant: bool) -> str:
    if value is None:
        return NULL
    return time_text(int(value)) if as_instant else value_text(value)
