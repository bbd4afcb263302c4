"""Hybrid parallelism gives what the oracle gives, whatever its threads do
(rules.engine.chains.hybrid).

As in ``test_engines`` each seed is a case of its own, and REXMQ_CASES says how many there are.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace

import pytest
from agreement import row
from cases import Case, nullable, random_case, run, shrink
from chain_cases import chain_case, decided_case, of_chains
from engines import make
from iteration_cases import iteration_case
from sequence_cases import sequence_case

from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.pipeline import Crew

COUNT = int(os.environ.get("REXMQ_CASES", "48"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))
PARTS = 4


@contextmanager
def crews() -> Iterator[Callable[[int], Crew]]:
    """A crew for each seed: 1 to 8 threads, small chunks and batches, delays at random."""
    with ThreadPoolExecutor(8) as pool:

        def at_once(work: Callable[[int], None], workers: Iterable[int]) -> Iterable[None]:
            futures = [pool.submit(work, worker) for worker in workers]
            wait(futures)
            return [one.result() for one in futures]

        def made(seed: int) -> Crew:
            return Crew(
                threads=1 + seed % 8,
                at_once=at_once,
                capacity=(2, 4, 64)[seed % 3],
                batch=(1, 3, 32)[seed // 3 % 3],
                seed=seed,
                few=0,
                slice=(4, 16, 2048)[seed // 5 % 3],
            )

        yield made


def outcome(case: Case, crew: Crew) -> list[list[tuple[object, ...]]]:
    return [[*map(row, found)] for found in run(case, HybridEngine(crew)).advances]


def check(case: Case, crew: Crew) -> int:
    """A case against the oracle, as scheduled and at once: how many events are detected."""

    def fails(smaller: Case) -> bool:
        try:
            expected = [[*map(row, found)] for found in run(smaller, make("naive")).advances]
            return outcome(smaller, crew) != expected
        except (ValueError, IndexError, KeyError):
            return False  # what is left is no case any more

    count = 0
    for one in (case, case.at_once()) if case.is_orderly else (case,):
        expected = [[*map(row, found)] for found in run(one, make("naive")).advances]
        if outcome(one, crew) != expected:
            smallest = shrink(one, fails)
            pytest.fail(f"{crew}\n{smallest}\n{outcome(smallest, crew)}")
        count += sum(map(len, expected))
    return count


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_chains_agree_with_the_oracle_on_any_number_of_threads(part: int):
    found = []
    with crews() as crew:
        for seed in range(FIRST + part * COUNT // PARTS, FIRST + (part + 1) * COUNT // PARTS):
            found.append(check(chain_case(seed), crew(seed)))
    assert sum(map(bool, found)) > len(found) * 0.4


@pytest.mark.timeout(3600)
def test_rules_of_all_kinds_agree_with_the_oracle():
    """Those of the other engines' cases that are chains: with nulls, late events, other rules."""
    with crews() as crew:
        for seed in range(FIRST, FIRST + COUNT // 2):
            for case in (random_case(seed), sequence_case(seed), nullable(random_case(seed))):
                check(of_chains(case), crew(seed))


@pytest.mark.timeout(3600)
def test_runs_negations_and_aggregates_of_chains_agree_with_the_oracle():
    found = []
    with crews() as crew:
        for seed in range(FIRST, FIRST + COUNT):
            found.append(check(of_chains(decided_case(seed)), crew(seed)))
            check(of_chains(iteration_case(seed)), crew(seed))
    assert sum(map(bool, found)) > len(found) * 0.3


@pytest.mark.parametrize("roles", ["static", "state"])
@pytest.mark.timeout(3600)
def test_roles_change_nothing(roles: str):
    """Nor does it that agents are fused where threads are few, nor that threads are shared out by
    what there is to do.
    """
    with crews() as crew:
        for seed in range(FIRST, FIRST + COUNT // 6):
            threads = 2 + seed % 7
            made = replace(crew(seed), threads=threads, roles=roles, weighs=seed % 2 == 0)
            check(chain_case(seed), made)
