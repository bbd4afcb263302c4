"""The work of a broker for its clients: it takes their events in, evaluates, delivers, answers.

Each part owns its state: who is connected (link), who publishes (sources, advertisements), rules
and engine (detection), who subscribes (sinks), who may send (credit). This file only composes
them, and after every input does, in this order: evaluate, deliver, acknowledge, grant credit. Who
waits for events is served before who waits to hear that they came; and published events, which
are due at once, are on their way before the engine gets to work on them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from matcher.identity import plain_name
from matcher.model import MICROSECONDS, EventBatch, EventType
from matcher.times import time_text
from routing import messages
from routing.config import Late, NodeConfig, Ordering
from routing.delivery.durable import DurableSink
from routing.delivery.durables import DurableChange, Durables
from routing.delivery.sink import Sink
from routing.delivery.subscriptions import Interest, fits
from routing.effects import Peer
from routing.errors import ProtocolError, Refusal
from routing.messages import Code, Confirmed, ListRules, Publish, ShowRule
from routing.order import in_sequence
from routing.permission import check_publishing, check_right
from routing.serving.ahead import Ahead, horizon_of
from routing.serving.beyond import Beyond
from routing.serving.buckets import CREDIT_MAX, Buckets, credit_of
from routing.serving.changes import RuleChanges
from routing.serving.evaluator import Evaluator
from routing.serving.intake import Intake, check_schema, newer, take_in
from routing.serving.limits import check_count
from routing.serving.link import Link
from routing.serving.outlet import Outlet
from routing.serving.parts import as_known
from routing.serving.published import Sifted, have_ids
from routing.serving.rates import Rates
from routing.serving.required_rights import check_message
from routing.serving.sources import CROWDED_OUT, FAR, GOODBYE, Source, SourceState
from routing.serving.status import (
    StatusReader,
    begin_facts,
    client_facts,
    ended_facts,
    fitted,
    time_or_none,
    user_facts,
)
from routing.serving.tables import Tables
from routing.serving.users import UserRights
from routing.serving.waits import overtake
from routing.traced import with_traces
from rules.engine.conflict import Conflict
from rules.engine.engine import NOTHING
from rules.overrun import Overrun
from rules.patience import PATIENCE

NAMED_MAX = 20
"""Rules of a text that the log names; the others it counts."""
OVERRUNS_TOLD = 20
"""Rules that have ended, having too many composite events, that the status names."""
CHANGES: Mapping[type, str] = {
    messages.RemoveDurable: "durable sink removed",
    messages.KeepDurable: "durable sink kept",
    messages.ResendDurable: "dead letters resent",
}
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
    """One broker's work for its clients. ``beyond``: the network that it is in."""

    def __init__(
        self,
        config: NodeConfig,
        tables: Tables,
        detection: Evaluator,
        changes: RuleChanges,
        overview: StatusReader,
        outlet: Outlet,
        beyond: Beyond,
    ) -> None:
        self._config = config
        self._moment = tables.moment
        self._started_at = self._moment.now
        self._outlet = outlet
        self._send, self._log = outlet.send, outlet.log
        self._beyond = beyond
        self.users = UserRights()
        """The rights of users."""
        self._names = tables.names
        self._names.is_bound = self.users.binds
        self.limits_sizes = False
        """Whether any user's messages have a limit of their own."""
        self._links = tables.links
        self._published = tables.published
        self._sources, self._accounts = tables.sources, tables.accounts
        self._advertisements = tables.advertisements
        self._deployments = tables.deployments
        self._sinks = tables.sinks
        self.durables: Durables = Durables(self._sinks)
        """The durable sinks; those that are kept, where there is a store."""
        self._detection = detection
        self._changes = changes
        self._credit = tables.credit
        self._traces = tables.traces
        self.buckets = Buckets(config.heartbeat_s)
        """Limits to what users publish a second."""
        self._overview = overview
        self.work_s: Mapping[str, float] = {}
        """Seconds that the messages of users have taken, by name, as the host counts them."""
        self.rates = Rates(self._moment.now, lambda: self._detection.engine.counts.total())
        """Counts of what has come and gone."""
        self._overrun_types: dict[str, str] = {}
        """Types of rules that have ended, having too many composite events: why, in words."""
        self._overruns: deque[Overrun] = deque(maxlen=OVERRUNS_TOLD)
        """In words, which rules have ended, and why; the last of them."""
        self._unacknowledged: dict[Peer, Link] = {}
        """Links of which a Publish was taken in, while that is not yet said."""
        self.gathers = False
        """Whether what follows from inputs is done later, for several (routing.node, Law 3)."""
        self._is_unsettled = False
        """Whether it is still to be done for any."""
        self._without_credit = 0
        """How many sources waited for credit when all was settled last."""
        self._answers: Mapping[type, Callable[[Link, Any], Confirmed]] = {
            messages.Advertise: self._advertise,
            messages.Unadvertise: self._unadvertise,
            messages.Deploy: self._deploy,
            messages.Remove: self._remove,
            ListRules: self._list_rules,
            ShowRule: self._show_rule,
        }
        """Answers to what clients ask of the whole network, at its root."""
        self.handlers: Mapping[type, Callable[[Link, Any], None]] = {
            Publish: self._receive_publish,
            messages.Promise: self._receive_promise,
            messages.Subscribe: self._receive_subscribe,
            messages.Unsubscribe: self._receive_unsubscribe,
            messages.Credit: self._receive_credit,
            **dict.fromkeys(CHANGES, self._receive_change),
            messages.DealtWith: self._receive_dealt_with,
            messages.Nack: self._receive_nack,
            messages.LogReceived: self._receive_log_received,
            **dict.fromkeys(get_args(messages.Asking), beyond.ask),
            **dict.fromkeys((ListRules, ShowRule), self._receive_look),
        }
        """Messages of welcomed clients, each with its handler."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what a running broker can change."""
        self._config = config
        for part in (
            self._sources,
            self._published,
            self._advertisements,
            self._deployments,
            self._sinks,
            self._detection,
            self._credit,
        ):
            part.configure(config)

    def status(self, now: float) -> Mapping[str, Any]:
        """The answer to StatusRequest: plain data, ready for JSON."""
        duplicates = sum(source.duplicates for source in self._sources)
        overview = self._overview.facts(now)
        connections = [link.rights.user for link in self._links]
        subscriptions = [sink.rights.user for sink in self._sinks for _ in sink.interests]
        facts = {
            "broker": self._config.name,
            "version": messages.VERSION,
            "uptime_s": round(now - self._started_at, 3),
            "store": self._outlet.when_kept is not None,
            "clients": [client_facts(link, now) for link in self._links],
            "users": user_facts(self.work_s, connections, subscriptions, overview["rules"]),
            "network": {**ALONE, "root": self._config.name},
            **overview,
            "former_types": [
                {"name": name, "schema": str(schema)}
                for name, schema in sorted(self._former_types().items())
            ],
            "parts": list(self._detection.parts),
            "memory": dict(self._detection.memory),
            "overruns": [*map(str, self._overruns)],
            "durable": list(self.durables.facts),
            "durable_elsewhere": dict(self.durables.elsewhere),
            "totals": {**self.rates.totals, "duplicates": duplicates + self._detection.duplicates},
            "rates": self.rates.per_second,
            "history": self.rates.history,
        }
        return fitted(facts)

    def _former_types(self) -> Mapping[str, EventType]:
        """The last schemas of types that nobody publishes or mentions any more, and that somebody
        has subscribed to by what they had, by name.
        """
        found: dict[str, EventType] = {}
        for name, text in self._overview.filters:
            schema = None if name in found else self._advertisements.former(name)
            if schema is not None and fits(text, schema):
                found[name] = schema
        return found

    # --- sources ---

    def source_of(self, link: Link) -> Source:
        """The link's source, which comes alive when the client first acts as one."""
        if link.source is None:
            if not link.name:
                raise ProtocolError(Code.BAD_NAME, "a client without a name cannot publish")
            self._names.check(link.rights, link.name)
            if (former := self._sources.find(link.name)) is not None:
                check_right(link.rights, messages.Act.PUBLISH, *former.floors)
            self._make_room(link)
            user, now = link.rights.user, self._moment.now
            source = self._sources.join(link.name, link.peer, now, link.home, user)
            source.replays = link.replays
            self._limit(source, link.rights)
            source.outstanding = min(self._config.publish_credit, source.credit_max)
            link.source = source
            self._detection.resume(source)
        return link.source

    def _make_room(self, link: Link) -> None:
        """Have room for a link's source, if another user has many more."""
        crowded_out = self._sources.crowded_out(link.name, link.rights.user)
        if crowded_out is None:
            return
        if crowded_out.peer is not None:
            reason = "its place goes to another user: its own has the most sources (sources_max)"
            self.expel(crowded_out.peer, Code.LIMIT, reason)
        self.close_source(crowded_out, CROWDED_OUT)
        fields = {"source": crowded_out.name, "user": crowded_out.user}
        self._log("warning", "source closed: sources_max", **fields)

    def _limit(self, source: Source, rights: messages.Rights) -> None:
        """Hold a source to the rights and limits of its user."""
        source.rights = rights
        source.bucket = self.buckets.of(rights, self._moment.now)
        source.credit_max = credit_of(rights, source.bucket)
        source.replays = source.replays and not rights.is_narrowed  # it would decide over others'

    def answer(self, link: Link, request: messages.Asking) -> Confirmed:
        """Do what a client asks of the whole network, as its root; Refusal and ProtocolError where
        that cannot be.
        """
        check_message(self._names, link, request)
        return self._answers[type(request)](link, request)

    def _advertise(self, link: Link, message: messages.Advertise) -> Confirmed:
        self._advertisements.check(message.types, link.name)
        source = self.source_of(link)
        self._detection.advertise(source, message.types)
        detail = begin_facts(source, message.types)
        last = max(source.last_sequence, self._accounts.last(link.name))
        if last > link.last_sequence:
            detail = {**detail, "last_sequence": last}
        return Confirmed(message.request, detail)

    def _unadvertise(self, link: Link, message: messages.Unadvertise) -> Confirmed:
        source = self.source_of(link)
        for name in message.types:
            if name not in source.floors:
                raise Refusal(Code.UNKNOWN, f"event type {name} was not advertised")
        self._detection.withdraw(source, list(dict.fromkeys(message.types)))
        return Confirmed(message.request)

    def _note_traces(self, source: Source, message: Publish) -> None:
        whole, batches = source.whole, message.batches
        known = batches if whole is None else [as_known(whole, batch) for batch in batches]
        self._traces.take(known, message.traces)

    def _receive_publish(self, link: Link, message: Publish) -> None:
        source = link.source or self.source_of(link)
        for batch in message.batches:
            if batch.type.name in source.floors:
                check_schema(batch, self._advertisements[batch.type.name].schema)
        horizon = horizon_of(self._config, self._moment.now)
        ahead = Ahead(self._moment.now, FAR if source.replays else horizon)
        intake = self._take_in(source, message.batches, ahead)
        self._credit.spend(source, intake.events)
        if message.traces:
            self._note_traces(source, message)
        self._take_over(source, intake, horizon)
        for rejection in intake.rejections:
            if rejection.code is Code.NOT_ALLOWED:
                self._note_not_allowed(link, rejection.reason)
            self._send(link.peer, rejection)
        # By what was refused as too far ahead nothing can be promised either.
        if not (intake.ahead and ahead.refuses(message.promise)):
            self._take_promise(link, source, message.promise, ahead)
        if message.acks is messages.Acks.BROKER:
            self._unacknowledged[link.peer] = link
        elif message.acks is messages.Acks.COMMITTED:
            if self._config.ordering is Ordering.ARRIVAL:
                raise Refusal(Code.TERMS, "by arrival there are no times by which to commit")
            self._beyond.await_commit(link.peer, message.batches, source.last_sequence)

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
        if (events := sum(map(len, batches))) > source.outstanding:
            self._credit.spend(source, events)  # refused before its names are looked at
        here, now, user = self._config.name, self._moment.now, source.rights.user
        for batch in batches:
            if batch.causes is not None:
                self._accounts.record(batch.causes.ids.source.values, here, now, user)
        unseen = self._published.unseen(whole, batches)
        intake = take_in(source, unseen.batches, ahead)
        late = tuple(as_known(whole, batch) for batch in intake.late)
        joined = self._published.joined(whole, intake.taken)
        return intake.sifted(batches, unseen, joined, late=late)

    def _take_over(self, source: Source, intake: Intake, horizon: int) -> None:
        source.last_sequence = intake.last_sequence
        if intake.taken:
            source.note(intake.taken[0], intake.front)
            self._take(source, intake, horizon)
        if intake.duplicates or intake.rejected:
            source.duplicates += intake.duplicates
            source.rejected += intake.rejected
        if intake.late:
            self._report_late(source, intake.late)
        if intake.ahead:
            source.ahead += intake.ahead
            text = "events ahead of the clock"
            self._log("warning", text, source=source.name, events=intake.ahead)

    def _take(self, source: Source, intake: Intake, horizon: int) -> None:
        batches = intake.taken
        events = intake.events - intake.duplicates - intake.rejected
        source.events += events
        self.rates.received += events
        unseen = batches if source.whole is None else self._beyond.news(batches)
        self._sinks.offer(unseen, None if len(unseen) == 1 else in_sequence(unseen))
        if PATIENCE.paused:
            self._pause_slow()
        if not self.gathers:
            for sink in self._sinks.due():
                self._send_due(sink)
        self._detection.push(batches, horizon)

    def _report_late(self, source: Source, late: Sequence[Any]) -> None:
        count = sum(map(len, late))
        source.late += count
        for batch in late:
            if (known := self._advertisements.find(batch.type.name)) is not None:
                known.late += len(batch)
        self._log("warning", "late events", source=source.name, events=count)
        if self._config.late is Late.DELIVER:
            self._sinks.offer(tuple(late), in_sequence(late), late=True)

    def overtake(self) -> None:
        """Wait for no source longer than is said of its types (routing.serving.waits)."""
        if not (limits := self._config.waits_us):
            return
        now = self._moment.now
        for source, types in overtake(self._sources, limits, round(now * MICROSECONDS)):
            self._detection.keep_promise(source, None, now)
            self._detection.touch(source.floors)
            if types:
                text = "source lags; rules go on without what it brings later"
                self._log("warning", text, source=source.name, types=types)

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

    def _receive_promise(self, link: Link, message: messages.Promise) -> None:
        source, now = self.source_of(link), self._moment.now
        ahead = Ahead(now, FAR if source.replays else horizon_of(self._config, now))
        self._take_promise(link, source, message.mark, ahead)

    def _take_promise(self, link: Link, source: Source, mark: int | None, ahead: Ahead) -> None:
        """Take a promise over, or refuse one that is too far ahead, which then counts for
        nothing.
        """
        if mark is not None and ahead.refuses(mark):
            reason = f"a promise ahead of the clock: {ahead.describe(mark)}"
            self._send(link.peer, messages.Rejected(Code.AHEAD, (), reason))
            self._log("warning", "promise ahead of the clock", source=source.name, promise=mark)
        else:
            self._detection.keep_promise(source, mark, self._moment.now)

    # --- sinks ---

    def _receive_subscribe(self, link: Link, message: messages.Subscribe) -> None:
        if not message.durable:
            self._outlet.note_look(link, message.request)
        if not self.durables.has(message):
            self._check_subscriptions(link)
        added = self._subscribe(link, message)
        self.follow()
        if added.problem is not None:
            self._send(link.peer, messages.SubscriptionPaused(added.number, added.problem))
        detail = {
            "type": added.type_name,
            "waits": added.filter is None,
            "waits_for": self._missing_below(added.type_name),
        }
        self._beyond.confirm_subscription(link, Confirmed(message.request, detail))

    def _subscribe(self, link: Link, message: messages.Subscribe) -> Interest:
        schemas = self._advertisements.schemas
        if message.durable:
            return self.durables.subscribe(link.peer, message, schemas, link.rights)
        if self.durables.find(link.peer) is not None:
            raise Refusal(Code.IN_USE, "this client is attached to a durable sink")
        return self._sinks.subscribe(link.peer, link.name, message, schemas, link.rights)

    def _sink_of(self, peer: Peer) -> Sink | None:
        """The sink at a link, or the durable one that its client is attached to."""
        sink = self._sinks.find(peer)
        return self.durables.find(peer) if sink is None else sink

    def leave(self, peer: Peer) -> None:
        """A client has gone as a sink."""
        self._sinks.remove(peer)
        self.durables.detach(peer)

    def _receive_dealt_with(self, link: Link, message: messages.DealtWith) -> None:
        self._durable_of(link).acknowledge(link.peer, message.first, message.last)

    def _receive_nack(self, link: Link, message: messages.Nack) -> None:
        sink = self._durable_of(link)
        self.durables.take_back(sink, link.peer, message)
        self._sinks.touch(sink)

    def _durable_of(self, link: Link) -> DurableSink:
        """The durable sink that a client says how it deals with."""
        sink = self.durables.find(link.peer)
        if sink is None:
            reason = "an acknowledgement from a client without a durable subscription"
            raise ProtocolError(Code.PROTOCOL, reason)
        return sink

    def _receive_log_received(self, link: Link, message: messages.LogReceived) -> None:
        reading = link.reading
        if reading is None or reading.told_at is None or reading.request.request != message.request:
            reason = f"no part of a log has answered request {message.request}, or another since"
            raise ProtocolError(Code.PROTOCOL, reason)
        link.reading = None

    def _receive_change(self, link: Link, message: DurableChange) -> None:
        events = self.durables.change(message, link.rights)
        self.follow()
        self._send(link.peer, Confirmed(message.request, {"queued": events}))
        text = CHANGES[type(message)]
        self._log("warning", text, name=message.name, events=events, client=link.name)

    def _check_subscriptions(self, link: Link) -> None:
        """Refusal where its user may have no more subscriptions than it has; durable ones count
        whether a client is there or not.
        """
        rights = link.rights
        if rights.limits.subscriptions_max is None:
            return
        own = (one for one in self._sinks if one.is_fed and one.rights.user == rights.user)
        count = 1 + sum(len(sink.interests) for sink in own)
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

    def _receive_unsubscribe(self, link: Link, message: messages.Unsubscribe) -> None:
        if self.durables.find(link.peer) is not None:
            self.durables.unsubscribe(link.peer, message.number)
        else:
            self._outlet.note_look(link, message.request)
            self._sinks.unsubscribe(link.peer, message.number)
        self.follow()
        self._send(link.peer, Confirmed(message.request))

    def _receive_credit(self, link: Link, message: messages.Credit) -> None:
        sink = self._sink_of(link.peer)
        if sink is None:
            raise ProtocolError(Code.PROTOCOL, "credit from a client that has not subscribed")
        sink.grant(link.peer, message.events, CREDIT_MAX)
        self._sinks.touch(sink)

    def check_interests(self) -> None:
        """Types have become known, are others, or were forgotten: subscriptions are checked."""
        schemas = self._advertisements.schemas
        changed = self._sinks.check(schemas)
        for name, reason in list(self._overrun_types.items()):
            if any(one.until is None for one in self._deployments.defining(name)):
                del self._overrun_types[name]
            elif name not in schemas:
                del self._overrun_types[name]
                changed += self._sinks.pause(name, reason)
        self._tell_paused(changed)

    def _tell_paused(self, changed: Iterable[tuple[Sink, Interest]]) -> None:
        for sink, interest in changed:
            for peer, number in sink.clients(interest.number):
                self._send(peer, messages.SubscriptionPaused(number, interest.problem))

    def _pause_slow(self) -> None:
        """Pause what has matched nothing, for its user has no time left for patterns."""
        paused = self._sinks.pause_slow()
        for sink, one in paused:
            fields = {"user": sink.rights.user, "sink": sink.name, "reason": one.problem}
            self._log("warning", "subscription paused", number=one.number, **fields)
        self._tell_paused(paused)

    # --- rules ---

    def _deploy(self, link: Link, message: messages.Deploy) -> Confirmed:
        deployed, ended = self._changes.deploy(message, self._moment.now, link.rights)
        self.follow()
        in_order = sorted(deployed, key=lambda one: one.serial)
        rules = self._overview.rules(in_order, self._moment.now)
        said: dict[str, Any] = {"rules": [one.name for one in deployed[:NAMED_MAX]]}
        if len(deployed) > NAMED_MAX:
            said["more"] = len(deployed) - NAMED_MAX
        if message.removes:
            said["removed"] = list(message.removes[:NAMED_MAX])
        self._log("info", "deployed", **said, client=link.name)
        replaced = list(map(ended_facts, ended))
        return Confirmed(message.request, {"rules": rules, "replaced": replaced})

    def _remove(self, link: Link, message: messages.Remove) -> Confirmed:
        ended = self._changes.remove(message.name, self._moment.now)
        self.follow()
        self._log("info", "removed", rule=message.name, client=link.name)
        return Confirmed(message.request, ended_facts(ended))

    def _receive_look(self, link: Link, message: ListRules | ShowRule) -> None:
        self._outlet.note_look(link, message.request)
        self._beyond.ask(link, message)

    def _list_rules(self, link: Link, message: ListRules) -> Confirmed:
        rules = self._overview.rules_in_force(self._moment.now)
        return Confirmed(message.request, {"rules": rules})

    def _show_rule(self, link: Link, message: ShowRule) -> Confirmed:
        deployed = self._deployments.find_in_force(message.name)
        if deployed is None:
            raise Refusal(Code.UNKNOWN, f"no rule is named {message.name}")
        (facts,) = self._overview.rules([deployed], self._moment.now)
        return Confirmed(message.request, {**facts, "text": deployed.rule.text})

    def change_rights(self, users: Mapping[str, messages.Rights], now: float) -> None:
        """Let users have these rights from now on. What they do not allow any more ends: sources
        with their links, subscriptions, and rules that their owners were allowed before.
        """
        self._moment.now = now
        self.users.change(users)
        limits = (one.limits.message_bytes_max for one in users.values())
        self.limits_sizes = any(most is not None for most in limits)
        for link in self.users.changed(self._links):
            self._look_at_rights(link)
        for source in [one for one in self._sources if one.standing is SourceState.LOST]:
            rights = users.get(source.rights.user, source.rights)
            if not all(rights.may(messages.Act.PUBLISH, name) for name in source.floors):
                self.close_source(source, Code.NOT_ALLOWED.value)
        for one, reason in self.users.lost(self._deployments.in_force):
            self._log("warning", "a rule ends", rule=one.name, user=one.owner, reason=reason)
        self._beyond.withdraw()
        self.settle()

    def _look_at_rights(self, link: Link) -> None:
        """A client has other rights: end what they do not allow."""
        try:
            if link.source is None:
                self._names.check_free(link.rights, link.name)
            else:
                self._names.check(link.rights, link.name)
                known = self._advertisements
                check_publishing(link.rights, [known[one].schema for one in link.source.floors])
        except Refusal as refusal:
            self._note_not_allowed(link, str(refusal))
            self.expel(link.peer, refusal.code, str(refusal))
            if link.source is not None:
                self.close_source(link.source, refusal.code.value)
            return
        if link.source is not None:
            self._limit(link.source, link.rights)
        sink = self._sink_of(link.peer)
        if sink is None:
            return
        schemas = self._advertisements.schemas
        for ended, reason in self._sinks.change_rights(sink.peer, link.rights, schemas):
            for peer, number in sink.clients(ended):
                self._send(peer, messages.SubscriptionPaused(number, reason))
                self.refuse(self._links.by_peer[peer], None, Code.NOT_ALLOWED, reason)
        self.follow()

    def refuse(self, link: Link, request: int | None, code: Code, reason: str) -> None:
        """Answer that a request was refused."""
        if code is Code.NOT_ALLOWED:
            self._note_not_allowed(link, reason)
        self._send(link.peer, messages.Refused(request, code, reason))

    def _note_not_allowed(self, link: Link, reason: str) -> None:
        self.rates.not_allowed += 1
        self._log("warning", "not allowed", client=link.name, reason=reason)

    def close_source(self, source: Source, why: str = GOODBYE) -> None:
        """Close a source, which has published everything."""
        self._sources.close(source, why)
        self._detection.withdraw(source, list(source.floors))

    def _take_overrun(self, overrun: Overrun) -> None:
        """A rule has ended, having more composite events at an instant than it may: say so."""
        self._overruns.append(overrun)
        self.rates.ended += 1
        name = plain_name(overrun.rule)
        self._log("error", "a rule has ended", rule=name, reason=str(overrun))
        self._beyond.note_overrun(overrun)

    def note_overrun(self, rule: str, type_name: str, until: int) -> None:
        """A rule has ended by itself, here or elsewhere: who waits for what it defines is told, as
        soon as no rule names that any more.
        """
        here = [overrun for overrun in self._overruns if overrun.rule == rule]
        unsaid = Overrun(rule, until - 1, self._config.composites_per_instant_max)
        reason = str(here[-1]) if here else f"{unsaid}, or for its slow patterns (matches)"
        self._overrun_types[type_name] = reason
        self.check_interests()

    # --- after every input ---

    def settle_input(self) -> None:
        """Settle behind an input; or behind all that is gathered, and as soon as a source has used
        up half of its credit.
        """
        if not self.gathers:
            self.settle()
            return
        self._is_unsettled = True
        if len(self._credit.waiting) > self._without_credit:
            self.settle_gathered()

    def settle_gathered(self) -> None:
        """Settle for all that was gathered; published events, which are due at once, go first."""
        self.gathers = False
        if self._is_unsettled:
            for sink in self._sinks.due():
                self._send_due(sink)
            self.settle()

    @property
    def has_more(self) -> bool:
        """Whether sinks wait for their turn: it has to ``settle`` again, behind what has come."""
        return bool(self._sinks.touched)

    def settle(self) -> None:
        """Evaluate, deliver, acknowledge, grant credit."""
        self._is_unsettled = False
        detections = self._detection.advance(self._moment.now)
        if detections is not None:
            if self._traces.has_any:
                self._traces.follow(detections.batches)
            if self._sinks.follow_rules:
                self._sinks.offer_detected(detections, self._detection.complete_to)
            engine = self._detection.engine
            while engine.conflicting:
                self._report(engine.conflicting.pop())
            for overrun in engine.take_overruns() if engine.overruns else ():
                self._take_overrun(overrun)
        if PATIENCE.paused:
            self._pause_slow()
        for sink in self._sinks.take_touched():
            if sink.has_any:  # most have got all of it before the engine began
                self._deliver(sink)
        if self._unacknowledged:
            self._acknowledge()
        self._beyond.settle()
        if self._credit.waiting and not self._beyond.is_held():
            for grant in self._credit.grants():
                assert grant.source.peer is not None
                grant.source.outstanding += grant.events
                self._send(grant.source.peer, messages.Credit(grant.events))
        self._without_credit = len(self._credit.waiting)

    def _acknowledge(self) -> None:
        links, self._unacknowledged = self._unacknowledged, {}
        for peer, link in links.items():
            # It may be a sink, too, that was just sent away.
            if link.source is not None and self._links.by_peer.get(peer) is link:
                self._send(peer, messages.Acknowledged(link.source.last_sequence))

    def follow(self) -> None:
        """Rules or subscriptions have changed: what is held back may be due."""
        if self._sinks.follow_rules:
            self._sinks.offer_detected(NOTHING, self._detection.complete_to)

    def _send_due(self, sink: Sink) -> None:
        delivered, dropped = sink.delivered, sink.dropped
        most = self._config.delivery_events_max
        delivery = sink.take(most)
        while delivery is not None:
            if self._traces.has_any:
                delivery = with_traces(delivery, self._traces)
            self._send(sink.to, delivery)
            delivery = sink.take(most) if sink.queued else None
        self.rates.delivered += sink.delivered - delivered
        self.rates.dropped += sink.dropped - dropped

    def _deliver(self, sink: Sink) -> None:
        self._send_due(sink)
        if sink.is_over:
            if sink.when_full is messages.WhenFull.DROP_OLDEST:
                dropped = sink.dropped
                sink.drop_oldest()
                self.rates.dropped += sink.dropped - dropped
            elif sink.when_full is messages.WhenFull.DISCONNECT:
                self.expel(sink.peer, Code.QUEUE_FULL, f"the queue of {sink.limit} events is full")
            # Else it blocks: its sources get no credit (routing.serving.credit).
        self._beyond.note_delivered(sink)

    # --- links that end ---

    def expel(self, peer: Peer, code: Code, reason: str) -> None:
        """Close a link, whether it is known or not, and say why."""
        link = self._links.by_peer.get(peer)
        self._outlet.part(peer, code, reason)
        name = "" if link is None else link.name
        self._log("warning", "closed", client=name, peer=peer.hex(), reason=reason)
        if link is not None:
            self.drop(link)

    def drop(self, link: Link) -> None:
        """Forget a link that ended without Goodbye; its source keeps its promise."""
        self._links.remove(link)
        self.leave(link.peer)
        source = link.source
        if source is not None:
            self._sources.lose(source, self._moment.now)
            promise = time_or_none(source.promise)
            self._log("warning", "source lost", source=source.name, promise=promise)
