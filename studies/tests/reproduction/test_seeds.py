"""Figures of several seeds are written with what each seed gave, and judged by that when they are
read again."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from studies.reproduction import judging, provenance, seeds, writing
from studies.reproduction.engine_joins import SWEEPS
from studies.reproduction.engine_runs import CHUNK, Span, engines, processing
from studies.reproduction.engine_threads import rules_told
from studies.reproduction.engine_workloads import Joined
from studies.reproduction.experiment import Experiment, Outcome, Table
from studies.reproduction.seeds import Mean, estimates, table_of
from studies.reproduction.verdicts import Estimate, Verdict

SEEDS = (1, 2, 3)


def table() -> Table:
    means = {
        "A [us]": [Mean.of([1.0, 2.0, 4.0]), Mean.of([2.0, 4.0, 8.0])],
        "found": [Mean.of([5.0, 6.0, 7.0]), Mean.of([5.0, 6.0, 8.0])],
    }
    return table_of("states", (2, 3), SEEDS, means, ("found",))


def test_a_table_has_the_interval_of_what_was_timed_and_what_each_seed_gave() -> None:
    made = table()
    assert made.columns == ("states", "A [us]", "A +- [us]", "found")
    assert made.by_seed("A [us]") == [(1.0, 2.0, 4.0), (2.0, 4.0, 8.0)]
    assert made.by_seed("A +- [us]") == [(), ()]
    first, last = estimates(made, "A [us]", "A")
    assert first.name == "A at 2"
    assert (last / first).printed == pytest.approx((2.0, 2.0)), "twice as much with each seed"
    of_one = table_of("states", (2,), (1,), {"A [us]": [Mean.of([1.0])]})
    assert of_one.runs is None
    assert estimates(of_one, "A [us]")[0].is_single


def test_what_each_seed_gave_is_read_with_the_table(tmp_path: Path) -> None:
    experiment = Experiment("thesis-4.7", "matching", "", "", lambda quick: Outcome(made, (), ()))
    made = table()
    writing.write(experiment, Outcome(made, (), ()), tmp_path, provenance.Provenance())
    again = judging.read(tmp_path / "thesis-4.7.csv")
    assert (again.columns, again.runs) == (made.columns, made.runs)


def test_the_column_of_half_an_interval_is_named_after_its_own() -> None:
    assert seeds.half("R1 10 % AIP out [1/s]") == "R1 10 % AIP out +- [1/s]"
    assert seeds.half("each AIP") == "each AIP +-"


def test_windows_that_are_filled_without_terminators_give_the_same_matches() -> None:
    making = Joined(policy="each", window=4_000, values=400).workload
    names, span = [*engines().values()], Span(1e6, 4_000, CHUNK)
    works = [(making, span), (partial(_without_ends, making), span)]
    filled, whole = processing(works, names, (1,))
    assert len({one.composites.value for one in (*filled, *whole)}) == 1
    assert filled[0].composites.value > 0


def _without_ends(making, rng):
    return replace(making(rng), ends=())


def test_chapter_6_has_aip_as_published_and_ours_beside_it() -> None:
    assert engines() == {"AIP": "aip-published", "CDP": "cdp", "links": "aip"}
    _, _, sweep = SWEEPS["thesis-6.5"]
    columns = sweep.run(True).table.columns
    assert [one for one in columns if one.startswith("last") and "us" in one] == [
        *("last AIP [us]", "last CDP [us]", "last links [us]")
    ]


def test_threads_without_aip_as_published_say_nothing_of_it() -> None:
    """As in a table that was measured with our links alone."""
    one = Table(("rules", "each links", "each CDP"), ((1, 0.8, 0.9), (50, 1.4, 1.5)))
    verdicts = [claim.verdict for claim in rules_told(one).claims]
    assert verdicts[:3] == [Verdict.UNMEASURED] * 3
    assert verdicts[3:] == [Verdict.ONCE_WITHIN] * 3


def test_of_one_seed_nothing_is_paired() -> None:
    assert Estimate.measured(2.0, None).seeds == ()
