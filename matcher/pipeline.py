"""Fewer steps from a kernel to machine code than numba takes for any function.

Three quarters of a first start are numba's Python. Much of it prepares for what kernels do not
have (closures, ``with``, array expressions, literals to be unrolled), finds again what it has found
before (the type of a call with arguments of these types, the size of a structure), and looks
whether anybody has registered anything meanwhile. So kernels go through the passes that they need,
and while one of them and its fragments are compiled all that is found once.

Law: this only saves time. Kernels compute what they do compiled as any other function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba.core.base
import numba.core.compiler
import numba.core.targetconfig
from numba.core import compiler_machinery, typed_passes, types, untyped_passes

_core: Any = numba.core  # whose inner parts are not declared
_untyped: Any = untyped_passes
_typed: Any = typed_passes
_machinery: Any = compiler_machinery
_Context: Any = _core.base.BaseContext
_Function: Any = types.Function

PASSES = (
    _untyped.TranslateByteCode,
    _untyped.FixupArgs,
    _untyped.IRProcessing,
    _untyped.GenericRewrites,
    _untyped.ReconstructSSA,
    _typed.NopythonTypeInference,
    _typed.PreLowerStripPhis,
    _typed.IRLegalization,
    _typed.NativeLowering,
    _typed.NoPythonBackend,
)
"""The passes of numba that kernels need, in its order."""


class KernelCompiler(_core.compiler.CompilerBase):  # type: ignore[misc]
    """Compiles a function through PASSES."""

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        """A fragment does without a look at what is newly registered: its kernel had one, and numba
        has another where something is not found.
        """
        if _core.targetconfig.ConfigStack.top_or_none() is None:
            super().__init__(typing, target, *others)
            return
        typing.refresh = target.refresh = _nothing
        try:
            super().__init__(typing, target, *others)
        finally:
            del typing.refresh, target.refresh
        vars(self.state.targetctx).pop("refresh")  # a copy of the target

    def define_pipelines(self) -> list[Any]:
        """The one list of passes that there is."""
        passes = _machinery.PassManager("kernel")
        passes._ENFORCING = False  # which analyses the whole function after each pass
        for one in PASSES:
            passes.add_pass(one, one.name())
        passes.finalize()
        return [passes]


def _nothing() -> None:
    """Nothing is new."""


@contextmanager
def found_once() -> Iterator[None]:
    """Have numba find each thing once meanwhile. For who holds its lock."""
    replaced = {
        (_Function, "get_call_type"): _call_types(_Function.get_call_type),
        (_Context, "get_abi_sizeof"): _sizes(_Context.get_abi_sizeof),
        (_Context, "get_function"): _implementations(_Context.get_function),
    }
    originals = {place: getattr(*place) for place in replaced}
    _put(replaced)
    try:
        yield
    finally:
        _put(originals)


def _put(methods: dict[tuple[Any, str], Callable[..., Any]]) -> None:
    for (owner, name), method in methods.items():
        setattr(owner, name, method)


def _call_types(find: Callable[..., Any]) -> Callable[..., Any]:
    """The signature of a call of a function that numba brings."""
    known: dict[tuple[Any, tuple[Any, ...]], Any] = {}

    def get_call_type(function: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named:
            return find(function, context, arguments, named)
        key = function, tuple(arguments)
        if key not in known:
            known[key] = find(function, context, arguments, named)
        return known[key]

    return get_call_type


def _sizes(find: Callable[..., int]) -> Callable[..., int]:
    """The size of a type of LLVM, which is else found by compiling a little program."""
    known: dict[str, int] = {}

    def get_abi_sizeof(context: Any, kind: Any) -> int:
        text = str(kind)
        if text not in known:
            known[text] = find(context, kind)
        return known[text]

    return get_abi_sizeof


def _implementations(find: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation of a call; that there is none is found once."""
    missing = set[tuple[Any, Any]]()

    def get_function(context: Any, function: Any, signature: Any, _firstcall: bool = True) -> Any:
        key = function, signature
        if key in missing:
            raise NotImplementedError(f"no definition for {function} of {signature}")
        try:
            return find(context, function, signature, _firstcall)
        except NotImplementedError:
            missing.add(key)
            raise

    return get_function
