"""Rules that have ended, and linger until everybody has what they found (routing.serving.ended).

Law 1: a rule that is removed or replaced with a plan lingers as long as somebody who wants its
composite events may lack some of those before its end, or as a rule above it may be evaluated once
more from where it needs them. The root decides, with each plan, from the dues of the pause. While
somebody is out of reach, whose dues nobody knows, all linger.

Law 2: where the rule was evaluated up to its end, and goes on being evaluated there, nothing is
left to do (station, Law 5). Where rules begin anew, it does as they do: in trees of sinks that may
be behind, and in another single tree; or where they had begun anew, and it is not as far again.

Law 3: what a broker has of the rule it has of the one that lingers, and what waits here for the
sake of order is the latter's. So nothing comes twice.

Law 4: it is let go where it does not go with the rules and types that there are now: with a type
that has another schema since, or where rules would wait for each other. By arrival nothing lingers:
a rule has seen what had come where it was evaluated, and nobody finds that anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matcher.identity import RULE_SOURCE, plain_name
from matcher.model import TIME_MIN
from routing.messages.values import NAME_MAX
from routing.network.brokers.ground import Ground
from routing.network.recovery.dues import starts
from routing.network.ways.places import Division
from routing.serving.deployment import Deployed
from routing.serving.ended import outlasted, until_of, version_of
from rules.checking.dependencies import arrange
from rules.errors import RuleErrors


class Lingering:
    """Lets rules linger, at the root, and takes them over."""

    def __init__(self, ground: Ground, *, by_arrival: bool) -> None:
        self._ground = ground
        self._detection = ground.detection
        self._deployments = ground.deployments
        self._by_arrival = by_arrival
        self._new: list[str] = []
        """At the root: the names of those that linger since the last plan."""
        self._is_whole = True
        """At the root: whether nobody is out of reach (Law 1)."""

    # --- at the root ---

    def let_go(self, due: Mapping[str, int], *, is_whole: bool) -> None:
        """Before anything is done that was asked: let go what nobody needs (Law 1).

        ``due``: up to where those who want a rule's composite events have them; ``is_whole``:
        nobody is out of reach.
        """
        self._is_whole = is_whole
        lingering = self._deployments.lingering
        if lingering and is_whole:
            due = {**_ends(lingering), **due}
            needed = starts(self._deployments.rules, due)
            self._detection.linger((), [one for one in _ends(lingering) if one not in needed])

    def keep(self, due: Mapping[str, int]) -> dict[str, int]:
        """When all that was asked is done: let those linger that have ended by that, and no longer
        those that do not go with what has come (Law 4). Gives the dues of all that linger.
        """
        ended = self._detection.take_ended()
        reached = {one.name: mark for one, mark in ended}
        due = {
            **{one.name: due.get(one.deployed.rule.name, TIME_MIN) for one, _ in ended},
            **due,
        }
        found = [one.rule for one, _ in ended if one.until > TIME_MIN and not self._by_arrival]
        kept = self._fitting([*self._deployments.lingering, *found])
        if found and self._is_whole:
            needed = starts((*self._deployments.in_force, *kept), {**_ends(kept), **due})
            kept = [one for one in kept if one.rule.name in needed or one not in found]
        names = {one.rule.name for one in kept}
        new = [one for one in found if one.rule.name in names]
        gone = [name for name in _ends(self._deployments.lingering) if name not in names]
        self._new = [one.rule.name for one in new]
        for one in new:
            self._take_over(one.rule.name, reached[one.rule.name])
        if new or gone:
            self._detection.linger(new, gone)
        return {name: due.get(name, until) for name, until in _ends(kept).items()}

    def are_behind(self, division: Division, marks: Mapping[str, int]) -> bool:
        """Whether rules that linger from now on have not come to their ends again where they were
        evaluated, on the single tree: rules had begun anew there (Law 2). ``marks``: up to where
        rules have been evaluated by now.
        """
        places = division.partition.places
        return any(
            name in places and marks.get(plain_name(name), TIME_MIN) < until_of(name)
            for name in self._new
        )

    def _fitting(self, ended: Iterable[Deployed]) -> list[Deployed]:
        """Those that go with the types and the rules in force, and with each other (Law 4)."""
        schemas = dict(self._ground.advertisements.schemas)
        rules = [one.rule for one in self._deployments.in_force]
        found = []
        for one in ended:
            mentioned = {schema.name: schema for schema in one.mentions}
            if len(one.rule.name) <= NAME_MAX and schemas | mentioned == mentioned | schemas:
                try:
                    arrange([*rules, one.rule])
                except RuleErrors:
                    continue
                schemas |= mentioned
                rules.append(one.rule)
                found.append(one)
        return found

    # --- everywhere ---

    def learn(self, rules: Iterable[Deployed]) -> None:
        """Before these rules take the place of those that are known: take over which linger."""
        deployments = self._deployments
        for one in rules:
            if one.has_ended and deployments.find(one.rule.name) is None:
                before = deployments.find(plain_name(one.rule.name))
                if before is not None and before.version == one.version:
                    self._take_over(one.rule.name, self._detection.reached(before.rule.name))

    def _take_over(self, name: str, reached: int) -> None:
        """Law 3."""
        self._ground.router.reach(name, reached)
        plain = plain_name(name)
        for was in (plain, outlasted(plain, version_of(name))):
            for sink in self._ground.sinks:
                sink.rename({RULE_SOURCE + was: RULE_SOURCE + name})


def _ends(ended: Iterable[Deployed]) -> dict[str, int]:
    """When these rules ended, by name."""
    return {one.rule.name: until_of(one.rule.name) for one in ended}
