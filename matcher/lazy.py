"""Batches of one event whose columns are made when they are asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from matcher.model import EventBatch


class Lazy(EventBatch):
    """The base of such batches. Such a batch lacks nothing as an EventBatch: each column is made by
    its function of ``makers`` when somebody asks for it, once, and is a column like any other from
    then on.
    """

    # The columns are the slots of EventBatch, each empty until ``__getattr__`` is asked for it.
    __slots__ = ()
    makers: ClassVar[Mapping[str, Callable[[Any], Any]]]
    """Functions of the batch, by the name of the column that each makes."""

    def __len__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Any:
        make = type(self).makers.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        made = make(self)
        _set(self, name, made)
        return made


_set = object.__setattr__
