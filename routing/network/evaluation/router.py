"""One broker's tables of a tree, and the way of events along it (thesis 7.3.3, 7.3.4, 7.3.6).

Law 1: each neighbour in the tree has told which filters have somebody beyond it who wants their
events; an event goes to every neighbour but the one it came from that wants it. What this broker
wants of a neighbour is what its own sinks and its other neighbours want; it is told whenever it
changes. A tree has one way between any two brokers, so every event arrives once. b2 stands between
b1 and b3: Temps of b1 go on to b3 if a sink at b3 wants them, and b3 tells b2 so.

Law 2: composite events go from the broker that evaluates their rule to all who want them, up
and down the tree, and marks behind them: which are told follows from where the rules are that are
wanted beyond a neighbour (deferred_watermarks, Laws 1 and 2). b2 evaluates fire, and b3 has a Fire
of 12 s before it hears that there is none other before 13 s.

Law 3: a broker remembers up to where it has every rule's composite events. When rules begin anew,
what it had beyond that is dropped, for it comes again; and what comes again of what lies before is
dropped, too (brokers.md section 5). b3 has fire up to 13 s: a Fire of 12 s that b2 finds once more
is not offered to sinks there.

Law 4: of rules that are *aside*, sinks here get composite events from a tree of their own
(tree_table). What is told of them is passed on as ever, but says nothing of what this broker has.
b3 has a tree of its own for Fire: what b2 tells of fire along the single one says nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import TIME_MIN, EventBatch, EventType, Int64s
from routing.delivery.merged_detections import joined
from routing.deployment import Deployed
from routing.messages import Flow, SubscriptionUpdate
from routing.network.agreement.rounds import raise_all
from routing.network.recovery.resume_points import from_resume_points_on
from routing.network.tables.branch import Branch
from routing.network.tables.deferred_watermarks import RuleWatermarks
from routing.network.tables.filter_cover import maximal_of_type
from routing.overlay.trees import LocalTree
from routing.partition.places import Division
from routing.watermarks.ends import CLOSED
from rules.engine.engine import Detections


class Router:
    """The branches beyond each neighbour in the tree, and what came from there for this broker."""

    def __init__(self, name: str, matching: Matching = ON_PROCESSOR) -> None:
        self._name = name
        self.matching = matching
        """How many filters of a type that lead to one neighbour are matched."""
        self._branches: dict[str, Branch] = {}
        self.branches: Mapping[str, Branch] = self._branches
        """The branches by neighbour."""
        self._detected: list[Detections] = []
        self._schemas: Mapping[str, EventType] = {}
        self._wanting: dict[str, tuple[Branch, ...]] = {}
        """By type, the children that want events of it; made when such events come."""
        self._wanted_rules: frozenset[str] | None = None
        self._own: dict[str, tuple[str, ...]] = {}
        """Filters of this broker itself when it last told its neighbours, by type."""
        self.epoch: tuple[str, int] | None = None
        """The tree's root and epoch; None while there is no tree."""
        self._followed: dict[str, int] = {}
        """The last epoch of each root by whose tree this broker has gone."""
        self.is_back = False
        """Whether this broker had gone by its tree before it followed it last: it has been away, or
        its father is another, and it has forgotten what neighbours said in this epoch."""
        self.root: str | None = None
        self.father: str | None = None
        self.is_root = False
        self.marks: dict[str, int] = {}
        """Up to where this broker has each rule's composite events (Law 3)."""
        self.has_news = False
        """Whether composite events or marks have come that ``take_detected`` was not asked for."""
        self._told: dict[str, int] = {}
        """Marks of rules on their way: what was said since rules began anew, which may be less."""
        self._ways: Mapping[str, str | None] = {}
        """By rule, the neighbour on whose side it is evaluated; None for here."""
        self._has_others: dict[str, tuple[tuple[Deployed, ...], bool]] = {}
        """By neighbour: for the rules wanted there, whether some are evaluated beyond it."""
        self._company: frozenset[str | None] = frozenset()
        """The neighbours beyond which sinks get composite events along other trees, too."""
        self.partners: frozenset[str] = frozenset()
        """The neighbours that follow the same plan; events go to no others."""
        self._has_strangers: bool | None = None
        self.ended: set[str] = set()
        """The rules for which nobody publishes anything any more."""
        self.news_from: dict[str, int] = {}
        """By rule: from when on its composite events are news, and have not been here (Law 3)."""
        self.aside: Collection[str] = ()
        """The rules that Law 4 speaks of."""

    @property
    def has_tree(self) -> bool:
        """Whether there is a way to the root."""
        return self.is_root or self.father is not None

    @property
    def children(self) -> Iterator[Branch]:
        """The branches away from the root."""
        return (one for one in self._branches.values() if one.neighbour != self.father)

    def children_wanting(self, batches: Sequence[EventBatch]) -> Iterable[Branch]:
        """The children that may want some of these events."""
        if len(batches) != 1:
            return self.children
        name = batches[0].type.name
        found = self._wanting.get(name)
        if found is None:
            found = self._wanting[name] = tuple(one for one in self.children if one.wants(name))
        return found

    @property
    def wanted_rules(self) -> frozenset[str]:
        """The rules whose composite events are wanted beyond neighbours."""
        if self._wanted_rules is None:
            branches = self._branches.values()
            self._wanted_rules = frozenset(one.rule.name for of in branches for one in of.rules)
        return self._wanted_rules

    @property
    def has_untold(self) -> bool:
        """Whether a neighbour has yet to be told what is wanted of it."""
        for branch in self._branches.values():  # noqa: SIM110 (a generator has a step for each)
            if branch.told is None:
                return True
        return False

    def goes_by(self, tree: LocalTree | None) -> bool:
        """Whether this is the tree that it follows, with the same neighbours."""
        if tree is None or (tree.root, tree.epoch) != self.epoch or tree.father != self.father:
            return False
        return self._branches.keys() == {*tree.children, *filter(None, [tree.father])}

    def follow(self, tree: LocalTree | None) -> bool:
        """The tree may have changed; whether what was sent to the root may be lost."""
        self._wanting.clear()
        self._wanted_rules = None
        self._has_strangers = None
        before = self.root, self.father, self.epoch
        epoch = None if tree is None else (tree.root, tree.epoch)
        if epoch != self.epoch:
            self.epoch = epoch
            self._branches.clear()  # both ends of a branch start anew with an epoch
        if tree is not None:
            self.is_back = tree.epoch <= self._followed.get(tree.root, 0)
            self._followed[tree.root] = tree.epoch
        self.father = None if tree is None else tree.father
        self.root = None if tree is None else tree.root
        self.is_root = self.root == self._name
        neighbours = set() if tree is None else set(tree.children)
        if self.father is not None:
            neighbours.add(self.father)
        for name in self._branches.keys() - neighbours:
            self._touch(self._branches.pop(name).types)
        for name in sorted(neighbours - self._branches.keys()):
            self._branches[name] = Branch(name, self.matching)
        return before != (self.root, self.father, self.epoch)

    def join(self, partners: Iterable[str]) -> None:
        """Begin with these neighbours, which follow the same plan."""
        self.partners, self._has_strangers = frozenset(partners), None

    @property
    def has_strangers(self) -> bool:
        """Whether neighbours in the tree follow no plan, or another. It is asked with each message,
        and changes with trees and plans.
        """
        if self._has_strangers is None:
            self._has_strangers = not self.branches.keys() <= self.partners
        return self._has_strangers

    # --- tables ---

    def hear_update(self, neighbour: str, update: SubscriptionUpdate) -> bool:
        """A neighbour has told what it wants; whether that is one in the tree, and makes sense."""
        branch = self._branches.get(neighbour)
        news = None if branch is None else branch.hear(update)
        if news is None:
            return False
        self._touch(news, branch)
        return True

    def _touch(self, names: Iterable[str], source: Branch | None = None) -> None:
        """Of these types the neighbours, but that one, may have to be told something else."""
        for branch in self._branches.values():
            if branch is not source:
                branch.untold.update(names)

    def index(
        self, schemas: Mapping[str, EventType], defining: Callable[[str], Sequence[Deployed]]
    ) -> None:
        """Filters, types or rules have changed."""
        self._wanting.clear()
        self._wanted_rules = None
        before, self._schemas = self._schemas, schemas
        changed: set[str] = set()
        if before is not schemas:
            changed = {name for name, one in schemas.items() if before.get(name) is not one}
            changed |= before.keys() - schemas.keys()
            self._touch(changed)
        for branch in self._branches.values():
            branch.index(schemas, defining, changed)

    def updates(
        self, own: Mapping[str, tuple[str, ...]], to: Container[str] | None = None
    ) -> Iterator[tuple[Branch, SubscriptionUpdate]]:
        """Updates to tell neighbours (Law 1), where they are news; the caller numbers them.

        ``own``: what this broker's sinks want, by type, sorted. ``to``: the neighbours that are to
        be told now, None for all.
        """
        before, self._own = self._own, dict(own)
        names = before.keys() | own.keys()
        self._touch({name for name in names if before.get(name) != own.get(name)})
        for branch in self._branches.values():
            if to is None or branch.neighbour in to:
                update = self._update_for(branch)
                if update is not None:
                    yield branch, update

    def _update_for(self, branch: Branch) -> SubscriptionUpdate | None:
        """The want to tell one neighbour: the whole, if it was told nothing yet, else the
        difference; None for nothing.
        """
        others = [other for other in self._branches.values() if other is not branch]
        told, names = branch.told, branch.untold
        if told is None:
            names = {*self._own, *(name for other in others for name in other.types)}
        after, branch.untold = told, set()
        if after is None:
            after = branch.told = {}
        new: list[str] = []
        gone: list[str] = []
        for name in names:
            before, now = after.get(name, ()), self._wanted_of(name, others)
            if before != now:
                new += set(now).difference(before)
                gone += set(before).difference(now)
                if now:
                    after[name] = now
                else:
                    del after[name]
        if told is None:
            return SubscriptionUpdate(tuple(sorted(new)))
        if new or gone:
            return SubscriptionUpdate(
                tuple(sorted(new)), 0, tuple(sorted(gone)), branch.told_number
            )
        return None

    def _wanted_of(self, name: str, others: Iterable[Branch]) -> tuple[str, ...]:
        """The filters of a type that somebody wants here or beyond those neighbours."""
        found = {self._own.get(name, ()), *(other.texts(name) for other in others)}
        found.discard(())
        if len(found) == 1:
            (texts,) = found
        else:
            texts = tuple(sorted({text for one in found for text in one}))
        return maximal_of_type(texts, self._schemas.get(name))

    # --- events ---

    @property
    def has_flows(self) -> bool:
        """Whether ``take_flows`` has something to give."""
        for branch in self._branches.values():  # noqa: SIM110 (a generator has a step for each)
            if branch.has_flows:
                return True
        return False

    def take_flows(self) -> Iterator[tuple[str, Flow]]:
        """Give the flows to send now, by neighbour."""
        for branch in self._branches.values():
            if branch.has_flows:
                for flow in branch.take_flows():
                    yield branch.neighbour, flow

    def route_down(
        self, batches: Sequence[EventBatch], order: Int64s | None, sender: str | None
    ) -> None:
        """Send published events on to the children that want them."""
        for branch in self.children_wanting(batches):
            if branch.neighbour != sender and branch.neighbour in self.partners:
                branch.offer(batches, order)

    def route_found(
        self, detections: Detections, marks: Mapping[str, int], ended: Collection[str]
    ) -> None:
        """Send what was detected here to all who want it, with the marks of the rules here."""
        order = detections.order if detections.batches else None
        self._pass(detections.batches, order, marks, ended, None)

    def pass_detected(
        self, batches: tuple[EventBatch, ...], order: Int64s | None, sender: str
    ) -> None:
        """Composite events have come from a neighbour."""
        self.has_news = True
        places = np.arange(sum(map(len, batches))) if order is None else order
        self._detected.append(Detections(batches, places))
        self._pass(batches, order, {}, (), sender)

    def take_detected(self) -> Detections | None:
        """Composite events for this broker's sinks; None when no mark has come either."""
        if not self.has_news:
            return None
        found, self._detected = self._detected, []
        self.has_news = False
        return from_resume_points_on(joined(found), self.news_from)

    def pass_marks(self, marks: RuleWatermarks, sender: str) -> None:
        """Marks have come from a neighbour, behind the events that they follow."""
        self.has_news = True
        reached = []
        for name, mark in marks:
            if mark == CLOSED:
                self.ended.add(name)
                continue
            self.ended.discard(name)
            self._told[name] = max(mark, self._told.get(name, TIME_MIN))
            if name not in self.aside:
                reached.append((name, mark))
        self.reach(reached)
        self._pass_told(dict(marks), sender)

    def reach(self, marks: Iterable[tuple[str, int]]) -> None:
        """The broker has the composite events of rules up to these marks."""
        raise_all(self.marks, marks)

    def count_on(self, names: Iterable[str], marks: Mapping[str, int]) -> None:
        """The broker is to have composite events of these rules, from where they have come to."""
        self.has_news = True
        for name in names:
            self.marks.setdefault(name, marks.get(name, TIME_MIN))

    def forget(self, name: str) -> None:
        """A name means no rule any more, or another than before."""
        for known in (self.marks, self._told, self.news_from):
            known.pop(name, None)
        self.ended.discard(name)
        for branch in self.branches.values():
            branch.deferred.forget(name)

    def awaits(self, rules: Collection[str]) -> bool:
        """Whether somebody beyond a neighbour may wait for a mark of one of these rules."""
        for branch in self._branches.values():
            if (
                branch.rules
                and branch.neighbour in self.partners
                and branch.deferred.awaits(rules, every=self._tells_every_mark(branch))
            ):
                return True
        return False

    def tell_all(self) -> None:
        """Tell all marks, whether anybody waits for them or not."""
        for branch in self.branches.values():
            if branch.neighbour in self.partners:
                branch.tell_all()

    def repeat_marks(self) -> None:
        """Tell what others have told to those who have not wanted it before."""
        known = self._told.keys() | self.ended
        for sender in sorted({side for side in self._ways.values() if side is not None}):
            names = {name for name in known if self._ways.get(name) == sender}
            self._pass_told(names, sender)

    def follow_division(self, division: Division, company: Collection[str] = ()) -> None:
        """Rules are divided in this way from now on.

        ``company``: brokers whose sinks get composite events along other trees, too, which may wait
        for every mark of this one.
        """
        sides: dict[str, str | None] = {}
        for broker in {*division.partition.places.values(), *company}:
            sides[broker] = division.side(self._name, broker)
        self._ways = {name: sides[place] for name, place in division.partition.places.items()}
        self._has_others.clear()
        self._company = frozenset(sides[broker] for broker in company)
        self.has_news = True

    def begin_anew(
        self, rules: Collection[str], resume_from: Mapping[str, int], front: int
    ) -> Mapping[str, int]:
        """Rules begin anew; gives from when on their composite events are news, by source.

        ``front`` as in DeferredWatermarks.begin_anew.
        """
        for branch in self.branches.values():
            branch.deferred.begin_anew(front)
        self._told.clear()
        self.ended.clear()
        self._detected.clear()
        self.marks = {name: mark for name, mark in self.marks.items() if name in rules}
        self.reach(resume_from.items())
        self.news_from = dict(self.marks)
        return {RULE_SOURCE + name: self.news_from.get(name, TIME_MIN) for name in rules}

    def _pass_told(self, names: Collection[str], sender: str) -> None:
        if self._branches.keys() == {sender}:  # a leaf, common
            return
        marks = {name: self._told.get(name, TIME_MIN) for name in sorted(names)}
        self._pass((), None, marks, self.ended & set(names), sender)

    def _pass(
        self,
        batches: Sequence[EventBatch],
        order: Int64s | None,
        marks: Mapping[str, int],
        ended: Collection[str],
        sender: str | None,
    ) -> None:
        for branch in self._branches.values():
            if not (branch.rules or (batches and branch.types)):
                continue  # common in processing trees, where all goes to the father
            if branch.neighbour != sender and branch.neighbour in self.partners:
                every = self._tells_every_mark(branch)
                branch.offer_detected(batches, order, marks, every_mark=every, ended=ended)

    def _tells_every_mark(self, branch: Branch) -> bool:
        """Whether composite events come some other way, too, to those beyond a neighbour: along
        another tree, or since some of what is wanted there is found there.
        """
        if branch.neighbour in self._company:
            return True
        known = self._has_others.get(branch.neighbour)
        if known is None or known[0] is not branch.rules:
            sides = (self._ways.get(one.rule.name) for one in branch.rules)
            known = branch.rules, branch.neighbour in sides
            self._has_others[branch.neighbour] = known
        return known[1]
