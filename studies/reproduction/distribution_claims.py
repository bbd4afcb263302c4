"""What the thesis says of figures 7.9 to 7.18, sentence by sentence, each in its own strength.

Law 1: two figures are compared seed by seed: all strategies get the same networks, events, rules
and subscriptions of a seed. A sentence on several strategies holds where it does for each.

Law 2: sentences are on the thesis's five strategies; ``adaptive`` is not one of them. A sentence on
one that is not registered is not measured, and says so.

Law 3: each is judged by results in order, which is how this project detects, and once more by
results as they arrive, which is how the thesis did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from studies.reproduction.experiment import Claim
from studies.reproduction.gathering import Row
from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_ABOVE,
    MUCH_BELOW,
    SAME,
    SLIGHTLY_ABOVE,
    SLIGHTLY_BELOW,
    TENTH,
    Asked,
    Estimate,
    Range,
    Verdict,
    judge,
)

CENTRAL, ST, MT = "centralized", "distributed-st", "distributed-mt"
PULL_ST, PULL_MT = "push-pull-st", "push-pull-mt"
PUBLISHED = (CENTRAL, ST, MT, PULL_ST, PULL_MT)
SINGLE, MULTIPLE = (CENTRAL, ST, PULL_ST), (MT, PULL_MT)
DIVIDED = (ST, MT, PULL_ST, PULL_MT)
SHORT = {CENTRAL: "central", ST: "ST", MT: "MT", PULL_ST: "pull ST", PULL_MT: "pull MT"}
"""What strategies are called where several are compared."""
MARGINAL_BENEFIT: Range = (1 / TENTH, 1.0)
Sample = Mapping[int, float]
"""A figure by seed, or by part of a run."""


def delays(rows: Mapping[int, Row]) -> Sample:
    """Milliseconds, where something was delivered."""
    return {key: row["delay_ms_mean"] for key, row in rows.items() if row["delay_ms_mean"]}


def traffic(rows: Mapping[int, Row]) -> Sample:
    """Bytes a second between brokers."""
    return {key: row["bytes"] / row["measured_s"] for key, row in rows.items() if row["bytes"]}


@dataclass(frozen=True, slots=True)
class Readings:
    """What was measured of a figure: by strategy and place a figure for each seed."""

    places: Sequence[float]
    delay: Mapping[str, Sequence[Sample]]
    traffic: Mapping[str, Sequence[Sample]]

    @classmethod
    def of(
        cls, places: Sequence[float], found: Sequence[Mapping[str, Mapping[int, Row]]]
    ) -> Readings:
        """From rows by strategy, and by seed, at each place."""
        names = [name for name in PUBLISHED if all(name in one for one in found)]
        return cls(
            places,
            {name: [delays(one[name]) for one in found] for name in names},
            {name: [traffic(one[name]) for one in found] for name in names},
        )

    def missing(self, names: Iterable[str]) -> list[str]:
        """The strategies that there are no lines of."""
        return [name for name in names if name not in self.traffic]


def judged_both_ways(exact: Iterable[Claim], by_arrival: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims by results in order, each with the same one by results as they arrive (Law 3)."""
    pairs = zip(exact, by_arrival, strict=True)
    return tuple(replace(one, otherwise=other) for one, other in pairs)


Named = list[tuple[str, Estimate, Range]]
"""What is compared, in words; the ratio, and the range that is claimed for it."""


def _claim(readings: Readings, text: str, names: Iterable[str], named: Named) -> Claim:
    if missing := readings.missing(names):
        return Claim(text, f"there is no {' or '.join(missing)} yet", Verdict.UNMEASURED)
    if not named:
        return Claim(text, "nothing was delivered, or run", Verdict.UNMEASURED)
    asked: list[Asked] = [(one, range_) for _, one, range_ in named]
    if len(named) == 1:
        return Claim.judged(text, f"{named[0][0]}: {named[0][1]}", asked)
    told = ", ".join(f"{name} {one.value:.3g}" for name, one, _ in named)
    return Claim.judged(text, told, asked)


def _known(name: str, ones: Sample, others: Sample, range_: Range, at: str = "") -> Named:
    ratio = Estimate.paired(ones, others, f"{name}{at}")
    return [] if ratio is None else [(name, ratio, range_)]


def _over_places(
    places: Sequence[float],
    lines: Mapping[str, Sequence[Sample]],
    names: Sequence[str],
    range_: Range,
    every: bool,
) -> Named:
    """Each strategy's figure at the last place over that at the first; at ``every`` other place."""
    named: Named = []
    for name in names:
        line = lines.get(name, ())
        ends = range(1, len(line)) if every else [len(line) - 1] if len(line) > 1 else []
        short = SHORT[name]
        found = [
            one
            for end in ends
            for one in _known(
                short, line[end], line[0], range_, f" at {places[end]:g} / at {places[0]:g}"
            )
        ]
        if every and found:  # the one that changes most is told
            found.sort(key=lambda one: abs(one[1].value - 1))
        named += found
    return named


def steady(readings: Readings, text: str) -> Claim:
    """That the delays of no strategy change, at any place from the first."""
    named = _over_places(readings.places, readings.delay, PUBLISHED, SAME, True)
    claim = _claim(readings, text, PUBLISHED, named)
    if readings.missing(PUBLISHED) or not named:
        return claim
    most = {name: one.value for name, one, _ in named}
    told = ", ".join(f"{name} {value - 1:+.0%}" for name, value in most.items())
    return replace(claim, measured=f"at most {told}")


def growth(
    readings: Readings, text: str, names: Sequence[str] = PUBLISHED, range_: Range = ABOVE
) -> Claim:
    """How strategies' traffic at the last place compares with that at the first."""
    named = _over_places(readings.places, readings.traffic, names, range_, False)
    return _claim(readings, text, names, named)


Pairs = Sequence[tuple[str, str]]


def pairs_of(ones: Iterable[str], others: Iterable[str]) -> Pairs:
    others = tuple(others)
    return [(one, other) for one in ones for other in others if one != other]


def against(
    readings: Readings,
    text: str,
    pairs: Pairs,
    range_: Range,
    where: Sequence[int] | None = None,
) -> Claim:
    """How the traffic of strategies compares, at all places or those of some numbers."""
    return _against(readings, readings.traffic, text, pairs, range_, where)


def _against(
    readings: Readings,
    lines: Mapping[str, Sequence[Sample]],
    text: str,
    pairs: Pairs,
    range_: Range,
    where: Sequence[int] | None = None,
) -> Claim:
    places = range(len(readings.places)) if where is None else where
    named: Named = []
    for one, other in pairs:
        if one in lines and other in lines:
            for place in places:
                name = f"{SHORT[one]}/{SHORT[other]}"
                at = f" at {readings.places[place]:g}" if len(readings.places) > 1 else ""
                named += _known(name, lines[one][place], lines[other][place], range_, at)
    return _claim(readings, text, sorted({name for pair in pairs for name in pair}), _told(named))


def _told(named: Named) -> Named:
    """The places of one pair are told behind one another, under its name once."""
    told: Named = []
    last = ""
    for name, one, range_ in named:
        told.append(("" if name == last else name, one, range_))
        last = name
    return [(name or "then", one, range_) for name, one, range_ in told]


def difference(
    readings: Readings, text: str, pairs: Pairs, range_: Range, has: Range | None = None
) -> Claim:
    """How strategies' ratio in traffic at the last place compares with that at the first.

    ``has``: what the ratio at first has to be, where there must be a difference to speak of.
    """
    named: Named = []
    lines = readings.traffic
    for one, other in pairs:
        if one in lines and other in lines and len(readings.places) > 1:
            shares = [
                {key: ours[key] / theirs[key] for key in ours if key in theirs}
                for ours, theirs in zip(lines[one], lines[other], strict=True)
            ]
            name = f"{SHORT[one]}/{SHORT[other]}"
            if has is not None:
                ones = dict.fromkeys(shares[0], 1.0)
                named += _known(f"{name} at first", shares[0], ones, has)
            named += _known(f"{name} last over first", shares[-1], shares[0], range_)
    return _claim(readings, text, sorted({name for pair in pairs for name in pair}), named)


def _numbers(readings: Readings, holds: range) -> list[int]:
    """The numbers of the places that lie in a range."""
    return [number for number, place in enumerate(readings.places) if place in holds]


def unmeasured(text: str, why: str) -> Claim:
    return Claim(text, why, Verdict.UNMEASURED)


BY_EYE = "between two figures, of other networks: not judged"


# --- figure by figure -----------------------------------------------------------------------------


def default(readings: Readings) -> Iterator[Claim]:
    """7.9, whose one place is the default scenario."""

    def delay(text: str, pairs: Pairs, range_: Range) -> Claim:
        return _against(readings, readings.delay, text, pairs, range_)

    yield delay(
        "Delays with multiple trees are significantly lower than with one",
        *(pairs_of(MULTIPLE, SINGLE), MUCH_BELOW),
    )
    yield delay(
        "Delays of Centralized and Distributed (ST) are almost the same",
        *([(ST, CENTRAL)], SAME),
    )
    yield delay(
        "Push-Pull (ST) has a slightly higher delay than these",
        *([(PULL_ST, ST), (PULL_ST, CENTRAL)], SLIGHTLY_ABOVE),
    )
    yield delay(
        "Push-Pull (MT) has a higher delay than Distributed (MT)", *([(PULL_MT, MT)], ABOVE)
    )
    yield against(
        readings,
        "Centralized generates significantly more traffic than the other strategies",
        *(pairs_of([CENTRAL], DIVIDED), MUCH_ABOVE),
    )
    yield against(
        readings,
        "Of the divided ones, those with multiple trees generate more traffic",
        *(pairs_of(MULTIPLE, (ST, PULL_ST)), ABOVE),
    )
    yield against(
        readings,
        "Push-Pull has a very small benefit over Distributed in traffic",
        *([(PULL_ST, ST), (PULL_MT, MT)], MARGINAL_BENEFIT),
    )


PROCESSING = "Processing contributes only marginally to delays"


def processing(without: Readings, with_it: Readings) -> Claim:
    """That delays are hardly longer if processors take the time that was measured of them."""
    named: Named = []
    for name in PUBLISHED:
        if name in without.delay and name in with_it.delay:
            named += _known(SHORT[name], with_it.delay[name][0], without.delay[name][0], SAME)
    return _claim(without, PROCESSING, PUBLISHED, named)


def final(readings: Mapping[str, Readings]) -> Iterator[Claim]:
    """The final considerations of 7.4, over all figures by their names."""
    whole = list(readings.values())
    yield _of_all(
        "In all tests delays are lower with multiple trees",
        whole,
        pairs_of(MULTIPLE, SINGLE),
        BELOW,
    )
    still = [one for name, one in readings.items() if name not in TOPOLOGIES]
    steady_ = [
        _over_places(one.places, one.delay, PUBLISHED, SAME, True)
        for one in still
        if not one.missing(PUBLISHED)
    ]
    yield _counted(
        "Delays remain almost constant in every test but those of the number of nodes",
        [pair for named in steady_ for pair in named],
    )
    pulls = [(PULL_ST, ST), (PULL_MT, MT)]
    yield _most(
        "In most tests pushing and pulling has limited benefits in traffic",
        _at_all_places(whole, pulls, False, SLIGHTLY_BELOW),
    )
    yield _most("while it raises delays", _at_all_places(whole, pulls, True, ABOVE))


TOPOLOGIES = ("7.15", "7.16", "7.17")


def _at_all_places(
    readings: Sequence[Readings], pairs: Pairs, is_delay: bool, range_: Range
) -> Named:
    """The ratio of strategies at each place of several figures."""
    named: Named = []
    for one in readings:
        lines = one.delay if is_delay else one.traffic
        for first, second in pairs:
            if first in lines and second in lines:
                for ours, theirs in zip(lines[first], lines[second], strict=True):
                    named += _known(f"{SHORT[first]}/{SHORT[second]}", ours, theirs, range_)
    return named


def _of_all(text: str, readings: Sequence[Readings], pairs: Pairs, range_: Range) -> Claim:
    return _counted(text, _at_all_places(readings, pairs, True, range_))


def _counted(text: str, named: Named) -> Claim:
    """Judged by all; told is how many are so, and how many are not."""
    if not named:
        return unmeasured(text, "nothing was delivered, or run")
    asked: list[Asked] = [(one, range_) for _, one, range_ in named]
    return Claim.judged(text, _tally(asked), asked)


def _most(text: str, named: Named) -> Claim:
    """Judged by the share of the tests in which it is so, from those that are sure to those that
    may be.
    """
    if not named:
        return unmeasured(text, "nothing was delivered, or run")
    asked: list[Asked] = [(one, range_) for _, one, range_ in named]
    verdicts = [judge([pair]) for pair in asked]
    so, not_so = (verdicts.count(one) / len(verdicts) for one in (Verdict.HOLDS, Verdict.FAILS))
    near = sum(range_[0] < one.value < range_[1] for one, range_ in asked) / len(asked)
    share = Estimate(near, so, 1 - not_so, name="share of the tests")
    return Claim.judged(text, _tally(asked), [(share, (0.5, math.inf))])


def _tally(asked: Sequence[Asked]) -> str:
    verdicts = [judge([pair]) for pair in asked]
    counts = [(one, verdicts.count(one)) for one in (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN)]
    return ", ".join(f"{count} of {len(asked)} {one}" for one, count in counts)


def composites(readings: Readings) -> Iterator[Claim]:
    """7.10."""
    yield steady(readings, "Delays do not change significantly with the number of rules")
    yield growth(readings, "Traffic increases with the number of rules")
    yield difference(
        readings,
        "The number of rules does not alter the differences among the strategies",
        *(pairs_of(DIVIDED, [CENTRAL]), SAME),
    )
    yield against(
        readings,
        "The single-tree strategies have less traffic than those with multiple trees",
        *(pairs_of((ST, PULL_ST), MULTIPLE), BELOW),
    )


def subscriptions(readings: Readings) -> Iterator[Claim]:
    """7.11."""
    yield steady(readings, "Delays are not influenced by the number of subscriptions")
    yield growth(readings, "Traffic increases with the number of subscriptions")
    yield against(
        readings,
        "Below 5 subscriptions a node multiple trees have less traffic than one",
        *(pairs_of(MULTIPLE, SINGLE), BELOW, _numbers(readings, range(5))),
    )
    yield against(
        readings,
        "Above 5 those with one tree have less",
        *(pairs_of(MULTIPLE, SINGLE), ABOVE, _numbers(readings, range(6, 1_000))),
    )
    yield against(
        readings,
        "With many subscriptions pulling over multiple trees brings no benefit",
        *([(PULL_MT, MT)], (1 / TENTH, float("inf")), [len(readings.places) - 1]),
    )


def selection(readings: Readings) -> Iterator[Claim]:
    """7.12."""
    yield steady(readings, "Delays remain constant")
    yield growth(
        readings,
        "Traffic of single-tree strategies increases significantly with each",
        *(SINGLE, MUCH_ABOVE),
    )
    yield growth(
        readings,
        "Traffic of multiple-tree strategies increases to a limited degree",
        *(MULTIPLE, SLIGHTLY_ABOVE),
    )
    yield difference(
        readings,
        "Multiple trees become more and more convenient",
        *(pairs_of(MULTIPLE, SINGLE), BELOW),
    )


def windows(readings: Readings) -> Iterator[Claim]:
    """7.13."""
    yield steady(readings, "Delays do not change significantly with windows")
    yield growth(readings, "Traffic is higher with larger windows")
    yield difference(
        readings,
        "The advantage of the single-tree strategies over Centralized slightly decreases",
        *(pairs_of((ST, PULL_ST), [CENTRAL]), SLIGHTLY_ABOVE, BELOW),
    )
    yield difference(
        readings,
        "Multiple trees come off better against Centralized with larger windows",
        *(pairs_of(MULTIPLE, [CENTRAL]), BELOW),
    )
    yield difference(
        readings,
        "Pulling is more efficient with small windows",
        *([(PULL_ST, ST), (PULL_MT, MT)], ABOVE),
    )


def filtering(readings: Readings) -> Iterator[Claim]:
    """7.14."""
    filtered = list(range(1, len(readings.places)))
    yield steady(readings, "Delays are not influenced by filtering")
    yield growth(readings, "Traffic of all strategies falls with filtering", range_=BELOW)
    yield against(
        readings,
        "All divided strategies have much less traffic than Centralized",
        *(pairs_of(DIVIDED, [CENTRAL]), MUCH_BELOW, filtered),
    )
    yield difference(
        readings,
        "Their advantage increases with the number of values",
        *(pairs_of(DIVIDED, [CENTRAL]), BELOW),
    )


def nodes(readings: Readings) -> Iterator[Claim]:
    """7.15."""
    second = {name: line[:2] for name, line in readings.delay.items()}
    rest = {name: line[1:] for name, line in readings.delay.items()}
    yield _claim(
        readings,
        "Delays increase from 5 to 10 nodes",
        PUBLISHED,
        _over_places(readings.places[:2], second, PUBLISHED, ABOVE, False),
    )
    yield _claim(
        readings,
        "and show no clear trend beyond (judged by the last)",
        PUBLISHED,
        _over_places(readings.places[1:], rest, PUBLISHED, SAME, False),
    )
    yield unmeasured(
        "They oscillate by topology, more so with a single tree",
        "each seed has a topology of its own here: means hide it",
    )
    yield growth(readings, "Traffic increases with the network")
    yield difference(
        readings,
        "Without locality, multiple trees become less convenient as the network grows",
        *(pairs_of(MULTIPLE, (ST, PULL_ST)), ABOVE),
    )


def locality(readings: Readings) -> Iterator[Claim]:
    """7.16."""
    last = [len(readings.places) - 1]
    yield unmeasured("Delays do not change significantly against figure 7.15", BY_EYE)
    yield against(
        readings,
        "With locality all divided strategies have significantly less traffic than Centralized",
        *(pairs_of(DIVIDED, [CENTRAL]), MUCH_BELOW, last),
    )
    yield against(
        readings,
        "Single trees are still more efficient than multiple ones",
        *(pairs_of((ST, PULL_ST), MULTIPLE), BELOW, last),
    )
    yield against(
        readings,
        "which now show similar results",
        *([(MT, ST), (PULL_MT, PULL_ST)], SAME, last),
    )


def nodes_filtered(readings: Readings) -> Iterator[Claim]:
    """7.17."""
    yield against(
        readings,
        "With 90 % filtered, all divided strategies have significantly less than Centralized",
        *(pairs_of(DIVIDED, [CENTRAL]), MUCH_BELOW),
    )
    yield against(
        readings,
        "Pulling has an advantage",
        *([(PULL_ST, ST), (PULL_MT, MT)], BELOW),
    )
    yield difference(
        readings,
        "above all in large networks",
        *([(PULL_ST, ST), (PULL_MT, MT)], BELOW),
    )


def rates(readings: Readings) -> Iterator[Claim]:
    """7.18."""
    yield steady(readings, "Delays are not influenced by the publication rate")
    yield growth(readings, "Traffic falls as the rarest events get rarer", range_=BELOW)
    yield difference(
        readings,
        "The advantage of the divided single-tree strategies over Centralized increases",
        *(pairs_of((ST, PULL_ST), [CENTRAL]), BELOW),
    )
    yield difference(
        readings,
        "That of multiple trees over Centralized does not change significantly",
        *(pairs_of(MULTIPLE, [CENTRAL]), SAME, BELOW),
    )
    yield against(
        readings,
        "Pulling is inconvenient where rates differ little",
        *([(PULL_ST, ST), (PULL_MT, MT)], ABOVE, [0]),
    )
