"""How far one type is at one broker, in one tree, or one rule: all that is known of it, in one
record.

Marks move with nearly every message, one broker is in many trees, and each has a hundred types or
thousands. What bears on a mark that moves is therefore in one place, and is found by its name once.

Each field has one owner, which alone sets it: ``InputWatermarks`` what is said of a type,
``Watermarks`` what follows for the engine, and ``TreeProgress``, which asks them, the rest. Sets of
types that an owner has are not repeated here. Records of rules are of one division.
"""

from __future__ import annotations

from collections.abc import Sequence

from matcher.model import TIME_MAX, TIME_MIN
from routing.watermarks.ends import CLOSED
from rules.pattern import Wiring

UNSAID = TIME_MAX + 1
"""In place of a mark: nobody says anything."""


class CoupledTypes:
    """Types that are looked at together by rules, or through such types: no other bears on them."""

    def __init__(self, types: list[TypeProgress]) -> None:
        self.types = types
        # InputWatermarks
        self.furthest: int | None = None
        """The greatest mark of one that is not closed; None where it is to be looked for."""
        # Watermarks
        self.front = max([one.front for one in types])
        """The greatest time of an event that has come; TIME_MIN before any."""
        self.beyond = TIME_MIN
        """Just beyond all that has come, or was promised, when that last moved closed types."""


class TypeProgress:
    """One type; marks are in microseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Watermarks
        self.front = TIME_MIN
        """The greatest time of an event that has come here; TIME_MIN before any."""
        self.coupled_types = CoupledTypes([self])
        """The types that bear on it, this one among them."""
        # InputWatermarks
        self.child_watermarks: list[ChildWatermark] = []
        """The children that forward the type, with what they have said."""
        self.own = TIME_MIN
        """The mark of the local sources."""
        self.told = UNSAID
        """The least that is said."""
        self.bound = UNSAID
        """No mark is beyond that."""
        self.mark = UNSAID
        """The mark that follows from both."""
        # TreeProgress
        self.given = UNSAID
        """The greatest mark of it that binds who comes later; it never goes back."""
        self.users: list[RulesRecord] = []
        """The rules here whose marks it bears on, through other rules here too."""
        self.defining: list[RulesRecord] = []
        """The rules here that define it."""
        self.here = UNSAID
        """The mark, the rules here included, as of now; where rules here define the type, when it
        was last asked for."""
        self.first = TIME_MAX
        """The least time of the first events that came here; TIME_MAX before any."""
        self.begun = TIME_MIN
        """The front when the plan that there is was begun with."""
        self.looked_at_from = TIME_MIN
        """The front from which on it is worth a look (skew)."""

    def forget(self) -> None:
        """Forget how far it has come."""
        self.front = self.begun = self.looked_at_from = TIME_MIN
        self.first = TIME_MAX
        self.given = UNSAID

    @property
    def is_closed(self) -> bool:
        """Whether nobody brings anything of it any more."""
        return self.mark == CLOSED


class RulesRecord:
    """Rules of one wiring that are evaluated here, by name, and the type that they define."""

    def __init__(self, rules: Sequence[str], wiring: Wiring, types: TypeRecords) -> None:
        self.rules, self.wiring = rules, wiring
        self.defined = types[wiring.defined]
        self.defined.defining.append(self)


class ChildWatermark:
    """A child that forwards a type, and the mark that it has said; what it said under the plan
    ``before`` counts on, but for an end.
    """

    def __init__(self, type_progress: TypeProgress, before: ChildWatermark | None) -> None:
        self.type_progress = type_progress
        self.mark = TIME_MIN
        self.heard_at = 0.0
        """When it has spoken last, in seconds."""
        if before is not None:
            self.mark = TIME_MIN if before.mark == CLOSED else before.mark
            self.heard_at = before.heard_at
        type_progress.child_watermarks.append(self)


class TypeRecords(dict[str, TypeProgress]):
    """The types of one evaluator, by name; the record of a type is made if need be."""

    def __missing__(self, name: str) -> TypeProgress:
        found = self[name] = TypeProgress(name)
        return found
