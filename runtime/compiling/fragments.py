"""Kernels made of many functions: each is lowered once, and all are optimised together once.

Numba makes a whole of every function that a compiled one calls: linked with all that it calls in
turn, optimised with it, turned into machine code and given wrappers for callers outside, although
only the outermost is ever called from there. A kernel of two hundred small functions is compiled
many times over in this way. Here a function that another kernel calls is a *fragment*: typed and
lowered, it waits to be linked into whatever is called from Python.

A fragment is made once for what differs to the machine: a constant, or a narrower int, is handed to
it as an int64 (the optimiser sees the constant all the same where it inlines).

A function called from Python is compiled as numba does it, whether or not it also is a fragment of
others, and computes the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba.core.compiler
import numba.core.dispatcher
from numba.core import types

from runtime.compiling.pipeline import Linked

_core: Any = numba.core  # whose inner parts are not declared
_types: Any = types
_Compiler: Any = _core.dispatcher._FunctionCompiler


class Fragment(Linked):
    """Code to be linked into other code, that never runs by itself."""

    def finalize(self) -> None:
        """Be ready to be linked; whoever is called from Python links what all its fragments call,
        each once, and optimises everything at once.
        """
        self._finalized = True

    @property
    def with_called(self) -> list[Any]:
        """The fragment and all that it calls, directly or not."""
        return [self, *dict.fromkeys(self._linking_libraries)]


class FragmentCompiler(_Compiler):  # type: ignore[misc]
    """Compiles a function to fragments, one for each signature."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags = _core.compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        target = self.targetdescr.target_context
        library = Fragment(target.codegen(), self.py_func.__qualname__)
        result = _core.compiler.compile_extra(
            self.targetdescr.typing_context,
            target,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )
        name = object()  # what callers know it by, for want of an address
        target.insert_user_function(name, result.fndesc, library.with_called)
        return result._replace(entry_point=name)


def call_as_fragment(function: Any, make: Callable[[], Any]) -> None:
    """Have compiled callers of a dispatcher link fragments in.

    ``make`` gives another dispatcher of the same function. It is called when the first of these
    callers is compiled: where all kernels are kept, there is none.
    """
    made = cache(lambda: _making_fragments(make()))

    def template_of(arguments: Any, named: Any) -> Any:
        twin = made()
        _signature, folded = twin._compiler.fold_argument_types(arguments, named)
        return twin.get_call_template(tuple(map(_widened, folded)), {})

    function.get_call_template = template_of
    function.get_overload = lambda signature: made().get_overload(signature)


def _making_fragments(twin: Any) -> Any:
    """A dispatcher, which is not called itself, made to make fragments."""
    how = twin._compiler
    twin._compiler = FragmentCompiler(
        how.py_func, how.targetdescr, how.targetoptions, how.locals, how.pipeline_class
    )
    # Numba would enter the address that there is none of into its table of what Python may call.
    twin.add_overload = lambda result: twin.overloads.update({result.signature.args: result})
    return twin


def _widened(kind: Any) -> Any:
    """The type that a fragment takes for an argument of a type."""
    kind = _types.unliteral(kind)
    return _types.int64 if isinstance(kind, _types.Integer) and kind.signed else kind
