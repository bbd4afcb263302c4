"""The part that engines have in common whose rules are in a catalogue."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rules.engine.engine import Placement
from rules.engine.order.catalogue import Catalogue
from rules.overrun import Overrun


class Catalogued:
    """A Detector's answers about its rules (:class:`rules.engine.engine.Detector`), if nothing is
    to be told of where they are evaluated, and how long.
    """

    def __init__(self) -> None:
        self._overruns: list[Overrun] = []
        self._catalogue = Catalogue()
        self.mark = self._catalogue.mark
        """Gives one rule's mark; KeyError when no rule has that name."""

    @property
    def marks(self) -> Mapping[str, int]:
        """Each deployed rule's mark, by name: all instants before it have been evaluated."""
        return self._catalogue.marks

    @property
    def parts(self) -> Sequence[Collection[str]]:
        """The names of the rules: it is all of one part."""
        return (self.marks.keys(),)

    def take_overruns(self) -> Sequence[Overrun]:
        """The rules that have ended since the last call, each with its last instant."""
        overruns, self._overruns = self._overruns, []
        return overruns

    def _end_overrun(self, *overruns: Overrun) -> None:
        """Evaluate rules no more that have ended."""
        for overrun in overruns:
            self._catalogue.end(overrun.rule)
        self._overruns += overruns

    def placement(self, name: str) -> Placement | None:
        """Nothing, on the processor."""
        return None

    def costs(self) -> Mapping[str, int]:
        """Nothing: no rule is timed."""
        return {}

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        self._catalogue.forget_named()
