"""Batches of events as bytes: protocol.md section 3.

An event is a dict of ``type``, ``time`` (microseconds since the epoch), ``source``, ``sequence``,
``id`` and ``data``; one that a rule found has ``cause`` too, the ids of what set it off.
"""

import struct
from typing import Any

Event = dict[str, Any]
WORD, CODE, BYTE = 8, 4, 1


def written(schema: list[str], events: list[Event]) -> tuple[list[Any], bytes]:
    """The seven fields of a batch of events of one type, and its columns.

    ``schema`` is flat: the type's name, then name and kind of each attribute.
    """
    attributes = _attributes(schema)
    columns: list[tuple[int, bytes]] = []

    def add(width: int, form: str, values: list[Any]) -> None:
        columns.append((width, struct.pack(f"<{len(values)}{form}", *values)))

    def coded(values: list[str]) -> list[str]:
        dictionary = sorted(set(values))
        if len(dictionary) > 1:
            add(CODE, "i", [dictionary.index(value) for value in values])
        return dictionary

    add(WORD, "q", [event["time"] for event in events])
    add(WORD, "q", [event["sequence"] for event in events])
    sources = coded([event["source"] for event in events])
    ids = coded([event["id"] for event in events])
    texts = []
    for name, kind in attributes:
        values = [event["data"][name] for event in events]
        if kind == "string":
            texts.append(coded(values))
        else:
            add(*{"int": (WORD, "q"), "float": (WORD, "d"), "bool": (BYTE, "?")}[kind], values)
    together = b"".join(column for _, column in sorted(columns, key=lambda column: -column[0]))
    padded = together + bytes(-len(together) % WORD)
    return [schema, len(events), sources, ids, False, texts, None], padded


class Columns:
    """What is read, from the start to the end, of a message's second frame."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.at = 0

    def take(self, form: str, count: int) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{count}{form}", self.frame, self.at)
        self.at += struct.calcsize(f"<{count}{form}")
        return values

    def take_codes(self, dictionary: list[str], count: int) -> list[str]:
        if len(dictionary) == 1:
            return dictionary * count
        return [dictionary[code] for code in self.take("i", count)]

    def align(self) -> None:
        self.at += -self.at % WORD


def read(batch: list[Any], columns: Columns) -> list[Event]:
    """The events of a batch; ``columns`` stands behind them then."""
    schema, count, sources, ids, digested, texts, causes = batch
    attributes = _attributes(schema)
    numbers = [(name, kind) for name, kind in attributes if kind in ("int", "float")]
    strings = [name for name, kind in attributes if kind == "string"]
    flags = [name for name, kind in attributes if kind == "bool"]

    times, sequences = columns.take("q", count), columns.take("q", count)
    digests = columns.take("Q", 2 * count) if digested else None
    data = {name: columns.take("q" if kind == "int" else "d", count) for name, kind in numbers}
    if causes:
        total, cause_sources, cause_ids, cause_digested = causes
        offsets, cause_sequences = columns.take("q", count + 1), columns.take("q", total)
        cause_digests = columns.take("Q", 2 * total) if cause_digested else None
    origins = columns.take_codes(sources, count)
    names = columns.take_codes(ids, count) if ids is not None else None
    for name, dictionary in zip(strings, texts, strict=True):
        data[name] = tuple(columns.take_codes(dictionary, count))
    if causes:
        columns.take_codes(cause_sources, total)
        cause_names = columns.take_codes(cause_ids, total) if cause_ids is not None else None
    for name in flags:
        data[name] = columns.take("?", count)
    caused = []
    if causes:
        by_digest = columns.take("?", total) if cause_digested else None
        by_name = columns.take("?", total) if cause_names is not None else None
        caused = _ids(cause_sequences, cause_names, by_name, cause_digests, by_digest)
    columns.align()

    own = _ids(sequences, names, None, digests, None)
    return [
        {
            "type": schema[0],
            "time": times[row],
            "source": origins[row],
            "sequence": sequences[row],
            "id": own[row],
            "data": {name: data[name][row] for name, _ in attributes},
        }
        | ({"cause": caused[offsets[row] : offsets[row + 1]]} if causes else {})
        for row in range(count)
    ]


def _attributes(schema: list[str]) -> list[tuple[str, str]]:
    return list(zip(schema[1::2], schema[2::2], strict=True))


def _ids(sequences, names, by_name, digests, by_digest) -> list[str]:  # type: ignore[no-untyped-def]
    """What each event is known by: its digest, else its text id, else its sequence number."""
    found = []
    for row, sequence in enumerate(sequences):
        if digests and (by_digest is None or by_digest[row]):
            found.append(f"{digests[2 * row]:016x}{digests[2 * row + 1]:016x}")
        elif names and (by_name is None or by_name[row]):
            found.append(names[row])
        else:
            found.append(str(sequence))
    return found
