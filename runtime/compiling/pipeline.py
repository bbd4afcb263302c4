"""Fewer steps from a kernel to machine code than numba takes for any function.

Three quarters of a first start are numba's Python. Much of it prepares for what kernels do not
have (closures, ``with``, array expressions, literals to be unrolled), finds again what it has found
before (the type of a call with arguments of these types, the size of a structure), and looks
whether anybody has registered anything meanwhile. So kernels go through the passes that they need,
and while one of them and its fragments are compiled all that is found once. Where a variable's life
ends is asked only where references are counted, and a kernel is optimised once, where numba does so
function by function and cheaply before.

Kernels compute what they do compiled as any other function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba.core.base
import numba.core.codegen
import numba.core.compiler
import numba.core.lowering
import numba.core.postproc
import numba.core.targetconfig
from numba.core import compiler_machinery, ir, typed_passes, types, untyped_passes

_core: Any = numba.core  # whose inner parts are not declared
_untyped: Any = untyped_passes
_typed: Any = typed_passes
_machinery: Any = compiler_machinery
_Context: Any = _core.base.BaseContext
_Function: Any = types.Function
_PostProcessor: Any = _core.postproc.PostProcessor
_Library: Any = _core.codegen.JITCodeLibrary
_Lower: Any = _core.lowering.Lower
_ir: Any = ir
_registered: Any = _machinery.register_pass(mutates_CFG=True, analysis_only=False)


class Linked(_Library):  # type: ignore[misc]
    """Code that is optimised when all that it calls is linked to it, and no sooner."""

    def add_llvm_module(self, module: Any) -> None:
        """Take in code as it is."""
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def _optimize_final_module(self) -> None:
        """Once; numba does so cheaply before, to find counts of references in one function."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _KernelLower(_Lower):  # type: ignore[misc]
    """Lowers a function without words for a debugger, and without looks at what a variable held
    where no references are counted.
    """

    def lower_inst(self, statement: Any) -> None:
        """Lower a statement; most are assignments."""
        if not isinstance(statement, _ir.Assign):
            super().lower_inst(statement)
            return
        name = statement.target.name
        value = self.lower_assign(self.typeof(name), statement)
        if name in self._singly_assigned_vars or self.context.enable_nrt:
            self.storevar(value, name)
        else:
            self.builder.store(value, self.getvar(name))


@_registered
class KernelLegalization(_typed.IRLegalization):  # type: ignore[misc]
    """Where references are counted, notes where each variable ends."""

    _name = "kernel_legalization"

    def run_pass(self, state: Any) -> bool:
        """Note them there."""
        return not state.flags.nrt or super().run_pass(state)


@_registered
class KernelLowering(_typed.NativeLowering):  # type: ignore[misc]
    """Lowers to code that is optimised once."""

    _name = "kernel_lowering"
    lowering_class = _KernelLower

    def run_pass(self, state: Any) -> bool:
        """Lower, into such code unless it goes into other."""
        if state.library is None:
            state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        lowered: bool = super().run_pass(state)
        return lowered


PASSES = (
    _untyped.TranslateByteCode,
    _untyped.FixupArgs,
    _untyped.GenericRewrites,
    _untyped.ReconstructSSA,
    _typed.NopythonTypeInference,
    _typed.PreLowerStripPhis,
    KernelLegalization,
    KernelLowering,
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
    replaced: dict[tuple[Any, str], Callable[..., Any]] = {
        (_Function, "get_call_type"): _call_types(_Function.get_call_type),
        (_Context, "get_abi_sizeof"): _sizes(_Context.get_abi_sizeof),
        (_Context, "get_function"): _implementations(_Context.get_function),
        (_PostProcessor, "run"): _lifetimes(_PostProcessor.run),
        (_core.base, "_has_loc"): cache(_core.base._has_loc),
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


def _lifetimes(find: Callable[..., None]) -> Callable[..., None]:
    """Where variables live, which is of use where references are counted, in the end."""

    def run(processor: Any, emit_dels: bool = False, **how: Any) -> None:
        if emit_dels or processor.func_ir.is_generator:
            find(processor, emit_dels, **how)

    return run
