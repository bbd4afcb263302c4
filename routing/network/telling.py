"""What is told in a network: what the root knows, to all, and what each broker wants.

Law 1: what the root knows is told on from father to child, and every broker takes it over. So each
of them can be the next root: what it was told is what it knows then.

Law 2: it is told while there is a plan for the tree as it is. Before that the root may have more to
learn, from parts of the network that were apart (knowledge); what it learns of types that nobody
here mentions is lent: known until the next plan, when those who publish them have been heard; and
so is what events are of that are held here, whose sources may have closed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from matcher.model import TIME_MIN, EventType
from routing.deployment import Deployed
from routing.errors import Refusal
from routing.messages import (
    Advertise,
    Asked,
    Code,
    Known,
)
from routing.network.branch import Branch
from routing.network.broker import Broker
from routing.network.knowledge import knowledge_of, rules_of
from routing.network.setup import Setup


class TellingBroker(Broker):
    """A Broker that tells others, and hears from them, what is known and wanted."""

    def __init__(self, setup: Setup) -> None:
        self._planned_for: tuple[str, int] | None = None
        """The tree for which the last plan was made."""
        self._hopeless: set[str] = set()
        """At the root: types that are given up."""
        self._lent: list[EventType] = []
        """At the root: types that are lent (Law 2)."""
        self._wanted_by_father: tuple[Branch, int] | None = None
        """What of the father's wants the station was told of last."""
        super().__init__(setup)

    @property
    def _is_planned(self) -> bool:
        """Whether the last plan is for the tree as it is."""
        return self._planned_for is not None and self._planned_for == self._router.epoch

    def _knowledge(self) -> Known:
        """At the root: what there is to know."""
        homes = dict(self._known.homes)
        return knowledge_of(self._advertisements, self._deployments, homes, self._hopeless)

    # --- what is known and wanted ---

    def _index(self) -> None:
        """Types, rules, subscriptions or neighbours have changed."""
        defining: dict[str, list[Deployed]] = {}
        for one in self._deployments.rules:
            defining.setdefault(one.rule.defines.name, []).append(one)
        self._router.index(self._advertisements.schemas, defining)
        father = self._router.branches.get(self._router.father or "")
        version = None if father is None else (father, father.wanted_version)
        if father is None:
            self._detection.station.want({}, {})
        elif version != self._wanted_by_father:
            self._detection.station.want(father.predicates, father.demands)
        self._wanted_by_father = version

    def _know(self) -> None:
        self._index()
        if not self._answered:
            self._tell_known()

    def _tell(self) -> None:
        """Tell what is wanted, and what was answered."""
        self._tell_at = None
        self._detection.tell_marks()
        self._tell_wants(None)
        if self._is_planned:
            self._confirm(self._confirmations.take_done())
        self._tell_known()
        self._send_flows()

    def _tell_wants(self, to: Sequence[str] | None) -> None:
        for branch, want in self._router.wants(self._own_filters, to):
            branch.told_number = self._confirmations.next_number(branch.neighbour)
            numbered = replace(want, number=branch.told_number)
            self.overlay.send(branch.neighbour, numbered, self._now)

    @property
    def _own_filters(self) -> Sequence[str]:
        """What this broker's sinks want of the single tree."""
        return [one.text for sink in self._sinks for one in sink.interests]

    def _tell_known(self) -> None:
        """What the root knows is told while there is a plan; before, it may have more to learn."""
        if self._is_planned:
            if self._router.is_root:
                self._known = self._knowledge()
            # Whoever has just joined may know what the root does not: it is introduced first.
            self._send_known(self._router.partners)
        answered, self._answered = self._answered, []
        for neighbour, message in answered:
            self.overlay.send(neighbour, message, self._now)

    def _send_known(self, to: Container[str] | None = None) -> None:
        self._send_flows()  # events first: their types may be known no more
        for branch in self._router.children:
            if to is not None and branch.neighbour not in to:
                continue
            if branch.known is not self._known and branch.known != self._known:
                branch.known = self._known
                self.overlay.send(branch.neighbour, self._known, self._now)

    def _hear_known(self, neighbour: str, known: Known) -> None:
        """Take over what the root knows, and tell it on."""
        if neighbour != self._router.father:
            return
        rules = rules_of(known)
        # By names, for there may be thousands of types, and most are the same objects as before.
        before = {one.name: one for one in self._adopted}
        types = [one for one in known.types if _is_among(one, before) or self._goes_with_own(one)]
        after = {one.name: one for one in types}
        self._known = known
        self._advertisements.exchange(
            [one for one in self._adopted if not _is_among(one, after)],
            [one for one in types if not _is_among(one, before)],
        )
        self._adopted = tuple(types)
        self._deployments.adopt(rules, [schema.name for schema in types], known.ended)
        self._detection.give_up(known.given_up)
        self._check_interests()
        self._follow()
        self._send_known()

    def _goes_with_own(self, schema: EventType) -> bool:
        """Whether no local source publishes the type with another schema (a part of the network
        that was out of reach may know one).
        """
        own = self._advertisements.find(schema.name)
        fits = own is None or own.schema == schema or not own.advertisers
        if not fits:
            self._log("error", "sources publish a type with two schemas", type=schema.name)
        return fits

    def _adopt(self, known: Known) -> None:
        """At the root: know this."""
        rules = rules_of(known)
        before = [schema for one in self._deployments.rules for schema in one.mentions]
        after = [schema for one in rules for schema in one.mentions]
        schemas = self._advertisements.schemas
        lent = [one for one in known.types if schemas.get(one.name, one) == one]
        self._advertisements.exchange(before, [*after, *lent])
        self._lent += lent
        self._deployments.adopt(rules, [schema.name for schema in known.types], known.ended)
        self._hopeless = set(known.given_up)
        self._check_interests()

    def _lend(self, held: Iterable[EventType]) -> None:
        """At the root: events of these types wait here, of sources that may have closed."""
        schemas = self._advertisements.schemas
        types = [one for one in held if schemas.get(one.name, one) == one]
        self._advertisements.exchange((), types)
        self._lent += types

    def _change_role(self) -> None:
        """The broker is the root from now on, or no longer; what it knows stays known."""
        rules = [schema for one in self._deployments.rules for schema in one.mentions]
        if self._router.is_root:
            self._advertisements.exchange((), rules)
            self._lent, self._adopted = [*self._adopted], ()
            self._hopeless = set(self._known.given_up)
        else:
            for visitor in self._visitors:
                self._sources.close(visitor)
                self._advertisements.withdraw(visitor, list(visitor.floors))
            self._visitors.clear()
            types = self._known.types
            self._advertisements.exchange([*rules, *self._lent], types)
            self._lent, self._adopted = [], types
        self._check_interests()

    def _introduce(self, name: str, home: str, types: tuple[EventType, ...]) -> None:
        """At the root: a source at another broker publishes; Refusal when its name is taken."""
        if self._links.named(name) is not None:
            raise Refusal(Code.NAME_TAKEN, f"a client here and one of {home} are named {name!r}")
        link = self._visitors.admit(Asked((home,), 0, name, Advertise(0, types)), self._now)
        source = self._source_of(link)
        for schema in types:
            self._advertisements.advertise(source, schema, TIME_MIN)


def _is_among(schema: EventType, known: Mapping[str, EventType]) -> bool:
    same = known.get(schema.name)
    return same is schema or same == schema
