"""Texts as numbers: a function of a text is computed once, when the text is first seen.

Kernels see a text as its *code*, its place among all texts that an operator has met. Equal texts
have equal codes, whatever batch they came in; every other question about a text, whether it begins
with another, what it is in lower case, where it stands in their order, has a row of *results*, by
code (``studies.operators.kernels.machine``).

Law: a code is valid until :meth:`Texts.forget`, which says what becomes of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matcher.model import Int64s, StringColumn
from rules.planning.columnar import COMPARING
from rules.terms import Comparison, TextFunction
from rules.texts import results_of

TEXTS_MAX = 2**17
"""Distinct texts that are remembered, beyond those that windows hold, before some are forgotten."""
COLUMNS_MAX = 16
"""Dictionaries of columns whose codes are remembered, for batches that share them."""
UNDEFINED = -1


@dataclass(frozen=True, slots=True)
class Asked(TextFunction):
    """A comparison of a text with a constant; ``is_left``: the constant is the left operand."""

    pattern: str | None = ""  # not None: what it gives is no text
    comparison: Comparison = Comparison.EQUAL
    constant: str = ""
    is_left: bool = False


@dataclass(frozen=True, slots=True)
class Rank(TextFunction):
    """The place of a text among all that are known, in their order."""

    pattern: str | None = ""


class Texts:
    """The texts of one operator, and what is asked of them."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.version = 0
        """Grows whenever ``results`` changes."""
        self._codes: dict[str, int] = {}
        self._questions: dict[TextFunction, int] = {}
        self._results = np.zeros((1, 64), np.int64)
        self._answered = 0
        self._constants: list[str] = []
        self.kept = 0
        """The number of texts that were kept when some were forgotten last."""
        self._columns: dict[int, tuple[tuple[str, ...], Int64s]] = {}

    @property
    def results(self) -> Int64s:
        """int64[rows * width], flat."""
        return self._results.reshape(-1)

    @property
    def width(self) -> int:
        """The length of a row of results."""
        return self._results.shape[1]

    def code(self, text: str) -> int:
        """The code of a constant, which is never forgotten; before any batch came."""
        self._constants.append(text)
        return self._code(text)

    def _code(self, text: str) -> int:
        code = self._codes.setdefault(text, len(self.values))
        if code == len(self.values):
            self.values.append(text)
        return code

    def row(self, question: TextFunction) -> int:
        """The row of results of a question."""
        return self._questions.setdefault(question, len(self._questions))

    def codes(self, column: StringColumn) -> npt.NDArray[np.int64]:
        """int64[n]: the codes of a column's texts, in new ones the results too."""
        if len(column.values) > max(len(column.codes), 64):
            column = column.compact()
        known = self._columns.get(id(column.values))
        if known is None or known[0] is not column.values:
            if len(self._columns) == COLUMNS_MAX:
                self._columns.clear()
            codes = map(self._code, column.values)
            known = column.values, np.fromiter(codes, np.int64, len(column.values))
            self._columns[id(column.values)] = known
            self.settle()
        return known[1][column.codes]

    def settle(self) -> None:
        """Answer what is asked of texts that are new."""
        rows = len(self._questions)
        if self._answered == len(self.values):
            return
        while self._answered < len(self.values):
            begin, end = self._answered, len(self.values)
            if end > self.width or rows > len(self._results):
                wide = np.zeros((max(rows, 1), max(self.width, 2 * end)), np.int64)
                wide[: len(self._results), : self.width] = self._results
                self._results = wide
            new = self.values[begin:end]
            for question, row in self._questions.items():
                if not isinstance(question, Rank):
                    self._results[row, begin:end] = self._answers(question, new)
            self._answered = end
            if rows:
                self.version += 1
        for question, row in self._questions.items():
            if isinstance(question, Rank):
                order = sorted(range(len(self.values)), key=self.values.__getitem__)
                self._results[row, order] = np.arange(len(order))

    def _answers(self, question: TextFunction, texts: list[str]) -> list[int]:
        if isinstance(question, Asked):
            compare, constant = COMPARING[question.comparison], question.constant
            if question.is_left:
                return [int(compare(constant, text)) for text in texts]
            return [int(compare(text, constant)) for text in texts]
        found = results_of(question, texts)
        if question.pattern is None:
            return [self._code(str(text)) for text in found]
        return [UNDEFINED if one is None else int(one) for one in found]

    def forget(self, used: Int64s) -> Int64s:
        """Keep the constants and the texts with the codes ``used``: the new code of each old one,
        -1 of those that are forgotten.
        """
        before = self.values
        kept = [before[code] for code in np.unique(used).tolist()]
        self.values, self._codes, self._answered = [], {}, 0
        self._columns.clear()
        for text in (*self._constants, *kept):
            self._code(text)
        self.kept = len(self.values)
        self.version += 1
        self.settle()
        codes = (self._codes.get(text, -1) for text in before)
        return np.fromiter(codes, np.int64, len(before))

    def column(self, codes: Int64s) -> StringColumn:
        """The texts of some codes."""
        used, places = np.unique(codes, return_inverse=True)
        values = tuple(self.values[code] for code in used.tolist())
        return StringColumn(places.reshape(-1).astype(np.int32), values)
