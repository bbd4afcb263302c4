"""The work of a broker for its clients: it takes their events in, evaluates, delivers, answers.

Each part owns its state: who is connected (link), who publishes (sources, advertisements), rules
and engine (detection), who subscribes (sinks), who may send (credit). This file only composes
them, and after every input does, in this order: evaluate, deliver, acknowledge, grant credit. Who
waits for events is served before who waits to hear that they came; and published events, which
are due at once, are on their way before the engine gets to work on them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from matcher.identity import plain_name
from matcher.model import MICROSECONDS, EventBatch, EventType
from matcher.times import time_text
from matcher.traces import TraceContexts
from routing.config import Late, NodeConfig
from routing.delivery.durable import Durables
from routing.delivery.sinks import Sink, Sinks
from routing.delivery.subscriptions import Interest, fits
from routing.effects import Effect, Log, Peer, Send
from routing.errors import ProtocolError, Refusal
from routing.messages import (
    EVERYTHING,
    VERSION,
    Acknowledged,
    Acks,
    Act,
    Advertise,
    Code,
    Confirmed,
    Credit,
    Deploy,
    ListRules,
    Message,
    Promise,
    Publish,
    ReadLog,
    Refused,
    Rejected,
    Remove,
    RemoveDurable,
    Rights,
    ShowRule,
    StatusRequest,
    Subscribe,
    SubscriptionPaused,
    Unadvertise,
    Unsubscribe,
    WhenFull,
)
from routing.order import first_time, in_sequence
from routing.permission import check_right
from routing.serving.advertisements import Advertisements
from routing.serving.ahead import Ahead, horizon_of
from routing.serving.buckets import CREDIT_MAX, Buckets, credit_of
from routing.serving.changes import Basis
from routing.serving.credit import PublishCredit
from routing.serving.deployment import Deployed, Deployments
from routing.serving.detection import Detection
from routing.serving.evaluator import Evaluator
from routing.serving.intake import Intake, check_schema, newer, take_in
from routing.serving.limits import check_count
from routing.serving.link import Link, Links
from routing.serving.moment import Moment
from routing.serving.parts import as_known
from routing.serving.published import PublishedIds, Sifted, have_ids
from routing.serving.rates import Rates
from routing.serving.sources import FAR, GOODBYE, Source, Sources
from routing.serving.status import (
    Overview,
    begin_facts,
    client_facts,
    ended_facts,
)
from routing.serving.users import UserRights
from routing.traced import with_traces
from rules.engine.conflict import Conflict
from rules.engine.engine import NOTHING, Detector
from rules.engine.overrun import Overrun

NAMED_MAX = 20
"""Rules of a text that the log names; the others it counts."""
OVERRUNS_TOLD = 20
"""Rules that have ended, having too many composite events, that the status names."""
ALONE: Mapping[str, Any] = {
    "strategy": None,
    "father": None,
    "centre": None,
    "settled": True,
    "brokers": [],
    "links": [],
    "trees": [],
}
"""The network of a broker that works alone, but for its root, itself."""


class Service:
    """One broker's parts, and what its clients ask for. Node adds links, timers and effects."""

    def __init__(self, config: NodeConfig, engine: Detector, now: float = 0.0) -> None:
        self._config = config
        self._moment = Moment(now)
        self._started_at = self._ticked_at = now
        self._closed = False
        self._effects: list[Effect] = []
        self.emit: Callable[[Effect], object] = self._effects.append
        """The use of each effect: kept for ``take_effects``, unless the host carries it out
        as soon as it arises."""
        self.rights_of: Callable[[Peer], Rights] = lambda peer: EVERYTHING
        """The rights of who is at a link: the host knows them, where there are keys."""
        self._users = UserRights()
        self._limits_sizes = False
        """Whether any user's messages have a limit of their own."""
        self._links = Links()
        self._published = PublishedIds(config)
        self._sources = Sources(config)
        self._advertisements = Advertisements(config)
        self._deployments = Deployments(config)
        self._sinks = Sinks(config, self._deployments)
        self._durables = Durables(self._sinks)
        self._detection = self._make_detection(engine)
        self._credit = PublishCredit(
            config, self._advertisements, self._deployments, self._sinks, self._moment
        )
        self._buckets = Buckets(config.heartbeat_s)
        self._overview = self._make_overview()
        self._rates = Rates(now)
        self.traces = TraceContexts()
        """Trace contexts of events that have come, and of composite events found of them."""
        self.traced: Callable[[str], Mapping[str, Any]] = lambda event: {"traced": 0, "events": []}
        """Gives what the host has kept of an event's path: nothing, unless it traces."""
        self.draining: Sequence[str] | None = None
        """Once it drains, what it waits for, in words, as its host has found last."""
        self._refused: set[str] = set()
        """The names of brokers that have tried to link to this one, which works alone."""
        self._overruns: deque[str] = deque(maxlen=OVERRUNS_TOLD)
        """In words, which rules have ended, and why; the last of them."""
        self._unacknowledged: dict[Peer, Link] = {}
        """Links of which a Publish was taken in, while that is not yet said."""
        self._gathers = False
        """Whether what follows from inputs is done later, for several (routing.node, Law 3)."""
        self._is_unsettled = False
        """Whether it is still to be done for any."""

    def _make_detection(self, engine: Detector) -> Evaluator:
        return Detection(self._basis(engine))

    def _basis(self, engine: Detector) -> Basis:
        return Basis(
            self._config,
            engine,
            self._advertisements,
            self._deployments,
            on_types=self._check_interests,
            on_rules=self._sinks.index,
        )

    def _make_overview(self) -> Overview:
        return Overview(
            self._detection, self._deployments, self._advertisements, self._sources, self._sinks
        )

    def status(self, now: float) -> Mapping[str, Any]:
        """The answer to StatusRequest: plain data, ready for JSON."""
        duplicates = sum(source.duplicates for source in self._sources)
        return {
            "broker": self._config.name,
            "version": VERSION,
            "uptime_s": round(now - self._started_at, 3),
            "clients": [client_facts(link, now) for link in self._links],
            "network": {**ALONE, "root": self._config.name},
            **self._overview.facts(now),
            "former_types": [
                {"name": name, "schema": str(schema)}
                for name, schema in sorted(self._former_types().items())
            ],
            "parts": list(self._detection.parts),
            "memory": dict(self._detection.memory),
            "overruns": list(self._overruns),
            "durable": list(self._durables.facts),
            "draining": None if self.draining is None else list(self.draining),
            "totals": {
                **self._rates.totals,
                "duplicates": duplicates + self._detection.duplicates,
            },
            "rates": self._rates.per_second,
        }

    def _former_types(self) -> Mapping[str, EventType]:
        """The last schemas of types that nobody publishes or mentions any more, and that somebody
        has subscribed to by what they had, by name.
        """
        found: dict[str, EventType] = {}
        for name, text in self._filters():
            schema = None if name in found else self._advertisements.former(name)
            if schema is not None and fits(text, schema):
                found[name] = schema
        return found

    def _filters(self) -> Iterator[tuple[str, str]]:
        """The filters that this broker knows of, each with its type's name."""
        for sink in self._sinks:
            for one in sink.interests:
                yield one.type_name, one.text

    # --- sources ---

    def _source_of(self, link: Link) -> Source:
        """The link's source, which comes alive when the client first acts as one."""
        if link.source is None:
            if not link.name:
                raise ProtocolError(Code.BAD_NAME, "a client without a name cannot publish")
            source = self._sources.join(link.name, link.peer, self._moment.now, link.home)
            source.replays = link.replays
            self._limit(source, link.rights)
            source.outstanding = min(self._config.publish_credit, source.credit_max)
            link.is_behind = source.last_sequence > link.last_sequence
            link.source = source
            self._detection.resume(source)
        return link.source

    def _limit(self, source: Source, rights: Rights) -> None:
        """Hold a source to the limits of its user."""
        source.bucket = self._buckets.of(rights, self._moment.now)
        source.credit_max = credit_of(rights, source.bucket)

    def _receive_advertise(self, link: Link, message: Advertise) -> None:
        check_right(link.rights, Act.PUBLISH, *(schema.name for schema in message.types))
        self._advertisements.check(message.types, link.name)
        source = self._source_of(link)
        self._detection.advertise(source, message.types)
        detail = begin_facts(source, message.types)
        if link.is_behind:
            detail = {**detail, "last_sequence": source.last_sequence}
        self._send(link.peer, Confirmed(message.request, detail))

    def _receive_unadvertise(self, link: Link, message: Unadvertise) -> None:
        source = self._source_of(link)
        for name in message.types:
            if name not in source.floors:
                raise Refusal(Code.UNKNOWN, f"event type {name} was not advertised")
        self._detection.withdraw(source, list(dict.fromkeys(message.types)))
        self._send(link.peer, Confirmed(message.request))

    def _note_traces(self, source: Source, message: Publish) -> None:
        whole, batches = source.whole, message.batches
        known = batches if whole is None else [as_known(whole, batch) for batch in batches]
        self.traces.take(known, message.traces)

    def _receive_publish(self, link: Link, message: Publish) -> None:
        source = self._source_of(link)
        for batch in message.batches:
            if batch.type.name in source.floors:
                check_schema(batch, self._advertisements[batch.type.name].schema)
        horizon = self._horizon
        ahead = self._ahead(source, horizon)
        intake = self._take_in(source, message.batches, ahead)
        self._credit.spend(source, intake.events)
        if message.traces:
            self._note_traces(source, message)
        self._take_over(source, intake, horizon)
        for rejection in intake.rejections:
            self._send(link.peer, rejection)
        # By what was refused as too far ahead nothing can be promised either.
        if not (intake.ahead and ahead.refuses(message.promise)):
            self._take_promise(link, source, message.promise, ahead)
        if message.acks is Acks.BROKER:
            self._unacknowledged[link.peer] = link

    def _take_in(self, source: Source, batches: Sequence[EventBatch], ahead: Ahead) -> Intake:
        whole = source.whole
        if whole is None:
            intake = take_in(source, batches, ahead)
            if not (intake.late or have_ids(intake.taken)):  # common
                return intake
            unseen = Sifted(tuple(batches))
            if intake.late:
                # What repeats an event that was taken is a duplicate, however late it comes.
                unseen = self._published.unseen(None, newer(batches, source.last_sequence))
                intake = take_in(source, unseen.batches, ahead)
            found = self._published.sift(intake.taken)
            if unseen.batches == tuple(batches) and found.batches == intake.taken:
                return intake
            return intake.sifted(batches, unseen, found, late=intake.late)
        unseen = self._published.unseen(whole, batches)
        intake = take_in(source, unseen.batches, ahead)
        late = tuple(as_known(whole, batch) for batch in intake.late)
        joined = self._published.joined(whole, intake.taken)
        return intake.sifted(batches, unseen, joined, late=late)

    def _take_over(self, source: Source, intake: Intake, horizon: int) -> None:
        source.last_sequence = intake.last_sequence
        if intake.taken:
            source.note(first_time(intake.taken[0]), intake.front)
            self._take(source, intake.taken, intake.accepted, horizon)
        if intake.duplicates or intake.rejected:
            source.duplicates += intake.duplicates
            source.rejected += intake.rejected
        if intake.late:
            self._report_late(source, intake.late)
        if intake.ahead:
            source.ahead += intake.ahead
            text = "events ahead of the clock"
            self._log("warning", text, source=source.name, events=intake.ahead)

    def _take(
        self, source: Source, batches: tuple[EventBatch, ...], events: int, horizon: int
    ) -> None:
        source.events += events
        self._rates.received += events
        unseen = batches if source.whole is None else self._unseen(batches)
        self._sinks.offer(unseen, None if len(unseen) == 1 else in_sequence(unseen))
        if not self._gathers:
            for sink in self._sinks.touched:
                self._send_due(sink)
        given_up = self._detection.push(batches, horizon)
        if given_up:
            self._log("warning", "rules wait no longer", types=given_up)

    def _unseen(self, batches: tuple[EventBatch, ...]) -> tuple[EventBatch, ...]:
        """The events of a part of a source that sinks have not been offered before."""
        return batches

    def _report_late(self, source: Source, late: Sequence[Any]) -> None:
        count = sum(map(len, late))
        source.late += count
        self._log("warning", "late events", source=source.name, events=count)
        if self._config.late is Late.DELIVER:
            self._sinks.offer(tuple(late), in_sequence(late), late=True)

    def _report(self, conflict: Conflict) -> None:
        """Name an event that came as far as the engine, as from two brokers, and is dropped."""
        self._log(
            "warning",
            "event dropped, its id is that of another one",
            source=conflict.source,
            id=conflict.id,
            type=conflict.type,
            time=time_text(conflict.time),
            other=time_text(conflict.before),
        )

    def _receive_promise(self, link: Link, message: Promise) -> None:
        source = self._source_of(link)
        self._take_promise(link, source, message.mark, self._ahead(source, self._horizon))

    def _take_promise(self, link: Link, source: Source, mark: int | None, ahead: Ahead) -> None:
        """Take a promise over, or refuse one that is too far ahead, which then counts for
        nothing.
        """
        if mark is not None and ahead.refuses(mark):
            reason = f"a promise ahead of the clock: {ahead.describe(mark)}"
            self._send(link.peer, Rejected(Code.AHEAD, (), reason))
            self._log("warning", "promise ahead of the clock", source=source.name, promise=mark)
        else:
            self._detection.keep_promise(source, mark, self._moment.now)

    def _ahead(self, source: Source, horizon: int) -> Ahead:
        """How far ahead of the clock a source's events and promises may be."""
        clock = round(self._moment.now * MICROSECONDS)
        return Ahead(clock, FAR if source.replays else horizon)

    @property
    def _horizon(self) -> int:
        """The latest time that live sources may speak of."""
        return horizon_of(self._config, self._moment.now)

    # --- sinks ---

    def _receive_subscribe(self, link: Link, message: Subscribe) -> None:
        self._check_subscriptions(link)
        added = self._subscribe(link, message)
        self._follow()
        if added.problem is not None:
            self._send(link.peer, SubscriptionPaused(added.number, added.problem))
        detail = {
            "type": added.type_name,
            "waits": added.filter is None,
            "waits_for": self._missing_below(added.type_name),
        }
        self._confirm_subscription(link, Confirmed(message.request, detail))

    def _subscribe(self, link: Link, message: Subscribe) -> Interest:
        schemas = self._advertisements.schemas
        if message.durable:
            return self._durables.subscribe(link.peer, message, schemas, link.rights)
        if self._durables.find(link.peer) is not None:
            raise Refusal(Code.IN_USE, "this client is attached to a durable sink")
        return self._sinks.subscribe(link.peer, link.name, message, schemas, link.rights)

    def _sink_of(self, peer: Peer) -> Sink | None:
        """The sink at a link, or the durable one that its client is attached to."""
        sink = self._sinks.find(peer)
        return self._durables.find(peer) if sink is None else sink

    def _leave(self, peer: Peer) -> None:
        """A client has gone as a sink."""
        self._sinks.remove(peer)
        self._durables.detach(peer)

    def _receive_acknowledged(self, link: Link, message: Acknowledged) -> None:
        sink = self._durables.find(link.peer)
        if sink is None:
            reason = "an acknowledgement from a client without a durable subscription"
            raise ProtocolError(Code.PROTOCOL, reason)
        sink.acknowledge(link.peer, message.sequence)

    def _receive_remove_durable(self, link: Link, message: RemoveDurable) -> None:
        removed = self._durables.remove(message.name, link.rights)
        self._follow()
        self._send(link.peer, Confirmed(message.request, {"queued": removed.queued}))
        self._log("info", "durable sink removed", name=message.name, client=link.name)

    def _check_subscriptions(self, link: Link) -> None:
        """Refusal where its user may have no more subscriptions than it has."""
        rights = link.rights
        if rights.limits.subscriptions_max is None:
            return
        peers = [one.peer for one in self._links if one.rights.user == rights.user]
        own = {sink.peer: sink for sink in map(self._sink_of, peers) if sink is not None}
        count = 1 + sum(len(sink.interests) for sink in own.values())
        check_count(rights, "subscriptions_max", count, "subscriptions")

    def _missing_below(self, name: str) -> list[str]:
        """The types that all rules which define a type wait for, since nobody has advertised them;
        none if somebody has advertised the type itself.
        """
        waits = [self._overview.absent(one) for one in self._deployments.defining(name)]
        known = self._advertisements.find(name)
        if not all(waits) or (known is not None and known.was_advertised):
            return []
        return sorted(set[str]().union(*waits))

    def _confirm_subscription(self, link: Link, answer: Confirmed) -> None:
        self._send(link.peer, answer)

    def _receive_unsubscribe(self, link: Link, message: Unsubscribe) -> None:
        if self._durables.find(link.peer) is not None:
            self._durables.unsubscribe(link.peer, message.number)
        else:
            self._sinks.unsubscribe(link.peer, message.number)
        self._follow()
        self._send(link.peer, Confirmed(message.request))

    def _receive_credit(self, link: Link, message: Credit) -> None:
        sink = self._sink_of(link.peer)
        if sink is None:
            raise ProtocolError(Code.PROTOCOL, "credit from a client that has not subscribed")
        sink.grant(link.peer, message.events, CREDIT_MAX)
        self._sinks.touch(sink)

    def _check_interests(self) -> None:
        """Types have become known, are others, or were forgotten: subscriptions are checked."""
        for sink, interest in self._sinks.check(self._advertisements.schemas):
            self._send(sink.peer, SubscriptionPaused(interest.number, interest.problem))

    # --- rules ---

    def _receive_deploy(self, link: Link, message: Deploy) -> None:
        changes = self._detection.changes
        deployed, ended = changes.deploy(message, self._moment.now, link.rights)
        self._follow()
        in_order = sorted(deployed, key=lambda one: one.serial)
        rules, replaced = (
            self._overview.rules(in_order, self._moment.now),
            list(map(ended_facts, ended)),
        )
        self._send(link.peer, Confirmed(message.request, {"rules": rules, "replaced": replaced}))
        names = [one.name for one in deployed[:NAMED_MAX]]
        more = {"more": len(deployed) - NAMED_MAX} if len(deployed) > NAMED_MAX else {}
        self._log("info", "deployed", rules=names, **more, client=link.name)

    def _receive_remove(self, link: Link, message: Remove) -> None:
        check_right(link.rights, Act.REMOVE, message.name)
        ended = self._detection.changes.remove(message.name, self._moment.now)
        self._follow()
        self._send(link.peer, Confirmed(message.request, ended_facts(ended)))
        self._log("info", "removed", rule=message.name, client=link.name)

    def _receive_read_log(self, link: Link, message: ReadLog) -> None:
        raise Refusal(Code.NO_STORE, f"broker {self._config.name!r} keeps no log (--data)")

    def _receive_list_rules(self, link: Link, message: ListRules) -> None:
        check_right(link.rights, Act.COMMAND, "rule list")
        rules = self._overview.rules(self._deployments.in_force, self._moment.now)
        self._send(link.peer, Confirmed(message.request, {"rules": rules}))

    def _receive_show_rule(self, link: Link, message: ShowRule) -> None:
        check_right(link.rights, Act.COMMAND, "rule show")
        deployed = self._deployments.find_in_force(message.name)
        if deployed is None:
            raise Refusal(Code.UNKNOWN, f"no rule is named {message.name}")
        (facts,) = self._overview.rules([deployed], self._moment.now)
        self._send(link.peer, Confirmed(message.request, {**facts, "text": deployed.rule.text}))

    def _receive_status(self, link: Link, message: StatusRequest) -> None:
        check_right(link.rights, Act.COMMAND, "status")
        self._send(link.peer, Confirmed(message.request, self.status(self._moment.now)))

    def change_rights(self, users: Mapping[str, Rights], now: float) -> None:
        """Let users have these rights from now on. What they do not allow any more ends: sources
        with their links, subscriptions, and rules that their owners were allowed before.
        """
        self._moment.now = now
        self._users.change(users)
        limits = (one.limits.message_bytes_max for one in users.values())
        self._limits_sizes = any(most is not None for most in limits)
        for link in self._users.changed(self._links):
            self._look_at_rights(link)
        for one, reason in self._users.lost(self._deployments.in_force):
            self._log("warning", "a rule ends", rule=one.name, user=one.owner, reason=reason)
            self._withdraw(one)
        self._settle()

    def _look_at_rights(self, link: Link) -> None:
        """A client has other rights: end what they do not allow."""
        try:
            check_right(link.rights, Act.PUBLISH, *(link.source.floors if link.source else ()))
        except Refusal as refusal:
            self._note_not_allowed(link, str(refusal))
            self._expel(link.peer, refusal.code, str(refusal))
            assert link.source is not None
            self._close_source(link.source, refusal.code.value)
            return
        if link.source is not None:
            self._limit(link.source, link.rights)
        sink = self._sink_of(link.peer)
        if sink is None:
            return
        schemas = self._advertisements.schemas
        for number, reason in self._sinks.change_rights(sink.peer, link.rights, schemas):
            self._send(link.peer, SubscriptionPaused(number, reason))
            self._refuse(link, None, Code.NOT_ALLOWED, reason)
        self._follow()

    def _refuse(self, link: Link, request: int | None, code: Code, reason: str) -> None:
        """Answer that a request was refused."""
        if code is Code.NOT_ALLOWED:
            self._note_not_allowed(link, reason)
        self._send(link.peer, Refused(request, code, reason))

    def _note_not_allowed(self, link: Link, reason: str) -> None:
        self._rates.not_allowed += 1
        self._log("warning", "not allowed", client=link.name, reason=reason)

    def _withdraw(self, one: Deployed) -> None:
        """Remove a rule that nobody has asked to remove."""
        self._detection.changes.remove(one.name, self._moment.now)
        self._follow()

    def _close_source(self, source: Source, why: str = GOODBYE) -> None:
        """Close a source, which has published everything."""
        self._sources.close(source, why)
        self._detection.withdraw(source, list(source.floors))

    def _take_overrun(self, overrun: Overrun) -> None:
        """A rule has ended, having more composite events at an instant than it may: say so."""
        self._overruns.append(str(overrun))
        name = plain_name(overrun.rule)
        self._log("error", "a rule has ended", rule=name, reason=str(overrun))
        self._end(overrun)

    def _end(self, overrun: Overrun) -> None:
        """Take a rule that has ended out of force; who waits for what no rule names now is told."""
        ended = self._detection.changes.end(overrun.rule, overrun.until)
        if ended is None:
            return
        self._follow()
        for sink, interest in self._sinks.pause(ended.rule.defines.name, str(overrun)):
            self._send(sink.peer, SubscriptionPaused(interest.number, interest.problem))

    # --- after every input ---

    def _settle_input(self) -> None:
        """Settle behind an input, or behind all that is gathered."""
        if self._gathers:
            self._is_unsettled = True
        else:
            self._settle()

    def _settle_gathered(self) -> None:
        """Settle for all that was gathered; published events, which are due at once, go first."""
        self._gathers = False
        if self._is_unsettled:
            for sink in self._sinks.touched:
                self._send_due(sink)
            self._settle()

    def _settle(self) -> None:
        """Evaluate, deliver, acknowledge, grant credit (Law 2)."""
        self._is_unsettled = False
        detections = self._detection.advance(self._moment.now)
        if detections is not None:
            self._rates.detected += len(detections)
            if self.traces.has_any:
                self.traces.follow(detections.batches)
            if self._sinks.follow_rules:
                self._sinks.offer_detected(detections, self._detection.due_mark)
            if (conflict := self._detection.take_conflict()) is not None:
                self._report(conflict)
        for overrun in self._detection.take_overruns():
            self._take_overrun(overrun)
        for sink in self._sinks.take_touched():
            if sink.has_any:  # most have got all of it before the engine began
                self._deliver(sink)
        if self._unacknowledged:
            self._acknowledge()
        if self._credit.waiting and not self._is_held():
            for grant in self._credit.grants():
                assert grant.source.peer is not None
                grant.source.outstanding += grant.events
                self._send(grant.source.peer, Credit(grant.events))

    def _is_held(self) -> bool:
        """Whether no source gets credit for now."""
        return False

    def _acknowledge(self) -> None:
        links, self._unacknowledged = self._unacknowledged, {}
        for peer, link in links.items():
            # It may be a sink, too, that was just sent away.
            if link.source is not None and self._links.by_peer.get(peer) is link:
                self._send(peer, Acknowledged(link.source.last_sequence))

    def _follow(self) -> None:
        """Rules or subscriptions have changed: what is held back may be due."""
        if self._sinks.follow_rules:
            self._sinks.offer_detected(NOTHING, self._detection.due_mark)

    def _send_due(self, sink: Sink) -> None:
        before = sink.delivered
        while (delivery := sink.take(self._config.delivery_events_max)) is not None:
            if self.traces.has_any:
                delivery = with_traces(delivery, self.traces)
            self._send(sink.to, delivery)
        self._rates.delivered += sink.delivered - before

    def _deliver(self, sink: Sink) -> None:
        self._send_due(sink)
        if sink.excess <= 0:
            return
        if sink.when_full is WhenFull.DROP_OLDEST:
            self._rates.dropped += sink.drop_oldest()
        elif sink.when_full is WhenFull.DISCONNECT:
            self._expel(sink.peer, Code.QUEUE_FULL, f"the queue of {sink.limit} events is full")
        # Else it blocks: its sources get no credit (routing.serving.credit).

    def _expel(self, peer: Peer, code: Code, reason: str) -> None:
        """Close a link, whether it is known or not, and say why."""
        raise NotImplementedError

    def _send(self, peer: Peer, message: Message) -> None:
        link = self._links.by_peer.get(peer)
        if link is not None:
            link.sent_at = self._moment.now
        self.emit(Send(peer, message))

    def _log(self, level: str, text: str, **fields: Any) -> None:
        self.emit(Log(level, text, fields))
