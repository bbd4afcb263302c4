"""Rules that move, in mid-stream, to hybrid parallelism and back: by chance, and by what they take."""

from random import Random

import pytest
from agreement import row
from cases import Case, random_case, run
from chain_cases import chain_case, decided_case
from pairs import seeds
from sequence_cases import sequence_case

from rules.engine.cdp import CdpEngine
from rules.engine.hybrid import Crew, HybridEngine, Trials
from rules.engine.naive import NaiveEngine
from rules.engine.parts import PartedEngine
from rules.pattern import Rule

PARTS = 4
CASES = len(seeds(48, 400))


class Restless(Trials):
    """Trials that end by chance: any chain may move before any advance."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random, self.chains = Random(seed), set[str]()

    def take_leaving(self) -> set[str]:
        return {name for name in sorted(self.chains) if self.random.random() < 0.5}

    def is_linked(self, rule: Rule) -> bool:
        return self.random.random() < 0.5


class Moving(PartedEngine):
    """An engine whose chains move by chance; it counts how often some were with hybrid."""

    def __init__(self, seed: int) -> None:
        self.restless, self.tried = Restless(seed), 0
        heavy = HybridEngine(Crew(1 + seed % 2, capacity=4, few=0, slice=16), self.restless)
        super().__init__([CdpEngine() for _ in range(1 + seed % 3)], map, heavy)

    def deploy(self, rules, *, since=None, version=0):
        super().deploy(rules, since=since, version=version)
        self.restless.chains |= {one.name for one in rules.rules if self.restless.takes(one)}

    def advance(self, marks):
        found = super().advance(marks)
        self.tried += bool(self.parts[-1])
        return found


def agree(case: Case, seed: int) -> int:
    engine = Moving(seed)
    theirs, ours = run(case, engine), run(case, NaiveEngine())
    for place, (found, expected) in enumerate(zip(theirs.advances, ours.advances, strict=True)):
        assert list(map(row, found)) == list(map(row, expected)), (place, f"seed {seed}\n{case}")
    assert theirs.marks == ours.marks, f"seed {seed}\n{case}"
    return engine.tried


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("make_case", [chain_case, decided_case, sequence_case, random_case])
@pytest.mark.timeout(600)
def test_moves_in_mid_stream_change_no_result(make_case, part: int) -> None:
    tried = 0
    for seed in range(part * CASES // PARTS, (part + 1) * CASES // PARTS):
        tried += agree(make_case(seed), seed)
    assert tried > CASES // PARTS / 4 or make_case in (sequence_case, random_case)
