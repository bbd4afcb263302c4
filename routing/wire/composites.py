"""A composite event that is alone, as the bytes that it crosses links in.

A Fire on its way from the engine that found it to a sink three brokers on is looked at for its
type, its time and its source, and would be written anew at each of them. Arrays of length one,
which its columns are, cost more to make and to write than all else that is done with it. So it is
written once, where it was found.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from matcher.lazy import Lazy
from matcher.lone import Digest, Lone
from matcher.model import DTYPES, Causes, Column, EventBatch, EventIds, Int32s, Int64s, StringColumn
from routing.errors import WireError
from routing.wire.headers import BatchHeader, CausesHeader
from routing.wire.schemas import Layout, Strings, known_schema
from routing.wire.singles import only

CAUSES_MAX = 64
"""Causes of an event that is taken in so; one with more comes in columns."""
_FORMS_MAX = 256
"""Forms that are remembered of a type."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a composite event lies in a body: a pattern of :mod:`struct`, and where in the numbers
    that it gives there is what.
    """

    body: struct.Struct
    digest: slice
    values: tuple[int, ...]
    """For each attribute the place of its value, -1 for a string."""
    floats: tuple[int, ...]
    offsets: int
    sequences: slice
    digests: slice
    sources: slice
    texts: slice
    truths: slice
    """Truth values, of attributes and of causes."""
    is_digest: slice
    has_text: slice

    @classmethod
    def of(cls, layout: Layout, header: BatchHeader, causes: CausesHeader) -> Form:
        """The form of what a header speaks of."""
        count, parts, place = causes.count, ["<qq"], 2

        def take(letter: str, number: int) -> slice:
            nonlocal place
            parts.append(letter * number)
            place += number
            return slice(place - number, place)

        values = [-1] * len(layout.type.attributes)
        digest = take("Q", 2 * header.digest)
        for attribute, is_float in layout.words:
            values[attribute] = take("d" if is_float else "q", 1).start
        offsets = take("q", 2).start
        sequences = take("q", count)
        digests = take("Q", 2 * count * causes.digest)
        sources = take("I", count * (len(causes.sources) > 1))
        texts = take("I", count * (causes.texts is not None and len(causes.texts) > 1))
        bools = take("B", len(layout.bools))
        for number, attribute in enumerate(layout.bools):
            values[attribute] = bools.start + number
        is_digest = take("B", count * causes.digest)
        has_text = take("B", count * (causes.texts is not None))
        parts.append("x" * (-struct.calcsize("".join(parts)) % 8))
        floats = tuple(values[attribute] for attribute, is_float in layout.words if is_float)
        return cls(
            struct.Struct("".join(parts)),
            digest,
            tuple(values),
            floats,
            offsets,
            sequences,
            digests,
            sources,
            texts,
            slice(bools.start, has_text.stop),
            is_digest,
            has_text,
        )

    def check(self, numbers: tuple[Any, ...], causes: CausesHeader) -> None:
        """WireError for anything that is not an event."""
        for place in self.floats:
            if not isfinite(numbers[place]):
                raise WireError("a float that is not finite (tesla.md E1)")
        if numbers[self.offsets] != 0 or numbers[self.offsets + 1] != causes.count:
            raise WireError(f"offsets of causes that do not rise from 0 to {causes.count}")
        if len(causes.sources) != 1:
            _check_codes(numbers[self.sources], causes.sources, causes.count)
        if causes.texts is not None and len(causes.texts) != 1:
            _check_codes(numbers[self.texts], causes.texts, causes.count)
        if max(numbers[self.truths], default=0) > 1:
            raise WireError("a truth value that is neither 0 nor 1")


def _check_codes(codes: tuple[int, ...], values: Strings, count: int) -> None:
    if not 1 < len(values) <= count or len(set(values)) != len(values):
        raise WireError(f"a dictionary of {len(values)} strings for {count} rows, or a repeat")
    if max(codes) >= len(values):
        raise WireError(f"a code outside its dictionary of {len(values)} strings")


class Encoded(Lazy):
    """A batch of one composite event: its header and body, the numbers in that, and where each is.

    ``at`` is its time, ``rule`` its source.

    It is an EventBatch in every respect: its columns are made when somebody asks for them, and
    kept. It is made of bytes that were checked whole, or of what an engine found here, as the bytes
    that columns would give; and goes on as these bytes.
    """

    __slots__ = ("at", "body", "form", "header", "numbers", "rule")
    at: int
    rule: str
    header: BatchHeader
    body: bytes
    form: Form
    numbers: tuple[Any, ...]

    def __init__(
        self, layout: Layout, header: BatchHeader, body: bytes, form: Form, numbers: tuple[Any, ...]
    ) -> None:
        _set(self, "type", layout.type)
        _set(self, "header", header)
        _set(self, "body", body)
        _set(self, "form", form)
        _set(self, "numbers", numbers)
        _set(self, "at", numbers[0])
        _set(self, "rule", header.sources[0])

    @property
    def is_composite(self) -> bool:
        """Always: it has causes."""
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return EventBatch, (self.type, self.time, self.ids, self.columns, self.causes)


def decode_alone(
    header: BatchHeader, layout: Layout, body: bytes | memoryview, start: int
) -> Encoded:
    """The event, of at most CAUSES_MAX causes, whose body begins at ``start``; WireError for
    anything that is not one.
    """
    causes = header.causes
    assert causes is not None
    if len(header.strings) != len(layout.strings):
        raise WireError(f"{len(header.strings)} dictionaries for {layout.type}")
    for dictionary in (header.sources, *header.strings):
        if len(dictionary) != 1:
            only(dictionary)  # says what is wrong
    if header.texts is not None:
        only(header.texts)
    form = _form(layout, header, causes)
    size = form.body.size
    if start + size > len(body):
        raise WireError(f"the body ends after {len(body)} bytes; expected {start + size} or more")
    numbers = form.body.unpack_from(body, start)
    form.check(numbers, causes)
    return Encoded(layout, header, bytes(body[start : start + size]), form, numbers)


def encode_alone(found: Lone) -> Encoded:
    """A composite event that an engine has found, with at most CAUSES_MAX causes."""
    _, schema, layout, _ = known_schema(found.type)
    single, count = layout.single, len(found.sequences)
    values, words = single.numbers(found.values), len(layout.words)
    sources, source_codes = _dictionary(found.sources)
    digests, is_digest = _digests(found.digests) if found.digests else ((), ())
    texts, text_codes, has_text = _texts(found.texts) if found.texts else (None, (), ())
    causes = CausesHeader(count, sources, texts, bool(digests))
    strings = tuple(zip(single.strings(found.values)))
    header = BatchHeader(schema, 1, (found.source,), None, True, strings, causes)
    form = _form(layout, header, causes)
    numbers = (
        found.time,
        0,
        *found.digest,
        *values[:words],
        0,
        count,
        *found.sequences,
        *digests,
        *source_codes,
        *text_codes,
        *values[words:],
        *is_digest,
        *has_text,
    )
    return Encoded(layout, header, form.body.pack(*numbers), form, numbers)


def _dictionary(texts: Sequence[str]) -> tuple[Strings, Sequence[int]]:
    """A dictionary of texts, and their codes where there are several."""
    values = tuple(dict.fromkeys(texts))
    return values, list(map(values.index, texts)) if len(values) > 1 else ()


def _digests(given: Sequence[Digest | None]) -> tuple[Sequence[int], Sequence[bool]]:
    """The digests of causes as numbers, and which causes have one; nothing where none has."""
    numbers, is_digest = list[int](), list[bool]()
    for one in given:
        numbers += one or (0, 0)
        is_digest.append(one is not None)
    return (numbers, is_digest) if any(is_digest) else ((), ())


def _texts(given: Sequence[str | None]) -> tuple[Strings | None, Sequence[int], Sequence[bool]]:
    """The texts of causes, their codes where there are several, and which causes have one."""
    if given.count(None) == len(given):
        return None, (), ()
    values = tuple(dict.fromkeys([text for text in given if text is not None]))
    codes = [0 if text is None else values.index(text) for text in given]
    return values, codes if len(values) > 1 else (), [text is not None for text in given]


def _form(layout: Layout, header: BatchHeader, causes: CausesHeader) -> Form:
    texts = -1 if causes.texts is None else len(causes.texts) > 1
    key = header.digest, causes.count, len(causes.sources) > 1, texts, causes.digest
    forms = layout.composite
    found: Form | None = forms.get(key)
    if found is None:
        if len(forms) >= _FORMS_MAX:
            forms.clear()
        found = forms[key] = Form.of(layout, header, causes)
    return found


# --- columns -----------------------------------------------------------------------------------

_set = object.__setattr__
_CODES: Int32s = np.zeros(CAUSES_MAX, np.int32)  # of columns of one string; never written to
_NUMBERS = {kind: np.dtype(dtype) for kind, dtype in DTYPES.items()}


def _times(event: Encoded) -> Int64s:
    return np.array((event.at,), np.int64)


def _ids(event: Encoded) -> EventIds:
    header, numbers = event.header, event.numbers
    text = None if header.texts is None else StringColumn(_CODES[:1], header.texts)
    digest = None
    if header.digest:
        digest = np.array((numbers[event.form.digest],), np.uint64)
    sequence: Int64s = np.array((numbers[1],), np.int64)
    return EventIds(StringColumn(_CODES[:1], header.sources), sequence, text, digest)


def _values(event: Encoded) -> tuple[Column, ...]:
    strings = iter(event.header.strings)
    return tuple(
        StringColumn(_CODES[:1], next(strings))
        if place < 0
        else np.array((event.numbers[place],), _NUMBERS[attribute.kind])
        for attribute, place in zip(event.type.attributes, event.form.values, strict=True)
    )


def _causes(event: Encoded) -> Causes:
    form, numbers, causes = event.form, event.numbers, event.header.causes
    assert causes is not None
    count, texts, digest = causes.count, None, None
    if causes.texts is not None:
        texts = _names(numbers[form.texts], causes.texts, count)
    if causes.digest:
        digest = np.array(numbers[form.digests], np.uint64).reshape(count, 2)
    sequences: Int64s = np.array(numbers[form.sequences], np.int64)
    sources = _names(numbers[form.sources], causes.sources, count)
    return Causes(
        np.array((0, count), np.int64),
        EventIds(sources, sequences, texts, digest),
        np.array(numbers[form.is_digest] or (0,) * count, np.bool_),
        np.array(numbers[form.has_text] or (0,) * count, np.bool_),
    )


def _names(codes: tuple[int, ...], values: Strings, count: int) -> StringColumn:
    return StringColumn(np.array(codes, np.int32) if codes else _CODES[:count], values)


Encoded.makers = {"time": _times, "ids": _ids, "columns": _values, "causes": _causes}
