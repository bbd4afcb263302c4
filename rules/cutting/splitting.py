"""How a recording can be cut so that rules over the pieces find what they find over the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rules.cutting.keys import Key, found_keys
from rules.cutting.reach import reach_through
from rules.pattern import Rule, RuleSet

KEY, TIME, WHOLE = "key", "time", "whole"
WAYS = (KEY, TIME)
"""The ways to cut, the better first; what cannot be cut is left whole."""


@dataclass(frozen=True, slots=True)
class ByKey:
    """``attributes``: by type, the number of the attribute that holds the key.

    Every event that a rule reads, itself or through the rules below it, bears the rule's key in one
    attribute of its type (:mod:`keys`). Pieces are the events whose keys fall together: nothing
    that one key's events do is seen by another's, consumption and recursion included.
    """

    attributes: Key

    def place(self, type_name: str) -> int:
        """The number of the attribute of a type; KeyError for a type that has no part in it."""
        return dict(self.attributes)[type_name]


@dataclass(frozen=True, slots=True)
class ByTime:
    """``reach``: how many microseconds before a slice its events begin. A slice needs its events
    and those of the rule's reach before it; each composite event is found in the slice that its
    time lies in. Consumption and recursion cannot be cut so: they remember for ever.
    """

    reach: int


@dataclass(frozen=True, slots=True)
class Whole:
    """``reason``: why the events must stay together."""

    reason: str


Way: TypeAlias = ByKey | ByTime | Whole


@dataclass(frozen=True, slots=True)
class Pass:
    """Rules over one cut of the events.

    ``rules`` are those that run, in the order of the file; ``owned`` are the names of those whose
    composite events are wanted from it, the others being below them. ``reach`` is how far back they
    all look, None where nothing bounds it; slices of time can be cut where it is known, within keys
    too. A piece runs the rules below a rule too; of what they find there only that counts for which
    the piece is the right one. So every rule is *owned* by one pass, and rules that are cut alike
    share a pass.
    """

    rules: RuleSet
    owned: frozenset[str]
    way: Way
    reach: int | None

    @property
    def used_types(self) -> frozenset[str]:
        """The types whose events it needs, those that rules define included."""
        return frozenset(type_.name for rule in self.rules.rules for type_ in rule.used_types)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict about one rule: how it is cut, and why not better."""

    rule: str
    way: Way
    reason: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Splitting:
    """The passes over the events, and the verdict on each rule in the order of the file."""

    passes: tuple[Pass, ...]
    verdicts: tuple[Verdict, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.verdicts))


def split(rules: RuleSet, ways: Sequence[str] = WAYS, attribute: str | None = None) -> Splitting:
    """How to cut recordings for ``rules``: each rule in the first of ``ways`` that it allows.

    With ``attribute``, a key is that attribute in every type. Raises ValueError for a way that is
    none, and for rules of which the attribute is no key.
    """
    for way in ways:
        if way not in (KEY, TIME, WHOLE):
            raise ValueError(f"{way!r} is no way to cut events; there are {KEY}, {TIME}, {WHOLE}")
    defining = _defining(rules.rules)
    candidates = [_Candidate.of(rule, defining, attribute) for rule in rules.rules]
    if attribute is not None:
        _refuse_without_key(candidates, attribute)
    chosen = [one.first_of(ways) for one in candidates]
    keyed = [one for one, way in zip(candidates, chosen, strict=True) if way == KEY]
    keys = _shared_keys(keyed)
    verdicts, groups = [], dict[ByKey | str, list[_Candidate]]()
    for one, way in zip(candidates, chosen, strict=True):
        group: ByKey | str = ByKey(keys[one.rule.name]) if way == KEY else way
        groups.setdefault(group, []).append(one)
    passes = tuple(_pass(rules, group, members) for group, members in groups.items())
    way_of = {name: part.way for part in passes for name in part.owned}
    for one in candidates:
        verdicts.append(one.verdict(way_of[one.rule.name], defining))
    return Splitting(passes, tuple(verdicts))


# --- one rule ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A rule with those below it, the keys that they have and how far back they look."""

    rule: Rule
    closure: tuple[Rule, ...]
    keys: tuple[Key, ...]
    no_key: str
    reach: int | None

    @classmethod
    def of(
        cls, rule: Rule, defining: Mapping[str, Sequence[Rule]], attribute: str | None
    ) -> _Candidate:
        closure = _closure(rule, defining)
        keys, reason = found_keys(rule, closure)
        if attribute is not None:
            keys = tuple(key for key in keys if _is_of(key, closure, attribute))
        return cls(rule, closure, keys, reason, reach_through(rule, defining))

    def first_of(self, ways: Sequence[str]) -> str:
        """The first way that the rule allows, or whole."""
        for way in ways:
            if (way == KEY and self.keys) or (way == TIME and self.reach is not None):
                return way
            if way == WHOLE:
                break
        return WHOLE

    @property
    def unbounded(self) -> str:
        """Why no reach bounds it."""
        consuming = [one.name for one in self.closure if one.consuming]
        if self.rule.consuming:
            return "it consumes events"
        if consuming:
            return f"{consuming[0]}, below it, consumes events"
        return "it depends on itself"

    def verdict(self, way: Way, defining: Mapping[str, Sequence[Rule]]) -> Verdict:
        """The way in a sentence."""
        match way:
            case ByKey():
                used = {type_.name for one in self.closure for type_ in one.used_types}
                types = {type_.name: type_ for one in self.closure for type_ in one.used_types} | {
                    name: rules[0].defines for name, rules in defining.items()
                }
                named = [
                    f"{name}.{types[name].names[place]}"
                    for name, place in way.attributes
                    if name in used
                ]
                return Verdict(self.rule.name, way, f"by key, {' = '.join(named)}")
            case ByTime():
                assert self.reach is not None
                return Verdict(
                    self.rule.name,
                    way,
                    f"by time, in slices that overlap by {self.reach / 1e6:g} s"
                    + (f" ({self.no_key})" if not self.keys else ""),
                )
            case Whole():
                if self.keys:
                    reason = "in one piece, as was asked for"
                elif self.reach is None:
                    reason = f"in one piece, for {self.unbounded} and {self.no_key}"
                else:
                    reason = f"in one piece, for {self.no_key}"
                return Verdict(self.rule.name, replace(way, reason=reason), reason)


def _refuse_without_key(candidates: Sequence[_Candidate], attribute: str) -> None:
    for one in candidates:
        if not one.keys:
            raise ValueError(
                f"{attribute} is no key of rule {one.rule.name}: every event that the rule reads, "
                f"and every one below it, must be bound to one value of its attribute {attribute}"
                + (f" ({one.no_key})" if one.no_key else "")
            )


def _is_of(key: Key, closure: Sequence[Rule], attribute: str) -> bool:
    types = {type_.name: type_ for one in closure for type_ in (*one.used_types, one.defines)}
    return all(types[name].names[place] == attribute for name, place in key)


def _defining(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """The rules by the type that they define."""
    defining: dict[str, list[Rule]] = {}
    for rule in rules:
        defining.setdefault(rule.defines.name, []).append(rule)
    return defining


def _closure(rule: Rule, defining: Mapping[str, Sequence[Rule]]) -> tuple[Rule, ...]:
    """The rule and all those below it, itself first."""
    found, waiting = {rule.name: rule}, [rule]
    while waiting:
        for type_ in waiting.pop().used_types:
            for below in defining.get(type_.name, ()):
                if below.name not in found:
                    found[below.name] = below
                    waiting.append(below)
    return tuple(found.values())


# --- rules together ----------------------------------------------------------------------------


def _shared_keys(keyed: Sequence[_Candidate]) -> dict[str, Key]:
    """A key for each rule by name, chosen so that few passes serve all of them.

    Two keys go together when they name the same attribute of each type that both speak of. The
    key that the most rules can join is taken first.
    """
    chosen: dict[str, Key] = {}
    left = list(keyed)
    while left:
        joined: tuple[Key, list[_Candidate]] = ((), [])
        for start in dict.fromkeys(key for one in left for key in one.keys):
            grown = _grown(start, left)
            if len(grown[1]) > len(joined[1]):
                joined = grown
        key, members = joined
        chosen.update((one.rule.name, key) for one in members)
        left = [one for one in left if one.rule.name not in chosen]
    return chosen


def _grown(key: Key, candidates: Sequence[_Candidate]) -> tuple[Key, list[_Candidate]]:
    """A key with the types of every rule that can join it, and those rules."""
    places = dict(key)
    members = []
    for one in candidates:
        for own in one.keys:
            if all(places.get(name, place) == place for name, place in own):
                places.update(own)
                members.append(one)
                break
    return tuple(sorted(places.items())), members


def _pass(rules: RuleSet, group: ByKey | str, members: Sequence[_Candidate]) -> Pass:
    needed = {rule.name for one in members for rule in one.closure}
    running = tuple(rule for rule in rules.rules if rule.name in needed)
    reaches = [one.reach for one in members]
    known = [reach for reach in reaches if reach is not None]
    reach = max(known, default=0) if known == reaches else None
    way: Way
    if isinstance(group, ByKey):
        way = group
    elif group == TIME:
        assert reach is not None
        way = ByTime(reach)
    else:
        way = Whole("")
    owned = frozenset(one.rule.name for one in members)
    return Pass(replace(rules, rules=running), owned, way, reach)
