"""What is kept up to date by what has changed is what working everything out anew would give."""

from random import Random

import pytest

from matcher.model import TIME_MIN
from routing.watermarks.ends import CLOSED, ended, users_of
from routing.watermarks.input_watermarks import InputWatermarks
from routing.watermarks.type_progress import UNSAID, CoupledTypes, TypeRecords

NAMES = "ABCDEF"


class Anew:
    """The obvious version: everything that was said, looked at whenever it is asked for."""

    def __init__(self) -> None:
        self.published: frozenset[str] = frozenset()
        self.children: dict[str, dict[str, int]] = {}
        self.own: dict[str, int] = {}

    def told(self) -> dict[str, int]:
        inputs = {name: self.own.get(name, TIME_MIN) for name in self.published}
        for table in self.children.values():
            for name, mark in table.items():
                inputs[name] = min(inputs.get(name, CLOSED), mark)
        return inputs

    def marks(self, limits: dict[str, int]) -> dict[str, int]:
        inputs = self.told()
        for name, mark in limits.items():
            inputs[name] = min(inputs.get(name, CLOSED), mark)
        return inputs


def subset(random: Random) -> frozenset[str]:
    return frozenset(name for name in NAMES if random.random() < 0.4)


def a_mark(random: Random) -> int:
    return random.choice((TIME_MIN, CLOSED, *range(20)))


@pytest.mark.parametrize("seed", range(60))
def test_marks_are_those_of_everything_that_was_said(seed: int) -> None:
    random = Random(seed)
    type_records, anew = TypeRecords(), Anew()
    groups = [[name for name in NAMES if name not in NAMES[:2]], list(NAMES[:2])]
    for names in groups:
        coupled_types = CoupledTypes([type_records[name] for name in names])
        for one in coupled_types.types:
            one.coupled_types = coupled_types
    inputs = InputWatermarks(type_records)
    seen: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_anew = True
    for _ in range(60):
        match random.randrange(6):
            case 0:
                expected = {child: sorted(subset(random)) for child in "xyz"[: random.randrange(4)]}
                child, doubted = random.choice("xyz"), subset(random)
                inputs.doubt(child, doubted)
                for name in doubted & anew.children.get(child, {}).keys():
                    del anew.children[child][name]
                anew.published = subset(random)
                before = anew.children
                anew.children = {
                    child: {
                        name: mark
                        if (mark := before.get(child, {}).get(name, TIME_MIN)) != CLOSED
                        else TIME_MIN
                        for name in names
                    }
                    for child, names in expected.items()
                }
                inputs.arrange(anew.published, expected)
                limits = dict.fromkeys(sorted(subset(random))[: random.randrange(3)], CLOSED)
                seen, is_anew = {}, True
            case 1:
                anew.own = {name: a_mark(random) for name in subset(random)}
            case _:
                child = random.choice("xyz")
                told = [(name, a_mark(random)) for name in sorted(subset(random))]
                table = anew.children.get(child, {})
                news = [(name, mark) for name, mark in told if mark > table.get(name, CLOSED)]
                table.update(news)
                assert inputs.take(child, told, 0.0) == bool(news), f"seed {seed}"
        news = {name: a_mark(random) for name in limits if is_anew or random.random() < 0.5}
        limits.update(news)
        is_anew = False
        inputs.hear_own(dict(anew.own))
        heard = inputs.hear()
        inputs.bound(news, heard)
        moved = {one.name for one in heard}
        marks = anew.marks(limits)
        told = {one.name: one.told for one in type_records.values() if one.told != UNSAID}
        assert told == anew.told(), f"seed {seed}"
        assert {one.name: one.mark for one in inputs.types} == marks, f"seed {seed}"
        closed = {one.name for one in inputs.closed}
        assert closed == {name for name, mark in marks.items() if mark == CLOSED}
        for names in groups:
            still_open = [marks[one] for one in names if marks.get(one, CLOSED) != CLOSED]
            furthest = inputs.furthest(type_records[names[0]].coupled_types)
            assert furthest == max(still_open, default=TIME_MIN), f"seed {seed}"
        changed = {name for name, mark in marks.items() if seen.get(name) != mark}
        assert changed <= moved, f"seed {seed}: {changed - moved} have moved and it is not said"
        seen = marks


@pytest.mark.parametrize("seed", range(20))
def test_a_mark_bears_on_the_rules_that_reach_its_type(seed: int) -> None:
    random = Random(seed)
    rules = [f"r{number}" for number in range(6)]
    uses = {rule: subset(random) or frozenset("A") for rule in rules}
    defining: dict[str, list[str]] = {}
    for rule in rules:
        defining.setdefault(random.choice(NAMES), []).append(rule)
    users = users_of(uses, defining)
    for rule in rules:
        reached = set(uses[rule])
        for _ in rules:
            below = [one for name in reached for one in defining.get(name, ())]
            reached = reached.union(*(uses[one] for one in below))
        for name in NAMES:
            assert (rule in users.get(name, ())) == (name in reached), f"seed {seed}"


def test_what_ends_with_what_is_used() -> None:
    """A type that a rule defines has ended once the rule has nothing more to come."""
    uses = {"r": frozenset("A"), "s": frozenset("BC")}
    defining = {"B": ["r"], "D": ["s"]}
    assert ended("ABCD", uses, defining, is_timed=False) == (frozenset("ABCD"), {"r", "s"})
    assert ended("BCD", uses, defining, is_timed=False) == (frozenset("C"), frozenset())
    assert ended("ABD", uses, defining, is_timed=False) == (frozenset("AB"), {"r"})
    timed = {"r": frozenset({"Timer"})}
    assert ended("B", timed, {"B": ["r"]}, is_timed=True) == (frozenset(), frozenset())
    assert ended("B", timed, {"B": ["r"]}, is_timed=False) == (frozenset("B"), {"r"})
