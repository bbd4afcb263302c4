"""The simulation study of the thesis's chapter 7 again: figures 7.9 to 7.18, simulated.

What is measured is what brokers send one another, everything included, and how long it takes from
the last primitive event of a composite one to each of its sinks, after the warm-up. Processing
takes no time, as in the thesis, whose processing times were lost in the links' delays.
"""

from __future__ import annotations

from functools import lru_cache

from benchmarks.reproduction.distribution_plots import DEFAULT, DEFAULTS, PLOTS
from benchmarks.reproduction.distribution_runs import QUICK, THESIS, WHOLE, Size, Study
from benchmarks.reproduction.experiment import Experiment, Gathered, Outcome

PAGE = "distribution-study"
INTRODUCTION = f"""# The simulation study of chapter 7, again

What the thesis found when it compared its deployment strategies in a simulator (7.4), beside what
this project's simulator finds, for every strategy that is registered. How rules are divided is
told in [distribution.md](distribution.md).

The default scenario of the thesis has 20 brokers with 5 neighbours each on average, links of 5 ms
on average, 120 types of primitive events with rates from 0.001 to 10 events a second (exponential),
100 rules of 3 events with `last` and windows of 1 minute, and 10 subscriptions a broker; it was
measured over more than a day. Here events are published for
{WHOLE.warm_up_s + WHOLE.measured_s:.0f} seconds, of which the first {WHOLE.warm_up_s:.0f} are not
measured, for {WHOLE.seeds} seeds of each strategy at each point. Figure 7.9 has
{DEFAULT.brokers} brokers; the variations have a default of {WHOLE.brokers} brokers. All have as
many types and rules for each broker as the thesis, so {6 * WHOLE.brokers} types and
{5 * WHOLE.brokers} rules in the variations. The horizon is as long as a window, so what takes part
in few matches weighs less than in the long run, and the rarest types hardly occur.

A figure is a mean over the seeds; ± is half the width of its 95 % interval (Student's t, which is
wide for two). Traffic is all that brokers send one another: events, requests, marks,
acknowledgements, 1 kB being 1,000 bytes. Results are exact and ordered (`ordering = "watermark"`):
sources promise the time of their next event, so results wait until marks have travelled, but for
no clock. The thesis's systems, which deliver as things arrive, send no such marks: every scenario
is run by arrival, too (`ordering = "arrival"`), and the columns "exactness" tell how much later
results in order come and how much more is sent, which is what exactness costs; "both ways" counts
the seeds that this is the mean of. Figure 7.9 has both. What the thesis says is judged both ways.
`rexmq reproduce thesis-7.9 ... thesis-7.18` measures anew; `rexmq simulate` runs any other scenario
([scenarios](../scenarios.md)). A figure without a section here has not been run yet; those of the
thesis's size are on [a page of their own](distribution-study-full.md), as far as they have been.

**Going on with the study.** `rexmq reproduce thesis-7.9 ... thesis-7.18 --size full --rows ROWS`
runs all figures with the thesis's default scenario: {THESIS.brokers} brokers, {6 * THESIS.brokers}
types, {5 * THESIS.brokers} rules, {THESIS.seeds} seeds, {THESIS.measured_s:.0f} seconds after
{THESIS.warm_up_s:.0f} of warm-up. `thesis-7.9-long` is the default scenario until the rarest type
has occurred 100 times. Each run becomes a line of ROWS as it ends: its scenario's hash and
settings, strategy, seed, figures, CPU time, and a digest of what the code sends in a small run with
all that the workloads here are made of. As long as that is the same the row counts, and the run is
not made again. How many are missing, and about how many processor hours they take, is said before
the first begins. Whoever interrupts it loses the runs that are under way. `--runs N` makes N of
them at most, and what is written says how many seeds there are of each strategy.

The rows of this page are in [benchmarks/results/study.jsonl](../../benchmarks/results/study.jsonl);
`--size whole --rows` with that file goes on with them.

What that takes is about this much CPU time with
[compiled protocols](../decisions/0018-compiled-core.md): measured for a run of 60 seconds of the
default scenario with 20 brokers, for one part in 29 of `thesis-7.9-long`, and for the rest in
proportion. Interpreted it is two to three times as much.

| strategy | a run of the default scenario | all runs of the figures | `thesis-7.9-long` |
| --- | --- | --- | --- |
| `centralized` | 3.2 s | 330: 0.8 h | 29: 2.5 h |
| `distributed-st` | 4.4 s | 330: 1 h | 29: 2.5 h |
| `distributed-mt` | 18 s | 330: 2 h | 29: 13 h |
| `push-pull-st` | 7.9 s | 330: 1.5 h | 29: 3 h |
| `push-pull-mt` | 25 s | 330: 3 h | 29: 15 h |
| `adaptive` | 6.1 s | 330: 1.5 h | 29: 2.2 h |"""


FULL_PAGE = f"{PAGE}-full"
FULL_INTRODUCTION = f"""# The simulation study of chapter 7, at the thesis's size

The figures of [the study](distribution-study.md) with the thesis's default scenario and
{THESIS.seeds} seeds: {THESIS.brokers} brokers, {6 * THESIS.brokers} types,
{5 * THESIS.brokers} rules. Events are published for {THESIS.warm_up_s + THESIS.measured_s:.0f}
seconds, of which the first {THESIS.warm_up_s:.0f} are not measured. A table says how many seeds
each strategy has by now at each of its points, results in order; "exactness" is of those that have
been run by arrival, too, which "both ways" counts.
`rexmq reproduce thesis-7.9 ... thesis-7.18 --size full --rows ROWS` goes on with it."""


@lru_cache
def study_of(size: Size) -> Study:
    """One for all figures, which share runs."""
    return Study(size)


def figure(
    name: str, title: str, setting: str, gathered: Gathered, says: str = "the thesis says"
) -> Experiment:
    """An experiment of this page that is made of such runs. ``says``: as of Experiment."""

    def run(quick: bool) -> Outcome:
        study = study_of(QUICK if quick else WHOLE)
        study.run(gathered.settings(study.size))
        return gathered.outcome(study)

    other = "by arrival, as in the thesis"
    return Experiment(name, PAGE, title, setting, run, gathered, says=says, other_way=other)


TITLES = {
    "7.10": ("Number of composite events", "As many rules as composite event types."),
    "7.11": ("Subscriptions per broker", "Each for another composite event type."),
    "7.12": ("Selection policy", "The share of `each` in place of `last`."),
    "7.13": (
        "Size of windows",
        "From each event of a rule to the one before. Measured for 120 seconds, as the longest of"
        " them takes.",
    ),
    "7.14": ("Filtering of primitive events", "Rules take events of one value of so many."),
    "7.15": (
        "Number of brokers",
        "6 types and 5 rules more with each broker. Memory is what the simulating process grew by"
        " at most during the run, over the number of brokers: what the simulator itself needs is in"
        " it, and a broker with more to do than others does not show.",
    ),
    "7.16": (
        "Number of brokers, with locality",
        "Classes of ten rules that share no type with others; the types of a class are published"
        " by the fifth of all brokers nearest to its centre. Sinks are anywhere, as in the thesis.",
    ),
    "7.17": ("Number of brokers, with filtering", "Nine tenths of all events match no rule."),
    "7.18": ("Publication rate", "The most frequent type keeps 10 events a second."),
}
EXPERIMENTS = (
    figure(
        "thesis-7.9",
        "Default scenario",
        "A row a strategy, exact and by arrival.",
        DEFAULTS,
    ),
    *(
        figure(f"thesis-{number}", title, setting, PLOTS[number])
        for number, (title, setting) in TITLES.items()
    ),
)
