"""The type of the arrays that kernels see: as numpy's, but never indexed from the end.

An index that may be negative costs numba four instructions and a look at the array's length, at
every access, and the kernels do little else than to access arrays. None of their indices counts
from the end.

Law: an index is not below 0. What is below it is no entry of the array, and not noticed.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.core import imputils
from numba.extending import models, register_model

_imputils: Any = imputils  # which is not typed
_lower = _imputils.lower_builtin


class View(types.Array):
    """A one-dimensional, contiguous array without wraparound."""

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
    data = arrayobj().make_array(kind)(context, builder, array).data
    return builder.gep(data, [context.cast(builder, index, index_kind, types.intp)])


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
