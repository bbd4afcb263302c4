"""The simulation study of the thesis's chapter 7 again: figures 7.9 to 7.18, simulated.

What is measured is what brokers send one another, everything included, and how long it takes from
the last primitive event of a composite one to each of its sinks, after the warm-up. Processing
takes no time here. The thesis's simulator measures what its nodes take (7.4), and finds it marginal
beside the links' delays; that is to be seen with ``processing = "measured"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from studies.reproduction.distribution_plots import DEFAULT, DEFAULTS, FINAL, PLOTS, Plot
from studies.reproduction.distribution_runs import (
    QUICK,
    THESIS,
    WHOLE,
    Settings,
    Size,
    Study,
)
from studies.reproduction.experiment import Experiment, Gathered, Outcome
from studies.reproduction.verdicts import RULE

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
acknowledgements, 1 kB being 1,000 bytes. `rexmq reproduce thesis-7.9 ... thesis-7.18` measures
anew; `rexmq simulate` runs any other scenario ([scenarios](../scenarios.md)). Figures of the
thesis's size are on [a page of their own](distribution-study-full.md), as far as they have been
run. Everything on both pages is simulated; five live brokers stand
[beside it](distribution.md#live-brokers).

**In order, and by arrival.** Results are exact and ordered (`ordering = "watermark"`): sources
promise the time of their next event, so results wait until marks have travelled, but for no clock.
The thesis's systems deliver as things arrive, and send no such marks. So every scenario is run by
arrival, too (`ordering = "arrival"`), and each sentence is judged both ways. The columns
"exactness" tell how much later results in order come and how much more is sent; "both ways" counts
the seeds that this is the mean of.

{RULE}

Strategies are compared seed by seed, since all get the same networks, events, rules and
subscriptions of a seed. What is simulated is counted; of several ratios the figures told are the
middles of their intervals.
`adaptive` is not the thesis's, and no sentence of the thesis is judged by it
([what it does, and what that costs](../decisions/0015-adaptive-ways.md)).

**What is not as in the thesis.**

- Processors take no time but in the rows of 7.9 that say so, where they take what was measured of
  live brokers. The thesis's simulator adds what its nodes take everywhere, and concludes that it is
  marginal.
- A broker has 5 neighbours on average in networks of any size. The thesis adds connections as nodes
  grow, to limit hops. So in 7.15 to 7.17 the mean way grows from 1.0 links among 5 brokers to 2.6
  among 50, and delays with it.
- Rates are spread evenly over their logarithms. In 7.18 the average falls with the least, from 2.5
  to 0.9 events a second, where the thesis says that it hardly changes; so the figure shows less
  input more than rarer types.
- Push and pull: a rule has one master at all nodes, or none, chosen at the root by a model of costs
  (of 30 rules in a small network 3 keep one). In the thesis each node chooses for itself, by the
  lowest rate among its own. What is said of pulling is said of another mechanism.
- Decisions are central: the root counts rates, pauses the tree and plans. In the thesis each node
  decides from what its neighbours tell it. Why it is otherwise here:
  [distribution.md](distribution.md#where-decisions-are-made).
- Ten seeds of half a minute each, where the thesis has ten of more than a day, and intervals below
  1 %.

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

The rows of this page are in [studies/results/study.jsonl.xz](../../studies/results/study.jsonl.xz);
`--size whole --rows` with that file, unpacked by `unxz`, goes on with them. They were measured on
28 November 2026, those of the page of the thesis's size on 25 November; what brokers send has
changed since, so that a run of today's code is another run.

What that takes is two to three times this much CPU time: measured with protocols that were
[compiled to C](../decisions/0018-not-compiled.md) then, for a run of 60 seconds of the default
scenario with 20 brokers, for one part in 29 of `thesis-7.9-long`, and for the rest in proportion.

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
`rexmq reproduce thesis-7.9 ... thesis-7.18 --size full --rows ROWS` goes on with it.

What is not as in the thesis, and by which rule sentences are judged, stands at the head of
[the study](distribution-study.md)."""


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
        study.run(_quick(gathered) if quick else gathered.settings(study.size))
        return gathered.outcome(study)

    other = "by arrival, as in the thesis"
    return Experiment(name, PAGE, title, setting, run, gathered, says=says, other_way=other)


def _quick(gathered: Gathered) -> Sequence[Settings]:
    """The runs that show whether a figure works: of most, results in order alone."""
    return gathered.exact(QUICK) if isinstance(gathered, Plot) else gathered.settings(QUICK)


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
        "6 types and 5 rules more with each broker, and 5 neighbours whatever their number (the"
        " thesis adds connections). Memory is what the simulating process grew by"
        " at most during the run, over the number of brokers: what the simulator itself needs is in"
        " it, and a broker with more to do than others does not show.",
    ),
    "7.16": (
        "Number of brokers, with locality",
        "Classes of ten rules that share no type with others; the types of a class are published"
        " by the fifth of all brokers nearest to its centre. Sinks are anywhere, as in the thesis.",
    ),
    "7.17": ("Number of brokers, with filtering", "Nine tenths of all events match no rule."),
    "7.18": (
        "Publication rate",
        "The most frequent type keeps 10 events a second; the average rate falls with the least,"
        " which in the thesis it hardly does.",
    ),
}
EXPERIMENTS = (
    figure(
        "thesis-7.9",
        "Default scenario",
        "A row a strategy, exact and by arrival, and exact with processors that take the time that "
        "was [measured](../scenarios.md#what-processing-costs) of brokers.",
        DEFAULTS,
    ),
    *(
        figure(f"thesis-{number}", title, setting, PLOTS[number])
        for number, (title, setting) in TITLES.items()
    ),
    figure(
        "thesis-7.4",
        "Final considerations",
        "What the thesis concludes from figures 7.10 to 7.18, at all their places together.",
        FINAL,
    ),
)
