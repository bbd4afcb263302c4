"""CDP on CUDA as published, where there is no device: tables, refusals, kernels for a GPU.

``tests/device`` runs it, under the simulator or on a GPU.
"""

import re
from random import Random
from typing import Any

import numpy as np
import pytest
from numba import types
from ptx import kernels_in, local_bytes, ptx_of

import rules
from matcher.identity import composite_key
from rules.engine.linking.interner import Interner
from rules.errors import RuleErrors
from studies.cdp_on_cuda import kernels, layout
from studies.cdp_on_cuda.compiling import CompiledRule
from studies.cdp_on_cuda.events import IDENTITY, composite_keys

NUMBER, WORDS, TABLE = types.int64, types.int64[::1], types.int64[:, ::1]
OUT = (TABLE, NUMBER, WORDS)
TOLD = (WORDS, TABLE, TABLE, NUMBER)
SEEN = (NUMBER, NUMBER, TABLE, NUMBER)
SIGNATURES = {
    "combine": (*TOLD, *SEEN, *OUT),
    "choose_last": (*TOLD, *SEEN, WORDS, NUMBER, WORDS),
    "choose_first": (*TOLD, *SEEN, WORDS, NUMBER, WORDS),
    "extend": (TABLE, NUMBER, NUMBER, TABLE, NUMBER, WORDS, NUMBER, *OUT),
    "spare": (TABLE, NUMBER, WORDS, NUMBER, *OUT),
    "test": (*TOLD, TABLE, NUMBER, *OUT),
    "test_time": (WORDS, TABLE, NUMBER, TABLE, NUMBER, *OUT),
    "bind": (*TOLD, TABLE, NUMBER, *OUT),
    "evaluate": (WORDS, TABLE, WORDS, NUMBER, NUMBER, TABLE, NUMBER, *OUT),
    "aggregate": (*TOLD, *SEEN, TABLE),
    "aggregate_again": (TABLE, NUMBER, TABLE, NUMBER, TABLE, NUMBER, TABLE),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_kernels_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Any = getattr(kernels, name)
    ptx = ptx_of(kernel, SIGNATURES[name], monkeypatch)
    assert local_bytes(ptx) <= 8 * layout.DEPTH  # the stack, and nothing beside it
    assert (".shared" in ptx) == name.startswith("aggregate")
    has_atomics = re.search(r"\s(atom|red)\.", ptx) is not None
    assert has_atomics == (not name.startswith("aggregate"))


def test_no_kernel_is_left_out() -> None:
    assert kernels_in(kernels) == SIGNATURES.keys()


def test_ids_of_composite_events_are_those_of_the_definition() -> None:
    random = Random(0)
    keys = [[(random.getrandbits(64), random.getrandbits(64)) for _ in range(3)] for _ in range(5)]
    causes = []
    for event in range(3):
        identity = np.zeros(len(keys), IDENTITY)
        identity["high"] = np.array([match[event][0] for match in keys], np.uint64)
        identity["low"] = np.array([match[event][1] for match in keys], np.uint64)
        causes.append(identity)
    found = [tuple(pair) for pair in composite_keys((2**64 - 1, 12345), causes).tolist()]
    assert found == [composite_key((2**64 - 1, 12345), match) for match in keys]


EVENTS = "event A(p: int, v: float, s: string) event B(p: int, v: float, s: string)\n"


def compiled(text: str) -> CompiledRule:
    (rule,) = rules.load(EVENTS + text).rules
    return CompiledRule(rule, Interner())


def test_rows_hold_what_the_rule_reads() -> None:
    rule = compiled(
        """define X(s: string, m: float)
           from A(p = $p) and last B(p = $p, v > 1) within 5 s from A
           where s = A.s, m = Max(B(p = $p).v within 9 s from A)"""
    )
    assert [column.attributes for column in rule.columns] == [(0, 2), (0,), (0, 1)]
    assert [column.reach for column in rule.columns] == [0, 5_000_000, 9_000_000]
    assert len(rule.columns[1].plan.conditions) == 1  # the other one is tested on the device
    assert rule.words == 2 + 1 + 1 + 2


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("all A(), B() within 2 s", "events in any order"),
        ("A() or B()", "events of either type"),
        ("Timer(M = 1)", "a Timer as terminator"),
        ("A() and 1 < StdDev(B().v within 2 s from A)", "StdDev of a float"),
        ("A() and $m = Min(B().s within 2 s from A)", "Min of a string"),
        ("A() and each B(s > A.s) within 2 s from A", "strings .* compared for equality alone"),
        (
            "A() and each B(p = $q, v > Avg(A(p = $q).v within 1 s from A)) within 2 s from A",
            "an aggregate for each candidate",
        ),
    ],
)
def test_what_is_refused_is_named(pattern: str, reason: str) -> None:
    with pytest.raises(RuleErrors, match=f"rule X: .*{reason}") as refused:
        compiled(f"define X() from {pattern}")
    assert "let another engine have this rule" in str(refused.value)
