"""What papers say of GPUs holds where the rows of a device bear it out, and only there."""

import json
from pathlib import Path

import pytest

from benchmarks.report import Row
from studies.bench_gpu import keep
from studies.device.streams import AIP, CDP, GRAPHS, PUBLISHED, PUBLISHED_1G
from studies.reproduction import (
    gpu,
    gpu_operators as operators,
    gpu_sentences as sentences,
    judging,
    methods,
    writing,
)
from studies.reproduction.gpu_chapter4 import CHAPTER_4, SYSTEM
from studies.reproduction.gpu_tables import NOT_YET, NOTHING, Kept, Sentence, outcome
from studies.reproduction.registry import EXPERIMENTS
from studies.reproduction.verdicts import Verdict

SO, NOT_SO, UNMEASURED = Verdict.ONCE_WITHIN, Verdict.ONCE_OUTSIDE, Verdict.UNMEASURED
"""What one run says; it has no interval that could tell."""
Figures = dict[str, dict[str, float]]
"""Microseconds by line and place."""


def rows_of(figure: str, figures: Figures) -> list[Row]:
    return [
        Row(f"detection/{figure}/{place}/{line}", value, "us")
        for line, places in figures.items()
        for place, value in places.items()
    ]


def verdicts(said: tuple[Sentence, ...], rows: list[Row], figure: str) -> list[Verdict]:
    kept = Kept(rows, ())
    table = kept.with_default(kept.table("", f"detection/{figure}/"))
    return [claim.verdict for claim in outcome(table, said).claims]


def both(line: str, **places: float) -> Figures:
    """The same figures under either policy; places without their leading underscore."""
    return {
        f"{policy} {line}": {place[1:]: value for place, value in places.items()}
        for policy in sentences.POLICIES
    }


def test_nothing_is_said_of_what_no_device_has_run() -> None:
    for experiment in gpu.EXPERIMENTS:
        assert experiment.judge is not None
        found = experiment.judge(NOTHING)
        assert {claim.verdict for claim in found.claims} <= {UNMEASURED}
        assert (found.table, found.charts) == (NOTHING, ())
        assert "needs" not in writing.section(experiment, found, "a machine", drawn=False)
        assert "measured on a machine" not in writing.section(experiment, found, "a machine", False)


def test_the_default_scenario() -> None:
    def judged(cpu: float, each: float, last: float) -> list[Verdict]:
        figures = both(CDP, _1=cpu) | {f"each {PUBLISHED}": {"1": each}}
        figures[f"last {PUBLISHED}"] = {"1": last}
        return verdicts(sentences.DEFAULT_SCENARIO, rows_of("6.5", figures), "6.5")

    assert judged(100.0, 2.0, 2.1) == [SO, SO, SO]
    assert judged(100.0, 3.4, 4.1) == [NOT_SO, NOT_SO, SO]
    assert judged(1.0, 20.0, 80.0) == [NOT_SO, NOT_SO, NOT_SO]


def test_ccm_in_chapter_4() -> None:
    def judged(sff: float, ccm: float) -> list[Verdict]:
        places = ("default", "Zipf names", "9 attributes", "1 attributes", "9 constraints")
        places += ("250 filters", "100,000 filters", "40 interfaces", "1,000 names")
        places += ("0 numeric [%]", "100 numeric [%]", "1 at once", "10 at once", "100 at once")
        times = {methods.SFF: sff, "OCM": 0.5 * ccm, methods.OCM_1: sff, methods.CCM: ccm}
        times |= {methods.ORDERED: ccm, methods.ONCE: 3 * ccm, methods.MEMSET: 1.3 * ccm}
        rows = [
            Row(f"chapter 4/{place}/{method}{what}", value, "ms")
            for place in places
            for method, value in times.items()
            for what in ("", ", deployment")
        ]
        table = Kept(rows, ()).table("", "chapter 4/")
        return [claim.verdict for claim in outcome(table, CHAPTER_4).claims]

    fast, slow = judged(20.0, 1.0), judged(1.0, 2.0)
    assert fast[0] is SO
    assert slow[0] is NOT_SO
    assert fast[9:13] == [NOT_SO, SO, SO, SO]
    assert slow[9:13] == [NOT_SO, NOT_SO, SO, NOT_SO]
    assert fast.count(UNMEASURED) == 4  # of memory, and of few filters and constraints


def test_ccm_in_the_whole_system() -> None:
    def judged(most: float) -> list[Verdict]:
        rows = [
            Row(f"system/{rate}/{methods.CCM}", min(rate, most), "1/s") for rate in (1_000, 20_000)
        ]
        table = Kept(rows, ()).table("", "system/")
        return [claim.verdict for claim in outcome(table, SYSTEM).claims]

    assert judged(9_000.0) == [SO, UNMEASURED, UNMEASURED]
    assert judged(100.0)[0] is NOT_SO
    assert judged(90_000.0)[0] is NOT_SO


def test_windows() -> None:
    places = {"_1000": 17.0, "_4000": 17.2, "_10000": 20.0, "_100000": 40.0, "_250000": 60.0}
    grown = {place: 2.0 * us for place, us in places.items()}
    cdp = {"_1000": 5.0, "_4000": 40.0, "_10000": 90.0, "_100000": 900.0, "_250000": 2_100.0}
    aip = {place: 3.0 * us for place, us in cdp.items()}
    rows = rows_of("6.7", both(CDP, **cdp) | both(AIP, **aip) | both(PUBLISHED, **places))
    found = verdicts(sentences.WINDOWS, rows, "6.7")
    assert found[:5] == [SO, SO, NOT_SO, SO, SO]
    assert found[5:] == [SO, SO, SO, SO, SO]
    slow = rows_of("6.7", both(CDP, **cdp) | both(AIP, **aip) | both(PUBLISHED, **grown))
    assert verdicts(sentences.WINDOWS, slow, "6.7")[0] is NOT_SO
    never = rows_of("6.7", both(CDP, **cdp) | both(PUBLISHED, **dict.fromkeys(cdp, 10000.0)))
    assert verdicts(sentences.WINDOWS, never, "6.7")[3] is NOT_SO


def test_a_sentence_whose_figures_are_not_all_there_is_not_judged() -> None:
    figures = both(CDP, _50=1.0, _100=1.0, _250=1.0) | both(PUBLISHED, _50=9.0, _100=9.0)
    assert verdicts(sentences.SIMPLE_RULES, rows_of("6.12", figures), "6.12")[0] is UNMEASURED
    whole = figures | both(PUBLISHED, _50=9.0, _100=9.0, _250=30.0)
    assert verdicts(sentences.SIMPLE_RULES, rows_of("6.12", whole), "6.12") == [SO, SO]


def test_rules_stand_beside_the_default_scenario() -> None:
    places = {"_10": 10.0, "_20": 20.0, "_50": 50.0}
    default = rows_of("6.5", both(AIP, _1=100.0) | both(PUBLISHED, _1=2.0))
    figures = both(AIP, _10=100.0, _20=200.0, _50=500.0) | both(PUBLISHED, **places)
    small = both(PUBLISHED_1G, _10=10.0, _20=100.0, _50=400.0)
    said = verdicts(sentences.RULES, default + rows_of("6.11", figures | small), "6.11")
    assert said == [SO, SO, SO, SO]
    alone = verdicts(sentences.RULES, rows_of("6.11", figures | small), "6.11")
    assert alone == [SO, UNMEASURED, SO, SO]


def test_ours_is_judged_apart() -> None:
    figures = both(CDP, _1=100.0) | both(f"{CDP}, 64 at once", _1=10.0)
    figures |= both(PUBLISHED, _1=50.0) | both(f"{GRAPHS}, 64 at once", _1=0.1)
    kept = Kept(rows_of("6.5", figures), ())
    claim, *_ = outcome(kept.table("", "detection/6.5/"), sentences.DEFAULT_SCENARIO).claims
    assert claim.verdict is NOT_SO
    assert claim.otherwise is not None
    assert claim.otherwise.verdict is SO


def operators_rows(gpu_rate: float, times: tuple[float, float, float]) -> list[Row]:
    name = f"operators/filter, {operators.PUBLISHED_BATCH}, "
    copies = [Row(name + what, us, "us") for what, us in zip(operators.SHARES, times, strict=True)]
    queries = [
        Row(f"operators/filter, {count} queries, gpu end to end", rate, "events/s", "cpu", 1e6)
        for count, rate in ((1, 5e5), (10, 2e6))
    ]
    return [
        Row(name + "cpu", 1e6, "events/s"),
        Row(name + "gpu end to end", gpu_rate, "events/s", "cpu", 1e6),
        *copies,
        *queries,
    ]


def test_operators() -> None:
    kept = Kept(operators_rows(1.4e6, (90.0, 40.0, 5.0)), ())
    table = kept.table("filter", "operators/filter, ")
    by_name = {one.published: one for one in outcome(table, operators.FILTER).claims}
    said = {name[:28]: claim.verdict for name, claim in by_name.items()}
    assert said["with few queries the process"] is SO
    assert said["with more queries the GPU ov"] is SO
    assert said["it keeps improving with the "] is SO
    assert said["there is no substantial gain"] is NOT_SO
    assert said["batches larger than 2,048 br"] is UNMEASURED
    assert said["the GPU takes about 10 % of "] is SO


def test_a_mix_of_queries() -> None:
    def judged(advantage: float, share: float) -> list[Verdict]:
        rows = []
        for plans in (1, 5):
            name, rate = f"operators/mix, {plans} plans", 1e5 / plans
            rows.append(Row(f"{name}, gpu end to end", advantage * rate, "events/s", "cpu", rate))
            rows.append(Row(f"{name}, joins on the processor", share, "%"))
        table = Kept(rows, ()).table("mix", "operators/mix, ")
        return [claim.verdict for claim in outcome(table, operators.MIX).claims]

    assert judged(20.0, 80.0) == [SO, UNMEASURED, UNMEASURED, UNMEASURED, SO]
    assert judged(2.0, 10.0) == [NOT_SO, UNMEASURED, UNMEASURED, UNMEASURED, NOT_SO]


@pytest.mark.parametrize(("us", "verdict"), [(10.0, SO), (28.0, SO), (90.0, NOT_SO)])
def test_a_goal_is_met_beyond_the_interval(us: float, verdict: Verdict) -> None:
    rows = [Row(f"targets/{operators.A_SUM}/{GRAPHS}", us, "us a terminator")]
    table = Kept(rows, ()).table("us", "targets/")
    assert outcome(table, operators.TARGETS).claims[0].verdict is verdict


def test_rows_of_quick_runs_and_of_failures_are_no_figures(tmp_path: Path) -> None:
    file = tmp_path / "gpu.jsonl"
    keep(file, "default", "a device", Row("detection/6.5/1/each CPU CDP", 9.0, "us"), quick=False)
    keep(file, "default", "a device", Row("detection/6.5/1/each CPU CDP", 3.0, "us"), quick=False)
    keep(file, "default", "a device", Row("detection/6.5/1/each CPU CDP", 1.0, "us"), quick=True)
    keep(file, "default", "a device", Row("detection/6.5/1/last CPU CDP", None, ""), quick=False)
    kept = Kept.read(file)
    assert [row.value for row in kept.rows] == [3.0]
    cores = json.loads(file.read_text().splitlines()[0])["cores"]
    assert kept.devices == (f"a device beside {cores} cores",)
    table = kept.table("us", "detection/6.5/")
    assert (table.columns, table.rows) == (("us", "1"), (("each CPU CDP", 3.0),))


def test_the_page_has_every_sentence_and_says_what_was_not_measured() -> None:
    sections = writing.sections_of((judging.FOLDER / "gpu.md").read_text())
    for experiment in gpu.EXPERIMENTS:
        assert EXPERIMENTS[experiment.name] is experiment
        assert experiment.judge is not None
        file = judging.FOLDER / f"{experiment.stem}.csv"
        table = judging.read(file) if file.is_file() else NOTHING
        section = sections[experiment.name]
        for claim in experiment.judge(table).claims:
            cells = (claim.published, claim.measured, claim.decided, claim.verdict)
            assert f"| {' | '.join(cells)} |" in section
        assert file.is_file() != (f"\n| {NOT_YET} |\n" in section)
