"""The kernels that others call by their addresses, loaded when rules or events first need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from numba import types

from rules.engine.kernels import late, layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.instants import process
from rules.engine.kernels.last_words import last_words
from rules.engine.linking.linker import Linker
from rules.planning.plan import StepKind

KERNELS: dict[int, Any] = {
    layout.LATE_STRAIGHT: late.late_straight,
    layout.LATE_DETECT: late.late_detect,
    layout.LATE_AUTOMATA: late.late_automata,
    layout.LATE_AGGREGATES: late.late_aggregates,
    layout.LATE_SUMMARIES: late.late_summaries,
    layout.LATE_AHEAD: late.late_ahead,
    layout.LATE_RUNS: late.late_runs,
}
LOADING = {
    layout.LOAD_AHEAD: layout.LATE_AHEAD,
    layout.LOAD_SUMMARIES: layout.LATE_SUMMARIES,
}
"""Kernels that a status asks for."""
_types: Any = types
_process: Any = process
_SIGNATURE = _types.int64(*(_types.int64,) * 6)


@cache
def address_of(number: int) -> int:
    """The address of a kernel, loaded or compiled if need be; it stays."""
    return pointer_to(KERNELS[number])


def pointer_to(kernel: Any, signature: Any = _SIGNATURE) -> int:
    """The address of any kernel that others may call in place of one of these."""
    result = kernel.get_compile_result(signature)
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


def pointer_to_handler() -> int:
    """The address of the handler of signals that end the process."""
    return pointer_to(last_words, _types.int64(_types.int64))


def load_all() -> None:
    """Load every kernel that others call, whether or not a rule needs it yet, and the handler."""
    for number in KERNELS:
        address_of(number)
    pointer_to_handler()


def compile_others() -> None:
    """Compile what ``load_all`` would come to last, and the kernel that calls them all: for a
    process beside the one that is in a hurry for the rest.
    """
    _process.compile((_types.int64,))
    for number in reversed(KERNELS):
        address_of(number)


def load(arrays: Arrays, numbers: Iterable[int]) -> None:
    """Let the kernels of an engine call others."""
    addresses = arrays["late"]
    for number in numbers:
        if not addresses[number]:
            addresses[number] = address_of(number)


def needed(linker: Linker) -> Iterator[int]:
    """The kernels that the deployed rules cannot be evaluated without. They are loaded when a rule
    is deployed, before any event is evaluated.
    """
    rules = linker.rules.array[: len(linker.rules)]
    if (rules["straight"] >= 0).any():
        yield layout.LATE_STRAIGHT
    if (rules["straight"] < 0).any():
        yield layout.LATE_DETECT
    if (rules["automaton"] >= 0).any():
        yield layout.LATE_AUTOMATA
    if (linker.steps.array["kind"] == int(StepKind.AGGREGATE)).any():
        yield layout.LATE_AGGREGATES
    if (linker.steps.array["run"] > 0).any():
        yield layout.LATE_RUNS
