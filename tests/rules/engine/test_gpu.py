"""CDP on a device, where there is none: kernels for a GPU, and which rules it takes.

``tests/device`` runs it, under the simulator or on a GPU.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from numba import types
from ptx import kernels_in, local_bytes, ptx_of

import rules
from matcher.gpu import scan
from matcher.identity import composite_key
from rules.engine.gpu import eligible, kernels
from rules.engine.gpu.batches import digests
from rules.engine.gpu.eligible import reason_against
from rules.engine.gpu.linking import Operands, as_term, conditions_of
from rules.engine.gpu.machine import DEPTH, WIDE, WIDE_STACK
from rules.engine.kernels.layout import HEADER, ROW_KEY_HIGH, ROW_KEY_LOW
from rules.engine.kernels.words import LESS, SAME
from rules.pattern import Rule
from rules.planning.planner import compile_rule
from rules.planning.program import Op

WORDS, NUMBER = types.int64[::1], types.int64
STEP = (WORDS, NUMBER)
SEQUENCES = (WORDS, WORDS)
WINDOWS = (WORDS, WORDS, WORDS, NUMBER, WORDS, NUMBER)
LEVEL = (NUMBER, WORDS, NUMBER)
RANGES = (WORDS, WORDS, WORDS, WORDS)
SIGNATURES = {
    "spread": (WORDS, WORDS, NUMBER),
    "index_keys": (WORDS, NUMBER, NUMBER, NUMBER, NUMBER),
    "index_sorted": (WORDS, NUMBER, NUMBER, NUMBER, NUMBER),
    "range_keys": (WORDS, NUMBER, NUMBER, NUMBER, NUMBER),
    "begin": (WORDS, WORDS, WORDS),
    "look": (*STEP, *SEQUENCES, WORDS, *WINDOWS, WORDS, WORDS),
    "narrow": (*STEP, *SEQUENCES, WORDS, WORDS, *LEVEL, *RANGES),
    "reduce_range": (*STEP, *SEQUENCES, WORDS, WORDS, *LEVEL, WORDS, WORDS, *RANGES),
    "mark_range": (*STEP, *SEQUENCES, WORDS, WORDS, *LEVEL, WORDS, *RANGES),
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
    looking = ("reduce", "mark", "reduce_range", "mark_range")
    words = WIDE_STACK + WIDE if name in looking else DEPTH
    assert local_bytes(ptx) <= 8 * words  # the stack, and the candidates at hand
    assert ".shared" not in ptx
    has_atomics = "atom." in ptx or "red." in ptx
    together = ("look", "narrow", "reduce", "mark", "reduce_range", "mark_range")
    assert has_atomics == (name in together)


@pytest.mark.parametrize("name", SUMS)
def test_sums_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = ptx_of(getattr(scan, name), SUMS[name], monkeypatch)
    assert ".shared" in ptx
    assert local_bytes(ptx) == 0


def test_no_kernel_is_left_out() -> None:
    assert (kernels_in(kernels), kernels_in(scan)) == (SIGNATURES.keys(), SUMS.keys())


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
event C(v: float, k: int, s: string)
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
    ("condition", "operands", "words"),
    [
        ("2.0 * v = A.x + 1", 1, "CONST LOAD MULTIPLY_F OPERAND COMPARE_F"),
        ("(v - A.x) * (v - A.x) < 3", 1, "LOAD OPERAND SUBTRACT_F LOAD OPERAND SUBTRACT_F"),
        ("v * v = A.x * v + A.x / 2", 2, "LOAD LOAD MULTIPLY_F OPERAND LOAD MULTIPLY_F OPERAND"),
        ("A.x / 2 > 3", 1, "OPERAND"),
        ("(v > 3.0 or v = A.x / A.k)", 0, "LOAD CONST COMPARE_F LOAD LOAD"),
    ],
)
def test_what_does_not_read_the_candidate_is_an_operand(
    condition: str, operands: int, words: str
) -> None:
    (step,) = compile_rule(rule(f"and last B({condition}) within 1 s from A")).steps
    (code,) = conditions_of(step.residue)
    known = Operands(first=3, own=2)
    found = known.instead(code)
    assert " ".join(one.op.name for one in found).startswith(words)
    assert len(known.programs) == operands
    assert {one.offset for one in found if one.op is Op.OPERAND} == {3, 4, 5}.intersection(
        range(3, 3 + operands)
    )


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
        ("and last B(s != A.s) within 1 s from A", None),
        ("and last B(lower(s) = A.s) within 1 s from A", "it computes with strings"),
        ("and last B(abs(v - A.x) > 1) within 1 s from A", "it has a function of numbers"),
        ("and last B() within 1 s from A consuming B", "it consumes events"),
        ("and 3 < StdDev(B().v within 1 s from A)", "StdDev of floats is rounded exactly"),
        ('and "n" < Max(B().s within 1 s from A)', "it orders strings"),
        ("and 3 < Count(B().k within 1 s from A)", None),
        ("and 3 < Count(B().k * 2 within 1 s from A)", "it counts the values of an expression"),
        ("and last B() or C() as e within 1 s from A", "it has alternatives"),
        (
            "and each B(k = $k, Count(C(k = $k) within 1 s from A) > 1) within 1 s from A",
            "it aggregates anew for each candidate",
        ),
        (
            "and each 2..5 B(v > previous.v) within 1 s from A",
            "it aggregates anew for each candidate",
        ),
        (
            " ".join(f"and each B() as b{number} within 1 s from A" for number in range(16)),
            "it has too many clauses",
        ),
        (
            " ".join(f"and not B(k = {number}) within 1 s from A" for number in range(90)),
            "it has too many clauses",
        ),
        (
            f"and last B({', '.join(f'v > A.x + {n}' for n in range(13))}) within 1 s from A",
            "it has too many conditions",
        ),
        (
            f"and last B({'(A.x * (A.x + ' * 10}v{'))' * 10} > 1) within 1 s from A",
            "an expression is nested too deeply",
        ),
    ],
)
def test_which_rules_a_device_takes(text: str, reason: str | None) -> None:
    where, _, consuming = text.partition(" consuming ")
    whole = f"{SCHEMA}from A() {where} where x = A.x"
    whole += f" consuming {consuming}" if consuming else ""
    assert reason_against(rules.load(whole).rules[0]) == reason


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("Timer(S = 0) as t and last B() within 1 s from t where x = B.v", "it uses the Timer"),
        ("all A() as a, B() as b within 1 s where x = a.x", "its events come in any order"),
        ("B() or C() as e where x = e.v", "it has alternatives"),
    ],
)
def test_nor_does_it_take_rules_of_other_forms(pattern: str, reason: str) -> None:
    assert reason_against(rules.load(f"{SCHEMA}from {pattern}").rules[0]) == reason


def test_every_reason_has_a_rule_that_meets_it() -> None:
    """The reasons in the source are those of the two tests above, and one for rules together."""
    source = Path(eligible.__file__).read_text()
    found = set(re.findall(r'return f?"([^"]+)"', source))
    marks = [
        mark
        for test in (
            test_which_rules_a_device_takes,
            test_nor_does_it_take_rules_of_other_forms,
        )
        for mark in test.pytestmark  # type: ignore[attr-defined]
    ]
    met = {reason for mark in marks for _, reason in mark.args[1]}
    page = (Path(__file__).parents[3] / "docs" / "gpu.md").read_text()
    told = [one for one in (*met, eligible.TIED) if one and "is rounded exactly" not in one]
    assert [one for one in told if f"`{one}`" not in page] == []
    of_a_kind = "{step.function.value} of {step.value_kind.value}s is rounded exactly"
    assert found - {of_a_kind} == {one for one in met if one and "is rounded exactly" not in one}
