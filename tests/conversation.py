"""A Broker and its Sessions in one process: real encoded bytes, no network, time as told.

Each link carries frames in order, both ways; a link that is cut carries nothing more. Everything
that comes out is written down: results of the sessions, closed links and log lines of the node.
Times in scripts are seconds; events are written ``Temp@10("Room1", 24.5)``, with ``id=`` before
the type where the source names them, and ``Temp@now(...)`` where the session is to stamp them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datadriven import Case
from event_batches import batch_of_events
from lone import fire, lone

import rules.engine
from matcher.model import (
    MICROSECONDS,
    Event,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from matcher.times import seconds_text
from routing import wire
from routing.config import Late, NodeConfig, SessionConfig
from routing.effects import Close, Effect, Log, Send
from routing.errors import SessionError
from routing.messages import (
    EVERYTHING,
    Acknowledged,
    Acks,
    Act,
    Confirmed,
    Delivery,
    Limits,
    ListRules,
    Message,
    Permit,
    Refused,
    Rejected,
    Remove,
    Rights,
    ShowRule,
    Unadvertise,
    Welcome,
    WhenFull,
)
from routing.network.brokers.broker import Broker
from routing.session import NO_TIME, Lost, Result, Session

EVENT = re.compile(r"(?:(\w+)=)?(\w+)@(now|-?[\d.]+)(?:\(([^()]*)\))?")
SCHEMA = re.compile(r"(\w+)\(([^()]*)\)")


def ticks(seconds: str | float) -> int:
    return round(float(seconds) * MICROSECONDS)


def seconds(time: int | None) -> str:
    return "none" if time is None else seconds_text(time)


def schema_of(text: str) -> EventType:
    """``Temp(room: string, value: float)``."""
    found = SCHEMA.fullmatch(text.strip())
    assert found, f"not a schema: {text}"
    pairs = [part.split(":") for part in found[2].split(",") if part.strip()]
    return EventType.of(found[1], **{name.strip(): kind.strip() for name, kind in pairs})


def batches_of(text: str, schemas: Mapping[str, EventType]) -> list[EventBatch]:
    """The events of a text, one batch a type; their sequence numbers are their places."""
    by_type: dict[str, list[Event]] = {}
    for place, found in enumerate(EVENT.finditer(text), start=1):
        name, kind, time, values = found.groups()
        data = dict(zip(schemas[kind].names, json.loads(f"[{values or ''}]"), strict=True))
        moment = NO_TIME if time == "now" else ticks(time)
        event = Event(kind, moment, "", name or str(place), data, place)
        by_type.setdefault(kind, []).append(event)
    return [_batch(schemas[kind], events) for kind, events in by_type.items()]


def _batch(schema: EventType, events: list[Event]) -> EventBatch:
    batch = batch_of_events(schema, events)
    if any(not event.id.isdigit() for event in events):
        return batch
    ids = EventIds(batch.ids.source, batch.ids.sequence)
    return EventBatch(batch.type, batch.time, ids, batch.columns)


@dataclass
class Client:
    """A session and its present link; ``peer`` is None without one."""

    name: str
    session: Session
    links: int = 0
    peer: bytes | None = None
    hears: bool = True
    speaks: bool = True
    consumes: bool = True
    schemas: dict[str, EventType] = field(default_factory=dict)


class Conversation:
    """One node, any number of clients, and a clock."""

    def __init__(self, engine: str = "naive") -> None:
        self.engine = engine
        self.now = 0.0
        self.rights: dict[str, Rights] = {}
        self.node = self.new_node()
        self.clients: dict[str, Client] = {}
        self.bytes = 0
        self.on_result: Callable[[Client, Result], None] = lambda client, result: None
        self._lines: list[str] = []

    def new_node(self, **options: Any) -> Broker:
        config = NodeConfig(**{"wall_clock": False, **options})
        most = config.composites_per_instant_max
        node = lone(config, rules.engine.make(self.engine, composites_max=most), self.now)
        node.node.rights_of = lambda peer: self._rights_of(peer.decode())
        return node

    def _rights_of(self, peer: str) -> Rights:
        name = peer.partition("/")[0]
        return self.rights.get(name) or self.rights.get(name.rstrip("0123456789"), EVERYTHING)

    # --- driving ---

    def settle(self) -> None:
        """Carry messages until nothing moves."""
        moved = True
        while moved:
            moved = False
            for client in self.clients.values():
                for effect in client.session.take_effects():
                    moved = True
                    self._carry_out_of(client, effect)
            fire(self.node, self.now)
            for effect in self.node.take_effects():
                moved = True
                self._carry_out(effect)
            for client in self.clients.values():
                for result in client.session.take_results():
                    moved = True
                    self._note_result(client, result)

    def pass_time(self, until: float) -> None:
        """Let timers fire up to ``until``."""
        while True:
            due = [self.node.next_timer()]
            due += [client.session.next_timer() for client in self.clients.values()]
            moment = min((one for one in due if one is not None), default=until)
            if moment >= until:
                break
            self.now = max(self.now, moment)
            self._fire()
        self.now = until
        self._fire()

    def take_lines(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def link(self, client: Client) -> None:
        """Give a client a fresh link."""
        client.links += 1
        client.peer = f"{client.name}/{client.links}".encode()
        client.hears = client.speaks = True
        client.session.connect(self.now)

    def add(self, name: str, config: SessionConfig) -> Client:
        client = Client(name, Session(config))
        self.clients[name] = client
        self.link(client)
        return client

    def _fire(self) -> None:
        for client in self.clients.values():
            due = client.session.next_timer()
            if due is not None and due <= self.now:
                client.session.handle_timer(self.now)
        due = self.node.next_timer()
        if due is not None and due <= self.now:
            self.node.handle_timer(self.now)
        self.settle()

    def _carry_out_of(self, client: Client, effect: Effect) -> None:
        match effect:
            case Send(_, message):
                if client.peer is not None and client.speaks:
                    self.node.receive_frames(client.peer, self._frames(message), self.now)
            case Close():
                client.peer = None
            case Log(_, text, fields):
                if text.startswith("subscription"):  # of others a Lost says the same
                    facts = "".join(f"; {fields[name]}" for name in ("reason",) if name in fields)
                    self._lines.append(f"{client.name}: {text}: {fields['filter']}{facts}")

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(peer, message):
                frames = self._frames(message)
                for client in self.clients.values():
                    if client.peer == peer and client.hears:
                        client.session.receive_frames(frames, self.now)
            case Close(peer, reason):
                self._lines.append(f"node: closes {peer.decode()}: {reason}")
            case Log(level, text, fields):
                if level != "info":
                    shown = {k: v for k, v in fields.items() if k not in ("peer", "client")}
                    facts = " ".join(f"{name}={value}" for name, value in shown.items())
                    self._lines.append(f"node: {level}: {text} {facts}")

    def _frames(self, message: Message) -> list[bytes]:
        frames = wire.encode(message)
        self.bytes += sum(map(len, frames))
        return frames

    # --- what is written down ---

    def _note_result(self, client: Client, result: Result) -> None:
        self.on_result(client, result)
        if isinstance(result, Delivery) and client.consumes:
            client.session.consume(len(result))
        for line in _describe(result):
            self._lines.append(f"{client.name}: {line}")

    # --- commands ---

    def perform(self, case: Case) -> str:
        """A command of a script; gives what came of it."""
        try:
            COMMANDS[case.command](self, case)
        except SessionError as error:
            self._lines.append(f"{type(error).__name__}: {error}")
        self.settle()
        return "\n".join(self.take_lines())

    def _of(self, case: Case) -> Client:
        return self.clients[case.arguments[0]]

    def _node(self, case: Case) -> None:
        """node [links=kept] [KEY=VALUE...]: a fresh node, which remembers nothing.

        Its links are gone too, unless they are of a kind that reconnects unnoticed.
        """
        for client in self.clients.values():
            client.peer = client.peer if "links" in case.options else None
        self.node = self.new_node(**_node_options(case))

    def _configure(self, case: Case) -> None:
        """configure [KEY=VALUE...]: the running node takes another configuration over."""
        config = NodeConfig(**{"wall_clock": False, **_node_options(case)})
        self.node.configure(config, self.now)

    def _rights(self, case: Case) -> None:
        """rights [LIMIT=N...], and lines ``USER ACT NAME[, NAME...]``, or a user alone: clients are
        the users of their names, and may do this from now on. Of what has conditions the type is
        the name. ``k2`` is the user ``k`` once more.
        """
        limits = Limits(**{name: int(value) for name, value in case.options.items()})
        found: dict[str, list[Permit]] = {}
        for number, line in enumerate(case.body.splitlines(), 1):
            user, _, said = line.partition(" ")
            act, _, names = said.partition(" ")
            own = found.setdefault(user, [])
            for text in names.split(", ") if names else ():
                type_name, bracket, _ = text.partition("(")
                own.append(Permit(Act(act), type_name, number, text if bracket else ""))
        self.rights = {
            user: Rights(user, tuple(grants), "access.toml", limits=limits)
            for user, grants in found.items()
        }
        self.node.service.change_rights(self.rights, self.now)

    def _connect(self, case: Case) -> None:
        """connect NAME... [as=NAME] [increasing=1] [disorder=S] [acks=none] [replay=1] ..."""
        options = case.options
        for name in case.arguments:
            config = SessionConfig(
                options.get("as", name),
                instance=int(options.get("instance", 0)),
                increasing="increasing" in options,
                disorder_us=ticks(options["disorder"]) if "disorder" in options else None,
                replay="replay" in options,
                acks=Acks(options.get("acks", "broker")),
                delivery_credit=int(options.get("window", 16_384)),
                unacknowledged_max=int(options.get("keep", 65_536)),
            )
            self.add(name, config).consumes = "reads" not in options

    def _reconnect(self, case: Case) -> None:
        self.link(self._of(case))

    def _advertise(self, case: Case) -> None:
        client = self._of(case)
        types = [schema_of(line) for line in case.body.splitlines()]
        client.schemas.update((schema.name, schema) for schema in types)
        client.session.advertise(types)

    def _unadvertise(self, case: Case) -> None:
        self._of(case).session.ask(Unadvertise, case.arguments[1:])

    def _publish(self, case: Case) -> None:
        """publish NAME [promise=S] [numbered=1], and the events."""
        client = self._of(case)
        mark = ticks(case.options["promise"]) if "promise" in case.options else None
        batches = batches_of(case.body, client.schemas)
        client.session.publish(batches, self.now, mark, numbered="numbered" in case.options)

    def _flood(self, case: Case) -> None:
        """flood NAME TYPE from=S [step=S] count=N [first=N]: events with values that count up."""
        client, options = self._of(case), case.options
        schema = client.schemas[case.arguments[1]]
        count = int(options["count"])
        time = ticks(options["from"]) + ticks(options.get("step", 1)) * np.arange(count)
        ids = EventIds(StringColumn.constant("", count), np.arange(count))
        columns = (np.arange(count) + float(options.get("first", 1)),)
        batch = EventBatch(schema, time, ids, columns)
        first, last = client.session.publish([batch], self.now)
        self._lines.append(f"{client.name}: numbered {first} to {last}")

    def _promise(self, case: Case) -> None:
        self._of(case).session.promise(ticks(case.arguments[1]))

    def _subscribe(self, case: Case) -> None:
        """subscribe NAME [when_full=...] [limit=N], and a filter a line."""
        when_full = WhenFull(case.options.get("when_full", "block"))
        limit = int(case.options.get("limit", 65_536))
        for line in case.body.splitlines():
            self._of(case).session.subscribe(line, when_full, limit)

    def _unsubscribe(self, case: Case) -> None:
        self._of(case).session.unsubscribe(int(case.arguments[1]))

    def _consume(self, case: Case) -> None:
        self._of(case).session.consume(int(case.arguments[1]))

    def _deploy(self, case: Case) -> None:
        self._of(case).session.deploy(case.body, "replace" in case.arguments)

    def _remove(self, case: Case) -> None:
        self._of(case).session.ask(Remove, case.arguments[1])

    def _list(self, case: Case) -> None:
        self._of(case).session.ask(ListRules)

    def _show(self, case: Case) -> None:
        self._of(case).session.ask(ShowRule, case.arguments[1])

    def _tick(self, case: Case) -> None:
        self.pass_time(self.now + float(case.arguments[0]))

    def _lose(self, case: Case) -> None:
        """lose NAME: the link breaks, and both ends notice."""
        client = self._of(case)
        assert client.peer is not None
        peer, client.peer = client.peer, None
        client.session.lose(self.now)
        self.node.lose(peer, self.now)

    def _break(self, case: Case) -> None:
        """break NAME: the link carries nothing more, and nobody notices."""
        client = self._of(case)
        client.hears = client.speaks = False

    def _mute(self, case: Case) -> None:
        """mute NAME: what the node sends is lost on its way (and the link is then broken)."""
        self._of(case).hears = False

    def _kill(self, case: Case) -> None:
        """kill NAME: the client is gone without a word."""
        del self.clients[case.arguments[0]]

    def _close(self, case: Case) -> None:
        self._of(case).session.close(self.now)

    def _raw(self, case: Case) -> None:
        """raw NAME: frames, one a line, in hexadecimal or quoted, on the client's own link."""
        client = self._of(case)
        frames = [
            line[1:-1].encode() if line.startswith('"') else bytes.fromhex(line)
            for line in case.body.splitlines()
        ]
        assert client.peer is not None
        self.node.receive_frames(client.peer, frames, self.now)

    def _stop(self, case: Case) -> None:
        self.node.close(" ".join(case.arguments), self.now)

    def _state(self, case: Case) -> None:
        """state sources|types|rules|sinks|totals: a part of the node's status."""
        status = self.node.status(self.now)
        for part in case.arguments:
            self._lines += _STATES[part](status[part])

    def _waiting(self, case: Case) -> None:
        """waiting NAME...: how many events of a source are not acknowledged."""
        for name in case.arguments:
            self._lines.append(
                f"{name}: {self.clients[name].session.outgoing.unacknowledged} events wait"
            )


def _node_options(case: Case) -> dict[str, Any]:
    options: dict[str, Any] = {
        key: float(value) if "." in value or key.endswith("_s") else int(value)
        for key, value in case.options.items()
        if key not in ("late", "links", "wall_clock")
    }
    if "wall_clock" in case.options:
        options["wall_clock"] = case.options["wall_clock"] == "1"
    if "late" in case.options:
        options["late"] = Late(case.options["late"])
    return options


COMMANDS: Mapping[str, Callable[[Conversation, Case], None]] = {
    "node": Conversation._node,
    "configure": Conversation._configure,
    "rights": Conversation._rights,
    "connect": Conversation._connect,
    "reconnect": Conversation._reconnect,
    "advertise": Conversation._advertise,
    "unadvertise": Conversation._unadvertise,
    "publish": Conversation._publish,
    "flood": Conversation._flood,
    "promise": Conversation._promise,
    "subscribe": Conversation._subscribe,
    "unsubscribe": Conversation._unsubscribe,
    "consume": Conversation._consume,
    "deploy": Conversation._deploy,
    "remove": Conversation._remove,
    "list": Conversation._list,
    "show": Conversation._show,
    "tick": Conversation._tick,
    "lose": Conversation._lose,
    "break": Conversation._break,
    "mute": Conversation._mute,
    "kill": Conversation._kill,
    "close": Conversation._close,
    "raw": Conversation._raw,
    "stop": Conversation._stop,
    "state": Conversation._state,
    "waiting": Conversation._waiting,
}


def _describe(result: Result) -> Iterator[str]:
    match result:
        case Welcome(_, broker, last, credit, _, resumed, _):
            again = ", resumed" if resumed else ""
            yield f"welcome from {broker}, last sequence {last}, credit {credit}{again}"
        case Confirmed(request, detail):
            yield f"confirmed {request}{_detail(detail)}"
        case Refused(request, code, reason):
            first, *others = reason.splitlines()
            yield f"refused {request} ({code.value}): {first}"
            yield from others
        case Acknowledged(sequence):
            yield f"acknowledged {sequence}"
        case Rejected(code, sequences, reason):
            runs = " ".join(f"{first}-{last}" for first, last in sequences)
            yield f"rejected {runs} ({code.value}): {reason}"
        case Delivery():
            late = " late" if result.late else ""
            if result.dropped:
                yield f"dropped {result.dropped}"
            for event, numbers in events_of(result):
                yield f"gets{late} {printed(event)} for {','.join(map(str, numbers))}"
        case Lost(code, reason, retry):
            yield f"lost ({code.value}{'' if retry else ', for good'}): {reason}"


def events_of(delivery: Delivery) -> list[tuple[Event, tuple[int, ...]]]:
    """The events of a delivery in order, each with the subscriptions that it matched."""
    rows = [
        (event, numbers)
        for batch, numbers in zip(delivery.batches, delivery.subscriptions, strict=True)
        for event in batch.events()
    ]
    return rows if delivery.order is None else [rows[place] for place in delivery.order.tolist()]


def printed(event: Event) -> str:
    values = ", ".join(json.dumps(value) for value in event.data.values())
    named = f"{event.type}@{seconds(event.time)}({values})"
    causes = " ".join(event.cause_full)
    return f"{named} <- {causes}" if causes else f"{event.source}#{event.id} {named}"


def _ended(facts: Mapping[str, Any]) -> str:
    held = f"{seconds(facts['since'])} until {seconds(facts['until'])}"
    return f"{facts['name']} version {facts['version']} held from {held}"


def _detail(detail: Mapping[str, Any]) -> str:
    if "rules" in detail:
        lines = [_ended(facts) for facts in detail.get("replaced", ())]
        lines += map(_rule, detail["rules"])
        return "".join("\n  " + line for line in lines)
    if "until" in detail:
        return f" {_ended(detail)}"
    if "text" in detail:
        return f" {_rule(detail)}\n  " + detail["text"].replace("\n", "\n  ")
    floors = {name: mark for name, mark in detail.get("from", {}).items() if mark is not None}
    if floors:
        return " from " + ", ".join(f"{name}@{seconds(mark)}" for name, mark in floors.items())
    missing = detail.get("waits_for")
    waits = f" waits for {', '.join(missing)}" if missing else ""
    return " waits for the type" if detail.get("waits") else waits


def _rule(facts: Mapping[str, Any]) -> str:
    return (
        f"{facts['name']} since {seconds(facts['since'])} version {facts['version']} "
        f"mark {seconds(facts['mark'])}: {facts['says']}"
        + (f" (of {facts['owner']})" if facts["owner"] else "")
    )


def _sources(found: list[Mapping[str, Any]]) -> Iterator[str]:
    for one in found:
        counts = " ".join(
            f"{name} {one[name]}"
            for name in ("events", "late", "duplicates", "rejected")
            if one[name] or name == "events"
        )
        withheld = f", withheld: {one['withheld']}" if one["withheld"] else ""
        yield (
            f"source {one['name']} ({one['standing']}) types {','.join(one['types']) or 'none'}, "
            f"sequence {one['last_sequence']}, promise {seconds(one['promise'])}, "
            f"{counts}{withheld}"
        )


def _types(found: list[Mapping[str, Any]]) -> Iterator[str]:
    for one in found:
        sources = ",".join(one["sources"]) or "none"
        yield f"type {one['schema']} by {sources}, mark {seconds(one['mark'])}"


def _sinks(found: list[Mapping[str, Any]]) -> Iterator[str]:
    for one in found:
        yield (
            f"sink {one['name']} {one['when_full']} {one['limit']}: queued {one['queued']}, "
            f"held {one['held']}, delivered {one['delivered']}, dropped {one['dropped']}"
        )


_STATES: Mapping[str, Callable[[Any], Any]] = {
    "sources": _sources,
    "types": _types,
    "sinks": _sinks,
    "rules": lambda found: [f"rule {_rule(one)}" for one in found],
    "totals": lambda found: [" ".join(f"{name} {value}" for name, value in found.items())],
}
