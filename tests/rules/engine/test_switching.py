"""Rules that change, in mid-stream, between columns alone and automata (tesla.md S14)."""

from collections.abc import Mapping
from random import Random

import pytest
from cases import Case, random_case, run
from iteration_cases import iteration_case
from pairs import seeds
from sequence_cases import sequence_case

from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections
from rules.engine.oracle.naive import NaiveEngine

PARTS = 8
CASES = len(seeds(24, 80))


class Switching(CdpEngine):
    """After each advance, and before some, chance decides how each rule is evaluated."""

    def __init__(self, seed: int) -> None:
        super().__init__(incremental=bool(seed % 2))
        self.random, self.switched = Random(seed), 0

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        if self.random.random() < 0.3:
            self.change()
        found = super().advance(marks)
        self.change()
        return found

    def change(self) -> None:
        chosen = [name for name in self._linker.linked if self.random.random() < 0.6]
        self.switch({name: self.random.random() < 0.5 for name in chosen})
        self.switched += len(chosen)


def told(case: Case, engine: CdpEngine | NaiveEngine) -> list[list[tuple[object, ...]]]:
    return [
        [(one.time, one.type, one.source, one.id, one.cause_full) for one in events]
        for events in run(case, engine).advances
    ]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("make_case", [random_case, sequence_case, iteration_case])
@pytest.mark.timeout(600)
def test_a_switch_in_mid_stream_changes_no_result(make_case, part: int):
    switched = 0
    for seed in range(part * CASES // PARTS, (part + 1) * CASES // PARTS):
        engine, case = Switching(seed), make_case(seed)
        assert told(case, engine) == told(case, NaiveEngine()), f"seed {seed}\n{case}"
        switched += engine.switched
    assert switched > 0


def test_what_a_switch_leaves_behind_is_given_back():
    engine, case = Switching(1), sequence_case(2)
    run(case, engine)
    names = list(engine._linker.linked)
    engine.switch(dict.fromkeys(names, False))
    sizes = []
    for _ in range(6):
        engine.switch(dict.fromkeys(names, True))
        engine.switch(dict.fromkeys(names, False))
        tables = engine._linker
        sizes.append(
            (
                len(tables.rules), len(tables.tables.accesses), len(tables.tables.columns),
                len(tables.steps.array), engine.memory()["lists"], engine.memory()["entries"],
            )
        )  # fmt: skip
    assert len(set(sizes[1:])) == 1
