"""State of rules whose memory no window bounds: what they have found, and by that consumed.

Law 1: what such a rule remembers is in what it has found. An event is consumed by a composite event
that it is a cause of, which is no earlier; and of a cycle of rules each sees what the others have
found. So from a *mark* on, up to which all of it is known, the rule finds what it would have found
had it been there from the beginning, if it has the events that its windows reach back to from
there, and what it, and the rules of its cycle, have found in that time. fire reaches 5 min and
consumes its Temps: from 40 s on it needs the Temps and Smokes from -260 s on, and its Fires from
-260 s to 40 s, whose causes it has consumed.

Law 2: the rules of a cycle go on from one mark, and so does whoever defines a type of it.

Law 3: composite events bear their place among those of their rule and instant, so that they may be
cut anywhere, and put together in any order.

Law 4: what has been found since states were told is noted, up to NOTED_MAX composite events. From
NOTED_MANY on a checkpoint is asked for, which tells states. While there is none, a broker being out
of reach say, sources of what such rules need get no more credit from NOTED_MAX on. b3 is out of
reach: fire, over Temps of b1, finds a million Fires; then sources of Temp wait until b3 is back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matcher.identity import RULE_SOURCE, event_key
from matcher.model import TIME_MAX, TIME_MIN, Causes, EventBatch, Int64s, UInt64s
from routing.deployment import Deployed
from routing.partition.composites import numbered
from routing.partition.derivation import reach_of
from rules.checking.graphs import components
from rules.engine.order.intervals import Intervals
from rules.pattern import Rule

NOTED_MANY, NOTED_MAX = 65_536, 1_000_000
"""Composite events (Law 4)."""
_PLACE_MASK = (1 << 40) - 1
"""The bits of a sequence number that are the place (routing.partition.composites)."""


@dataclass(frozen=True, slots=True)
class ResumedRule:
    """A rule that goes on from a mark, and what it has found before, as far as that matters."""

    mark: int
    found: Sequence[EventBatch]


class StateNotes:
    """Composite events of rules whose memory no window bounds, since their states were told."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        """By rule, from when on all that it found has been noted."""
        self.rules: Collection[str] = self._since.keys()
        """The rules whose composite events are noted."""
        self._found: dict[str, list[EventBatch]] = {}
        self._events = self._left = 0
        """Composite events that are noted, and that were when states were last told."""

    def follow(
        self, rules: Mapping[str, Deployed], new: Collection[str], engine: Intervals
    ) -> None:
        """Note what these rules find from now on, as far as no window bounds their memory. ``new``:
        those that have been evaluated nowhere yet, but for what their states say.
        """
        bounded = groups_of(one.rule for one in rules.values()).keys()
        for gone in self._since.keys() - bounded:
            del self._since[gone]
            self._events -= sum(map(len, self._found.pop(gone, ())))
        for name in bounded - self._since.keys():
            self._since[name] = TIME_MIN if name in new else engine.mark(name)

    def __len__(self) -> int:
        """How many composite events are noted."""
        return self._events

    @property
    def are_many(self) -> bool:
        """Whether it is time to tell states (Law 4), beyond as many as were left the last time."""
        return self._events - self._left >= min(max(NOTED_MANY, self._left), NOTED_MAX // 2)

    @property
    def are_full(self) -> bool:
        """Whether nothing more should be found before states are told (Law 4)."""
        return self._events - self._left >= NOTED_MAX

    def settle(self) -> None:
        """States have been told, as far as they can be."""
        self._left = self._events

    def take(self, batch: EventBatch) -> None:
        """Take note of what an advance has found."""
        if not self._since:
            return
        source = batch.ids.source
        for code, name in enumerate(source.values):
            rule = name.removeprefix(RULE_SOURCE)
            if rule in self._since:
                places = np.flatnonzero(source.codes == code)
                if len(places):
                    self._found.setdefault(rule, []).append(placed(batch.take(places)))
                    self._events += len(places)

    def are_whole_from(self, rule: str, time: int) -> bool:
        """Whether all has been noted that a rule has found from a time on."""
        return self._since.get(rule, TIME_MAX) <= time

    def take_until(self, rule: str, mark: int) -> list[EventBatch]:
        """Give what a rule has found before a mark, once."""
        found = self._found.pop(rule, [])
        masks = [one.time < mark for one in found]
        later = [one.take(~mask) for one, mask in zip(found, masks, strict=True) if not mask.all()]
        if later:
            self._found[rule] = later
        self._events += sum(map(len, later)) - sum(map(len, found))
        return [one.take(mask) for one, mask in zip(found, masks, strict=True) if mask.any()]


def groups_of(rules: Iterable[Rule]) -> Mapping[str, frozenset[str]]:
    """By the name of each rule whose memory no window bounds, the rules that go on with it from one
    mark (Law 2).
    """
    known = tuple(rules)
    graph: dict[str, set[str]] = {}
    for defined, used, _ in dict.fromkeys([rule.wiring for rule in known]):
        for name in used:
            graph.setdefault(name, set()).add(defined)
        graph.setdefault(defined, set())
    found = {rule.name: frozenset((rule.name,)) for rule in known if rule.consuming}
    ordered = {name: sorted(above) for name, above in graph.items()}
    for types in components(ordered):
        if len(types) > 1 or any(name in graph[name] for name in types):
            cycle = frozenset(rule.name for rule in known if rule.defines.name in types)
            found.update(dict.fromkeys(cycle, cycle))
    return found


def resume(engine: Intervals, rule: Rule, state: ResumedRule, rank: int | None) -> None:
    """Let an engine that has just been given a rule go on with it (Law 1). ``rank``: the place of
    the rule's composite events among those of all rules (E4); None where no rule uses them.
    """
    found = [one for one in state.found if one.type == rule.defines]
    over = state.mark + reach_of(rule)
    engine.resume(rule.name, state.mark, consumed_by(rule, found), over)
    for batch in found if rank is not None else ():
        engine.push(ranked(batch, rank or 0))


def placed(batch: EventBatch) -> EventBatch:
    """Composite events that one rule has found in one ``advance``, with their places (Law 3)."""
    return numbered(batch, {})


def ranked(batch: EventBatch, rank: int) -> EventBatch:
    """Composite events of one rule, as an engine takes them in that has not found them."""
    ids = batch.ids
    sequence = (ids.sequence & _PLACE_MASK) | (rank << 40)
    return batch.with_ids(replace(ids, sequence=sequence))


def consumed_by(rule: Rule, found: Sequence[EventBatch]) -> UInt64s:
    """The keys of the events that a rule has consumed by what it has found, uint64[n, 2]."""
    keys = [np.empty((0, 2), np.uint64)]
    for causes in [one.causes for one in found if one.causes is not None and rule.consuming]:
        places = np.arange(causes.offsets[0], causes.offsets[-1])
        numbers = places - np.repeat(causes.offsets[:-1], np.diff(causes.offsets))
        of_runs = numbers >= len(rule.event_names)  # these stand behind all others (section 4)
        keys.append(_keys_at(causes, places[np.isin(numbers, rule.consuming) | of_runs]))
    return np.concatenate(keys)


def _keys_at(causes: Causes, places: Int64s) -> UInt64s:
    """The keys of some causes, uint64[n, 2]."""
    ids, keys = causes.ids.take(places), np.empty((len(places), 2), np.uint64)
    texts = list(map(str, ids.sequence.tolist()))
    for place, (source, text) in enumerate(zip(ids.source.tolist(), texts, strict=True)):
        if ids.digest is not None and causes.is_digest[places[place]]:
            keys[place] = ids.digest[place]
        elif ids.text is not None and causes.has_text[places[place]]:
            keys[place] = event_key(source, ids.text[place])
        else:
            keys[place] = event_key(source, text)
    return keys
