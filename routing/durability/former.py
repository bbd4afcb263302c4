"""Records of durable sinks as stores of version 1 may have them, and what version 2 has for them.

A durable sink keeps its position over the change, and what waits for it its numbers. billing had
acknowledged 2 of the 5 Fires that are queued in records 1 to 3 and 4 to 5: so it has in version 2,
where its records are of a kind of their own, with the time of the change as that at which they were
queued.

In version 1 some records are of the later form already, from which nothing follows here: the form
of both versions is fixed, whatever ``records`` has by now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from routing.messages import Delivery, Rights
from routing.storage import Delete, Put
from routing.wire import decode

DURABLE, FORMER_QUEUE = "durable", "queue"
_pack = msgspec.msgpack.Encoder().encode


class FormerSink(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A durable sink: the choice and the bound of its queue, filters by number, the numbers of the
    last event and of the last that was acknowledged, the time up to which it is complete.
    """

    when_full: str
    limit: int
    filters: tuple[tuple[int, str], ...]
    last: int
    acknowledged: int
    complete: int
    rights: Rights


_unpack_sink = msgspec.msgpack.Decoder(FormerSink).decode
_unpack_frames = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode


def former_sink(value: bytes) -> FormerSink | None:
    """The durable sink that a record of the earlier form is of; None for a later form."""
    try:
        return _unpack_sink(value)
    except msgspec.ValidationError:
        return None


def sink_of(key: str) -> str:
    """The durable sink to whose queue the record of this key belongs."""
    return key.rpartition("/")[0]


def renewed(
    name: str, sink: FormerSink, queue: Iterable[tuple[str, bytes]], at: int
) -> Iterator[Put | Delete]:
    """The changes by which a durable sink's records, and those of its queue, are of the later form.
    ``queue``: these, by key; ``at``: the present, in microseconds.
    """
    size, filters_made = 0, max((number for number, _ in sink.filters), default=0)
    for key, value in queue:
        first, frames = int(key.rpartition("/")[2]), _unpack_frames(value)
        delivery = decode(frames)
        assert isinstance(delivery, Delivery)
        told = (number for numbers in delivery.subscriptions for number in numbers)
        filters_made = max((filters_made, *told))
        record = _pack((at, first + len(delivery) - 1, frames))
        size += len(record)
        yield Put(f"queue/{name}", f"{first:020d}", record)
        yield Delete(FORMER_QUEUE, key)
    bounds = sink.when_full, sink.limit, None, None
    numbers = sink.last, sink.acknowledged, sink.complete
    renewed_sink = bounds, sink.filters, filters_made, *numbers, size, sink.rights
    yield Put(DURABLE, name, _pack(renewed_sink))
