"""All engines give the same composite events on random cases; the oracle gives the same on every
schedule of one history (tesla.md S14).

Each seed is a case of its own (``tests/cases.py``). REXMQ_CASES sets how many are tried and
REXMQ_SEED where they begin; a failure prints the seed and a reduced case.
"""

import os
from collections.abc import Callable

import pytest
from agreement import row
from cases import (
    Case,
    Outcome,
    nullable,
    of_sequences,
    random_case,
    run,
    shrink,
    with_conflicts,
)
from engines import IS_SLOW, NAMES, PLACED, PUBLISHED, make
from iteration_cases import iteration_case
from sequence_cases import sequence_case

from matcher.model import Event
from runtime.guarded import Side
from runtime.memory import guarding

COUNT = int(os.environ.get("REXMQ_CASES", "10" if IS_SLOW else "64"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PARTS = 10
"""The cases are tried in so many parts, so that progress shows and time limits are fair."""

OTHERS = [*(name for name in NAMES if name != "naive"), *PLACED]
Complaint = str | None


def difference(ours: Outcome, theirs: Outcome) -> Complaint:
    """What the second outcome has otherwise than the first, advance by advance."""
    if len(ours.advances) != len(theirs.advances):
        return f"{len(ours.advances)} advances against {len(theirs.advances)}"
    for place, (first, second) in enumerate(zip(ours.advances, theirs.advances, strict=True)):
        if [*map(row, first)] != [*map(row, second)]:
            return f"advance {place}:\n{_listed(first)}\nagainst\n{_listed(second)}"
    if ours.marks != theirs.marks:
        return f"marks {ours.marks} against {theirs.marks}"
    if ours.duplicates != theirs.duplicates:
        return f"{ours.duplicates} duplicates against {theirs.duplicates}"
    if ours.conflicts != theirs.conflicts:
        return f"{ours.conflicts} conflicts against {theirs.conflicts}"
    return None


def _listed(events: list[Event]) -> str:
    return "\n".join(str(row(event)) for event in events) or "nothing"


def schedules_differ(name: str) -> Callable[[Case], Complaint]:
    """S14: the same events whatever the schedule; in the same order too, unless rules were
    ahead of one another by marks of their own."""

    def check(case: Case) -> Complaint:
        if not case.is_orderly:
            return None
        ours = list(map(row, run(case, make(name)).events()))
        theirs = list(map(row, run(case.at_once(), make(name)).events()))
        if case.has_common_marks and ours != theirs:
            return f"{name}, as scheduled and at once, in order:\n{ours}\n{theirs}"
        if sorted(ours) != sorted(theirs):
            return f"{name}, as scheduled and at once:\n{set(ours) ^ set(theirs)}"
        return None

    return check


def engines_differ(name: str) -> Callable[[Case], Complaint]:
    """An engine against the oracle on the same schedule."""

    def check(case: Case) -> Complaint:
        found = difference(run(case, make("naive")), run(case, make(name)))
        return f"naive against {name}: {found}" if found else None

    return check


def check_against_the_oracle(case: Case) -> None:
    """All engines against the oracle, whose answer is worked out once."""
    expected = run(case, make("naive"))
    for name in OTHERS:
        if difference(expected, run(case, make(name))):
            pytest.fail(report(case, engines_differ(name)))


def report(case: Case, check: Callable[[Case], Complaint]) -> str:
    """The reduced case and its complaint."""

    def fails(smaller: Case) -> bool:
        try:
            return check(smaller) is not None
        except (ValueError, IndexError, KeyError):
            return False  # what is left is no case any more

    smallest = shrink(case, fails)
    return f"seed {case.seed}; reduced:\n{smallest}\n{check(smallest)}"


def seeds(part: int, count: int = COUNT) -> range:
    return range(FIRST + part * count // PARTS, FIRST + (part + 1) * count // PARTS)


def test_of_two_events_of_an_id_all_engines_take_the_same():
    conflicts, count = 0, min(max(COUNT // 8, 6), 60)
    for seed in range(FIRST, FIRST + count):
        case = with_conflicts(random_case(seed))
        conflicts += run(case, make("naive")).conflicts
        check_against_the_oracle(case)
    assert conflicts > count // 8


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(3600)
def test_the_schedule_does_not_matter(name: str, part: int):
    for seed in seeds(part, COUNT // 4):
        case, check = random_case(seed), schedules_differ(name)
        if check(case):
            pytest.fail(report(case, check))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_engines_agree_with_the_oracle(part: int):
    for seed in seeds(part):
        check_against_the_oracle(random_case(seed))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_engines_agree_with_the_oracle_on_nulls(part: int):
    for seed in seeds(part, COUNT // 4):
        check_against_the_oracle(nullable(random_case(seed, long=seed % 20 == 4)))


@pytest.mark.parametrize("side", Side)
def test_engines_agree_with_the_oracle_in_guarded_memory(side: Side):
    """A sample of what ``make guarded`` tries: every array grows, and none is left."""
    with guarding(side):
        for seed in range(FIRST, FIRST + COUNT // 16):
            check_against_the_oracle(random_case(seed))
            check_against_the_oracle(iteration_case(seed))


def test_many_cases_detect_something_with_nulls_and_many_of_what_they_detect_is_null():
    outcomes = [run(nullable(random_case(seed)), make("cdp")) for seed in range(40)]
    assert sum(any(one.advances) for one in outcomes) > 40 * 0.35
    data = [event.data for one in outcomes for event in one.events()]
    assert sum(None in one.values() for one in data) > len(data) * 0.1


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_engines_agree_with_the_oracle_on_long_histories(part: int):
    for seed in seeds(part, COUNT // 40):
        check_against_the_oracle(random_case(seed, long=True))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_windows_of_any_length_may_be_summarised(part: int, monkeypatch: pytest.MonkeyPatch):
    """The same engine when it scans no window, however short."""
    monkeypatch.setattr("rules.engine.memory.growth.SCAN_MAX", 0)
    for seed in seeds(part, COUNT // 3):
        # Every eighth is long; of the multiples of eight one (336) takes the oracle a minute.
        check = engines_differ("cdp")
        for case in (random_case(seed, long=seed % 8 == 4), iteration_case(seed)):
            if check(case):
                pytest.fail(report(case, check))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_looking_ahead_changes_nothing(part: int, monkeypatch: pytest.MonkeyPatch):
    """The same engines when they look ahead at events however few lists there are."""
    monkeypatch.setattr("rules.engine.memory.growth.LOOK_MIN", 0)
    for seed in seeds(part, COUNT // 4):
        check_against_the_oracle(random_case(seed, long=seed % 8 == 0))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_engines_agree_with_the_oracle_on_long_sequences(part: int):
    for seed in seeds(part, COUNT // 6):
        check_against_the_oracle(sequence_case(seed))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_engines_agree_with_the_oracle_on_iterations(part: int):
    for seed in seeds(part, COUNT // 2):
        case = iteration_case(seed, long=seed % 20 == 7)
        check_against_the_oracle(case)
        if seed % 3 == 0:
            check_against_the_oracle(nullable(case))


def test_most_cases_of_iterations_detect_something():
    found = sum(any(run(iteration_case(seed), make("cdp")).advances) for seed in range(60))
    assert found > 60 * 0.4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_aip_as_published_agrees_with_the_oracle(part: int):
    """Over all of these, but for the rules that it refuses."""
    for seed in seeds(part):
        check_as_published(random_case(seed))
        check_as_published(sequence_case(seed))
    for seed in seeds(part, COUNT // 4):
        check_as_published(nullable(random_case(seed)))
    for seed in seeds(part, COUNT // 8):
        check_as_published(random_case(seed, long=True))


def check_as_published(case: Case) -> None:
    """AIP as published against the oracle, and against itself on another schedule."""
    case = of_sequences(case)
    for check in (engines_differ(PUBLISHED), schedules_differ(PUBLISHED)):
        if check(case):
            pytest.fail(report(case, check))


def test_most_cases_detect_something():
    found = sum(any(run(random_case(seed), make("cdp")).advances) for seed in range(60))
    assert found > 60 * 0.55
