"""How kernels are compiled: once, without the interpreter's lock, and kept (:mod:`cache`).

Numba's inner parts are replaced in versions that the project's tests run with (KNOWN). In any
other, kernels are compiled as any function of numba is: that takes longer, and they compute the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache, partial
from typing import Any, TypeVar

import numba
from numba.core import compiler_lock

from runtime.compiling.cache import KernelCache, Stamp

_compiler_lock: Any = compiler_lock.global_compiler_lock
KNOWN = (0, 63), (0, 69)
"""Versions of numba whose inner parts are replaced: from the first on, up to before the second."""
IS_KNOWN = KNOWN[0] <= tuple(map(int, numba.__version__.split(".")[:2])) < KNOWN[1]
if IS_KNOWN:
    from runtime.compiling.fragments import call_as_fragment
    from runtime.compiling.pipeline import KernelCompiler, found_once
Function = TypeVar("Function", bound=Callable[..., object])


def compiled(
    function: Function, stamp: Stamp, *, counting: bool = True, inline: bool = False
) -> Function:
    """Compile a function; cached on disk, stamped.

    ``counting``: of references to arrays, which only a function that makes none can do without.
    ``inline``: into each kernel that calls it. What compiled functions call is a fragment of them
    (:mod:`runtime.compiling.fragments`): only what Python calls is compiled to be kept.
    """
    how: dict[str, Any] = {"_nrt": counting}  # else as the function counts that calls it
    if inline:
        how["forceinline"] = True
    if IS_KNOWN:
        how["pipeline_class"] = KernelCompiler
    # The kernels look before they divide: the model of numpy saves a second look.
    compiler: Any = numba.njit(nogil=True, error_model="numpy", **how)
    dispatcher = compiler(function)
    if IS_KNOWN:
        call_as_fragment(dispatcher, partial(compiler, function))
    dispatcher.kept = cache(partial(_kept, function, stamp))  # of most, nothing is asked
    _compile_in_turn(dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def _kept(function: Function, stamp: Stamp) -> KernelCache | None:
    """The cache of a function; None when no folder at all can be written."""
    with suppress(RuntimeError if IS_KNOWN else Exception):
        return KernelCache(function, stamp)
    return None


def _compile_in_turn(dispatcher: Any) -> None:
    compile_ = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        with _compiler_lock:
            kept = dispatcher.kept()
            if kept is not None:
                dispatcher._cache = kept
            try:
                with found_once() if IS_KNOWN else nullcontext():
                    return compile_(signature)
            finally:
                if kept is not None:
                    kept.end_turn()

    dispatcher.compile = compile_in_turn


def is_kept(function: Callable[..., object]) -> bool:
    """Whether a function of ``compiled`` need not be compiled any more, but is loaded at once."""
    kept = getattr(function, "kept", bool)()
    return isinstance(kept, KernelCache) and kept.is_filled


def can_keep(function: Callable[..., object]) -> bool:
    """Whether a function of ``compiled`` is kept once it is compiled."""
    kept = getattr(function, "kept", bool)()
    return isinstance(kept, KernelCache) and kept.is_writable


def folder_of(function: Callable[..., object]) -> str | None:
    """The folder where a function of ``compiled`` is kept, or will be; None: nowhere."""
    kept = getattr(function, "kept", bool)()
    if isinstance(kept, KernelCache) and (kept.is_writable or kept.is_filled):
        return kept.folder
    return None
