"""Types, rules and events of one node, as its clients and its status ask after them.

It is asked of the whole broker, in however many trees that evaluates rules
(routing.network.evaluation.divided).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matcher.model import MICROSECONDS, EventBatch, EventType
from routing.config import NodeConfig
from routing.deployment import Deployed, Deployments
from routing.serving.accounts import Accounts
from routing.serving.advertisements import Advertisements
from routing.serving.sources import Source
from rules.engine.engine import Detections, Detector, Placement, kept_by_all
from rules.engine.order.intervals import Intervals
from rules.pattern import TIMER, RuleSet


@dataclass(frozen=True, slots=True)
class Basis:
    """The tables that an Evaluator works with, and the callbacks that it tells."""

    config: NodeConfig
    engine: Detector
    advertisements: Advertisements
    deployments: Deployments
    accounts: Accounts
    on_types: Callable[[], None]
    """Called when types have become known or were forgotten."""
    on_rules: Callable[[], None]
    """Called when rules have."""


class Evaluator(ABC):
    """Owner of one node's engine, or of several that are made of it."""

    def __init__(self, basis: Basis) -> None:
        self._config = basis.config
        self.engine = Intervals(basis.engine)
        """The engine that all here are made of, which says what has happened in any (intervals,
        Law 4)."""
        self._advertisements = basis.advertisements
        self._deployments = basis.deployments
        self._accounts = basis.accounts
        self._on_types = basis.on_types

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self._config = config

    @property
    def ticks(self) -> bool:
        """Whether a rule needs ``Timer`` and the clock drives it."""
        return self._deployments.need_clock and self._config.wall_clock

    def time(self, now: float) -> int | None:
        """The mark of Timer, just beyond the last whole second, for nothing ticks between two of
        them; None where the clock does not count.
        """
        if not self.ticks:
            return None
        return math.floor(now - self._config.timer_slack_s) * MICROSECONDS + 1

    def is_absent(self, name: str) -> bool:
        """Whether rules wait for a first advertiser of the type."""
        known = self._advertisements.find(name)
        if known is None:
            return name != TIMER.name
        return not (known.was_advertised or known.given_up)

    def is_given_up(self, name: str) -> bool:
        """Whether rules go on without a first advertiser of the type."""
        known = self._advertisements.find(name)
        return known is not None and known.given_up and not known.was_advertised

    @abstractmethod
    def placement(self, name: str) -> Placement | None:
        """Where a rule is evaluated here, if it is, and several places are known."""

    @property
    @abstractmethod
    def engines(self) -> Sequence[Intervals]:
        """The engines that evaluate here."""

    @property
    def duplicates(self) -> int:
        """Events that engines dropped as repeats (E1)."""
        return sum(engine.duplicates for engine in self.engines)

    @property
    def memory(self) -> Mapping[str, int]:
        """How much the engines keep, by name."""
        return kept_by_all(engine.memory() for engine in self.engines)

    @property
    def costs(self) -> Mapping[str, int]:
        """How long each rule was evaluated, in units that are alike for all, where it is known."""
        return {name: cost for one in self.engines for name, cost in one.costs().items()}

    @property
    def footprints(self) -> Mapping[str, int]:
        """How many bytes each rule takes, in all engines that evaluate it, where that is known."""
        return kept_by_all(engine.footprints() for engine in self.engines)

    @property
    def parts(self) -> Sequence[int]:
        """How many rules each part of an engine evaluates; parts may be evaluated at once."""
        counts = ([len(names) for names in engine.parts] for engine in self.engines)
        return [sum(part) for part in zip(*counts, strict=True)]

    # --- what it has found ---

    @abstractmethod
    def reached(self, rule: str) -> int:
        """A rule's mark: its composite events before it have been detected, and have come here."""

    @property
    @abstractmethod
    def given(self) -> Mapping[str, int]:
        """The marks of types that the engine was given, which never go back."""

    @abstractmethod
    def complete_to(self, rules: Sequence[Deployed]) -> int:
        """Up to where the composite events of all these rules are complete: nothing earlier will
        come. CLOSED for no rule.
        """

    # --- sources ---

    def advertise(self, source: Source, types: Sequence[EventType]) -> None:
        """Take checked advertisements over."""
        names = [schema.name for schema in types]
        floors, absent = self.floors(names), list(filter(self.is_absent, names))
        for schema in types:
            self._advertisements.advertise(source, schema, floors[schema.name])
        if any(self._advertisements[name].mentions for name in absent):
            self.follow_types()  # a defined type may be published from now on (S12)
        self.touch(source.floors)
        self._on_types()

    def follow_types(self) -> None:
        """Work out anew what each rule needs: types are published that were not before."""
        self._deployments.rearrange(self._advertisements.published)

    @abstractmethod
    def floors(self, names: Iterable[str]) -> Mapping[str, int]:
        """Up to where types were evaluated: what is earlier, and comes now, is late."""

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more."""
        self.touch(names)
        if self._advertisements.withdraw(source, names):
            self._on_types()

    def resume(self, source: Source) -> None:
        """A source is back."""
        self.touch(source.floors)

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        if source.keep_promise(mark, now):
            self.touch(source.floors)

    @abstractmethod
    def touch(self, names: Iterable[str]) -> None:
        """A source may say something else of these types than before."""

    @abstractmethod
    def push(self, batches: Sequence[EventBatch], horizon: int) -> None:
        """Take in published events. ``horizon``: when times begin that are ahead of the clock."""

    # --- changes of rules (routing.serving.changes) ---

    @abstractmethod
    def front_of(self, name: str) -> int | None:
        """The greatest time of a type's published events; None if there were none."""

    @abstractmethod
    def evaluated_to(self, name: str) -> int:
        """Up to where a type was promised, or rules that use it evaluated; TIME_MIN for nowhere."""

    @abstractmethod
    def mark_at_end(self, rule: str) -> int:
        """The mark of a rule that is to end."""

    @abstractmethod
    def over(self, ends: Mapping[Deployed, int]) -> Collection[Deployed]:
        """The rules of which nothing is to be known any more if they hold up to these instants."""

    @abstractmethod
    def check_reach(self, rules: RuleSet, ending: Sequence[Deployed]) -> None:
        """Raise Refusal where it cannot be known how far what these need has come."""

    @abstractmethod
    def check_past(self, rules: RuleSet, needs: Collection[str], since: int) -> None:
        """Raise Refusal where not all events of these types are kept that new rules since then
        need.
        """

    @abstractmethod
    def follow_rules(self, gone: Collection[str], added: Sequence[Deployed]) -> None:
        """There are other rules: some are no more, and some have been added."""

    # --- after every input ---

    @abstractmethod
    def advance(self, now: float) -> Detections | None:
        """Evaluate what the marks allow; None when no mark has changed."""
