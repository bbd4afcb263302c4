"""Detection on a device gives what the naive engine gives, wherever rules move, if it fails too."""

from random import Random

import pytest
from cases import Case, nullable, random_case, random_events, run, scheduled
from rule_texts import COMPOSITE, PRIMITIVE, SCHEMAS, RuleText, RuleWriter

import rules
from matcher.gpu.device import device
from rules.engine.cdp import CdpEngine
from rules.engine.gpu.eligible import reason_against
from rules.engine.gpu.engine import DeviceFailed, GpuEngine
from rules.engine.gpu.placed import PlacedEngine
from rules.engine.naive import NaiveEngine
from rules.errors import RuleErrors

SIMULATED = device().simulated
SEEDS = range(14) if SIMULATED else range(80)
PLACED_SEEDS = range(8) if SIMULATED else range(30)
TRIES = 300


def eligible_rule(random: Random, types: list[str], number: int, name: str) -> RuleText | None:
    """A random rule that a device takes."""
    for _ in range(TRIES):
        text = RuleWriter(random, types, []).write(f"r{number}", name)
        (rule,) = rules.load(str(text), known=SCHEMAS).rules
        if reason_against(rule) is None and all(one.name in types for one in rule.used_types):
            return text
    return None


def eligible_case(seed: int) -> Case:
    """A random case all of whose rules a device takes."""
    random = Random(seed)
    types = random.sample(list(PRIMITIVE), random.randint(2, 3))
    names = random.sample(list(COMPOSITE), random.choice((1, 1, 2, 3)))
    drawn = [eligible_rule(random, types, number, name) for number, name in enumerate(names)]
    texts = tuple(text for text in drawn if text is not None)
    events = random_events(random, types, random.randint(10, 36), random.choice((4, 8, 12)))
    return scheduled(random, seed, texts, events) if texts else Case(seed, (), True)


@pytest.mark.parametrize("part", range(4))
def test_random_rules_that_a_device_takes(part: int) -> None:
    for seed in SEEDS[part::4]:
        case = eligible_case(seed)
        wanted, found = run(case, NaiveEngine()), run(case, GpuEngine())
        assert found == wanted, case


class Restless(PlacedEngine):
    """Moves rules to and fro."""

    def __init__(self) -> None:
        super().__init__(CdpEngine(), GpuEngine, (DeviceFailed,))
        self._random = Random(5)

    def advance(self, marks):  # type: ignore[no-untyped-def]
        for name, place in self.placements.items():
            if self._random.random() < 0.5:
                self.move([name], to_gpu=place.device == "cpu")
        return super().advance(marks)


class Failing(GpuEngine):
    """Fails at its second advance."""

    advances = 0

    def advance(self, marks):  # type: ignore[no-untyped-def]
        self.advances += 1
        if self.advances == 2:
            raise DeviceFailed("it is out of order\nand hot")
        return super().advance(marks)


def failing() -> PlacedEngine:
    return PlacedEngine(CdpEngine(), Failing, (DeviceFailed,))


@pytest.mark.parametrize("make", [Restless, failing])
def test_where_rules_are_evaluated_changes_no_result(make) -> None:  # type: ignore[no-untyped-def]
    for seed in PLACED_SEEDS:
        case = random_case(seed) if seed % 2 else eligible_case(seed)
        case = nullable(case) if seed % 8 == 1 else case
        assert run(case, make()) == run(case, NaiveEngine()), case


FIRE = """
event Smoke(area: string)
event Temp(area: string, value: float)
define Fire(area: string, value: float)
from Smoke(area = $a) and last Temp(area = $a, value > 45) within 5 min from Smoke
where area = $a, value = Temp.value
"""


def test_a_device_that_fails_is_told_of_once() -> None:
    engine = failing()
    engine.deploy(rules.load(FIRE))
    assert engine.placements["Fire"].device == "gpu"
    engine.advance(1)
    engine.advance(2)
    assert engine.placements["Fire"].device == "cpu"
    assert engine.placements["Fire"].reason == "the device failed"
    assert engine.take_notes() == [
        "the device failed (it is out of order); all rules go on on the processor"
    ]
    assert engine.take_notes() == []


def test_a_rule_that_a_device_does_not_take_is_refused_by_name_and_reason() -> None:
    text = FIRE + "consuming Temp"
    with pytest.raises(RuleErrors, match="rule Fire: a device does not take it: it consumes"):
        GpuEngine().deploy(rules.load(text))
