"""A broker: a Node for its clients, part of an overlay, and of its single tree.

It is made of parts, each with one responsibility and the state that belongs to it (the package's
page names them). This file says in which order they are asked; nothing is decided here.

One that works alone is the root of a tree of one: b1 follows a plan of its own, which it makes as
soon as there is reason to, and refuses brokers that greet it.

A broker is composed as its strategy needs it: with Measuring if the root goes by what it measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from matcher.model import EventBatch
from routing import wire
from routing.config import NodeConfig
from routing.delivery.durable import DurableSink
from routing.delivery.group import NUMBER
from routing.delivery.sink import BLOCKED_BYTES_MAX, Sink
from routing.effects import Effect, Peer
from routing.errors import ProtocolError
from routing.messages import GATHERED, Asking, AskingAll, Code, Confirmed, RootRequest, RootTask
from routing.messages.links import LinkHello
from routing.network.agreement.remote_sources import RemoteSources
from routing.network.agreement.terms import terms_of
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.commits import Commits
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.journal import Journal
from routing.network.brokers.parts import Parts, heard_by, prepared_by
from routing.network.brokers.restart import take_over
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.overview import Overview, broker_facts
from routing.network.evaluation.router import Router
from routing.network.recovery.past import noted
from routing.network.strategy import Centralized, Strategy
from routing.node import Node
from routing.overlay.config import OverlayConfig
from routing.overlay.ends import Heard, Piling
from routing.overlay.overlay import Overlay
from routing.serving.evaluator import Basis
from routing.serving.link import Link
from routing.serving.outlet import Outlet
from routing.serving.service import Service
from routing.serving.slices import Timed
from routing.serving.tables import Tables
from routing.storage import StoreContents
from rules.engine.engine import Detector
from rules.errors import RuleErrors
from rules.overrun import Overrun


class Broker:
    """One broker of a network, be it of one. ``node`` is its side towards clients, and ``service``
    what it does for them; neighbours' links are peers like clients'.
    """

    def __init__(
        self,
        config: NodeConfig,
        overlay: OverlayConfig,
        engine: Detector,
        strategy: Strategy | None,
        now: float = 0.0,
    ) -> None:
        """``strategy``: of the whole network; None for a broker that works alone. ``now``: seconds
        of the host's clock.
        """
        self._config = config
        self._strategy = strategy
        used = strategy or Centralized()
        most, terms = config.composites_per_instant_max, ""
        if strategy is not None:
            terms = terms_of(strategy.name, config.ordering, overlay.forget_s, most)
        self.overlay = Overlay(replace(overlay, terms=terms), now)
        self._router = Router(overlay.name, config.matching)
        self.agreed = Agreed(type(used), config.ordering, self._router)
        """The agreement of its tree."""
        tables = Tables(config, now)
        self._moment, self._links, self._sinks = tables.moment, tables.links, tables.sinks
        self.outlet = Outlet(tables.links, tables.moment)
        """The way out to clients and log; the host sets its ``emit``."""
        self._detection = self._detection_of(engine, tables)
        remote_sources = RemoteSources()
        overview = Overview(
            overlay.name, self.agreed.division, remote_sources, self._detection, tables
        )
        detection, changes = self._detection, self._detection.changes
        self.service = Service(config, tables, detection, changes, overview, self.outlet, self)
        """Its work for clients."""
        self.node = Node(config, tables, self.service, self.outlet, self, self.status)
        """Its clients' links."""
        gather_s = 0.0 if strategy is None else overlay.flood_s  # nobody is to be told
        self._timer = UpdateTimer(tables.moment, gather_s)
        self.context = self._context_of(tables, remote_sources)
        """Its tables."""
        self.overlay.traces = tables.traces
        self.overlay.queries.answer = self.context.answer
        self._parts = parts = Parts(self.context, self.agreed, self._timer)
        self._commits = Commits(self.context, self.service.settle)
        self.await_commit = self._commits.add
        """Acknowledges events when all that follows from them is done."""
        self.withdraw = parts.requests.withdraw
        """Has the rules removed that are to go, their owners having lost the right to them."""
        self._timed: Sequence[Timed] = (*parts.timed, self._commits)
        self.back_pressure = parts.back_pressure
        """The holds of what is full, here and elsewhere."""
        self._heard, self._prepared = heard_by(parts), prepared_by(parts)
        self.giver = parts.giver
        """Hands its durable sinks over to other brokers."""
        self._journal: Journal | None = None

    def _detection_of(self, engine: Detector, tables: Tables) -> DividedDetection:
        basis = Basis(
            self._config,
            engine,
            tables.advertisements,
            tables.deployments,
            tables.accounts,
            on_types=lambda: self.service.check_interests(),
            on_rules=tables.sinks.index,
        )
        return DividedDetection(self.overlay.name, self._router, basis)

    def _context_of(self, tables: Tables, remote_sources: RemoteSources) -> BrokerContext:
        return BrokerContext(
            name=self.overlay.name,
            config=self._config,
            moment=tables.moment,
            outlet=self.outlet,
            service=self.service,
            node=self.node,
            overlay=self.overlay,
            router=self._router,
            detection=self._detection,
            remote_sources=remote_sources,
            links=tables.links,
            published=tables.published,
            accounts=tables.accounts,
            names=tables.names,
            sources=tables.sources,
            sinks=tables.sinks,
            advertisements=tables.advertisements,
            deployments=tables.deployments,
            credit=tables.credit,
        )

    # --- the store ---

    def recall(self, stored: StoreContents, now: float) -> None:
        """Keep what matters in a store from now on, and go on from what that has kept. Before
        anything else is asked of it; ValueError for the store of another broker.
        """
        assert not self.agreed.by_arrival, "by arrival nothing is kept"
        self._moment.now = now
        deduplicator, context = self._parts.single_traffic.deduplicator, self.context
        journal = Journal(
            context, self.agreed, deduplicator, lambda effect: self.outlet.emit(effect)
        )
        self.service.durables = journal.durables
        self.giver.journal = self._parts.taker.journal = journal
        take_over(stored, context, self._parts.catalog_sync, deduplicator, journal)
        self.giver.recall()
        self._journal = self._detection.keeper = journal
        self._parts.log_reader.log = stored.reader
        self._parts.log_reader.check_room = journal.check_room
        self._detection.log = noted(stored.log, self.overlay.traces, self.outlet.log)
        self._detection.replay_buffer.let_go_before = stored.let_go
        self.outlet.when_kept = journal.when_kept

    def stored(self, number: int, now: float) -> None:
        """The store has kept all up to the Store of this number."""
        assert self._journal is not None
        self._moment.now = now
        self._journal.stored(number)
        self.service.settle()

    def note_store(self, problem: str | None, now: float) -> None:
        """The reason for which the store takes nothing more for now; None: it takes what comes."""
        assert self._journal is not None
        self._moment.now = now
        self._journal.note_problem(problem)

    # --- what is asked of it ---

    def status(self, now: float) -> Mapping[str, Any]:
        """The answer to StatusRequest: of the network, too, and of this broker's part."""
        draining = self.node.draining
        facts = {
            **self.service.status(now),
            "draining": None if draining is None else list(draining),
            **({} if self._journal is None else self._journal.facts),
        }
        if self._strategy is None:
            return facts
        division = self.agreed.division()
        return {
            **facts,
            **broker_facts(
                self.overlay, self._router, self._strategy.name, self._detection, division
            ),
            "out_of_reach": sorted(self.agreed.out_of_reach),
            "closed": list(self.agreed.catalog.closed),
            "planned": self.agreed.is_planned,
            "awaited": self._detection.publishers.awaited(set(self.context.deployments.used)),
        }

    @property
    def remembered(self) -> int:
        """Ids of published events that are remembered, the most together (repeat_ids_max)."""
        return max(
            self._parts.single_traffic.deduplicator.remembered, self.context.published.remembered
        )

    @property
    def borrowed(self) -> frozenset[str]:
        """At the root: types that are known until the next plan, whoever speaks of them."""
        return self._parts.catalog_sync.borrowed

    @property
    def is_at_rest(self) -> bool:
        """Whether it works by a plan for the tree as it is, has told and heard all that follows
        from what it knows, and waits for nothing of its neighbours.
        """
        return (
            self.agreed.is_planned
            and self._detection.is_at_work
            and not self._detection.is_held
            and self._timer.tell_at is None
            and self._parts.subscription_sync.confirmations.is_settled
            and self.overlay.topology.is_settled
            and not self._parts.slices.is_preparing
            and not any(one.buffered or one.kept for one in self.overlay.neighbours.values())
        )

    # --- inputs ---

    def receive_together(
        self, messages: Iterable[tuple[Peer, Sequence[bytes | memoryview]]], now: float
    ) -> None:
        """Take in messages that are there at once (routing.node, Law 3)."""
        service = self.service
        for peer, frames in messages:
            if wire.is_gathered(frames):
                service.gathers = True
            else:
                service.settle_gathered()
            self.receive_frames(peer, frames, now)
        service.settle_gathered()

    def receive_frames(self, peer: Peer, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode and take in one message, of a client or of a neighbour."""
        if self.overlay.neighbours:
            self._awake(now)
        is_link = peer in self.overlay.links
        if is_link or (peer not in self._links.by_peer and wire.looks_like(frames, LinkHello)):
            self.overlay.receive_frames(peer, frames, now)
            self._follow_overlay(now)
        else:
            self.node.receive_frames(peer, frames, now)

    def configure(self, config: NodeConfig, now: float) -> None:
        """Take over what a running broker can change."""
        self.node.configure(config, now)
        self._config = self._config.changed_to(config)
        self._parts.single_traffic.configure(config.repeat_ids_max)

    def lose(self, peer: Peer, now: float) -> None:
        """The link broke, be it a client's or a neighbour's."""
        self._awake(now)
        if peer in self.overlay.links:
            self.overlay.lose(peer, now)
            self._follow_overlay(now)
        else:
            self.node.lose(peer, now)

    def add_link(self, peer: Peer, now: float, delay_us: int | None = None) -> None:
        """Be linked to the broker at ``peer``."""
        self.overlay.add_link(peer, now, delay_us)

    def handle_timer(self, now: float) -> None:
        """Do what is due, for clients and for neighbours."""
        self._awake(now)
        for part in self._due_parts:
            if part.due_at is not None and part.due_at <= now:
                self._moment.now = now
                part.handle_timer()
        due = self.overlay.next_timer()
        if due is not None and due <= now:
            self.overlay.handle_timer(now)
        has_news = self.overlay.has_moved or self.overlay.changes
        if has_news or (due is not None and due <= now):
            self._follow_overlay(now)
        tell_at = None if self._parts.slices.is_preparing else self._timer.tell_at
        if tell_at is not None and tell_at <= now:
            self._moment.now = now
            self._tell()
        due = self.node.next_timer()
        if due is not None and due <= now:
            self.node.handle_timer(now)

    @property
    def _due_parts(self) -> Sequence[Timed]:
        """The parts that may do something when it is due: while something is prepared all others
        wait (serving.slices).
        """
        return (self._parts.slices,) if self._parts.slices.is_preparing else self._timed

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next."""
        tell_at = None if self._parts.slices.is_preparing else self._timer.tell_at
        due = self.node.next_timer()
        for at in (tell_at, self.overlay.next_timer()):
            if at is not None and (due is None or at < due):
                due = at
        for part in self._due_parts:
            at = part.due_at
            if at is not None and (due is None or at < due):
                due = at
        return due

    def drain(self, now: float) -> None:
        """Begin to drain, and go on; what is kept for others is let go of as soon as it may."""
        self._detection.replay_buffer.look_soon()
        self.node.drain(now)
        self._parts.taker.is_closed = True
        self.giver.begin()
        name, publishers = self.overlay.name, self._detection.publishers
        needed = self._detection.replay_buffer, publishers.all, self.service.durables
        if not any(any(one) for one in needed):
            publishers.forgets = True
            if name in dict(self.agreed.catalog.homes):
                self._parts.root_requests.say(RootRequest(RootTask.LEAVE, (name,)))

    @property
    def awaits_store(self) -> bool:
        """Whether its store has yet to keep what has changed, and clients may wait for that."""
        return self._journal is not None and self._journal.is_awaiting

    def close(self, reason: str, now: float) -> None:
        """Say Goodbye to clients and neighbours."""
        self.node.close(reason, now)
        self.overlay.close(reason, now)

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        if self._journal is not None:
            self._journal.flush()
        others = self.overlay.take_effects() if self.overlay.effects else []
        return self.outlet.take_effects() + others if self.outlet.effects else others

    # --- the network ---

    def _awake(self, now: float) -> None:
        """Where others may have closed this broker's inputs, sources have to advertise again before
        anything more is taken of them: the plan that comes first says so (planner, Law 4).
        """
        if self.overlay.awake(now):
            self._moment.now = now
            for link in [link for link in self._links if link.source is not None]:
                reason = "this broker was kept from its work: advertise the types again"
                self.service.expel(link.peer, Code.SILENT, reason)
            self._follow_overlay(now)

    def _follow_overlay(self, now: float) -> None:
        self._moment.now = now
        overlay, trees = self.overlay, self._parts.trees
        if self._parts.slices.is_preparing:
            if not overlay.has_moved or self._router.goes_by(overlay.topology.single_tree):
                return  # all waits
            self._parts.slices.finish()
        is_anew = False
        if overlay.has_moved:
            self.service.settle_gathered()
            is_anew = overlay.take_moved() and self._follow_tree()
            trees.look_at_links()
        changes = overlay.take_changes() if overlay.changes else ()
        for place, change in enumerate(changes):
            if self._parts.slices.is_preparing:
                overlay.changes[:0] = changes[place:]  # they wait
                break
            if isinstance(change, Heard):
                self._hear(change)
            else:
                self.back_pressure.note(change)
                if not isinstance(change, Piling):
                    trees.note_link(change.name)
        if is_anew or (self._router.has_untold and not self._detection.is_paused):
            self._timer.look_again()
            self.service.settle_input()
        elif changes:  # else acknowledgements, mostly
            self.service.settle_input()
        if not self._parts.slices.is_preparing:
            self._parts.pauses.look()

    def _follow_tree(self) -> bool:
        """The single tree may be another, or may have changed; whether it is another."""
        router = self._router
        epoch, neighbours = router.epoch, set(router.branches)
        if router.follow(self.overlay.topology.single_tree):
            self._change_root()
        is_anew = router.epoch != epoch
        if is_anew:
            self._parts.subscription_sync.confirmations.start_anew()
        for neighbour in sorted(neighbours - router.branches.keys()):
            self._parts.subscription_sync.leave(neighbour)
        self.back_pressure.follow_tree()
        return is_anew

    def _change_root(self) -> None:
        """The tree is another, or this broker's place in it."""
        self._parts.requests.lose_root()
        self._parts.taker.change_tree()
        self._parts.pauses.stop()
        self._parts.catalog_sync.change_role()
        if not self._router.is_root:
            self._parts.inputs.leave()
        self._parts.requests.ask_again()
        self._parts.pauses.enter()

    def _hear(self, heard: Heard) -> None:
        """Take in what a neighbour sent, once it is prepared."""
        prepare = self._prepared.get(type(heard.message))
        if prepare is None:
            self._take_in(heard)
        else:
            work = prepare(heard.neighbour, heard.message)
            self._parts.slices.prepare(work, lambda: self._take_in(heard))

    def _take_in(self, heard: Heard) -> None:
        """Take in what a neighbour sent; what makes no sense is left out, and said."""
        if type(heard.message) not in GATHERED:  # it may have come in a packet before its turn
            self.service.settle_gathered()
        try:
            self._heard[type(heard.message)](heard.neighbour, heard.message)
        except (ProtocolError, RuleErrors) as error:
            what = type(heard.message).__name__
            self.outlet.log(
                "error", f"{what} left out", neighbour=heard.neighbour, reason=str(error)
            )

    def _tell(self) -> None:
        """Tell what is wanted, what is known, and what was answered."""
        timer, subscription_sync = self._timer, self._parts.subscription_sync
        timer.tell_at = None
        self._detection.tell_marks()
        if not self._detection.is_paused:
            subscription_sync.tell()
            subscription_sync.confirm(is_planned=self._parts.trees.is_wanted_planned)
        self._parts.catalog_sync.tell()
        self._parts.requests.tell_answered()
        self.context.send_flows()
        self.back_pressure.tell()
        if self._router.is_root and self._parts.pauses.has_work:
            self._parts.pauses.begin()

    # --- clients (routing.serving.beyond) ---

    def ask(self, link: Link, request: Asking) -> None:
        """A client asks what the root has to answer."""
        if self._journal is not None:
            self._journal.check_asked(link.name, request)
        self._parts.requests.ask(link, request)

    def news(self, batches: tuple[EventBatch, ...]) -> tuple[EventBatch, ...]:
        """Give the events that sinks have not been offered before: another may have passed them on
        before it was lost.
        """
        return self._parts.single_traffic.deduplicator.news(batches)

    def ask_all(self, link: Link, message: AskingAll) -> None:
        """Ask something of all brokers."""
        self.overlay.ask_all(link.peer, link.rights.user, message, self._moment.now)

    def confirm_subscription(self, link: Link, answer: Confirmed) -> None:
        """Answer a client once its subscription is in force everywhere."""
        is_planned = self._parts.trees.is_wanted_planned
        self._parts.subscription_sync.confirm_subscription(link, answer, is_planned=is_planned)

    def note_delivered(self, sink: Sink) -> None:
        """A sink that blocks holds up the sources of other brokers, too, but these hear of it
        later, and are many: what they fill its queue with has a bound of its own.
        """
        is_full, most = self.back_pressure.note_sink(sink), self._config.queue_events_max
        reason = ""
        if sink.excess > most and self.overlay.neighbours and not isinstance(sink, DurableSink):
            reason = f"{most} events of sources at other brokers wait beyond the queue"
        elif sink.size > BLOCKED_BYTES_MAX:
            reason = f"{sink.size >> 20} MiB wait in the queue"
        if is_full and reason:
            for peer, _ in sink.clients(NUMBER):
                self.service.expel(peer, Code.QUEUE_FULL, reason)

    def note_overrun(self, overrun: Overrun) -> None:
        """Tell the root, with the next pause: who has to evaluate the rule anew must know."""
        self._detection.ended[overrun.rule] = overrun.until
        self._parts.root_requests.say(RootRequest(RootTask.END, (overrun.rule,)))

    def is_held(self) -> bool:
        """Whether no source gets credit for now."""
        self.back_pressure.look_at_links()
        is_behind = self._journal is not None and self._journal.is_behind
        return self._detection.is_held or is_behind

    # --- after every input ---

    def settle(self) -> None:
        """Do what follows for others, when clients have got what is theirs."""
        self.back_pressure.look_at_sinks()
        if self._detection.skew_limit.has_news:
            self._detection.skew_limit.has_news = False
            self.back_pressure.look_at_lags()
            self._parts.pulling.tell_kept()
        timer, sinks, detection = self._timer, self._sinks, self._detection
        is_changed = timer.seen != sinks.version and self._router.has_tree
        # While something is prepared it is looked at behind the plan.
        if is_changed and not self._parts.slices.is_preparing:
            timer.seen = sinks.version
            self._know()
        if self.overlay.neighbours:
            self.context.send_flows()
            if self.context.accounts.has_news and self._router.has_tree:
                timer.tell_soon()
        is_at_work = detection.is_at_work
        if is_at_work and (detection.part.evaluator.is_pulling or detection.tree_table.trees):
            self._parts.pulling.ask()
        waits = self._parts.requests.behind_events or detection.publishers.leaving
        if waits and not detection.is_held:
            self._parts.requests.ask_behind_events()
            if detection.publishers.leaving:
                self._parts.single_traffic.say_who_left()
                self._parts.requests.ask_again()  # who was here before, and is back
        if self._commits.waiting:
            self._commits.look()
        if is_at_work:
            self._parts.checkpoints.look_at_replay_buffer()
        if detection.tree_table.trees:
            self._parts.sink_traffic.settle()

    def _know(self) -> None:
        """Types, rules, subscriptions or neighbours have changed."""
        self._parts.subscription_sync.index()
        # What the root knows is told with all that comes at about this time.
        self._parts.trees.ask_for_own()
        self._timer.tell_soon()
