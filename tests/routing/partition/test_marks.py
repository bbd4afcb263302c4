"""What is kept up to date by the marks that rise is what working everything out anew would give."""

from collections.abc import Collection, Mapping
from random import Random

import pytest

from matcher.model import TIME_MIN
from routing.partition.marks import Group, Marks

NAMES = "ABCDEF"


class Anew:
    """The obvious version: all marks, worked out whenever they are asked for."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.groups: tuple[Group, ...] = ()
        self.company: Mapping[str, Collection[Group]] = {}
        self.given: dict[str, int] = {}

    def arrange(
        self,
        types: frozenset[str],
        groups: tuple[Group, ...],
        company: Mapping[str, Collection[Group]],
        released: frozenset[str],
    ) -> None:
        for name in released:
            self.given.pop(name, None)
        before, known = self.company, self.types
        self.types = {
            name: TIME_MIN
            if name in released or (name in company and name not in before)
            else known.get(name, TIME_MIN)
            for name in types
        }
        self.groups, self.company = groups, company

    def least(self, group: Group) -> int:
        return min(self.types[name] for name in group)

    def rise(self, marks: Mapping[str, int]) -> None:
        for name, mark in marks.items():
            if name in self.types:
                self.types[name] = max(mark, self.types[name])

    def up(self) -> dict[str, int]:
        for name, waited_for in self.company.items():
            mark = min([self.types[name], *map(self.least, waited_for)])
            self.given[name] = max(mark, self.given.get(name, TIME_MIN))
        return {name: self.given[name] for name in self.company}


def subset(random: Random, names: Collection[str]) -> frozenset[str]:
    return frozenset(name for name in sorted(names) if random.random() < 0.5)


@pytest.mark.parametrize("seed", range(60))
def test_marks_go_up_as_if_all_were_worked_out_anew(seed: int) -> None:
    random = Random(seed)
    marks, anew = Marks(), Anew()
    told: dict[str, int] = {}
    is_new = False
    for _ in range(60):
        if random.random() < 0.15:
            types = subset(random, NAMES)
            found = (subset(random, types) for _ in range(random.randrange(4)))
            groups = tuple(dict.fromkeys(group for group in found if group))
            company = {
                name: {group for group in groups if name in group and random.random() < 0.7}
                for name in sorted(subset(random, types))
            }
            released = subset(random, types) if random.random() < 0.3 else frozenset[str]()
            marks.arrange(types, groups, company, released)
            anew.arrange(types, groups, company, released)
            anew.up()
            is_new = True
        given = {name: random.randrange(30) for name in sorted(subset(random, NAMES))}
        anew.rise(given)
        if random.random() < 0.1:
            mark = random.randrange(30)
            anew.rise(dict.fromkeys(NAMES, mark))
            news = {**marks.rise(given), **marks.rise(mark)}
        else:
            news = dict(marks.rise(given))
        up = anew.up()
        assert marks.up == up, f"seed {seed}"
        changed = {name: mark for name, mark in up.items() if told.get(name) != mark}
        assert news == (up if is_new else changed), f"seed {seed}"
        told, is_new = up, False
        for group in anew.groups:
            assert marks.least_of(group) == marks.least(group) == anew.least(group), f"seed {seed}"
