"""Rules that are pulled (thesis 7.3.7, 7.3.8): the law, and what it would be broken by.

Masters are chosen at random, also ones that nobody would choose.
"""

import os
from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from naive_forwarder import NaiveForwarder
from processing_tree import ProcessingTree
from sharp_cases import SharpCase
from tree_cases import TreeCase, rows

import rules
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    TIME_MIN,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from routing.partition.derivation import fragment_of
from routing.partition.forwarder import Forwarded, Forwarder
from routing.partition.masters import Around, masters_of, pull_of
from routing.partition.pull_buffer import DROPPED_MIN, Windows, WindowsByKey
from routing.partition.pulls import PullRole, Pulls, roles_at
from routing.partition.questions import (
    ANY,
    AskedSpans,
    MasterSpan,
    OpenSpans,
    Spans,
    Values,
    starting,
    united,
)
from rules.pattern import Rule

COUNT = int(os.environ.get("REXMQ_TREES", "60"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))


@pytest.mark.parametrize("kind", [TreeCase, SharpCase])
@pytest.mark.parametrize("forwarder", [NaiveForwarder, Forwarder])
@pytest.mark.timeout(3600)
def test_a_tree_that_pulls_detects_what_one_engine_does(forwarder: type, kind: type[TreeCase]):
    """Its oracle's forwarders do, and those that are used."""
    count = COUNT // (2 if forwarder is Forwarder else 10) // (5 if kind is TreeCase else 1)
    count = max(count, 5)
    fired = asked = 0
    for seed in range(FIRST, FIRST + count):
        case = kind(seed)
        network = case.distributed(forwarder, pulled=True)
        got, expected = rows(network.run()), rows(case.centralised())
        assert got == expected, f"seed {seed} {network.masters}\n{case}\n{network.partition}"
        fired, asked = fired + bool(expected), asked + network.awakenings
    assert fired > count / 3
    assert asked > 0


class ChangingMasters(ProcessingTree):
    """A tree whose rules get other masters now and then, or none, while nothing is under way."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.changed = 0

    def _moves(self):
        moves = super()._moves()
        return [*moves, self._change] if moves and self.random.random() < 0.3 else moves

    def _change(self) -> None:
        while waiting := [
            *(lambda child=child: self._deliver(child) for child, one in self.links.items() if one),
            *(lambda child=child: self._awake(child) for child, one in self.down.items() if one),
        ]:
            self.random.choice(waiting)()
        defined = {rule.defines.name for rule in self.rules.rules}
        self.masters = {
            rule.name: self.random.choice(numbers)
            for rule in self.rules.rules
            if (numbers := masters_of(rule, defined)) and self.random.random() < 0.8
        }
        self.changed += self._follow(self.divided())
        for name, node in self.nodes.items():
            below = self.tree.children.get(name, ())
            node.forwarder.close()
            roles = roles_at(name, below, self.partition, node.passed)
            node.pulls.follow(roles, node.front)
        self._expect_again()
        for name in self.nodes:
            self._look(name)


@pytest.mark.parametrize("kind", [TreeCase, SharpCase])
@pytest.mark.timeout(3600)
def test_masters_may_change_at_any_instant(kind: type[TreeCase]):
    count, changed = COUNT // (20 if kind is TreeCase else 4), 0
    for seed in range(FIRST, FIRST + count):
        case = kind(seed)
        network = case.distributed(kind=ChangingMasters, pulled=True)
        got, expected = rows(network.run()), rows(case.centralised())
        assert got == expected, f"seed {seed} {network.masters}\n{case}\n{network.partition}"
        changed += network.changed
    assert changed > count


A, B, C, D = (EventType.of(name, v="int") for name in "ABCD")
KNOWN = {one.name: one for one in (A, B, C, D)}
CHAIN = "A() and last B() within 5 s from A and last C() within 3 s from B"


def rule_of(text: str) -> Rule:
    return rules.load(f"define X() from {text}", known=KNOWN).rules[0]


def around(text: str, master: int) -> dict[str, tuple[float, float]]:
    """By type, the seconds before and after the master."""
    pull = pull_of(rule_of(text), master)
    assert pull is not None
    return {one.type: (one.before / MICROSECONDS, one.after / MICROSECONDS) for one in pull.around}


def test_what_a_single_selection_may_choose_is_asked_for_over_its_whole_window():
    """A B that comes up to 8 s after a C hides one that would go with it, though it goes with none
    itself: it is 3 s from C at the most where they match.
    """
    assert around(CHAIN, 2) == {"A": (0, 8), "B": (5, 8)}
    assert around(CHAIN, 0) == {"B": (5, 0), "C": (8, 0)}
    assert around(CHAIN, 1) == {"A": (0, 5), "C": (3, 0)}


def test_a_type_that_is_used_twice_is_asked_for_in_both_windows():
    text = CHAIN + " and not C() between B and A and Count(C() within 9 s from A) > 2"
    assert around(text, 1) == {"A": (0, 5), "C": (9, 5)}


def test_what_comes_together_is_asked_for_on_both_sides():
    rule = rule_of("all A() as a, B() as b within 4 s")
    pull = pull_of(rule, 1)
    assert pull is not None
    assert pull.around == (Around("A", 4 * MICROSECONDS, 4 * MICROSECONDS),)


def test_negations_aggregates_timers_and_composite_events_are_never_masters():
    """A rule that waits for nothing to happen would never be woken."""
    text = "A() and each B() within 5 s from A and not C() within 5 s from A"
    assert masters_of(rule_of(f"{text} and Count(D() within 5 s from A) = 0"), ()) == (0, 1)
    assert masters_of(rule_of(text), {"B"}) == (0,)
    assert masters_of(rule_of("Timer(S = 0) as t and each B() within 5 s from t"), ()) == (1,)
    assert masters_of(rule_of("A() or B() as e and each C() within 5 s from e"), ()) == (1,)


def test_a_rule_of_one_type_is_not_pulled():
    assert pull_of(rule_of("A() as a and each A() as b within 5 s from a"), 0) is None


def events_of(type_: EventType, *seconds: int) -> EventBatch:
    count, times = len(seconds), np.array(seconds, np.int64)
    ids = EventIds(StringColumn.constant(type_.name, count), times)
    return EventBatch(type_, times * MICROSECONDS, ids, (np.zeros(count, np.int64),))


def valued(type_: EventType, *events: tuple[int, int]) -> EventBatch:
    """Events at seconds, with values."""
    batch = events_of(type_, *(second for second, _ in events))
    values = (np.array([value for _, value in events], np.int64),)
    return EventBatch(type_, batch.time, batch.ids, values)


def spans(*seconds: tuple[int, int], values: Values = ANY) -> Spans:
    return tuple((first * MICROSECONDS, last * MICROSECONDS, values) for first, last in seconds)


def sent(forwarded: Forwarded) -> list[str]:
    return sorted(
        f"{one.type}@{one.time // MICROSECONDS}" for b in forwarded.batches for one in b.events()
    )


def slave() -> Forwarder:
    """What keeps C of CHAIN for B."""
    rule = rule_of(CHAIN)
    fragment = fragment_of(rule, frozenset("C"), frozenset("C"), pull_of(rule, 1))
    assert fragment is not None
    assert (fragment.kept, fragment.pushed) == ({"C"}, set())
    made = Forwarder()
    made.deploy("X", fragment)
    return made


def answers(node: Forwarder, second: int) -> tuple[tuple[str, int, int], ...]:
    found = node.answers(lambda name: second * MICROSECONDS, lambda rule: TIME_MAX)
    return tuple((rule, number, mark // MICROSECONDS) for rule, number, mark in found)


def test_a_slave_sends_what_it_is_asked_for_when_it_has_it_and_says_once_that_it_has():
    node = slave()
    node.push(events_of(C, 1, 4, 5))
    assert sent(node.advance({"C": 6 * MICROSECONDS})) == []
    assert answers(node, 6) == ()  # nobody has asked
    node.ask("X", spans((7, 8)), 0)
    assert sent(node.advance({})) == ["C@4", "C@5"]
    assert answers(node, 6) == ()  # it is not as far as the first master
    node.push(events_of(C, 8, 9))
    assert sent(node.advance({"C": 10 * MICROSECONDS})) == ["C@8"]
    assert answers(node, 10) == (("X", 1, 10),)
    assert answers(node, 12) == ()


def test_the_mark_of_a_slave_that_is_forwarded_from_now_on_begins_anew():
    """Until then it spoke of local sources alone (fuzzed seed 9009)."""
    node = slave()
    node.advance({"C": 9 * MICROSECONDS})
    pushed = fragment_of(rule_of(CHAIN), frozenset("C"), frozenset("C"))
    assert pushed is not None
    node.follow({"X": pushed}, {})
    assert node.marks == {"C": TIME_MIN}
    assert node.advance({"C": 5 * MICROSECONDS}).marks == {"C": 5 * MICROSECONDS}


def test_so_does_that_of_one_that_is_forwarded_for_another_rule_already():
    """It spoke of what this node had asked for, for that rule alone (fuzzed seed 12086)."""
    rule, node = rule_of(CHAIN), slave()
    both = frozenset("BC")
    joining = fragment_of(rule_of("B() and each C() within 3 s from B"), both, both)
    pushed = fragment_of(rule, frozenset("C"), frozenset("C"))
    assert joining is not None
    assert pushed is not None
    node.deploy("Y", joining)
    node.advance({"B": 9 * MICROSECONDS, "C": 9 * MICROSECONDS})
    assert node.marks == {"B": 9 * MICROSECONDS, "C": 9 * MICROSECONDS}
    node.follow({"X": pushed, "Y": joining}, {})
    assert node.marks["C"] == TIME_MIN
    assert node.advance({"C": 5 * MICROSECONDS}).marks["C"] == 5 * MICROSECONDS


def test_a_slave_keeps_what_may_be_asked_for_and_no_more():
    node = slave()
    for second in range(0, 20_000, 10):
        node.push(events_of(C, *range(second, second + 10)))
        node.advance({"C": (second + 10) * MICROSECONDS})
        if second < 4_000:
            assert len(node) == second + 10  # nothing is ever dropped before a horizon is known
        else:
            node.ask("X", (), second * MICROSECONDS)
    assert len(node) < 2_000
    node.ask("X", spans((19_993, 19_993)), 0)
    assert sent(node.advance({})) == [f"C@{second}" for second in range(19_990, 19_994)]


def master(*children: str) -> Pulls:
    """What asks children for C of CHAIN around B."""
    pull = pull_of(rule_of(CHAIN), 1)
    assert pull is not None
    made = Pulls()
    role = PullRole(pull, True, dict.fromkeys(children, frozenset("C")))
    made.follow({"X": role}, TIME_MIN)
    return made


def limit(pulls: Pulls) -> int:
    """Up to where, in seconds, the types that wait below may be taken for complete."""
    return min(pulls.limits.values()) // MICROSECONDS


def learn(pulls: Pulls, second: int) -> None:
    pulls.learn({"B": second * MICROSECONDS})
    pulls.keep()


def test_the_mark_of_what_waits_passes_a_master_when_all_children_have_answered():
    node = master("k1", "k2")
    learn(node, 20)
    assert limit(node) == 20  # there was no master
    node.see(events_of(B, 25))
    learn(node, 30)
    assert limit(node) == 25
    (asked,) = set(node.take_asked().values())
    assert asked == (("X", spans((25, 25)), 22 * MICROSECONDS),)  # 8 s before the mark
    node.take("k1", (("X", 1, 40 * MICROSECONDS),))
    assert limit(node) == 25
    node.take("k2", (("X", 1, 25 * MICROSECONDS),))  # which is not beyond the window
    assert limit(node) == 25
    node.take("k2", (("X", 1, 25 * MICROSECONDS + 1),))
    assert limit(node) == 30


def test_a_master_may_come_behind_its_mark():
    """It has waited for another event below; what was evaluated before does not depend on it."""
    node = master("k1")
    learn(node, 30)
    node.see(events_of(B, 26))
    assert limit(node) == 30
    learn(node, 32)
    assert limit(node) == 30
    assert node.take_asked()["k1"][0][1] == spans((26, 26))
    node.take("k1", (("X", 1, 28 * MICROSECONDS),))  # C from 23 to 26, all of it
    assert limit(node) == 32


def test_an_answer_to_what_was_asked_before_answers_nothing_else():
    told = OpenSpans(after=0)
    told.add(starting([(5, 5, ANY)]))
    told.add(starting([(7, 9, ANY)]))
    told.answer(1, 20)
    assert told.mark == 7
    told.answer(2, 8)
    assert told.mark == 8
    told.answer(2, 10)
    assert (told.mark, len(told)) == (TIME_MAX, 0)


def test_many_that_wait_for_an_answer_are_one_window_by_key():
    """Where masters run ahead of what they ask for, each cost as much as all that had been asked
    for: a broker that fell behind by some seconds never caught up.
    """
    windows = WindowsByKey(Around("C", 5_000, 0, ((0, 0),)), slack=10)
    keys_ = [("a",), ("b",)]
    for time in range(10_000):
        windows.add([MasterSpan(time * 100, time * 100, 0, keys_[time % 2])])
        windows.drop(time)
    assert {key: len(one) for key, one in windows.by_key.items()} == dict.fromkeys(keys_, 1)
    times = np.array([-4_901, -4_900, 999_900, 999_901])
    assert windows.hold(("b",), times).tolist() == [False, True, True, False]
    for time in range(DROPPED_MIN):
        windows.add([MasterSpan(2_000_000 + time, 2_000_000 + time, 0, ("a",))])
    windows.drop(1_000_000)
    assert set(windows.by_key) == {("a",)}


def test_a_time_is_held_where_it_lies_in_some_window():
    random = Random(1)
    for _ in range(200):
        windows, known = Windows(), []
        for _ in range(random.randrange(12)):
            start = random.randrange(60)
            known.append((start, start + random.randrange(9)))
            windows.add(*known[-1])
        mark = random.randrange(-5, 60)
        windows.drop(mark)
        times = np.arange(mark, 75)
        held = [any(start <= time <= end for start, end in known) for time in times]
        assert windows.hold(times).tolist() == held
        each = [windows.hold(times[place : place + 1])[0] for place in range(len(times))]
        assert each == held
        if len(windows):
            first, last = windows.span
            assert all(first <= time <= last for time in times[held])


def test_masters_whose_windows_meet_are_asked_for_together():
    masters = [MasterSpan(9, 9, 9), MasterSpan(1, 1, 4), MasterSpan(3, 4, 3)]
    assert united(masters, slack=2) == [MasterSpan(1, 4, 3), MasterSpan(9, 9, 9)]
    assert united(reversed(masters), slack=5) == [MasterSpan(1, 9, 3)]
    other = MasterSpan(2, 3, 2, ("a",))
    assert united([*masters, other], slack=2) == [MasterSpan(1, 4, 3), other, MasterSpan(9, 9, 9)]


def keys(text: str, master: int) -> dict[str, tuple[tuple[str, str], ...]]:
    """By type, its attributes that have to be equal to one of the master's."""
    rule = rule_of(text)
    pull = pull_of(rule, master)
    assert pull is not None
    its = pull.master.type.attributes
    return {
        one.type: tuple(
            (KNOWN[one.type].attributes[own].name, its[pull.values[place]].name)
            for own, place in one.keys
        )
        for one in pull.around
    }


SAME = (("v", "v"),)


def test_what_uses_a_parameter_is_asked_for_by_its_value():
    """It does not matter which event of the match has the value as well, nor by which clause."""
    text = "A(v = $x) and last B(v = $x) within 5 s from A and last C(v = $x) within 3 s from B"
    assert keys(text, 0) == {"B": SAME, "C": SAME}
    assert keys(f"{text} and not D(v = $x) between C and B", 2) == {"A": SAME, "B": SAME, "D": SAME}


def test_what_only_binds_a_parameter_is_asked_for_whole():
    """The last B hides another, whatever its value; a C has to have that value afterwards."""
    text = "A() and last B(v = $x) within 5 s from A and last C(v = $x) within 3 s from B"
    assert keys(text, 2) == {"A": (), "B": ()}
    assert keys(text, 1) == {"A": (), "C": SAME}
    assert keys(text.replace("last", "each"), 2) == {"A": (), "B": SAME}, "each hides nothing"


def test_a_type_is_asked_for_whole_if_any_use_of_it_is():
    text = "A(v = $x) and last B(v = $x) within 5 s from A"
    assert keys(text, 0) == {"B": SAME}
    assert keys(f"{text} and not B(v > 9) within 2 s from A", 0) == {"B": ()}
    assert keys(f"{text} and Count(B(v = $x) within 9 s from A) > 2", 0) == {"B": SAME}


def test_a_slave_sends_what_has_the_value_that_it_is_asked_for():
    rule = rule_of("A() and last B(v = $x) within 5 s from A and last C(v = $x) within 3 s from B")
    fragment = fragment_of(rule, frozenset("C"), frozenset("C"), pull_of(rule, 1))
    assert fragment is not None
    node = Forwarder()
    node.deploy("X", fragment)
    node.push(valued(C, (4, 1), (5, 2), (6, 2)))
    node.ask("X", spans((7, 7), values=(2,)), 0)
    assert sent(node.advance({"C": 6 * MICROSECONDS})) == ["C@5", "C@6"]
    node.push(valued(C, (7, 1), (7, 2)))
    assert sent(node.advance({})) == ["C@7"]
    node.ask("X", spans((7, 7)), 0)
    assert sent(node.advance({})) == ["C@4", "C@7"], "of whatever value"


def test_masters_of_several_values_are_asked_for_apart():
    rule = rule_of("A(v = $x) and last B(v = $x) within 5 s from A")
    pull = pull_of(rule, 0)
    assert pull is not None
    node = Pulls()
    node.follow({"X": PullRole(pull, True, {"k1": frozenset("B")})}, TIME_MIN)
    node.see(valued(A, (3, 1), (4, 2), (5, 1), (5, 1)))
    ((_, asked, _),) = node.take_asked()["k1"]
    assert asked == (*spans((3, 5), values=(1,)), *spans((4, 4), values=(2,)))


class Anew(Pulls):
    """The obvious version: every rule is looked at whenever anything is asked."""

    def learn(self, marks: Mapping[str, int]) -> None:
        for one in self._rules.values():
            if one.asks:
                one.passed = max(one.passed, marks.get(one.pull.master.type.name, TIME_MIN))

    def keep(self, beyond: int = TIME_MAX) -> None:
        for one in self._rules.values():
            if one.asks:
                one.horizon = max(one.horizon, min(one.passed, beyond) - one.pull.reach)

    def take_asked(self) -> dict[str, AskedSpans]:
        self._pending = set(self._rules.values())
        return super().take_asked()

    @property
    def limits(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for one in self._rules.values():
            one.touch()
            for name in one.types if one.asks else ():
                found[name] = min(one.passed, one.mark, found.get(name, TIME_MAX))
        return found


@pytest.mark.parametrize("seed", range(40))
def test_what_has_changed_is_what_looking_at_everything_finds(seed: int) -> None:
    random = Random(seed)
    pull = pull_of(rule_of(CHAIN), 1)
    assert pull is not None
    children = {name: frozenset("C") for name in ("k1", "k2")}
    roles = {
        name: PullRole(pull, random.random() < 0.7, dict(random.sample(list(children.items()), 1)))
        for name in ("X", "Y", "Z")
    }
    pulls, anew, told = Pulls(), Anew(), dict[str, int]()
    for one in (pulls, anew):
        one.follow(roles, TIME_MIN)
    second = 0
    for _ in range(80):
        second += random.randrange(3)
        match random.randrange(6):
            case 0:
                batch = events_of(B, second)
                pulls.see(batch)
                anew.see(batch)
            case 1:
                asked = ((random.choice("XYZ"), spans((second, second)), second * MICROSECONDS),)
                pulls.hear(asked)
                anew.hear(asked)
            case 2:
                marks = {random.choice("AB"): random.choice((second * MICROSECONDS, TIME_MAX))}
                pulls.learn(marks)
                anew.learn(marks)
            case 3:
                pulls.keep(lambda name, beyond=second * MICROSECONDS: beyond)
                anew.keep(second * MICROSECONDS)
            case 4:
                assert pulls.take_asked() == anew.take_asked(), f"seed {seed}"
            case _:
                mark = random.randrange(second + 1) * MICROSECONDS
                answers = ((random.choice("XYZ"), random.randrange(1, 9), mark),)
                child = random.choice(("k1", "k2"))
                pulls.take(child, answers)
                anew.take(child, answers)
        told.update(pulls.take_limits())
        assert told == pulls.limits == anew.limits, f"seed {seed}"
        assert [pulls.answered(name) for name in "XYZ"] == [anew.answered(name) for name in "XYZ"]
        assert pulls.awaited("C") == anew.awaited("C")
