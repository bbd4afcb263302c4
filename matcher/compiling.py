"""How kernels are compiled: once, without the interpreter's lock, and kept on disk.

Law 1: what is kept is used only while every file that kernels are made of is unchanged. Numba
looks at the file of the function itself; what it inlined from other files it does not look at,
so an edit of a called kernel would go unnoticed.

Law 2: a cache only saves time. One that is damaged, was written by other code or cannot be
written costs the compilation, never an error.

Law 3: a kernel is compiled once. Who needs one that another process compiles waits for that, and
finds it kept; when that process dies, who waits compiles it. Each is kept as soon as it is
compiled, so a start that was broken off goes on where it was.

Law 4: numba's inner parts are replaced in versions that the project's tests run with (KNOWN). In
any other, kernels are compiled as any function of numba is: that takes longer, and they compute the
same.

Law 5: kernels are kept where numba keeps them: in NUMBA_CACHE_DIR, else beside their modules, else
in the user's folder for caches. If none of these can be written, those that are kept in the first
two are read: a container whose disk cannot be written has what its image was built with.
"""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import numba
from numba.core import caching, compiler_lock, config as numba_config
from numba.core.runtime.nrt import rtsys

from matcher import awaited
from runtime.memory import is_guarded

Stamp: TypeAlias = tuple[tuple[str, str], ...]
_config: Any = numba_config
_caching: Any = caching
_FunctionCache: Any = _caching.FunctionCache
_compiler_lock: Any = compiler_lock.global_compiler_lock
KNOWN = (0, 63), (0, 69)
"""Versions of numba whose inner parts are replaced: from the first on, up to before the second."""
IS_KNOWN = KNOWN[0] <= tuple(map(int, numba.__version__.split(".")[:2])) < KNOWN[1]
if IS_KNOWN:
    from matcher.fragments import call_as_fragment
    from matcher.pipeline import KernelCompiler, found_once
PATIENT = 200_000, 50, 1000
"""The collector's thresholds while a kernel is compiled, which makes objects by the million: as it
is set otherwise, a sixth of the time would go into walks through those that stay."""
Function = TypeVar("Function", bound=Callable[..., object])


def stamp_of(sources: Sequence[Path]) -> Stamp:
    """A stamp that changes whenever the text of any of the files does. Kernels that check their
    indices, or run in guarded memory, have stamps of their own.
    """
    files = ((path.name, sha256(path.read_bytes()).hexdigest()) for path in sources)
    checks = [("indices", "checked")] if _config.BOUNDSCHECK else []
    guards = [("memory", "guarded")] if is_guarded() else []
    return (*files, *checks, *guards)


class _ReadOnly:
    """Finds a folder that may be read alone: numba takes none where it cannot write (Law 5)."""

    get_cache_path: Callable[[], str]

    def ensure_cache_path(self) -> None:
        """OSError for a folder that is not there or cannot be read."""
        os.listdir(self.get_cache_path())


class _ReadOnlyProvided(_ReadOnly, _caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder of NUMBA_CACHE_DIR."""


class _ReadOnlyInTree(_ReadOnly, _caching.InTreeCacheLocator):  # type: ignore[misc]
    """The folder beside a module."""


class _Places(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    """The folders where kernels may be kept; the first that will do is taken."""

    _locator_classes = (
        *_caching.CompileResultCacheImpl._locator_classes,
        _ReadOnlyProvided,
        _ReadOnlyInTree,
    )


class KernelCache(_FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, with these laws."""

    _impl_class = _Places

    def __init__(self, function: Callable[..., object], stamp: Stamp) -> None:
        super().__init__(function)
        # Numba offers no way to name further sources, so its index is told where it keeps them.
        self._cache_file._source_stamp = stamp
        self._turn: IO[bytes] | None = None
        self._thresholds = (0, 0, 0)
        self._is_compiling = False

    @property
    def folder(self) -> str:
        """The folder where it is kept."""
        path: str = self._impl.locator.get_cache_path()
        return path

    @property
    def is_writable(self) -> bool:
        """Whether what is compiled will be kept."""
        return not isinstance(self._impl.locator, _ReadOnly)

    @property
    def is_filled(self) -> bool:
        """Whether anything that may still be used is kept."""
        try:
            return bool(self._cache_file._load_index())
        except Exception:
            return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code compiled for a signature, or None when it must be compiled: then it is this
        process's turn to do so, until ``compiled`` is called.
        """
        found = self._load(sig, target_context)
        if found is None:
            self._take_turn()
            found = self._load(sig, target_context)  # another process may have had it before
            if found is None:
                self._is_compiling = True
                awaited.tell(self._py_func.__name__)
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # all of numba's context that compiled code needs
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # unpickling damaged files may raise anything at all
            return None

    def _take_turn(self) -> None:
        """Wait until no other process compiles this kernel; where none can tell, go on."""
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*PATIENT)
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            self._turn = open(f"{self._cache_file._index_path}.lock", "wb")  # noqa: SIM115
            fcntl.flock(self._turn, fcntl.LOCK_EX)

    def end_turn(self) -> None:
        """Let others look for what is kept now; nothing without a turn."""
        if self._is_compiling:
            self._is_compiling = False
            awaited.tell(None)
        if any(self._thresholds):
            gc.set_threshold(*self._thresholds)
            self._thresholds = (0, 0, 0)
        if self._turn is not None:
            self._turn.close()
            self._turn = None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if that is possible."""
        try:
            super().save_overload(sig, data)
        except Exception:
            self._begin_anew(sig, data)

    def _begin_anew(self, sig: Any, data: Any) -> None:
        """Replace a damaged index; a folder that cannot be written stays as it is."""
        try:
            self.flush()
            super().save_overload(sig, data)
        except Exception:
            self.disable()


def compiled(
    function: Function, stamp: Stamp, *, counting: bool = True, inline: bool = False
) -> Function:
    """Compile a function; cached on disk, stamped.

    ``counting``: of references to arrays, which only a function that makes none can do without.
    ``inline``: into each kernel that calls it. What compiled functions call is a fragment of them
    (:mod:`matcher.fragments`): only what Python calls is compiled to be kept.
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
