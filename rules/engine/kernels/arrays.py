"""The arrays that kernels work on, all reached through one.

A kernel that took every array as an argument would spend its time passing them on, and counting
references to them. Here the *state* is a mere address, that of two words for each array: where
it is and how long. The accessors below turn them into views that nobody counts, at no cost once
compiled; the host's :class:`Arrays` owns the arrays themselves, keeps them alive, and is the only
one to replace them, between two calls. So compiled code may read those words once and keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types as numba_types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from matcher.model import AnyArray, Int64s
from rules.engine.kernels import layout
from runtime import guarded
from runtime.instructions.prefetch import ask_for
from runtime.instructions.views import View, accessor, view_at
from runtime.memory import grown, is_guarded, zeros

_I = np.dtype(np.int64)

DTYPES: Mapping[str, npt.DTypeLike] = {
    # Rules as data: what only deploying and removing rules changes.
    "types": layout.TYPE,
    "dispatch": layout.DISPATCH,
    "columns": layout.COLUMN,
    "accesses": layout.ACCESS,
    "rules": layout.RULE,
    "groups": layout.GROUP,
    "automata": layout.AUTOMATON,
    "states": layout.STATE,
    "links": layout.LINK,
    "steps": layout.STEP,
    "code": layout.CODE,
    "values": layout.VALUE,  # of the attributes that rules define
    "straight": _I,  # words of straight rules, see layout.STRAIGHT_HEADER
    "published": _I,  # words of automata as published, see ``rules.engine.chains.published.layout``
    "private": _I,  # private accesses of consuming rules, each list ended by -1
    "dispatched": layout.DISPATCHED,  # open-addressed
    # What comes from outside, and waits for the marks of its types.
    "parcel": _I,  # a batch, see layout.PARCEL_HEADER
    "staged": _I,  # an event alone, see layout.STAGED_ROW
    "seen": layout.BLOCK,  # see ``seen``,
    "journal": layout.JOURNALED,  # explicit numbers as they came
    "digests": np.dtype(np.uint64),  # scratch: of the events of a parcel whose ids are explicit,
    "repeats": _I,  # and which of them are repeats
    "waiting": layout.ARRIVING,
    "inbox": _I,  # the words of rows
    "type_marks": _I,  # by type, where it is not the floor
    "type_least": _I,  # by type: nothing of it is earlier among what waits in order
    # What is to be done: events in the order of (time, E4), and terminators that entered earlier,
    # by time.
    "arrivals": layout.ARRIVING,
    "merging": layout.ARRIVING,  # scratch
    "stored": layout.DEFERRED_TRIGGER,
    # What events change.
    "heap": _I,
    "free": _I,  # first free segment of each size, or -1
    "lists": layout.LIST,
    "summaries": layout.SUMMARY,
    "pools": layout.POOL,
    "buckets": _I,  # open-addressed: list number, or -1
    "counters": _I,
    "outlets": layout.OUTLET,  # by type
    "touched": _I,  # types that have composite events to be taken
    "runs": layout.RUN,
    "taken": _I,  # where what an advance wrote stands, see emission.take
    "triggers": layout.TRIGGER,  # a heap
    "queue": layout.TRIGGER,  # in order
    "deferred": layout.DEFERRED_TRIGGER,
    "consumed": layout.CONSUMED_EVENT,
    "source_ranks": _I,  # by source number: place in E4, see layout.RANK_ELSEWHERE
    "source_hashes": _I,
    "late": _I,  # addresses of kernels, see ``late``; 0 where one is not loaded
    "asked": _I,  # the address of the host's answer to which of two ids is less
    "strings": _I,  # begin and end of each string code in ``string_bytes``
    "string_bytes": np.dtype(np.uint8),
    "text_results": _I,  # of functions of strings, see Interner.results
    # Scratch of the evaluation of one terminator.
    "frame": _I,  # heap offsets of rows; place 0 is the candidate's, see STEP for neighbours
    "chosen": _I,  # row numbers of the numbered events
    "chosen_types": _I,
    "slots": _I,
    "slots_defined": np.dtype(np.bool_),
    "stack": _I,
    "stack_defined": np.dtype(np.bool_),
    "cursors": _I,  # next candidate of each step
    "cursor_ends": _I,
    "cursor_lists": _I,
    "accepted": _I,  # sequences that a terminator completes
    "matched": _I,  # columns of the present event
    "digits": _I,  # of sums in the making
    "gathered": _I,  # the words of a short window
    "composite": _I,  # the row of a composite event that enters columns
    "evaluating": _I,  # the slot for the rule that is evaluated, see ``last_words``
    "walked": layout.WALKED,  # a part for each kind
    "walked_counts": _I,
}
"""Every array by name. All are one-dimensional and contiguous."""

_PLACES = {name: 2 * place for place, name in enumerate(DTYPES)}


class Arrays:
    """Owner of the arrays; ``state`` is what kernels take, ``counters`` those of them by number."""

    def __init__(self) -> None:
        self._held: dict[str, AnyArray] = {}
        self._words: Int64s = np.zeros(2 * len(DTYPES), np.int64)
        self.state: int = self._words.ctypes.data
        for name, dtype in DTYPES.items():
            self[name] = zeros((64,), dtype)
        self.grow("digits", layout.DIGITS)
        self.counters = self._held["counters"].data  # whose items are read and set far sooner

    def __getitem__(self, name: str) -> AnyArray:
        return self._held[name]

    def __setitem__(self, name: str, array: AnyArray) -> None:
        if self._held.get(name) is array:
            return
        assert array.dtype == DTYPES[name], name
        assert array.flags.c_contiguous, name
        assert array.ndim == 1, name
        assert is_guarded() <= guarded.holds(array), name
        self._held[name] = array
        place = _PLACES[name]
        self._words[place : place + 2] = array.ctypes.data, len(array)

    def beside(self, own: Mapping[str, AnyArray]) -> Int64s:
        """Words for another thread's kernels, whose address they take for their state: they see the
        same arrays, but for their own. Good until an array is replaced.
        """
        words = self._words.copy()
        for name, array in own.items():
            assert array.dtype == DTYPES[name], name
            place = _PLACES[name]
            words[place : place + 2] = array.ctypes.data, len(array)
        return words

    def grow(self, name: str, length: int) -> None:
        """Give an array room for at least ``length`` items."""
        if len(self._held[name]) < length:
            # Taken out, for what somebody refers to is copied.
            self[name] = grown(self._held.pop(name), length)


def _array_type(dtype: npt.DTypeLike) -> Any:
    return View(from_dtype(np.dtype(dtype)))


def _accessor(name: str) -> Any:
    return accessor(_PLACES[name], _array_type(DTYPES[name]))


def _prefetch(name: str) -> Any:
    place, size = _PLACES[name], np.dtype(DTYPES[name]).itemsize

    @intrinsic
    def prefetch(_context: Any, _state: Any, _index: Any) -> tuple[Signature, Any]:
        """Have the memory of one item of the array fetched: it is needed soon."""

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            state, index = arguments
            word = ir.IntType(64)
            words = builder.inttoptr(state, word.as_pointer())
            start = builder.load(builder.gep(words, [ir.Constant(word, place)]))
            address = builder.add(start, builder.mul(index, ir.Constant(word, size)))
            ask_for(builder, builder.inttoptr(address, ir.IntType(8).as_pointer()))
            return context.get_dummy_value()

        return numba_types.void(numba_types.int64, numba_types.int64), generate

    return prefetch


def _view(dtype: npt.DTypeLike) -> Any:
    kind = _array_type(dtype)

    @intrinsic
    def array(_context: Any, address: Any, length: Any) -> tuple[Signature, Any]:
        """``length`` items at an address."""

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return view_at(context, builder, kind, *arguments)

        return kind(numba_types.int64, numba_types.int64), generate

    return array


@intrinsic
def ask(
    _context: Any, _address: Any, _first: Any, _second: Any, _third: Any
) -> tuple[Signature, Any]:
    """Ask the function at an address about three words; it takes the interpreter's lock."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        form = ir.FunctionType(word, [word, word, word])
        function = builder.inttoptr(arguments[0], form.as_pointer())
        return builder.call(function, arguments[1:])

    return numba_types.int64(*(numba_types.int64,) * 4), generate


@intrinsic
def call(
    _context: Any, _address: Any, _state: Any, _1: Any, _2: Any, _3: Any, _4: Any, _5: Any
) -> tuple[Signature, Any]:
    """A call of a kernel of ``late`` by its address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        form = ir.FunctionType(word, [word] * (len(arguments) - 1))
        function = builder.inttoptr(arguments[0], form.as_pointer())
        return builder.call(function, arguments[1:])

    return numba_types.int64(*(numba_types.int64,) * 7), generate


@intrinsic
def address_of(_context: Any, record: Any) -> tuple[Signature, Any]:
    """Where a record of an array stands."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(arguments[0], ir.IntType(64))

    return numba_types.int64(record), generate


@intrinsic
def step_at(_context: Any, _address: Any) -> tuple[Signature, Any]:
    """The step that stands at an address."""
    kind = from_dtype(np.dtype(layout.STEP))

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(numba_types.int64), generate


words_at = _view(np.int64)
"""``length`` int64 words at an address."""
codes_at = _view(np.int32)
bytes_at = _view(np.uint8)

prefetch_heap = _prefetch("heap")
prefetch_dispatched = _prefetch("dispatched")
prefetch_column = _prefetch("columns")
prefetch_access = _prefetch("accesses")
prefetch_bucket = _prefetch("buckets")
prefetch_list = _prefetch("lists")
prefetch_rank = _prefetch("source_ranks")
prefetch_rule = _prefetch("rules")
prefetch_straight = _prefetch("straight")

types = _accessor("types")
dispatch = _accessor("dispatch")
columns = _accessor("columns")
accesses = _accessor("accesses")
rules = _accessor("rules")
groups = _accessor("groups")
automata = _accessor("automata")
states = _accessor("states")
links = _accessor("links")
steps = _accessor("steps")
code = _accessor("code")
values = _accessor("values")
straight = _accessor("straight")
published = _accessor("published")
private = _accessor("private")
dispatched = _accessor("dispatched")
parcel = _accessor("parcel")
staged = _accessor("staged")
seen = _accessor("seen")
journal = _accessor("journal")
digests = _accessor("digests")
repeats = _accessor("repeats")
waiting = _accessor("waiting")
inbox = _accessor("inbox")
type_marks = _accessor("type_marks")
type_least = _accessor("type_least")
arrivals = _accessor("arrivals")
merging = _accessor("merging")
stored = _accessor("stored")
heap = _accessor("heap")
free = _accessor("free")
lists = _accessor("lists")
summaries = _accessor("summaries")
pools = _accessor("pools")
buckets = _accessor("buckets")
counters = _accessor("counters")
outlets = _accessor("outlets")
touched = _accessor("touched")
runs = _accessor("runs")
taken = _accessor("taken")
triggers = _accessor("triggers")
queue = _accessor("queue")
deferred = _accessor("deferred")
consumed = _accessor("consumed")
source_ranks = _accessor("source_ranks")
source_hashes = _accessor("source_hashes")
asked = _accessor("asked")
late = _accessor("late")
strings = _accessor("strings")
string_bytes = _accessor("string_bytes")
text_results = _accessor("text_results")
frame = _accessor("frame")
chosen = _accessor("chosen")
chosen_types = _accessor("chosen_types")
slots = _accessor("slots")
slots_defined = _accessor("slots_defined")
stack = _accessor("stack")
stack_defined = _accessor("stack_defined")
cursors = _accessor("cursors")
cursor_ends = _accessor("cursor_ends")
cursor_lists = _accessor("cursor_lists")
accepted = _accessor("accepted")
matched = _accessor("matched")
digits = _accessor("digits")
gathered = _accessor("gathered")
composite = _accessor("composite")
evaluating = _accessor("evaluating")
walked = _accessor("walked")
walked_counts = _accessor("walked_counts")
