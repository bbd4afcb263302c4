"""A broker in a network: a Node for its clients, part of an overlay, and of its single tree.

It is made of parts, each with one responsibility and the state that belongs to it (the package's
page names them). This file says in which order they are asked; nothing is decided here.

A single broker is the root of a tree of one, and does just what a Node does: b1 without neighbours
follows a plan of its own, and its clients hear the same as those of a Node.

A broker is composed as its strategy needs it: with Measuring if the root goes by what it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from matcher.model import TIME_MIN, EventBatch
from routing import wire
from routing.config import NodeConfig
from routing.delivery.durable import DurableSink
from routing.delivery.sinks import Sink
from routing.durability.journal import PROMISES, Journal
from routing.durability.log_reading import LogReading
from routing.durability.restart import take_over
from routing.effects import Effect, Peer, Send
from routing.errors import ProtocolError
from routing.messages import (
    GATHERED,
    Advertise,
    Asking,
    Code,
    Confirmed,
    Message,
    Need,
    Needed,
    ShowTrace,
    WhenFull,
)
from routing.messages.links import LinkHello
from routing.network.agreement.remote_sources import ELSEWHERE, RemoteSources
from routing.network.agreement.terms import terms_of
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext, NodeCallbacks
from routing.network.brokers.parts import heard_by, parts_of
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.overview import NetworkOverview, broker_facts
from routing.network.evaluation.router import Router
from routing.network.strategy import Strategy
from routing.node import Node
from routing.overlay.config import OverlayConfig
from routing.overlay.ends import Heard, Piling
from routing.overlay.overlay import Overlay
from routing.serving.deployment import Deployed
from routing.serving.draining import close_overdue, stand_in_for
from routing.serving.link import Link
from routing.serving.sources import Source
from routing.serving.status import Overview
from routing.storage import StoreContents
from rules.engine.engine import Detector
from rules.engine.overrun import Overrun
from rules.errors import RuleErrors


class Broker(Node):
    """One broker of a network. Drive it like a Node; neighbours' links are peers like clients'."""

    _divided: DividedDetection
    """Its ``_detection``, made with the rest of the Node."""

    def __init__(
        self,
        config: NodeConfig,
        overlay: OverlayConfig,
        engine: Detector,
        strategy: Strategy,
        now: float = 0.0,
    ) -> None:
        """``strategy``: of the whole network. ``now``: seconds of the host's clock."""
        most = config.composites_per_instant_max
        terms = terms_of(strategy.name, config.ordering, overlay.forget_s, most)
        self.overlay = Overlay(replace(overlay, terms=terms), now)
        self._strategy_name = strategy.name
        self._remote_sources = RemoteSources()
        self._router = Router(overlay.name, config.matching)
        self.agreed = Agreed(type(strategy), config.ordering, self._router)
        """The agreement of its tree."""
        super().__init__(config, engine, now)
        self._timer = UpdateTimer(self._moment, overlay.flood_s)
        self.context = self._make_context()
        """Its tables."""
        self.overlay.traces = self.traces
        self.overlay.trace_queries.find = lambda event: self.traced(event)
        self.overlay.trace_queries.answer = self.context.answer
        parts = parts_of(self.context, self.agreed, self._timer)
        self._needs = parts.needs
        self._subscription_sync = parts.subscription_sync
        self._catalog_sync = parts.catalog_sync
        self._requests = parts.requests
        self._passing = parts.passing
        self._openings = parts.openings
        self._trees = parts.trees
        self._surveying = parts.surveying
        self._inputs = parts.inputs
        self._timed = parts.timed
        self._pulled_progress = parts.pulled_progress
        self.back_pressure = parts.back_pressure
        """The holds of what is full, here and elsewhere."""
        self._pausing = parts.pausing
        self._heard = heard_by(parts)
        self._log_reading = LogReading(self.context, self.agreed)
        self._journal: Journal | None = None

    def recall(self, stored: StoreContents, now: float) -> None:
        """Keep what matters in a store from now on, and go on from what that has kept. Before
        anything else is asked of it; ValueError for the store of another broker.
        """
        assert not self.agreed.by_arrival, "by arrival nothing is kept"
        self._moment.now = now
        journal = Journal(
            self.context,
            self.agreed,
            self._passing.deduplicator,
            lambda effect: self.emit(effect),
        )
        self._durables = journal.durables
        take_over(
            stored,
            self.context,
            self._catalog_sync,
            self._published,
            self._passing.deduplicator,
            journal,
        )
        self._journal = self._divided.keeper = journal
        self._log_reading.log, self._divided.log = stored.reader, stored.log
        self._divided.replay_buffer.let_go_before = stored.let_go

    def stored(self, number: int, now: float) -> None:
        """The store has kept all up to the Store of this number."""
        assert self._journal is not None
        self._moment.now = now
        self._journal.stored(number)
        self._settle()

    def store_failed(self, problem: str, now: float) -> None:
        """The store takes nothing more for now; ``stored`` says that it does again."""
        assert self._journal is not None
        self._moment.now = now
        if self._journal.problem is None:
            self._log("error", "the store takes nothing more", reason=problem)
        self._journal.problem = problem

    def _when_kept(self, action: Callable[[], None]) -> None:
        if self._journal is None:
            action()
        else:
            self._journal.when_kept(action)

    def _make_detection(self, engine: Detector) -> DividedDetection:
        self._divided = DividedDetection(self.overlay.name, self._router, self._basis(engine))
        return self._divided

    def _make_overview(self) -> Overview:
        own = self.overlay.name, self.agreed.division, self._remote_sources
        known = self._deployments, self._advertisements, self._sources, self._sinks
        return NetworkOverview(*own, self._divided, *known)

    def _make_context(self) -> BrokerContext:
        callbacks = NodeCallbacks(
            send=self._send,
            serve=self._serve,
            receive=self.receive,
            refuse=self._refuse,
            expel=self._expel,
            source_of=self._source_of,
            hold=self._credit.hold,
            close_source=self._close_source,
            check_interests=self._check_interests,
            follow=self._follow,
            settle=self._settle,
            when_kept=self._when_kept,
            read_log=lambda *asked: self._log_reading.read(*asked),
            log=self._log,
        )
        return BrokerContext(
            name=self.overlay.name,
            config=self._config,
            moment=self._moment,
            callbacks=callbacks,
            overlay=self.overlay,
            router=self._router,
            detection=self._divided,
            remote_sources=self._remote_sources,
            links=self._links,
            sources=self._sources,
            sinks=self._sinks,
            advertisements=self._advertisements,
            deployments=self._deployments,
        )

    def status(self, now: float) -> Mapping[str, Any]:
        """The answer to StatusRequest: of the network, too, and of this broker's part."""
        facts = broker_facts(
            self.overlay, self._router, self._strategy_name, self._divided, self.agreed.division()
        )
        away, closed = sorted(self.agreed.out_of_reach), list(self.agreed.catalog.closed)
        return {**super().status(now), **facts, "out_of_reach": away, "closed": closed}

    def _filters(self) -> Iterator[tuple[str, str]]:
        """The filters of its sinks, and of all beyond the neighbours in the tree."""
        yield from super()._filters()
        for branch in self._router.branches.values():
            for name in branch.types:
                for text in branch.texts(name):
                    yield name, text

    @property
    def remembered(self) -> int:
        """Ids of published events that are remembered, the most together (repeat_ids_max)."""
        return max(self._passing.remembered, self._published.remembered)

    @property
    def lent(self) -> frozenset[str]:
        """At the root: types that are known until the next plan, whoever speaks of them."""
        return self._catalog_sync.lent

    @property
    def is_at_rest(self) -> bool:
        """Whether it works by a plan for the tree as it is, has told and heard all that follows
        from what it knows, and waits for nothing of its neighbours.
        """
        return (
            self.agreed.is_planned
            and self._divided.is_at_work
            and not self._divided.is_held
            and self._timer.tell_at is None
            and self._subscription_sync.is_settled
            and self.overlay.is_settled
            and not any(one.buffered or one.kept for one in self.overlay.neighbours.values())
        )

    # --- inputs ---

    def receive_frames(self, peer: Peer, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode and take in one message, of a client or of a neighbour."""
        if self.overlay.neighbours:
            self._awake(now)
        is_link = peer in self.overlay.links
        if is_link or (peer not in self._links.by_peer and wire.looks_like(frames, LinkHello)):
            self.overlay.receive_frames(peer, frames, now)
            self._follow_overlay(now)
        else:
            super().receive_frames(peer, frames, now)

    def configure(self, config: NodeConfig, now: float) -> None:
        """Take over what a running broker can change."""
        super().configure(config, now)
        self._passing.configure(config.repeat_ids_max)

    def lose(self, peer: Peer, now: float) -> None:
        """The link broke, be it a client's or a neighbour's."""
        self._awake(now)
        if peer in self.overlay.links:
            self.overlay.lose(peer, now)
            self._follow_overlay(now)
        else:
            super().lose(peer, now)

    def add_link(self, peer: Peer, now: float, delay_us: int | None = None) -> None:
        """Be linked to the broker at ``peer``."""
        self.overlay.add_link(peer, now, delay_us)

    def handle_timer(self, now: float) -> None:
        """Do what is due, for clients and for neighbours."""
        self._awake(now)
        timer = self._timer
        for part in self._timed:
            if part.due_at is not None and part.due_at <= now:
                self._moment.now = now
                part.handle_timer()
        due = self.overlay.next_timer()
        if due is not None and due <= now:
            self.overlay.handle_timer(now)
            self._follow_overlay(now)
        if timer.tell_at is not None and timer.tell_at <= now:
            self._moment.now = now
            self._tell()
        due = super().next_timer()
        if due is not None and due <= now:
            super().handle_timer(now)

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next."""
        due, others = super().next_timer(), [part.due_at for part in self._timed]
        for at in (self._timer.tell_at, self.overlay.next_timer(), *others):
            if at is not None and (due is None or at < due):
                due = at
        return due

    def drain(self, now: float) -> None:
        """Begin to drain, and go on; what is kept for others is let go of as soon as it may."""
        self._divided.replay_buffer.look_soon()
        for one in close_overdue(self._divided.publishers.all, now):
            self._divided.withdraw(one, ())
        super().drain(now)
        name, publishers = self.overlay.name, self._divided.publishers
        if not (len(self._divided.replay_buffer) or any(publishers.all)):
            publishers.forgets = True
            if name in dict(self.agreed.catalog.homes):
                self._needs.say(Need(Needed.LEAVE, (name,)))

    def _hand_over(self, source: Source) -> None:
        stand_in = stand_in_for(source, self._moment.now)
        self._divided.publishers.add(stand_in, stand_in.floors)
        self._close_source(source, "gone to another broker")

    def close(self, reason: str, now: float) -> None:
        """Say Goodbye to clients and neighbours."""
        super().close(reason, now)
        self.overlay.close(reason, now)

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        if self._journal is not None:
            self._journal.flush()
        others = self.overlay.take_effects() if self.overlay.effects else []
        return super().take_effects() + others if self._effects else others

    # --- the network ---

    def _awake(self, now: float) -> None:
        """Where others may have closed this broker's inputs, sources have to advertise again before
        anything more is taken of them: the plan that comes first says so (planning, Law 4).
        """
        if self.overlay.awake(now):
            self._moment.now = now
            for link in [link for link in self._links if link.source is not None]:
                reason = "this broker was kept from its work: advertise the types again"
                self._expel(link.peer, Code.SILENT, reason)
            self._follow_overlay(now)

    def _follow_overlay(self, now: float) -> None:
        self._moment.now = now
        overlay, trees = self.overlay, self._trees
        trees.look_at_links()
        if overlay.has_moved:
            self._settle_gathered()
        is_anew = overlay.has_moved and overlay.take_moved() and self._follow_tree()
        changes = overlay.take_changes() if overlay.changes else ()
        for change in changes:
            if isinstance(change, Heard):
                self._hear(change)
            else:
                self.back_pressure.note(change)
                if not isinstance(change, Piling):
                    trees.note_link(change.name)
        if is_anew or (self._router.has_untold and not self._divided.is_held):
            self._timer.look_again()
            self._settle_input()
        elif changes:  # else acknowledgements, mostly
            self._settle_input()
        self._pausing.look()

    def _follow_tree(self) -> bool:
        """The single tree may be another, or may have changed; whether it is another."""
        router = self._router
        epoch, neighbours = router.epoch, set(router.branches)
        if router.follow(self.overlay.single_tree):
            self._change_root()
        is_anew = router.epoch != epoch
        if is_anew:
            self._subscription_sync.start_anew()
        for neighbour in sorted(neighbours - router.branches.keys()):
            self._subscription_sync.leave(neighbour)
        self.back_pressure.follow_tree()
        return is_anew

    def _change_root(self) -> None:
        """The tree is another, or this broker's place in it."""
        self._requests.lose_root()
        self._pausing.stop()
        self._catalog_sync.change_role()
        if not self._router.is_root:
            self._inputs.leave()
        self._requests.ask_again()
        self._pausing.enter()

    def _hear(self, heard: Heard) -> None:
        """Take in what a neighbour sent; what makes no sense is left out, and said."""
        if type(heard.message) not in GATHERED:  # it may have come in a packet before its turn
            self._settle_gathered()
        try:
            self._heard[type(heard.message)](heard.neighbour, heard.message)
        except (ProtocolError, RuleErrors) as error:
            what = type(heard.message).__name__
            self._log("error", f"{what} left out", neighbour=heard.neighbour, reason=str(error))

    def _tell(self) -> None:
        """Tell what is wanted, what is known, and what was answered."""
        timer, subscription_sync = self._timer, self._subscription_sync
        timer.tell_at = None
        self._divided.tell_marks()
        if not self._divided.is_held:
            subscription_sync.tell()
            subscription_sync.confirm(is_planned=self._trees.is_wanted_planned)
        self._catalog_sync.tell()
        self._requests.tell_answered()
        self.context.send_flows()
        self.back_pressure.tell()
        if self._router.is_root and self._pausing.has_work:
            self._pausing.begin()

    # --- clients ---

    def _ask(self, link: Link, request: Asking) -> None:
        if self._journal is not None and isinstance(request, Advertise):
            self._journal.check_room()
        self._requests.ask(link, request)

    def _serve(self, link: Link, request: Asking) -> None:
        Node.handlers[type(request)](self, link, request)

    def _show_trace(self, link: Link, message: ShowTrace) -> None:
        self.overlay.ask_traces(link.peer, message, self._moment.now)

    def _unseen(self, batches: tuple[EventBatch, ...]) -> tuple[EventBatch, ...]:
        return self._passing.news(batches)  # another may have passed them on before it was lost

    def _confirm_subscription(self, link: Link, answer: Confirmed) -> None:
        is_planned = self._trees.is_wanted_planned
        self._subscription_sync.confirm_subscription(link, answer, is_planned=is_planned)

    def _deliver(self, sink: Sink) -> None:
        """A sink that blocks holds up the sources of other brokers, too, but these hear of it
        later, and are many: what they fill its queue with has a bound of its own.
        """
        super()._deliver(sink)
        self.back_pressure.note_sink(sink)
        most = self._config.queue_events_max
        is_excessive = sink.when_full is WhenFull.BLOCK and sink.excess > most
        if is_excessive and self.overlay.neighbours and not isinstance(sink, DurableSink):
            reason = f"{most} events of sources at other brokers wait beyond the queue"
            self._expel(sink.peer, Code.QUEUE_FULL, reason)

    # --- after every input ---

    def _settle(self) -> None:
        super()._settle()
        self.back_pressure.look_at_sinks()
        if self._divided.skew_limit.has_news:
            self._divided.skew_limit.has_news = False
            self.back_pressure.look_at_lags()
            self._pulled_progress.tell_kept()
        timer, sinks, detection = self._timer, self._sinks, self._divided
        if timer.seen != sinks.version and self._router.has_tree:
            timer.seen = sinks.version
            self._know()
        if self.overlay.neighbours:
            self.context.send_flows()
        is_at_work = detection.is_at_work
        if is_at_work and (detection.part.evaluator.is_pulling or detection.tree_table.trees):
            self._openings.ask_below()
        if not detection.is_held:
            self._requests.ask_behind_events()
            if detection.publishers.leaving:
                self._passing.say_who_left()
                self._requests.ask_again()  # who was here before, and is back
        if is_at_work:
            self._surveying.look_at_replay_buffer()
        if detection.tree_table.trees:
            self._openings.settle()

    def _know(self) -> None:
        """Types, rules, subscriptions or neighbours have changed."""
        self._subscription_sync.index()
        # What the root knows is told with all that comes at about this time.
        self._trees.ask_for_own()
        self._timer.tell_soon()

    def _end(self, overrun: Overrun) -> None:
        """Tell the root, with the next pause: who has to evaluate the rule anew must know."""
        until = TIME_MIN if self.agreed.by_arrival else overrun.until
        self._divided.ended[overrun.rule] = until
        self._needs.say(Need(Needed.END, (overrun.rule,)))

    def _withdraw(self, one: Deployed) -> None:
        self._requests.withdraw(one)

    def _is_held(self) -> bool:
        self.back_pressure.look_at_links()
        is_behind = self._journal is not None and self._journal.is_behind
        return self._divided.is_held or is_behind

    def _send(self, peer: Peer, message: Message) -> None:
        if peer == ELSEWHERE:
            self._requests.note_answer(message)
        elif self._journal is not None and type(message) in PROMISES:
            self._journal.when_kept(lambda: self.emit(Send(peer, message)))
        else:
            super()._send(peer, message)


Broker.handlers = {**Node.handlers, **dict.fromkeys(get_args(Asking), Broker._ask)}
