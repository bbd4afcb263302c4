"""The rules that linger at one station (station, Law 5; routing.network.brokers.lingering).

Law: such a rule is evaluated until its mark has come to its end, then it is done. It is done from
the first where the rule was evaluated here up to its end. One that is done is no longer in the
engine; its mark is its end, and it uses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from routing.network.tables.ends import Uses
from routing.serving.deployment import Deployed
from routing.serving.ended import until_of
from rules.engine.engine import Detector


class Finishing:
    """Owner of which rules are waited for, and which are done."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        """The ends of those that are not done."""
        self._done: set[str] = set()
        self.have_been = False
        """Whether there have been any in this tree: events of theirs may be among causes."""

    def __contains__(self, rule: str) -> bool:
        """Whether a rule is done."""
        return rule in self._done

    def forget(self) -> None:
        """Rules begin anew."""
        self._done.clear()

    def follow(
        self,
        tree: Iterable[Deployed],
        here: Mapping[str, Deployed],
        new: Iterable[str],
        *,
        anew: bool,
    ) -> None:
        """These are the rules of the tree, those of them that are here, and which of these are new.

        ``anew``: all begin anew.
        """
        self.have_been |= any(one.has_ended for one in tree)
        ended = {rule for rule, one in here.items() if one.has_ended}
        self._done &= ended
        if not anew:
            self._done |= ended.intersection(new)
        self._until = {rule: until_of(rule) for rule in sorted(ended - self._done)}

    def finish(self, engine: Detector) -> bool:
        """Take those out of the engine that have come to their ends; whether there were any."""
        done = [rule for rule, until in self._until.items() if engine.mark(rule) >= until]
        for rule in done:
            del self._until[rule]
            engine.remove(rule)
        self._done.update(done)
        return bool(done)

    def mark(self, rule: str, engine: Detector) -> int:
        """Up to where a rule has been evaluated; KeyError for one that is not here."""
        return until_of(rule) if rule in self._done else engine.mark(rule)

    def uses(self, uses: Uses) -> Uses:
        """What each rule still uses."""
        if not self._done:
            return uses
        return {rule: frozenset() if rule in self._done else of for rule, of in uses.items()}

    @property
    def is_pending(self) -> bool:
        """Whether any is not done."""
        return bool(self._until)
