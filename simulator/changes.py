"""The times at which rules hold: as a scenario asks, and as brokers confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rules
from matcher.model import MICROSECONDS, TIME_MAX, EventType
from routing.deployment import Deployed
from routing.messages import Confirmed, Remove
from routing.session import Session
from rules.language import declared_in
from rules.pattern import Rule, RuleSet
from rules.syntax.parser import decode, read
from simulator.scenario import Scenario

LastOf = Callable[[str, int], int | None]
"""The time of the last event before an instant that anybody got of a rule."""


@dataclass(frozen=True, slots=True)
class Held:
    """A rule of that version held from ``since`` (None: from the beginning) to before ``until``
    (None: to the end), in us.
    """

    rule: Rule
    since: int | None
    until: int | None
    version: int


@dataclass(frozen=True, slots=True)
class Step:
    """One request: to deploy the rules of a text, in place of those of their names, or to remove
    one. ``at_s``: seconds after the first event's time; None: before it, as the scenario begins.
    ``since_s``: the same of the past instant from which they hold, in no other's place. A step is
    asked for once its time has come and the one before it is answered, so changes at different
    brokers are made in their order.
    """

    at_s: float | None
    broker: str | None
    text: str = ""
    file: str = ""
    removed: str = ""
    since_s: float | None = None

    def ask(self, session: Session, first_s: float) -> int:
        """Ask for it; gives the request's number. ``first_s``: the first event's time."""
        if self.removed:
            return session.ask(Remove, self.removed)
        since, is_in_place = self.since(first_s), self.at_s is not None and self.since_s is None
        return session.deploy(self.text, replace=is_in_place, file=self.file, since=since)

    def since(self, first_s: float) -> int | None:
        """The past instant from which the rules are to hold, in us."""
        if self.since_s is None:
            return None
        return round(first_s * MICROSECONDS) + round(self.since_s * MICROSECONDS)


def steps_of(scenario: Scenario, generated: str) -> list[Step]:
    """The steps of a scenario, whose workload made these rules. Raises RuleErrors, OSError."""
    path = scenario.rules
    text = "" if path is None else decode(path.read_bytes(), str(path))
    text += f"\n{generated}\n" if generated else ""
    file = path or scenario.file
    found = [Step(None, None, text, file.name)] if text.strip() else []
    for change in sorted(scenario.changes, key=lambda one: one.at_s):
        text = _text(change.rules) if change.rules else ""
        file_name = change.rules.name if change.rules else ""
        asked = text, file_name, change.remove, change.since_s
        found.append(Step(change.at_s, change.broker, *asked))
    return found


def _text(path: Path) -> str:
    return decode(path.read_bytes(), str(path))


def declared(steps: Sequence[Step]) -> Mapping[str, EventType]:
    """The event types that the texts declare."""
    return {
        name: schema
        for step in reversed(steps)
        for name, schema in declared_in(read(step.text).file).items()
    }


def checked(steps: Sequence[Step], known: Mapping[str, EventType]) -> Iterator[RuleSet | None]:
    """The rules of each step, over these types and those of the steps before; None for a removal.

    Raises RuleErrors.
    """
    schemas = dict(known)
    for step in steps:
        if step.removed:
            yield None
            continue
        found = rules.load(step.text, file=step.file, known=schemas)
        schemas.update(found.schemas)
        yield found


class RuleBook:
    """The rules that have been confirmed, in the order of their confirmation. A confirmation names
    the instant from which a rule holds, and the one up to which another held (S15). The oracle goes
    by these instants, and by nothing else that brokers say.
    """

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.names: set[str] = set()
        """The names of all rules that were ever deployed: by arrival nobody says up to which
        instant a rule held."""
        self.confirmed_at: dict[tuple[str, int], float] = {}
        """When it was that somebody was told that a rule holds, by its name and version."""
        self.past: dict[tuple[str, int], int] = {}
        """From when on rules were asked to hold that were to hold from a past instant, in us."""
        self._unclear: set[str] = set()
        """Names of which a version has ended that nobody was told of before."""

    def note(
        self, ruleset: RuleSet | None, answer: Confirmed, moment: float, past: int | None = None
    ) -> None:
        """Deploy or, without rules, Remove was confirmed. ``past``: from when on they were asked to
        hold, if that was a past instant.
        """
        if ruleset is None:
            self._end(answer.detail)
            return
        for ended in answer.detail["replaced"]:
            self._end(ended)
        by_name = {rule.name: rule for rule in ruleset.rules}
        for told in answer.detail["rules"]:
            self.held.append(Held(by_name[told["name"]], told["since"], None, told["version"]))
            self.names.add(told["name"])
            self.confirmed_at[told["name"], told["version"]] = moment
            if past is not None:
                self.past[told["name"], told["version"]] = past

    def conclude(
        self,
        asked: RuleSet,
        in_force: Iterable[Deployed],
        last_of: LastOf,
        past: int | None = None,
    ) -> bool:
        """Deploy had no answer, and this is what brokers have in the end; whether that tells if it
        was done. The rules were deployed if brokers have them in versions that nobody was told of.
        What these replaced held at least up to the last that anybody got of it; a name that was
        changed once more tells nothing. ``past`` as in ``note``.
        """
        names = {rule.name: rule for rule in asked.rules}
        found = {one.name: one for one in in_force if one.name in names}
        known = {(one.rule.name, one.version) for one in self.held}
        new = [one for name, one in found.items() if (name, one.version) not in known]
        if names.keys() & self._unclear or len(new) not in (0, len(names)):
            return False
        for one in new:
            self._end_untold(one.name, last_of(one.name, one.begin))
            rule = one.rule.named(one.name)
            self.held.append(Held(rule, one.since, None, one.version))
            self.names.add(one.name)
            if past is not None:
                self.past[one.name, one.version] = past
        return True

    def conclude_removal(self, name: str, in_force: Iterable[Deployed], last_of: LastOf) -> bool:
        """Remove had no answer; as conclude."""
        if name in self._unclear:
            return False
        if not any(one.name == name for one in in_force):
            self._end_untold(name, last_of(name, TIME_MAX))
        return True

    def _end_untold(self, name: str, last: int | None) -> None:
        """A rule has ended, if it was held at all. ``last``: the time of the last that was got."""
        until = None if last is None else last + 1
        for one in [one for one in self.held if one.rule.name == name and one.until is None]:
            self._end({"name": name, "version": one.version, "until": until})

    def _end(self, told: Mapping[str, Any]) -> None:
        """A rule has ended; one that was evaluated for nothing, ``until`` None, never held."""
        place = next(
            (
                place
                for place, one in enumerate(self.held)
                if (one.rule.name, one.version) == (told["name"], told["version"])
            ),
            None,
        )
        if place is None:
            self._unclear.add(told["name"])
            return
        one = self.held.pop(place)
        if told["until"] is not None:
            self.held.insert(place, replace(one, until=told["until"]))
