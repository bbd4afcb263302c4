"""Commands that do without pandas, which pyarrow imports where it is installed.

pyarrow imports it, which takes a quarter of a second and some 40 MB, to ask whether a list that it
is given belongs to pandas. No list of a command does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _NoPandas:
    """A finder of modules, which says that pandas is nowhere."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Have pandas not be imported meanwhile; one that is already there stays."""
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
