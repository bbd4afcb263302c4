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
from routing.errors import Refusal
from routing.messages import Advertise, Amended, Asked, Code, Known, Need, Needed
from routing.network.agreement.amending import amended, amendment
from routing.network.agreement.knowledge import knowledge_of, rules_of
from routing.network.brokers.broker import Broker
from routing.network.setup import Setup
from routing.network.tables.branch import Branch
from routing.serving.deployment import Deployed


class TellingBroker(Broker):
    """A Broker that tells others, and hears from them, what is known and wanted."""

    def __init__(self, setup: Setup) -> None:
        self._planned_for: tuple[str, int] | None = None
        """The tree for which the last plan was made."""
        self._hopeless: set[str] = set()
        """At the root: types that are given up."""
        self._adopted: dict[str, EventType] = {}
        """Elsewhere: the types that the root knows, by name, but for those that do not fit."""
        self._named = frozenset[str]()
        """The types that rules in force speak of."""
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

    def _need(self, need: Need) -> None:
        """Something is needed of the root."""
        raise NotImplementedError

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
        self._index()  # what the root knows is told with all that comes to it at about this time

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
                known = self._knowledge()
                self._known = self._known if known == self._known else known
            # Whoever has just joined may know what the root does not: it is introduced first.
            self._send_known(self._router.partners)
        answered, self._answered = self._answered, []
        for neighbour, message in answered:
            self.overlay.send(neighbour, message, self._now)

    def _send_known(
        self, to: Container[str] | None = None, heard: tuple[Known, Amended] | None = None
    ) -> None:
        """Tell children what is known, where it is news: the whole, if they were told nothing yet,
        else the difference. ``heard``: what was known before, and how that was amended.
        """
        self._send_flows()  # events first: their types may be known no more
        known = self._known
        for branch in self._router.children:
            before = branch.known
            if (to is not None and branch.neighbour not in to) or before is known:
                continue
            if before == known:
                continue
            branch.known = known
            if before is None:
                branch.amendments = 0
                self.overlay.send(branch.neighbour, known, self._now)
                continue
            if heard is None or heard[0] is not before:
                heard = before, amendment(before, known)
            branch.amendments += 1
            message = replace(heard[1], number=branch.amendments)
            self.overlay.send(branch.neighbour, message, self._now)

    def _hear_known(self, neighbour: str, known: Known) -> None:
        """Take over what the root knows, and tell it on."""
        if neighbour == self._router.father:
            self._learn_whole(known)
            self._router.branches[neighbour].amended = 0
            self._know_otherwise(None)

    def _hear_amended(self, neighbour: str, message: Amended) -> None:
        """The same, where only the difference is told."""
        if neighbour != self._router.father:
            return
        branch, before = self._router.branches[neighbour], self._known
        if branch.amended is None or message.number != branch.amended + 1:
            # What it amends was told while this broker was in another tree: all begins anew.
            self._need(Need(Needed.PLAN, (self.overlay.name,)))
            return
        known = amended(before, message)
        places, new = message.types
        gone = [before.types[place] for place in places]
        come = [known.types[place] for place, _ in new]
        names = {schema.name for schema in (*gone, *come)}
        if known.rules is before.rules and known.ended is before.ended and not names & self._named:
            self._learn_types(known, gone, come)
        else:
            self._learn_whole(known)
        branch.amended = message.number
        self._know_otherwise((before, message))

    def _learn_whole(self, known: Known) -> None:
        rules = rules_of(known)
        # By names, for there may be thousands of types, and most are the same objects as before.
        after = {one.name: one for one in known.types}
        gone = [one for one in self._adopted.values() if not _is_among(one, after)]
        come = [one for one in known.types if not _is_among(one, self._adopted)]
        self._learn_types(known, gone, come)
        self._deployments.adopt(rules, self._adopted, known.ended)
        self._named = frozenset(schema.name for one in rules for schema in one.mentions)

    def _learn_types(self, known: Known, gone: list[EventType], come: list[EventType]) -> None:
        """Know that: these types no more, but those as well, where they fit."""
        self._known = known
        leaving = [one for one in gone if _is_among(one, self._adopted)]
        fitting = [one for one in come if self._goes_with_own(one)]
        self._advertisements.exchange(leaving, fitting)
        for one in leaving:
            del self._adopted[one.name]
        self._adopted.update((one.name, one) for one in fitting)

    def _know_otherwise(self, heard: tuple[Known, Amended] | None) -> None:
        self._detection.give_up(self._known.given_up)
        self._check_interests()
        self._follow()
        self._send_known(heard=heard)

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
            self._lent, self._adopted = [*self._adopted.values()], {}
            self._hopeless = set(self._known.given_up)
        else:
            for visitor in self._visitors:
                self._sources.close(visitor)
                self._advertisements.withdraw(visitor, list(visitor.floors))
            self._visitors.clear()
            types = self._known.types
            self._advertisements.exchange([*rules, *self._lent], types)
            self._lent, self._adopted = [], {schema.name: schema for schema in types}
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
