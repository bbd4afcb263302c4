"""Ids and causes as they are printed (tesla.md E3, section 4), as columns of Arrow.

They are what ``EventIds.printed`` and ``Causes.printed_rows`` say, and no Python object is made for
any of them: composite events that leave by the million are mostly ids.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matcher.model import Bools, Causes, EventIds, StringColumn, UInt64s

_DIGITS = 32
"""Of a printed digest."""


def printed_ids(ids: EventIds) -> pa.Array:
    """The printed ids: string[n]."""
    if ids.digest is not None:
        return _digests(ids.digest)
    if ids.text is not None:
        return strings(ids.text)
    return pa.array(ids.sequence).cast(pa.string())


def printed_causes(causes: Causes, *, full: bool = False) -> pa.Array:
    """The printed ids of the causes of every composite event, ``source#id`` if ``full``:
    list<string>[n].
    """
    texts = _mixed(causes)
    if full:
        texts = pc.binary_join_element_wise(strings(causes.ids.source), texts, "#")
    return pa.ListArray.from_arrays(pa.array(causes.offsets.astype(np.int32)), texts)


def strings(column: StringColumn) -> pa.Array:
    """A column of strings, each in full: string[n]."""
    encoded = pa.DictionaryArray.from_arrays(
        pa.array(column.codes.astype(np.int32, copy=False)), pa.array(column.values, pa.string())
    )
    return encoded.cast(pa.string())


def _mixed(causes: Causes) -> pa.Array:
    """The ids of all causes, in whichever form each has one."""
    ids = causes.ids
    none: Bools = np.zeros(len(ids), np.bool_)
    named = none if ids.text is None else causes.has_text
    made = none if ids.digest is None else causes.is_digest
    numbered = ~(named | made)
    if numbered.all():
        return pa.array(ids.sequence).cast(pa.string())
    parts = [pa.array(ids.sequence[numbered]).cast(pa.string())]
    if ids.text is not None:
        parts.append(strings(ids.text.take(named & ~made)))
    if ids.digest is not None:
        parts.append(_digests(ids.digest[made]))
    places = [np.flatnonzero(chosen) for chosen in (numbered, named & ~made, made)]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))


def _digests(digests: UInt64s) -> pa.Array:
    """uint64[n, 2] digests (high, low) as texts."""
    digits = digests.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, len(digits) + 1, _DIGITS, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), len(digests), buffers)
