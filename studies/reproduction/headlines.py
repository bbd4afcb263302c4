"""The papers' headlines on one page: what each claims, what was found here, and by which command.

    python -m studies.reproduction.headlines

Law: a headline that a page judges stands here as it stands there. One that is about several figures
is judged here, by the same rule, from their tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from matcher.formats.outputs import write_text
from studies.reproduction import judging, provenance, writing
from studies.reproduction.distribution import FULL_PAGE
from studies.reproduction.engine_claims import AIP, CDP, times, us
from studies.reproduction.experiment import Claim, Table
from studies.reproduction.gpu_tables import Grid
from studies.reproduction.registry import EXPERIMENTS
from studies.reproduction.verdicts import ABOVE, BELOW, Asked, Estimate, Verdict, judge

PAGE = judging.FOLDER / "headlines.md"
INTRODUCTION = """# The papers' headlines

What four papers claim before all else, where they claim it, what was found here, and how it stands
by [the rule](../../studies/reproduction/verdicts.py) of all pages. The link behind a verdict leads
to the section with the table, and with its commit, day, processor, load, seeds and duration. `make
paper-tables` writes this page and all others from the rows that are kept, without measuring
anything; the commands of the table measure. Minutes are those that the kept measurement took on a
machine of two cores, as far as they were kept.

| | |
| --- | --- |
| the thesis | A. Margara, *Combining expressiveness and efficiency in a complex event processing middleware* |
| the journal version | G. Cugola, A. Margara, *Low latency complex event processing on parallel hardware* |
| the dissertation | P. S. Rodrigo, *Accelerated complex event processing with graphics processing units* |
| the paper on hybrid parallelism | M. Yankovitch, I. Kolchinsky, A. Schuster, *Scalable complex event processing: a hybrid parallelization approach* |"""  # noqa: E501
SWEPT = [f"thesis-5.{number}" for number in (*range(13, 24), 25, 26, 27)]
"""Figures with times of AIP and CDP."""
MAJORITY = 0.9
"""A vast majority: more than so many."""
REPRODUCE = "rexmq reproduce"
GPU = "make gpu"


@dataclass(frozen=True, slots=True)
class Headline:
    """A claim, where it stands, and the sentence of a section by which it is judged.

    ``of``: the section, and after a slash the first words of the sentence; or what judges it here.
    """

    says: str
    where: str
    of: str | Callable[[], Claim]
    command: str = ""


def vast_majority() -> Claim:
    """At how many places of chapter 5's figures CDP takes less time than AIP."""
    asked: list[Asked] = []
    for name in SWEPT:
        table = judging.read(judging.FOLDER / f"{name}.csv")
        if us(AIP) in table.columns:
            pairs = zip(times(table, AIP), times(table, CDP), strict=True)
            asked += [(aip / cdp, ABOVE) for aip, cdp in pairs]
    verdicts = [judge([pair]) for pair in asked]
    so, not_so = (verdicts.count(one) for one in (Verdict.HOLDS, Verdict.FAILS))
    near = sum(one.value > 1 for one, _ in asked)
    share = Estimate(
        *(near / len(asked), so / len(asked), 1 - not_so / len(asked)), name="share of the places"
    )
    told = (
        f"of {len(asked)} places of figures 5.13 to 5.27 CDP is ahead at {so}, behind at {not_so}; "
        f"at {len(asked) - so - not_so} it cannot be told, though its mean is the lower at "
        f"{near - so} of these"
    )
    return Claim.judged("", told, [(share, (MAJORITY, math.inf))])


def coprocessors() -> Claim:
    """The device beside our engine on the processor, over a predicate that no index serves."""
    table = judging.read(judging.FOLDER / "gpu-targets.csv")
    grid = Grid(_texts(table))
    ways = (("a sum, window of 1,000,000", ABOVE), ("a sum, window of 1,000", BELOW))
    asked = [
        (grid.at("CPU CDP", place) / grid.at("GPU CDP, graphs", place), range_)
        for place, range_ in ways
    ]
    told = "; ".join(
        f"{place}: the device takes {1 / one.value:.3g} of the processor's time"
        for (place, _), (one, _) in zip(ways, asked, strict=True)
    )
    joined = "joins by an attribute, which an index serves, are faster on the processor (gpu-6.5)"
    return Claim.judged("", f"{told}; {joined}", asked)


def _texts(table: Table) -> Table:
    return Table(tuple(map(str, table.columns)), table.rows)


FULL = "--size full --rows study.jsonl"
HEADLINES: Mapping[str, tuple[Headline, ...]] = {
    "The thesis, matching (chapter 4)": (
        Headline("OCM is 4.92 times as fast as SFF, on six cores", "Table 4.2",
                 "thesis-table-4.2/OCM on all cores"),
        Headline("OCM scales linearly with the cores", "4.5.4",
                 "thesis-table-4.2/OCM scales linearly"),
        Headline("CCM, on a GPU, is 7.45 times as fast as SFF", "Table 4.2",
                 "gpu-chapter-4/CCM is 7.45", f"{GPU} PARTS=chapter4"),
        Headline("its speedup grows with the scale of the problem, to 13 times", "4.5.4",
                 "gpu-chapter-4/CCM's advantage goes on growing", f"{GPU} PARTS=chapter4"),
        Headline("and it leaves the processor free", "4.5.4",
                 "gpu-4.14/for CCM leaves", f"{GPU} PARTS=chapter4"),
    ),
    "The thesis, detection (chapter 5)": (
        Headline("T-Rex outperforms Esper in all scenarios", "5.8.1, 5.9",
                 "thesis-5.11/T-Rex outperforms"),
        Headline("CDP performs better than AIP in the vast majority of scenarios", "5.1, 5.9",
                 vast_majority, f"{REPRODUCE} {SWEPT[0]} ... {SWEPT[-1]}"),
        Headline("R1 with many terminators is the only scenario in which AIP is ahead", "5.8.1",
                 "thesis-5.11/R1 with many"),
        Headline("hundreds of thousands of composite events a second", "5.8.1",
                 "thesis-5.11/hundreds of thousands"),
        Headline("AIP never drops events with 10 % Smoke", "5.8.1", "thesis-5.12/AIP never drops"),
        Headline("CDP drops events with 90 %, but its curve continues to increase", "5.8.1",
                 "thesis-5.12/but its curve"),
    ),
    "The thesis (chapter 6) and the journal version, on a GPU": (
        Headline("more than 30 times as fast as CDP on the processor", "6.4.1; figure 8",
                 "gpu-6.5/the GPU is more than 30", f"{GPU} PARTS=default"),
        Headline("close to 100 times as fast as AIP over large windows", "figure 6.7; 10",
                 "gpu-6.7/with 250,000 events", f"{GPU} PARTS=detection"),
        Headline("speedups of more than 40 for complex rules", "conclusions",
                 "gpu-6.7/speedups of more than 40", f"{GPU} PARTS=detection"),
        Headline("many simple rules are faster on the processor", "abstract; figure 6.12; 15",
                 "gpu-6.12/from 50 rules on", f"{GPU} PARTS=detection"),
        Headline("GPUs should be coprocessors, for the most complex rules", "conclusions",
                 coprocessors, f"{GPU} PARTS=targets"),
    ),
    "The thesis, networks (chapter 7)": (
        Headline("Centralized generates significantly more traffic than the others", "figure 7.9",
                 "thesis-7.9-full/Centralized generates", f"{REPRODUCE} thesis-7.9 {FULL}"),
        Headline("delays are lower with multiple trees in all tests", "7.4, final",
                 "thesis-7.4-full/In all tests", f"{REPRODUCE} thesis-7.4 {FULL}"),
        Headline("delays are almost constant in every test but those of the topology",
                 "7.4, final", "thesis-7.4-full/Delays remain", f"{REPRODUCE} thesis-7.4 {FULL}"),
        Headline("push-pull gives limited benefits in traffic", "7.4, final",
                 "thesis-7.4-full/In most tests", f"{REPRODUCE} thesis-7.4 {FULL}"),
        Headline("while it raises delays", "7.4, final", "thesis-7.4-full/while it raises",
                 f"{REPRODUCE} thesis-7.4 {FULL}"),
        Headline("processing contributes only marginally to delays", "7.4, final",
                 "thesis-7.9/Processing contributes", f"{REPRODUCE} thesis-7.9 --size whole"),
    ),
    "The dissertation": (
        Headline("joins are two times as fast on a GPU", "abstract, 5.4",
                 "gpu-join/with one query", f"{GPU} PARTS=operators"),
        Headline("at least ten times the rate of one thread, however many plans", "5.5",
                 "gpu-mix/GPUs give at least 10", f"{GPU} PARTS=operators"),
        Headline("filters gain nothing substantial", "5.3",
                 "gpu-filter/there is no substantial", f"{GPU} PARTS=operators"),
    ),
    "The paper on hybrid parallelism": (
        Headline("up to two orders of magnitude ahead of other methods", "abstract",
                 "hybrid-6b/up to two orders"),
        Headline("half an order of magnitude to three over one core, in most scenarios", "VII-B",
                 "hybrid-6a/a speed-up of half"),
        Headline("less latency than by cutting the stream into runs", "VII-B",
                 "hybrid-7b/matches are detected"),
        Headline("fully dynamic allocation improves the throughput at every value", "VII-B",
                 "hybrid-9b/fully dynamic"),
        Headline("fusion gains throughput in most cases", "VII-B", "hybrid-10b/fusion gains"),
    ),
}  # fmt: skip


def written() -> str:
    """The page."""
    parts = [INTRODUCTION]
    judged = list(_judged())
    counts = [(one, sum(row[-1] == one for row in judged)) for one in Verdict]
    told = ", ".join(f"{count} *{one}*" for one, count in counts if count)
    parts.append(f"**The count** of the headlines: {told}, of {len(judged)}.")
    rows = iter(judged)
    columns = ("headline", "there", "here", "decided by", "command", "minutes", "verdict")
    for title, headlines in HEADLINES.items():
        lines = [" | ".join(next(rows)) for _ in headlines]
        body = "\n".join(f"| {line} |" for line in lines)
        rule = " | ".join(["---"] * len(columns))
        parts.append(f"## {title}\n\n| {' | '.join(columns)} |\n| {rule} |\n{body}")
    return "\n\n".join(parts) + "\n"


def _judged() -> Iterator[tuple[str, ...]]:
    """The row of each headline."""
    made = provenance.read(judging.FOLDER)
    pages = {
        page.stem: writing.sections_of(page.read_text(encoding="utf-8"))
        for page in judging.FOLDER.glob("*.md")
        if page != PAGE
    }
    for headline in (one for group in HEADLINES.values() for one in group):
        if isinstance(headline.of, str):
            stem, _, begin = headline.of.partition("/")
            cells = _row_of(pages, stem, begin)
            command = headline.command or f"{REPRODUCE} {stem}"
            minutes = made[stem].duration if stem in made else provenance.UNKNOWN
        else:
            claim = headline.of()
            cells = [claim.measured, claim.decided, claim.verdict]
            command, minutes = headline.command, provenance.UNKNOWN
        yield headline.says, headline.where, *cells[:2], f"`{command}`", minutes, cells[2]


def _row_of(pages: Mapping[str, Mapping[str, str]], stem: str, begin: str) -> list[str]:
    """What a section says of a sentence, with a link to it."""
    name = stem.removesuffix("-full")
    experiment = EXPERIMENTS[name]
    page = FULL_PAGE if stem != name else experiment.page
    section = pages[page][name]
    line = next(one for one in section.splitlines() if one.startswith(f"| {begin}"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    heading = section.splitlines()[0].removeprefix("## ")
    anchor = "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
    return [f"{cells[1]} ([{stem}]({page}.md#{anchor}))", *cells[2:4]]


write = partial(write_text, PAGE)


if __name__ == "__main__":
    write(written())
