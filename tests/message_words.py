"""Messages between brokers in words, for transcripts.

Law: a message is its name in docs/protocol.md and the few facts that a story needs. Numbers, sizes,
digests and versions are left out, so that a transcript changes only when a protocol does.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from matcher.model import Event, EventBatch
from matcher.times import seconds_text
from routing.messages import (
    Answered,
    Asked,
    Awaited,
    Awakening,
    Catalog,
    CatalogDelta,
    Flow,
    Forward,
    Heartbeat,
    Hold,
    LinkAck,
    LinkStates,
    NetworkAnswer,
    NetworkQuery,
    Plan,
    Refused,
    RootRequest,
    RuleFacts,
    Shared,
    Stay,
    Stays,
    SubscriptionUpdate,
)

FAR = 2**61
"""Times beyond this, either way, are no times."""
UNTOLD = (LinkAck, Heartbeat)
"""Signs of life and acknowledgements, which are no part of a story."""


def told(message: Any) -> str:
    """A message in a line."""
    name = type(message).__name__
    words = ", ".join(_WORDS[type(message)](message)) if type(message) in _WORDS else ""
    return f"{name}: {words}" if words else name


def event_words(event: Event) -> str:
    """An event by type, time and values."""
    values = ", ".join(str(value) for value in event.data.values())
    return f"{event.type}@{seconds_text(event.time)}({values})"


def counted(lines: Iterable[str]) -> Iterator[str]:
    """Lines, with each run of equal ones as one."""
    for line, run in itertools.groupby(lines):
        count = len(list(run))
        yield line if count == 1 else f"{line} x{count}"


def _events(batches: Iterable[EventBatch]) -> Iterator[str]:
    return counted(event_words(event) for batch in batches for event in batch.events())


def _marks(marks: Iterable[tuple[str, int]]) -> Iterator[str]:
    for name, time in marks:
        if time >= FAR:
            yield f"{name} closed"
        elif time > -FAR:
            yield f"watermark of {name} {_time(time)}"
        else:
            yield f"no watermark of {name}"


def _time(time: int) -> str:
    return f"{seconds_text(time)} s" if abs(time) < FAR else "any time"


def _link_states(message: LinkStates) -> Iterator[str]:
    for one in message.states:
        linked = " and ".join(name for name, _ in one.neighbours) or "nobody"
        yield f"{one.origin} is linked to {linked}"
        if one.epoch:
            yield f"{one.origin} is the root"
            yield from (f"{name} has the father {father}" for name, father in one.fathers)


def _catalog(message: Catalog) -> Iterator[str]:
    yield from _some("types", (one.name for one in message.types))
    yield from _some("rules", map(_rule, message.rules))
    yield from _some("brokers", (name for name, _ in message.homes))


def _delta(message: CatalogDelta) -> Iterator[str]:
    yield from _some("types", (item[0] for _, item in message.types[1]))
    yield from _some("rules", (_rule(item) for _, item in message.rules[1]))
    for what, (gone, come) in (("type", message.types), ("rule", message.rules)):
        if gone and not come:
            yield f"a {what} is gone"
    yield from _homes(item for _, item in message.homes[1])


def _homes(homes: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    return (f"{broker} publishes {', '.join(types) or 'nothing'}" for broker, types in homes)


def _rule(facts: RuleFacts) -> str:
    return facts.id if facts.until is None else f"{facts.id} until {_time(facts.until)}"


def _some(what: str, names: Iterable[str]) -> Iterator[str]:
    found = " ".join(names)
    if found:
        yield f"{what} {found}"


def _update(message: SubscriptionUpdate) -> Iterator[str]:
    yield from message.filters
    yield from (f"no more {text}" for text in message.gone)
    if not message.filters and not message.gone:
        yield "nothing"


def _plan(message: Plan) -> Iterator[str]:
    if message.anew:
        yield "all begins anew"
    yield from _some("without", (name for name, _ in message.absent))
    yield from (f"a tree for the sinks of {tree.root}" for tree in message.trees)
    for broker, begins in message.reopened:
        told = ", ".join(f"{name} {seconds_text(time)} s" for name, time in begins)
        yield f"{broker} is open again{f', from {told} on' if told else ''}"


def _answered(message: Answered) -> Iterator[str]:
    yield "refused" if isinstance(message.answer, Refused) else "confirmed"


def _awakening(message: Awakening) -> Iterator[str]:
    for root, asked in (("", message.asked), *((root, own) for root, own in message.trees)):
        tree = f" in the tree of {root}" if root else ""
        for rule, spans, _ in asked:
            for first, last, values in spans:
                masters = _time(first) if first == last else f"{_time(first)} to {_time(last)}"
                shared = f" with {', '.join(map(str, values))}" if values else ""
                yield f"masters of {rule} at {masters}{shared}{tree}"


def _forward(message: Forward) -> Iterator[str]:
    yield from _events(message.batches)
    yield from _marks(message.marks)
    yield from (f"answers for {rule} up to {_time(mark)}" for rule, _, mark in message.answers)


def _flow(message: Flow) -> Iterator[str]:
    yield from _events(message.batches)
    yield from _marks(message.marks)


def _hold(message: Hold) -> Iterator[str]:
    yield from (f"{name or 'any type'} from {_time(time)} on" for name, time in message.types)
    if not message.types:
        yield "nothing"


def _shared(message: Shared) -> Iterator[str]:
    yield from _events(message.batches)
    for part in message.parts:
        said = [*_marks(part.marks)]
        yield f"for the tree of {part.root}{': ' if said else ''}{' '.join(said)}"


def _stay(stay: Stay) -> str:
    return f"{stay.name} {f'was at {stay.home}' if stay.is_over else f'at {stay.home}'}"


_WORDS: Mapping[type, Callable[[Any], Iterable[str]]] = {
    CatalogDelta: _delta,
    Answered: _answered,
    Asked: lambda message: [type(message.request).__name__, f"from {message.path[0]}"],
    Awaited: lambda message: _marks(message.types),
    Awakening: _awakening,
    Stays: lambda message: [_stay(one) for one in message.stays],
    NetworkQuery: lambda message: [message.question.value, message.event],
    NetworkAnswer: lambda message: [message.found["broker"]],
    Flow: _flow,
    Forward: _forward,
    Hold: _hold,
    Catalog: _catalog,
    LinkStates: _link_states,
    RootRequest: lambda message: [message.what.value, *message.names],
    Plan: _plan,
    Shared: _shared,
    SubscriptionUpdate: _update,
}
