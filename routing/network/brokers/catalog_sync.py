"""The root's catalog of types and rules, and how all others come to know it.

Law 1: what the root knows is told on from father to child, and every broker takes it over. So each
of them can be the next root: what it was told is what it knows then. b1 fails, and b2 is the root:
the rules that it was told are those that there are.

Law 2: it is told while there is a plan for the tree as it is, to who is in that plan. Before that
the root may have more to learn, from parts of the network that were apart (agreement.catalog), and
they would take over what it knows in place of that. What it learns of types that nobody here
mentions is borrowed: known until the next plan, when those who publish them have been heard; and so
is what events are of that are held here, whose sources may have closed. b3 comes back and knows
Temp, which nobody mentions: Temp is known until the next plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import is_

from matcher.model import EventType
from routing.deployment import Deployed
from routing.errors import ProtocolError
from routing.messages import Catalog, CatalogDelta, RuleFacts, Stays
from routing.network.agreement.catalog import catalog_of, merged, rules_of
from routing.network.agreement.catalog_delta import delta_between, with_delta
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.update_timer import UpdateTimer
from routing.serving.known_rules import load_ahead
from routing.serving.slices import rest_of_slice
from rules.errors import RuleErrors
from rules.pattern import Rule


class CatalogSync:
    """Tells what is known and learns it: at the root from all, elsewhere from the father."""

    def __init__(
        self, context: BrokerContext, agreed: Agreed, timer: UpdateTimer, registry: SourceRegistry
    ) -> None:
        self._context = context
        self._agreed = agreed
        self._timer = timer
        self._registry = registry
        self._router = context.router
        self._advertisements = context.advertisements
        self._deployments = context.deployments
        self._adopted: dict[str, EventType] = {}
        """The types that are known by the word of others, by name: at the root those that are
        borrowed (Law 2), elsewhere those that the root knows, but for those that do not fit."""
        self._named = frozenset[str]()
        """The types that rules in force speak of."""
        self._reigns = False
        """Whether this broker was the root when it last looked."""
        self._made_of: tuple[object, object] = None, None
        """The types and rules of the catalog that the root has made last; others replace both."""
        self._loaded: list[Rule] = []
        """Rules that were loaded for what is about to be heard."""

    @property
    def borrowed(self) -> frozenset[str]:
        """At the root: the types that are borrowed (Law 2)."""
        return frozenset(self._adopted if self._reigns else ())

    # --- what is told ---

    def tell(self) -> None:
        """At the root: tell what is known now. Elsewhere: tell those who have not heard it yet."""
        if not self._agreed.is_planned:
            return
        made_of = self._advertisements.schemas, self._deployments.rules
        if self._router.is_root and not all(map(is_, made_of, self._made_of)):
            catalog = self._catalog(dict(self._agreed.catalog.homes), self._agreed.catalog.closed)
            if catalog != self._agreed.catalog:
                self._agreed.catalog = catalog
        self.pass_on()

    def pass_on(self, heard: tuple[Catalog, CatalogDelta] | None = None) -> None:
        """Tell children what is known, where it is news: the whole, if they were told nothing yet,
        else the difference. ``heard``: what was known before, and how that was amended.
        """
        context = self._context
        context.send_flows()  # events first: their types may be known no more
        self._tell_stays()
        said = None if heard is None else (heard[0], self._agreed.catalog, heard[1])
        for branch in self._router.children:
            before, catalog = branch.catalog, self._agreed.catalog
            if not branch.has_joined or before is catalog or before == catalog:
                continue
            branch.catalog = catalog
            if before is None:
                context.send(branch.neighbour, catalog)
                continue
            if said is None or said[0] is not before or said[1] is not catalog:
                said = before, catalog, delta_between(before, catalog)  # mostly the same for all
            context.send(branch.neighbour, said[2])

    def _tell_stays(self) -> None:
        """Tell children the accounts of sources that are news, or all to who was told nothing."""
        news, accounts = self._context.accounts.take_news(), self._context.accounts
        for branch in self._router.children:
            stays = news if branch.catalog is not None else tuple(accounts)
            for part in Stays.in_parts(stays) if branch.has_joined else ():
                self._context.send(branch.neighbour, part)

    def hear_stays(self, neighbour: str, message: Stays) -> None:
        """The root tells accounts of sources; brokers below, of those that have closed."""
        if neighbour == self._router.father:
            self._registry.learn(message.stays)
            self._tell_stays()
            return
        self._context.service.settle()  # events of theirs first
        if self._router.is_root:
            self._registry.hear_closed(message.stays)
        elif self._router.father is not None:
            self._context.send(self._router.father, message)

    def _catalog(self, homes: Mapping[str, Iterable[str]], closed: Iterable[str]) -> Catalog:
        self._made_of = self._advertisements.schemas, self._deployments.rules
        return catalog_of(self._advertisements, self._deployments, homes, closed)

    # --- what is heard ---

    def prepare_catalog(self, neighbour: str, catalog: Catalog) -> Iterator[None]:
        """Load the rules of a catalog before it is heard; yields behind each."""
        if neighbour == self._router.father:
            yield from self._load_ahead(catalog.types, catalog.rules)

    def prepare_delta(self, neighbour: str, message: CatalogDelta) -> Iterator[None]:
        """The same, of the rules that are new."""
        _, new = message.rules
        if new and self._is_told_by(neighbour):
            try:
                types = with_delta(self._agreed.catalog, message).types
            except ProtocolError:
                return  # it is heard, and left out
            yield from self._load_ahead(types, [facts for _, facts in new])

    def _load_ahead(self, types: Iterable[EventType], rules: Sequence[RuleFacts]) -> Iterator[None]:
        self._loaded = []
        try:
            for rule in load_ahead(types, rules):
                self._loaded.append(rule)
                yield
            yield from rest_of_slice(len(rules) + len(self._agreed.catalog.rules))
        except RuleErrors:
            return  # it is heard, and left out

    def _is_told_by(self, neighbour: str) -> bool:
        """Whether a neighbour is the father, and has told the whole catalog in this tree."""
        branches = self._router.branches
        return neighbour == self._router.father and branches[neighbour].has_told_catalog

    def hear_catalog(self, neighbour: str, catalog: Catalog) -> None:
        """Take over what the root knows, and tell it on."""
        if neighbour == self._router.father:
            self._context.service.settle()  # what has come is delivered while its rules are known
            self._learn_whole(catalog)
            self._router.branches[neighbour].has_told_catalog = True
            self._follow(None)

    def hear_delta(self, neighbour: str, message: CatalogDelta) -> None:
        """The same, where only the difference is told; not what was told while this broker was in
        another tree, for it is about to be introduced, and told all.
        """
        if not self._is_told_by(neighbour):
            return
        before = self._agreed.catalog
        catalog = with_delta(before, message)
        self._context.service.settle()  # as in hear_catalog
        places, new = message.types
        gone = [before.types[place] for place in places]
        come = [catalog.types[place] for place, _ in new]
        names = {schema.name for schema in (*gone, *come)}
        if (
            catalog.rules is before.rules
            and catalog.ended is before.ended
            and not names & self._named
        ):
            self._learn_types(catalog, gone, come)
        else:
            self._learn_whole(catalog)
        self._follow((before, message))

    def _learn_whole(self, catalog: Catalog) -> None:
        rules = rules_of(catalog)
        # By names, for there may be thousands of types, and most are the same objects as before.
        after = {one.name: one for one in catalog.types}
        gone = [one for one in self._adopted.values() if not _is_among(one, after)]
        come = [one for one in catalog.types if not _is_among(one, self._adopted)]
        self._learn_types(catalog, gone, come)
        self._follow_rules(rules, self._adopted, catalog)
        self._loaded = []
        wirings = {one.rule.wiring for one in rules}
        self._named = frozenset[str]().union(*({one.defined, *one.used} for one in wirings))

    def _follow_rules(
        self, rules: Sequence[Deployed], published: Iterable[str], catalog: Catalog
    ) -> None:
        gone = self._deployments.adopt(rules, published, catalog.ended)
        self._context.detection.forget(gone)

    def _learn_types(self, catalog: Catalog, gone: list[EventType], come: list[EventType]) -> None:
        """Know that: these types no more, but those as well, where they fit."""
        self._agreed.catalog = catalog
        leaving = [one for one in gone if _is_among(one, self._adopted)]
        fitting = [one for one in come if self._goes_with_own(one)]
        self._advertisements.exchange(leaving, fitting)
        for one in leaving:
            del self._adopted[one.name]
        self._adopted.update((one.name, one) for one in fitting)

    def _follow(self, heard: tuple[Catalog, CatalogDelta] | None) -> None:
        context = self._context
        context.service.check_interests()
        context.service.follow()
        self.pass_on(heard)

    def _goes_with_own(self, schema: EventType) -> bool:
        """Whether no local source publishes the type with another schema (a part of the network
        that was out of reach may know one).
        """
        own = self._advertisements.find(schema.name)
        fits = own is None or own.schema == schema or not own.advertisers
        if not fits:
            text = "sources publish a type with two schemas"
            self._context.outlet.log("error", text, type=schema.name)
        return fits

    def recall(self, catalog: Catalog) -> None:
        """Know what this broker knew before a restart, as if a father had told it."""
        self._learn_whole(catalog)

    # --- at the root ---

    def learn(self, catalogs: Sequence[Catalog]) -> None:
        """Other brokers know this."""
        if catalogs:
            known_homes = dict(self._agreed.catalog.homes)
            own = self._catalog(known_homes, self._agreed.catalog.closed)
            together = merged(own, catalogs)
            if together.left_out:
                text = "parts of the network knew otherwise"
                self._context.outlet.log("error", text, lost=together.left_out)
            self._adopt(together.catalog)

    def _adopt(self, catalog: Catalog) -> None:
        rules = rules_of(catalog)
        before = [schema for one in self._deployments.rules for schema in one.rule.mentions]
        after = [schema for one in rules for schema in one.rule.mentions]
        self.borrow(catalog.types)
        self._advertisements.exchange(before, after)
        self._follow_rules(rules, [schema.name for schema in catalog.types], catalog)
        self._context.service.check_interests()

    def borrow(self, types: Iterable[EventType]) -> None:
        """Others know these types, or events of them wait here, of sources that may have closed."""
        schemas, borrowed = self._advertisements.schemas, self._adopted
        fitting = [one for one in types if schemas.get(one.name, one) == one]
        new = {one.name: one for one in fitting if one.name not in borrowed}
        self._advertisements.exchange((), new.values())
        borrowed.update(new)

    def take_borrowed(self) -> Iterable[EventType]:
        """Give the types borrowed until now; each is known until ``advertisements`` let it go."""
        borrowed, self._adopted = self._adopted, {}
        return borrowed.values()

    def conclude(self, everywhere: Mapping[str, Iterable[str]], closed: Collection[str]) -> None:
        """Tell what is known. ``everywhere``: what brokers publish; ``closed`` as in Catalog."""
        self._agreed.catalog = self._catalog(everywhere, closed)

    def change_role(self) -> None:
        """See whether this broker is the root, or no longer is; what it knows stays known."""
        if self._router.is_root == self._reigns:
            return
        self._made_of = None, None
        self._reigns = self._router.is_root
        rules = [schema for one in self._deployments.rules for schema in one.rule.mentions]
        catalog = self._agreed.catalog
        if self._reigns:
            self._advertisements.exchange((), rules)
        else:
            self._registry.leave()
            self._advertisements.exchange([*rules, *self._adopted.values()], catalog.types)
            self._adopted = {schema.name: schema for schema in catalog.types}
        self._context.service.check_interests()


def _is_among(schema: EventType, types: Mapping[str, EventType]) -> bool:
    same = types.get(schema.name)
    return same is schema or same == schema
