"""CDP on a device, where there is none: kernels for a GPU, and which rules it takes.

``tests/device`` runs it, under the simulator or on a GPU.
"""

import numpy as np
import pytest
from numba import types
from ptx import local_bytes, ptx_of

import rules
from matcher.gpu import scan
from matcher.identity import composite_key
from rules.engine.gpu import kernels
from rules.engine.gpu.batches import digests
from rules.engine.gpu.eligible import reason_against
from rules.engine.gpu.linking import as_term, conditions_of
from rules.engine.gpu.machine import DEPTH, LESS, SAME
from rules.engine.kernels.layout import HEADER, ROW_KEY_HIGH, ROW_KEY_LOW
from rules.pattern import Rule
from rules.planning.planner import compile_rule

WORDS, NUMBER = types.int64[::1], types.int64
STEP = (WORDS, NUMBER)
SEQUENCES = (WORDS, WORDS)
WINDOWS = (WORDS, WORDS, WORDS, NUMBER, WORDS, NUMBER)
LEVEL = (NUMBER, WORDS, NUMBER)
SIGNATURES = {
    "spread": (WORDS, WORDS, NUMBER),
    "index_keys": (WORDS, NUMBER, NUMBER, NUMBER, NUMBER),
    "index_sorted": (WORDS, NUMBER, NUMBER, NUMBER, NUMBER),
    "begin": (WORDS, WORDS, WORDS),
    "look": (*STEP, *SEQUENCES, WORDS, *WINDOWS, WORDS, WORDS),
    "reduce": (*STEP, *SEQUENCES, *WINDOWS, WORDS, WORDS),
    "settle": (*STEP, *SEQUENCES, WORDS, *LEVEL, WORDS, WORDS),
    "mark": (*STEP, *SEQUENCES, *WINDOWS, WORDS),
    "tally": (WORDS, WORDS, WORDS),
    "extend": (*STEP, *SEQUENCES, WORDS, *LEVEL, WORDS, WORDS, *SEQUENCES, WORDS, NUMBER),
    "pick": (*STEP, WORDS, WORDS, WORDS, *LEVEL, WORDS, WORDS),
    "clear": (WORDS, WORDS),
    "check": (*STEP, *SEQUENCES, WORDS, *LEVEL),
    "conclude": (WORDS, *(NUMBER,) * 4, *SEQUENCES, WORDS, *LEVEL, WORDS),
}
SUMS = {
    "exclusive_sums": (WORDS, WORDS, NUMBER),
    "part_sums": (WORDS, WORDS, WORDS, NUMBER),
    "wide_sums": (WORDS, WORDS, WORDS, NUMBER),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_kernels_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = ptx_of(getattr(kernels, name), SIGNATURES[name], monkeypatch)
    assert local_bytes(ptx) <= 8 * DEPTH  # the stack, and nothing beside it
    assert ".shared" not in ptx
    has_atomics = "atom." in ptx or "red." in ptx
    assert has_atomics == (name in ("look", "reduce", "mark"))


@pytest.mark.parametrize("name", SUMS)
def test_sums_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = ptx_of(getattr(scan, name), SUMS[name], monkeypatch)
    assert ".shared" in ptx
    assert local_bytes(ptx) == 0


def test_ids_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.integers(-(2**63), 2**63, (5, HEADER), np.int64) for _ in range(3)]
    keys = [
        [tuple(row.view(np.uint64)[[ROW_KEY_HIGH, ROW_KEY_LOW]]) for row in one] for one in rows
    ]
    rule = (2**64 - 3, 12345678901234567890)
    for place, found in enumerate(digests(rule, rows).tolist()):
        causes = [(int(high), int(low)) for high, low in (one[place] for one in keys)]
        assert tuple(found) == composite_key(rule, causes)


SCHEMA = """
event A(x: float, k: int, s: string)
event B(v: float, k: int, s: string)
define R(x: float)
"""


def rule(text: str) -> Rule:
    return rules.load(f"{SCHEMA}from A() {text} where x = A.x").rules[0]


def test_a_comparison_with_what_is_known_is_a_term_whichever_side_it_stands_on() -> None:
    (step,) = compile_rule(rule("and last B(2 * A.x >= v, v * v < A.x) within 1 s from A")).steps
    first, second = conditions_of(step.residue)
    term = as_term(first, own=2)
    assert term is not None
    assert term.mask == LESS | SAME
    assert as_term(second, own=2) is None  # the candidate is computed with


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("and last B(v > A.x) within 1 s from A", None),
        ("and each B(k = A.k) within 1 s from A and not B(v > 3) within 2 s from A", None),
        ("and 3 < Count(B() within 1 s from A)", None),
        ("and 3 < Sum(B().k within 1 s from A)", None),
        ("and 3 < Sum(B().v within 1 s from A)", "Sum of floats is rounded exactly"),
        ("and 3 < Avg(B().k within 1 s from A)", "Avg of ints is rounded exactly"),
        ("and last B(s < A.s) within 1 s from A", "it orders or searches strings"),
        ("and last B(lower(s) = A.s) within 1 s from A", "it computes with strings"),
        ("and last B() within 1 s from A consuming B", "it consumes events"),
    ],
)
def test_which_rules_a_device_takes(text: str, reason: str | None) -> None:
    where, _, consuming = text.partition(" consuming ")
    whole = f"{SCHEMA}from A() {where} where x = A.x"
    whole += f" consuming {consuming}" if consuming else ""
    assert reason_against(rules.load(whole).rules[0]) == reason
