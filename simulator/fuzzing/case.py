"""A scenario as a value that can be made smaller, and as the files that it is written to."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from matcher.model import MICROSECONDS, Event
from simulator.fuzzing.world import OPTIONAL, SCHEMAS, RuleText

HEARTBEAT_S = 20.0
"""So long that no fault makes a neighbour seem lost; but for cuts of torn networks."""
LEAD_S = 60.0
"""So long that the slowest network is ready when the first event comes."""

_CHOSEN = (
    "source_lead_max_s",
    "publish_credit",
    "window_max",
    "buffer_max",
    "delivery_events_max",
    "unasked_events_max",
    "forget_s",
    "source_silence_max_s",
)
"""Keys of ``[protocol]`` that some cases have."""


@dataclass(frozen=True, slots=True)
class Then:
    """As in a scenario file: what a sink wants more, and no more."""

    at_s: float
    subscribe: tuple[str, ...]
    unsubscribe: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink's broker and filter, as in a scenario file; when it subscribes, and for how long."""

    name: str
    broker: str
    filters: tuple[str, ...]
    at_s: float | None = None
    for_s: float | None = None
    then: tuple[Then, ...] = ()
    durable: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """As in a scenario file; on ``links``, ``brokers`` or ``sources`` if there are any, else on
    all.
    """

    kind: str
    at_s: float
    for_s: float
    value: float | None
    links: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """In mid-stream: rules that are deployed, in place of those of their names, or one removed;
    ``since_s``: or new ones that hold from then on, a past instant.
    """

    at_s: float
    broker: str
    rules: tuple[RuleText, ...] = ()
    removed: str = ""
    since_s: float | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """As in a scenario file: a source that goes on at another broker, or rests where it is."""

    source: str
    at_s: float
    broker: str | None
    away_s: float
    says_goodbye: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """All of a scenario; ``homes`` are the sources' brokers; links have their delay in ms.

    ``changes`` are in the order of their times. ``coming``: the sources that come in mid-stream,
    with how many seconds after the first event's time. ``moves`` are in the order of their times.
    ``heartbeat_s``: of all.
    """

    seed: int
    strategy: str
    brokers: tuple[str, ...]
    links: tuple[tuple[str, str, float], ...]
    rules: tuple[RuleText, ...]
    events: tuple[Event, ...]
    homes: tuple[tuple[str, str], ...]
    sinks: tuple[Sink, ...]
    faults: tuple[Fault, ...]
    message_cost_us: float
    changes: tuple[Change, ...] = ()
    ordering: str = "watermark"
    coming: tuple[tuple[str, float], ...] = ()
    moves: tuple[Move, ...] = ()
    heartbeat_s: float = HEARTBEAT_S
    source_lead_max_s: float | None = None
    publish_credit: int | None = None
    forget_s: float | None = None
    source_silence_max_s: float | None = None
    window_max: int | None = None
    buffer_max: int | None = None
    delivery_events_max: int | None = None
    unasked_events_max: int | None = None

    @property
    def is_sound(self) -> bool:
        """Whether there are rules, whose types are at all times published or defined, or else they
        wait; and whether what is removed, or given up, is there.
        """
        published = {event.type for event in self.events}
        held = {rule.name: rule for rule in self.rules}
        stages = [tuple(held.values())]
        for change in self.changes:
            if change.removed and held.pop(change.removed, None) is None:
                return False
            held.update((rule.name, rule) for rule in change.rules)
            stages.append(tuple(held.values()))
        are_fed = all(_is_fed(stage, published) for stage in stages) and self._has_its_past
        return bool(self.rules) and are_fed and all(map(_gives_up_what_it_has, self.sinks))

    @property
    def _has_its_past(self) -> bool:
        """Whether of each rule from a past instant it is known what it must find, and who sees
        that: of the types below it none was defined by a rule that has ended (what that had found
        is found no more), and no rule was there that uses what it defines (it sees what is found
        from some time on).
        """
        held = {rule.name: rule for rule in self.rules}
        ended = set[str]()
        for change in self.changes:
            if change.since_s is not None:
                above = {rule.defines for rule in change.rules} & {*used([*held.values()])}
                if above or _below(change.rules, held.values()) & ended:
                    return False
            for name in (change.removed, *(rule.name for rule in change.rules)):
                if name in held:
                    ended.add(held.pop(name).defines)
            held.update((rule.name, rule) for rule in change.rules)
        return True

    def write(self, folder: Path) -> Path:
        """Write the scenario's files into ``folder``; gives that of the scenario."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rules.tesla").write_text(_tesla(self.rules))
        for number, change in enumerate(self.changes, 1):
            if change.rules:
                (folder / f"change{number}.tesla").write_text(_tesla(change.rules))
        for source, _ in self.homes:
            lines = (_line(event) for event in self.events if event.source == source)
            (folder / f"{source}.jsonl").write_text("".join(lines))
        path = folder / "scenario.toml"
        path.write_text("".join(self._tables()))
        return path

    def _tables(self) -> Iterator[str]:
        yield f'seed = {self.seed}\nstrategy = {_text(self.strategy)}\nengine = "naive"\n'
        yield f"ordering = {_text(self.ordering)}\n"
        yield f'rules = "rules.tesla"\n[protocol]\nheartbeat_s = {self.heartbeat_s}\n'
        yield f"lead_s = {LEAD_S}\n"
        yield f"message_cost_us = {self.message_cost_us}\n"
        for name in _CHOSEN:
            value = getattr(self, name)
            said = _text(value) if isinstance(value, str) else value
            yield "" if value is None else f"{name} = {said}\n"
        for name in self.brokers:
            yield f"[[broker]]\nname = {_text(name)}\n"
        for one, other, delay_ms in self.links:
            yield f"[[link]]\nbetween = {_list((one, other))}\ndelay_ms = {delay_ms}\n"
        coming = dict(self.coming)
        for source, broker in self.homes:
            yield f"[[source]]\nname = {_text(source)}\nbroker = {_text(broker)}\n"
            yield f'events = "{source}.jsonl"\n'
            yield f"at_s = {coming[source]}\n" if source in coming else ""
            moves = ", ".join(map(_move, (one for one in self.moves if one.source == source)))
            yield f"moves = [{moves}]\n" if moves else ""
        for sink in self.sinks:
            yield f"[[sink]]\nname = {_text(sink.name)}\nbroker = {_text(sink.broker)}\n"
            yield f"subscribe = {_list(sink.filters)}\n"
            yield "" if sink.at_s is None else f"at_s = {sink.at_s}\n"
            yield "" if sink.for_s is None else f"for_s = {sink.for_s}\n"
            yield f"then = [{', '.join(map(_then, sink.then))}]\n" if sink.then else ""
            yield "durable = true\n" if sink.durable else ""
        for number, change in enumerate(self.changes, 1):
            yield f"[[change]]\nat_s = {change.at_s}\nbroker = {_text(change.broker)}\n"
            yield f'rules = "change{number}.tesla"\n' if change.rules else ""
            yield f"remove = {_text(change.removed)}\n" if change.removed else ""
            yield "" if change.since_s is None else f"since_s = {change.since_s}\n"
        for fault in self.faults:
            yield f"[[fault]]\nkind = {_text(fault.kind)}\nat_s = {fault.at_s}\n"
            yield f"for_s = {fault.for_s}\n"
            yield "" if fault.value is None else f"value = {fault.value}\n"
            pairs = ", ".join(map(_list, fault.links))
            yield f"links = [{pairs}]\n" if fault.links else ""
            yield f"sources = {_list(fault.sources)}\n" if fault.sources else ""
            yield f"brokers = {_list(fault.brokers)}\n" if fault.brokers else ""


def _tesla(rules: Sequence[RuleText]) -> str:
    schemas = OPTIONAL if any(rule.optional for rule in rules) else SCHEMAS
    declared = "".join(f"event {schema}\n" for schema in schemas.values())
    return declared + "\n\n".join(map(str, rules)) + "\n"


def _gives_up_what_it_has(sink: Sink) -> bool:
    wanted = list(sink.filters)
    for then in sink.then:
        if not {*then.unsubscribe} <= {*wanted}:
            return False
        wanted = [*(one for one in wanted if one not in then.unsubscribe), *then.subscribe]
    return True


def _is_fed(rules: Sequence[RuleText], published: AbstractSet[str]) -> bool:
    """Whether all that the rules use is published, or defined by one of them."""
    known = published | {rule.defines for rule in rules}
    return all(name in known for name in used(rules))


def _below(rules: Sequence[RuleText], others: Collection[RuleText]) -> set[str]:
    """The types that rules need, by way of others, too."""
    found = {*used(rules)}
    while more := {*used([one for one in others if one.defines in found])} - found:
        found |= more
    return found


def used(rules: Sequence[RuleText]) -> list[str]:
    """The types that rules speak of."""
    text = "\n".join(str(piece) for rule in rules for piece in (*rule.pieces, *rule.where))
    return [name for name in SCHEMAS if re.search(rf"\b{name}\(", text)]


def _line(event: Event) -> str:
    # A number of seconds keeps microseconds exactly up to 2**53 of them.
    fields = {
        "type": event.type,
        "time": event.time / MICROSECONDS,
        "source": event.source,
        "id": event.id,
        "data": event.data,
    }
    return json.dumps(fields) + "\n"


def _move(move: Move) -> str:
    broker = "" if move.broker is None else f"broker = {_text(move.broker)}, "
    how = "" if move.says_goodbye else ", goodbye = false"
    return f"{{ at_s = {move.at_s}, {broker}away_s = {move.away_s}{how} }}"


def _then(then: Then) -> str:
    wanted, unwanted = _list(then.subscribe), _list(then.unsubscribe)
    return f"{{ at_s = {then.at_s}, subscribe = {wanted}, unsubscribe = {unwanted} }}"


def _text(text: str) -> str:
    return json.dumps(text)  # a JSON string is a basic string of TOML, too


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"
