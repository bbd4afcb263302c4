"""Events as CloudEvents JSON lines: the printed form (tesla.md E3; docs/files.md).

``specversion, type, time, source, id, data``, in this order, then ``cause`` of a composite
event: the ids of the events it was made of, terminator first. A primitive event has its
``sequence`` before ``data``: with it, what is read back is what was printed (E4). Last comes the
``traceparent`` (CloudEvents' extension) of an event that belongs to a trace, and the
``tracelinks`` of a composite one, which are those of its causes.

Events become structures column by column and text in one call, so that no Python code runs for
a single event.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw, Struct, UnsetType

from matcher.model import MICROSECONDS, EventBatch, EventType, Int64s
from matcher.times import SECONDS_EXACT_IN_FLOAT, rfc3339, seconds_text
from matcher.traces import Contexts, Traces

PIECE = 16_384
"""Lines that are made at a time: an instant may have millions of composite events."""


class _Line(Struct, gc=False):
    specversion: str
    type: str
    time: str | float | Raw
    source: str
    id: str
    sequence: int | UnsetType
    data: Any
    cause: list[str] | UnsetType
    traceparent: str | UnsetType = UNSET
    tracelinks: Contexts | UnsetType = UNSET


_ENCODER = msgspec.json.Encoder()


def json_lines(
    batches: Sequence[EventBatch],
    order: Int64s | None = None,
    *,
    full_cause: bool = False,
    seconds: bool = False,
    traces: Traces = (),
) -> bytes:
    """The events of ``batches`` as JSON lines, each with its line end.

    ``order`` int64[n] lists positions in the concatenation of the batches (``Detections.order``);
    without it the events come batch by batch. ``full_cause`` prints causes as ``source#id``,
    ``seconds`` prints times as numbers of seconds. ``traces``: contexts of some of the events, by
    their places in the concatenation.
    """
    lines: list[_Line] = []
    for batch in batches:
        lines.extend(_lines(batch, full_cause, seconds))
    for place, contexts in traces:
        line = lines[place]
        if line.cause is UNSET and len(contexts) == 1:
            (line.traceparent,) = contexts
        else:
            line.tracelinks = contexts
    if order is not None:
        lines = [lines[place] for place in order.tolist()]
    return _ENCODER.encode_lines(lines)


def pieces(
    batches: Sequence[EventBatch], order: Int64s | None = None, length: int = PIECE
) -> Iterator[tuple[Sequence[EventBatch], Int64s]]:
    """The events of ``batches`` in ``order``, as ``json_lines`` takes them, at most ``length`` at a
    time.
    """
    starts = np.cumsum([0, *map(len, batches)])
    order = np.arange(starts[-1]) if order is None else order
    if len(order) <= length:
        yield batches, order
        return
    for begin in range(0, len(order), length):
        wanted = order[begin : begin + length]
        places = np.sort(wanted)  # which are those of the first batch, then of the second ...
        cuts = np.searchsorted(places, starts).tolist()
        some = [
            batch.take(places[low:high] - start)
            for batch, start, (low, high) in zip(
                batches, starts.tolist(), itertools.pairwise(cuts), strict=False
            )
        ]
        yield some, np.searchsorted(places, wanted)


def _lines(batch: EventBatch, full_cause: bool, seconds: bool) -> list[_Line]:
    ids = batch.ids
    causes: Any = itertools.repeat(UNSET)
    if batch.causes is not None:
        causes = batch.causes.printed_rows(full=full_cause)
    return list(
        map(
            _Line,
            itertools.repeat("1.0", len(batch)),
            itertools.repeat(batch.type.name),
            _seconds(batch.time) if seconds else _timestamps(batch.time),
            ids.source.tolist(),
            ids.printed(),
            itertools.repeat(UNSET) if batch.is_composite else ids.sequence.tolist(),
            _data(batch),
            causes,
        )
    )


def _data(batch: EventBatch) -> list[Any]:
    columns = batch.lists()
    if not columns:
        return [{}] * len(batch)
    return list(map(_data_maker(batch.type), *columns))


@functools.lru_cache(maxsize=1024)
def _data_maker(event_type: EventType) -> Callable[..., Any]:
    names = [attribute.name for attribute in event_type.declared]
    fields = [(f"value_{place}", Any) for place in range(len(names))]
    rename = {field: name for (field, _), name in zip(fields, names, strict=True)}
    try:
        return msgspec.defstruct("Data", fields, rename=rename, gc=False)
    except ValueError:  # a name with a quote in it: no structure can have it, but a dict can
        return lambda *values: dict(zip(names, values, strict=True))


def _timestamps(times: Int64s) -> list[Any]:
    texts = rfc3339(times)
    # A time that has no RFC 3339 form is a number of seconds, without quotes.
    return [text if text[-1:] == "Z" else Raw(text.encode()) for text in texts]


def _seconds(times: Int64s) -> list[Any]:
    whole = times // MICROSECONDS
    numbers = whole.astype(object)
    broken = np.flatnonzero(times % MICROSECONDS)
    # A float prints as the decimal it stands for, and as plain digits, only within these bounds.
    plain = (np.abs(whole) > 1) & (np.abs(whole) < SECONDS_EXACT_IN_FLOAT - 1)
    floats = broken[plain[broken]]
    numbers[floats] = (times[floats] / MICROSECONDS).astype(object)
    for place in broken[~plain[broken]].tolist():
        numbers[place] = Raw(seconds_text(int(times[place])).encode())
    printed: list[Any] = numbers.tolist()
    return printed
