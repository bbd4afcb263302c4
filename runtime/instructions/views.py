"""Arrays by address, and the type of those that kernels of detection see: as numpy's, but never
indexed from the end.

An index that may be negative costs numba four instructions and a look at the array's length, at
every access, and the kernels do little else than to access arrays. None of their indices counts
from the end.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _numba_cgutils, imputils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, models, register_model

cgutils: Any = _numba_cgutils  # which is not typed
_imputils: Any = imputils
_lower = _imputils.lower_builtin
_WORD = ir.IntType(64)


class View(types.Array):
    """A one-dimensional, contiguous array without wraparound. An index is not below 0, and below
    the length. Kernels that are compiled with ``NUMBA_BOUNDSCHECK=1`` raise an IndexError
    otherwise; others read or write what stands beside the array.
    """

    def __init__(self, dtype: Any) -> None:
        super().__init__(dtype, 1, "C", name=f"view({dtype})")


register_model(View)(models.ArrayModel)


def arrayobj() -> Any:
    """Numba's module that makes arrays. It brings numba's tables along, so it is imported where a
    kernel is compiled; one that is kept needs none of them.
    """
    from numba.np import arrayobj

    return arrayobj


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any, index_kind: Any) -> Any:
    """The address of an item."""
    view = arrayobj().make_array(kind)(context, builder, array)
    place = context.cast(builder, index, index_kind, types.intp)
    if context.enable_boundscheck:
        _check(context, builder, kind, place, builder.extract_value(view.shape, 0))
    return builder.gep(view.data, [place])


def _check(context: Any, builder: Any, kind: Any, place: Any, length: Any) -> None:
    """Raise an IndexError that names the kernel and the items, unless a place is in the array."""
    is_outside = builder.icmp_unsigned(">=", place, length)
    with cgutils.if_unlikely(builder, is_outside):
        text = f"index outside an array of {kind.dtype} in {builder.function.name}"
        context.call_conv.return_user_exc(builder, IndexError, (text,))


@_lower(operator.getitem, View, types.Integer)
def _get(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, index_kind = signature.args
    array, index = arguments
    place = _place(context, builder, kind, array, index, index_kind)
    item = arrayobj().load_item(context, builder, kind, place)
    return _imputils.impl_ret_borrowed(context, builder, signature.return_type, item)


@_lower(operator.setitem, View, types.Integer, types.Any)
def _set(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
    kind, index_kind, value_kind = signature.args
    array, index, value = arguments
    place = _place(context, builder, kind, array, index, index_kind)
    item = context.cast(builder, value, value_kind, kind.dtype)
    arrayobj().store_item(context, builder, kind, item, place)


def view_at(
    context: Any, builder: Any, kind: Any, address: Any, length: Any, columns: int = 0
) -> Any:
    """An array type's value: ``length`` items, or rows of so many, at an address. Nobody counts
    references to it: who gives the address holds the array.
    """
    view = arrayobj().make_array(kind)(context, builder)
    bytes_ = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    size = context.get_constant(types.intp, bytes_)
    shape, strides = [length], [size]
    if columns:
        shape.append(context.get_constant(types.intp, columns))
        strides.insert(0, context.get_constant(types.intp, bytes_ * columns))
    data = builder.inttoptr(address, view.data.type)
    arrayobj().populate_array(view, data, shape, strides, size, None)
    return view._getvalue()


def accessor(place: int, kind: Any, columns: int = 0) -> Any:
    """A function for kernels that are given one address instead of all their arrays. There two
    words for each array stand: its address, and its length. The function gives the array whose
    words are ``place`` and the next, and the words do not change while a kernel runs.
    """

    @intrinsic
    def array(_context: Any, words: Any) -> tuple[Signature, Any]:
        """The array, by the address of the words."""

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], _WORD.as_pointer())
            loaded = []
            for word in (place, place + 1):
                value = builder.load(builder.gep(pointer, [ir.Constant(_WORD, word)]))
                value.set_metadata("invariant.load", builder.module.add_metadata([]))
                loaded.append(value)
            return view_at(context, builder, kind, *loaded, columns)

        return kind(types.int64), generate

    return array
