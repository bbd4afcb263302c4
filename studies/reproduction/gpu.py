"""Three papers on events and GPUs again: the page of what was measured on a device.

    python -m studies.reproduction.gpu [ROWS]

writes the page, its tables and its pictures from the rows that ``studies.bench_gpu`` kept, by
default in ``studies/results/gpu.jsonl.xz``. Where there are none, the page says that nothing has
been measured yet, and has all sentences nevertheless.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from studies import bench_gpu as benchmark
from studies.reproduction import gpu_operators as operators, gpu_sentences as sentences, writing
from studies.reproduction.experiment import Experiment, Outcome, Table
from studies.reproduction.gpu_chapter4 import CHAPTER_4, SYSTEM, with_matching
from studies.reproduction.gpu_tables import NOTHING, Kept, Sentence, outcome
from studies.reproduction.provenance import Provenance
from studies.reproduction.verdicts import RULE
from studies.rows import RESULTS

PAGE = "gpu"
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reproduction"
ROWS = RESULTS / "gpu.jsonl.xz"
INTRODUCTION = (
    "# On a GPU, beside three papers\n\n"
    "Sentences of the thesis's chapter 6 and of its journal version (*Low latency complex event "
    "processing on parallel hardware*) on CDP on CUDA, which are the same but for the numbers of "
    "figures; and of the dissertation on operators for Siddhi (*Accelerated complex event "
    "processing with graphics processing units*), each beside a measurement. Sentences of chapter "
    "6 on the processor alone, figure 6.10 (13) among them, are judged [with that "
    "chapter](engine.md), those of chapter 4 on matching, but for CCM's, [with chapter "
    "4](matching.md). At the end stand the project's own goals.\n\n"
    "Made by `python -m studies.reproduction.gpu` from the rows that `studies.bench_gpu` keeps "
    "([how](../gpu.md#measuring-it)). Until a device has run it a table says *not yet measured on "
    "a device*; so does a sentence that needs a figure which is missing, of a part that was cut "
    "off by its time limit, say. `make gpu-fill` measures, in ten minutes at most, what is "
    "missing, and writes this page anew. Figures are elapsed time of one run, in which device and "
    "processor took turns.\n\n"
    "**The engines.** *GPU CDP, published* is the papers' algorithm, built as they describe it. "
    "*GPU CDP, graphs* is ours; *launched* is the same without CUDA graphs. *CPU CDP* finds events "
    "by indexes, where the papers' CDP scans a window: their advantage of the GPU is over a slower "
    "program. *CPU AIP* moves its automata when a terminator asks for events, not when they come "
    "([why](../decisions/0012-sequences.md)).\n\n"
    "**The times.** Events are pushed up to one terminator, or up to 64 (*64 at once*), and then "
    "evaluated. *Kernels alone* is the work of a turn on the device, of all rules that it asks, "
    "its small copies too, repeated without a wait in between; *on the device, waited for* is the "
    "same with a wait after each turn. Neither has the engine's work on the host. Each sentence is "
    "judged twice: by the published algorithm with one terminator at a time, and by ours with "
    "graphs, 64 at once.\n\n"
    "The papers' device was a GTX 460 of 1 GB beside six cores of 2010, the dissertation's a GTX "
    "480. Their figures are pictures: only what their texts say is set beside.\n\n"
    f"{RULE}"
)
THESIS, OURS = "the thesis and the journal version say", "measured with ours, 64 at once"
CHAPTER = "the thesis's chapter 4 says"
DISSERTATION, GOAL = "the dissertation says", "the project's goals say"
R10 = (
    "R10 as on [the page of chapter 6](engine.md#thesis-65-the-default-scenario): three types "
    "joined by an attribute of 50,000 values, a Sum joined too, windows of 100,000 ticks, but for "
    "the one parameter that the figure varies. All windows are filled before, by events that are "
    "no terminators. Microseconds for an event."
)
Sentences = Sequence[Sentence]
Making = Callable[[Kept], Table]


def of_figure(figure: str, parameter: str, *, default: bool = False) -> Making:
    """The table of a figure's rows; ``default``: with the default scenario's figures."""

    def make(kept: Kept) -> Table:
        table = kept.table(f"us, by {parameter}", f"detection/{figure}/")
        return kept.with_default(table) if default else table

    return make


def of_rows(heading: str, prefix: str) -> Making:
    """The table of the rows of a prefix."""
    return lambda kept: kept.table(heading, prefix)


def _figure(
    number: str,
    journal: int,
    title: str,
    said: Sentences,
    parameter: str,
    setting: str = "",
    *,
    default: bool = False,
) -> tuple[Experiment, Making]:
    name, whole = f"gpu-{number}", f"{title} (figure {number}; {journal} of the journal version)"
    making = of_figure(number, parameter, default=default)
    parts, charts = "default,detection", ("each", "last")
    return _experiment(name, whole, R10 + setting, said, THESIS, OURS, making, parts, charts)


def _experiment(
    name: str,
    title: str,
    setting: str,
    said: Sentences,
    says: str,
    other: str,
    making: Making,
    parts: str,
    charts: Sequence[str] = (),
) -> tuple[Experiment, Making]:
    judge = partial(outcome, sentences=said, charts=charts)
    made = Experiment(
        name,
        PAGE,
        title,
        setting,
        run=lambda quick: judge(making(measured_now(parts, quick))),
        says=says,
        other_way=other,
        judge=judge,
        unmeasured=NOTHING,
    )
    return made, making


def measured_now(parts: str, quick: bool) -> Kept:
    """The rows of some parts on a device now; nothing where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        run = benchmark.Run(Path(folder), benchmark.chosen(parts), quick=quick)
        rows = list(benchmark.measured(run)) if parts else []
    return Kept(tuple(row for row in rows if row.value is not None), ())


_MADE = (
    _figure("6.5", 8, "the default scenario", sentences.DEFAULT_SCENARIO, "rules"),
    _figure("6.6", 9, "length of sequences", sentences.LENGTHS, "states"),
    _figure("6.7", 10, "size of windows", sentences.WINDOWS, "window in events"),
    _figure("6.8", 11, "number of values", sentences.VALUES, "values"),
    _figure("6.9", 12, "number of aggregates", sentences.AGGREGATES, "aggregates"),
    _figure(
        "6.11",
        14,
        "number of rules",
        sentences.RULES,
        "rules",
        " Each event is relevant to a tenth of the rules. *1 GiB*: with so much of the device's "
        "memory and columns for a million events each, as the papers have.",
        default=True,
    ),
    _figure(
        "6.12",
        15,
        "number of rules, simple ones",
        sentences.SIMPLE_RULES,
        "rules",
        " Each event is relevant to a hundredth of the rules; 1,000 values.",
    ),
    _figure(
        "6.13",
        16,
        "share of sequences that an aggregate accepts",
        sentences.ACCEPTED,
        "share accepted, about",
        " Here no parameter between the states, each-within, windows of 100 events: some thousand "
        "sequences for a terminator, of which a maximum over others accepts a share. The papers do "
        "not give their rule.",
        default=True,
    ),
    _experiment(
        "gpu-filter",
        "the dissertation's filter",
        "Events of the ball among those of all sensors; made, not the recorded match. Events a "
        "second end to end, and microseconds of a batch's copies and kernels, each waited for.",
        operators.FILTER,
        DISSERTATION,
        "",
        of_rows("filter", "operators/filter, "),
        "operators",
    ),
    _experiment(
        "gpu-join",
        "the dissertation's join",
        "Ball and players at one place, over windows of the last events of both. The join is "
        "exact; the dissertation's loses pairs of events that are in one batch.",
        operators.JOIN,
        DISSERTATION,
        "",
        of_rows("join", "operators/join, "),
        "operators",
    ),
    _experiment(
        "gpu-mix",
        "the dissertation's mix of queries",
        "A plan has a filter of the ball, the join, and an average over the last 10,000 events of "
        "the ball. The GPU takes the join, the processor, on one thread, the others meanwhile; in "
        "batches of 2,048.",
        operators.MIX,
        DISSERTATION,
        "",
        of_rows("mix", "operators/mix, "),
        "operators",
    ),
    _experiment(
        "gpu-long-join",
        "a join over long windows",
        "The same join, over windows of 100,000 events. *As a rule*: as TESLA says it, by the "
        "processor's index, where balls alone look for players.",
        operators.JOIN_TARGET,
        GOAL,
        "",
        of_rows("join", "operators/join, windows of 100,000, "),
        "operators",
    ),
    _experiment(
        "gpu-targets",
        "what an index does not serve",
        "Half of all events are terminators. Each looks in a window of other events for the last "
        "whose weighted sum of two attributes equals its own (*a sum*), whose attributes are near "
        "its own (*a distance*), or of which one is in a range of a thousandth of all values and "
        "the other hardly ever small enough (*a range*). *numba scan* is a loop over the two "
        "columns, compiled for this one predicate, on one thread. Beside them R10, whose equality "
        "an index serves. Microseconds for a terminator.",
        operators.TARGETS,
        GOAL,
        "",
        of_rows("us a terminator", "targets/"),
        "targets",
    ),
    _experiment(
        "gpu-kernels",
        "kernels, each by itself",
        "One evaluation of a rule on the device: R10 of the default scenario, and the sum of two "
        "attributes over a window of a million events, for one terminator and for 64 at once. What "
        "each kernel adds to those before it, in microseconds, the bytes that it moves at least, "
        "and how much of the bandwidth of a copy on the device that comes to.",
        (),
        GOAL,
        "",
        of_rows("us", "kernels/"),
        "default,targets",
    ),
    _experiment(
        "gpu-operator-kernels",
        "kernels of the operators, each by itself",
        "One batch of the filter, the join and the aggregate on the device: each kernel's time, "
        "waited for, in microseconds, the bytes that it moves at least (threads side by side read "
        "a word of a window together), and how much of the bandwidth of a copy that comes to.",
        (),
        GOAL,
        "",
        of_rows("us", "operator kernels/"),
        "operators",
    ),
    _experiment(
        "gpu-matching",
        "matching",
        "The workloads of [matching](../matching.md), by CCM and the batched matcher. *cpu auto* "
        "is `--matcher auto` on the processor, *auto* chooses between that and the batched matcher "
        "by itself. Times of one event are microseconds.",
        operators.MATCHING_TARGETS,
        GOAL,
        "",
        of_rows("matching", "gpu matching/"),
        "matching",
    ),
    _experiment(
        "gpu-chapter-4",
        "CCM in the figures of chapter 4",
        "One event after another, by CCM on the device and by SFF and OCM on the processor of the "
        "same machine, at the ends of the figures; the other sentences of [chapter 4](matching.md) "
        "are judged there, without a device. The thesis goes on to 250,000 filters an interface, "
        "and to 100 interfaces. Milliseconds of elapsed time for an event. Until that has been run "
        "there stands what the section on matching has of the same scenarios, events pipelined.",
        CHAPTER_4,
        CHAPTER,
        "",
        lambda kept: of_rows("chapter 4", "chapter 4/")(with_matching(kept)),
        "chapter4",
    ),
    _experiment(
        "gpu-4.14",
        "the whole system (figure 4.14)",
        "Events processed a second, by how many are offered: decoding, a queue of 100 events that "
        "drops what finds it full, matching and encoding in three threads of one process, in the "
        "default scenario of chapter 4. *All queued*: up to 100 events that wait are matched "
        "together, by CCM 10.",
        SYSTEM,
        CHAPTER,
        "",
        of_rows("events/s, by events offered a second", "system/"),
        "chapter4",
    ),
)
EXPERIMENTS: tuple[Experiment, ...] = tuple(one for one, _ in _MADE)


def told(kept: Kept) -> Iterator[tuple[Experiment, Outcome]]:
    """All experiments of the page, each with what rows come to."""
    for experiment, making in _MADE:
        assert experiment.judge is not None
        yield experiment, experiment.judge(making(kept))


def main(rows: Path, made: Mapping[str, Provenance] | None = None) -> None:
    """Write the page. ``made``: of sections that were measured just now, how."""
    kept = Kept.read(rows) if rows.is_file() else Kept((), ())
    for experiment, found in told(kept):
        writing.write(experiment, found, FOLDER, (made or {}).get(experiment.stem))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
