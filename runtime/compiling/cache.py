"""Where compiled kernels are kept, and whether what is kept may still be used."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, TypeAlias

from numba.core import caching, config as numba_config
from numba.core.runtime.nrt import rtsys

from runtime.compiling import awaited
from runtime.memory import is_guarded

Stamp: TypeAlias = tuple[tuple[str, str], ...]
INSTRUCTIONS = sorted((Path(__file__).parent.parent / "instructions").glob("*.py"))
"""The sources of what any kernel may call."""
_config: Any = numba_config
_caching: Any = caching
_FunctionCache: Any = _caching.FunctionCache
PATIENT = 200_000, 50, 1000
"""The collector's thresholds while a kernel is compiled, which makes objects by the million: as it
is set otherwise, a sixth of the time would go into walks through those that stay."""


def stamp_of(sources: Sequence[Path]) -> Stamp:
    """A stamp that changes whenever the text of any of the files does. Kernels that check their
    indices, or run in guarded memory, have stamps of their own.
    """
    paths = (*sources, *INSTRUCTIONS)
    files = ((path.name, sha256(path.read_bytes()).hexdigest()) for path in paths)
    checks = [("indices", "checked")] if _config.BOUNDSCHECK else []
    guards = [("memory", "guarded")] if is_guarded() else []
    return (*files, *checks, *guards)


class _ReadOnly:
    """Finds a folder that may be read alone: numba takes none where it cannot write."""

    get_cache_path: Callable[[], str]

    def ensure_cache_path(self) -> None:
        """OSError for a folder that is not there or cannot be read."""
        os.listdir(self.get_cache_path())


class _ReadOnlyProvided(_ReadOnly, _caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder of NUMBA_CACHE_DIR."""


class _ReadOnlyInTree(_ReadOnly, _caching.InTreeCacheLocator):  # type: ignore[misc]
    """The folder beside a module."""


class _Places(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    """The folders where kernels may be kept; the first that will do is taken. They are
    NUMBA_CACHE_DIR, the folders beside modules, and the user's folder for caches. If none of these
    can be written, the first two are read: a container whose disk cannot be written has what its
    image was built with.
    """

    _locator_classes = (
        *_caching.CompileResultCacheImpl._locator_classes,
        _ReadOnlyProvided,
        _ReadOnlyInTree,
    )


class KernelCache(_FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function.

    What is kept is used only while every file that kernels are made of is unchanged: numba looks at
    the file of the function itself, and would not notice an edit of a called kernel that it
    inlined. A cache only saves time: one that is damaged, was written by other code or cannot be
    written costs the compilation, never an error. Each kernel is kept as soon as it is compiled, so
    a start that was broken off goes on where it was.
    """

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
        """Wait until no other process compiles this kernel; where none can tell, go on. When the
        process that compiles it dies, one that waits compiles it.
        """
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
