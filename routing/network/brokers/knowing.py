"""The root's knowledge of types and rules, and how all others come to know it.

Law 1: what the root knows is told on from father to child, and every broker takes it over. So each
of them can be the next root: what it was told is what it knows then. b1 fails, and b2 is the root:
the rules that it was told are those that there are.

Law 2: it is told while there is a plan for the tree as it is, to who is in that plan. Before that
the root may have more to learn, from parts of the network that were apart (knowledge), and they
would take over what it knows in place of that. What it learns of types that nobody here mentions is
lent: known until the next plan, when those who publish them have been heard; and so is what events
are of that are held here, whose sources may have closed. b3 comes back and knows Temp, which nobody
mentions: Temp is known until the next plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from matcher.model import EventType
from routing.messages import Amended, Known
from routing.network.agreement.amending import amended, amendment
from routing.network.agreement.knowledge import knowledge_of, merged, rules_of
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.update_timer import UpdateTimer
from routing.serving.deployment import Deployed


class Knowing:
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
        """The types that are known by the word of others, by name: at the root those that are lent
        (Law 2), elsewhere those that the root knows, but for those that do not fit."""
        self._named = frozenset[str]()
        """The types that rules in force speak of."""
        self._reigns = False
        """Whether this broker was the root when it last looked."""

    @property
    def lent(self) -> frozenset[str]:
        """At the root: the types that are lent (Law 2)."""
        return frozenset(self._adopted if self._reigns else ())

    # --- what is told ---

    def tell(self) -> None:
        """At the root: tell what is known now. Elsewhere: tell those who have not heard it yet."""
        if not self._agreed.is_planned:
            return
        if self._router.is_root:
            known = self._knowledge(dict(self._agreed.known.homes), self._agreed.known.closed)
            if known != self._agreed.known:
                self._agreed.known = known
        self.pass_on()

    def pass_on(self, heard: tuple[Known, Amended] | None = None) -> None:
        """Tell children what is known, where it is news: the whole, if they were told nothing yet,
        else the difference. ``heard``: what was known before, and how that was amended.
        """
        context = self._context
        context.send_flows()  # events first: their types may be known no more
        said = None if heard is None else (heard[0], self._agreed.known, heard[1])
        for branch in self._router.children:
            before, known = branch.known, self._agreed.known
            if not branch.has_joined or before is known or before == known:
                continue
            branch.known = known
            if before is None:
                context.send(branch.neighbour, known)
                continue
            if said is None or said[0] is not before or said[1] is not known:
                said = before, known, amendment(before, known)  # mostly the same for all
            context.send(branch.neighbour, said[2])

    def _knowledge(self, homes: Mapping[str, Iterable[str]], closed: Iterable[str]) -> Known:
        return knowledge_of(self._advertisements, self._deployments, homes, closed)

    # --- what is heard ---

    def hear_known(self, neighbour: str, known: Known) -> None:
        """Take over what the root knows, and tell it on."""
        if neighbour == self._router.father:
            self._context.callbacks.settle()  # what has come is delivered while its rules are known
            self._learn_whole(known)
            self._router.branches[neighbour].has_told_known = True
            self._follow(None)

    def hear_amended(self, neighbour: str, message: Amended) -> None:
        """The same, where only the difference is told; not what was told while this broker was in
        another tree, for it is about to be introduced, and told all.
        """
        if neighbour != self._router.father or not self._router.branches[neighbour].has_told_known:
            return
        before = self._agreed.known
        known = amended(before, message)
        self._context.callbacks.settle()  # as in hear_known
        places, new = message.types
        gone = [before.types[place] for place in places]
        come = [known.types[place] for place, _ in new]
        names = {schema.name for schema in (*gone, *come)}
        if known.rules is before.rules and known.ended is before.ended and not names & self._named:
            self._learn_types(known, gone, come)
        else:
            self._learn_whole(known)
        self._follow((before, message))

    def _learn_whole(self, known: Known) -> None:
        rules = rules_of(known)
        # By names, for there may be thousands of types, and most are the same objects as before.
        after = {one.name: one for one in known.types}
        gone = [one for one in self._adopted.values() if not _is_among(one, after)]
        come = [one for one in known.types if not _is_among(one, self._adopted)]
        self._learn_types(known, gone, come)
        self._follow_rules(rules, self._adopted, known)
        self._named = frozenset(schema.name for one in rules for schema in one.mentions)

    def _follow_rules(
        self, rules: Sequence[Deployed], published: Iterable[str], known: Known
    ) -> None:
        gone = self._deployments.adopt(rules, published, known.ended)
        self._context.detection.forget(gone)

    def _learn_types(self, known: Known, gone: list[EventType], come: list[EventType]) -> None:
        """Know that: these types no more, but those as well, where they fit."""
        self._agreed.known = known
        leaving = [one for one in gone if _is_among(one, self._adopted)]
        fitting = [one for one in come if self._goes_with_own(one)]
        self._advertisements.exchange(leaving, fitting)
        for one in leaving:
            del self._adopted[one.name]
        self._adopted.update((one.name, one) for one in fitting)

    def _follow(self, heard: tuple[Known, Amended] | None) -> None:
        context = self._context
        context.callbacks.check_interests()
        context.callbacks.follow()
        self.pass_on(heard)

    def _goes_with_own(self, schema: EventType) -> bool:
        """Whether no local source publishes the type with another schema (a part of the network
        that was out of reach may know one).
        """
        own = self._advertisements.find(schema.name)
        fits = own is None or own.schema == schema or not own.advertisers
        if not fits:
            text = "sources publish a type with two schemas"
            self._context.callbacks.log("error", text, type=schema.name)
        return fits

    # --- at the root ---

    def learn(self, known: Sequence[Known]) -> None:
        """Other brokers know this."""
        if known:
            known_homes = dict(self._agreed.known.homes)
            own = self._knowledge(known_homes, self._agreed.known.closed)
            together = merged(own, known)
            if together.left_out:
                text = "parts of the network knew otherwise"
                self._context.callbacks.log("error", text, lost=together.left_out)
            self._adopt(together.known)

    def _adopt(self, known: Known) -> None:
        rules = rules_of(known)
        before = [schema for one in self._deployments.rules for schema in one.mentions]
        after = [schema for one in rules for schema in one.mentions]
        self.lend(known.types)
        self._advertisements.exchange(before, after)
        self._follow_rules(rules, [schema.name for schema in known.types], known)
        self._context.callbacks.check_interests()

    def lend(self, types: Iterable[EventType]) -> None:
        """Others know these types, or events of them wait here, of sources that may have closed."""
        schemas, lent = self._advertisements.schemas, self._adopted
        fitting = [one for one in types if schemas.get(one.name, one) == one]
        new = {one.name: one for one in fitting if one.name not in lent}
        self._advertisements.exchange((), new.values())
        lent.update(new)

    def take_lent(self) -> Iterable[EventType]:
        """Give the types lent until now; each stays known until ``advertisements`` let it go."""
        lent, self._adopted = self._adopted, {}
        return lent.values()

    def conclude(self, everywhere: Mapping[str, Iterable[str]], closed: Collection[str]) -> None:
        """Tell what is known. ``everywhere``: what brokers publish; ``closed`` as in Known."""
        self._agreed.known = self._knowledge(everywhere, closed)

    def change_role(self) -> None:
        """See whether this broker is the root, or no longer is; what it knows stays known."""
        if self._router.is_root == self._reigns:
            return
        self._reigns = self._router.is_root
        rules = [schema for one in self._deployments.rules for schema in one.mentions]
        known = self._agreed.known
        if self._reigns:
            self._advertisements.exchange((), rules)
        else:
            self._registry.leave()
            self._advertisements.exchange([*rules, *self._adopted.values()], known.types)
            self._adopted = {schema.name: schema for schema in known.types}
        self._context.callbacks.check_interests()


def _is_among(schema: EventType, known: Mapping[str, EventType]) -> bool:
    same = known.get(schema.name)
    return same is schema or same == schema
