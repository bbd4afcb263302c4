"""The constants of the cost model of ``auto``, measured on this machine: ``rexmq bench calibrate``.

Each *trial* is a rule of three states over random events, run both ways. The model says how many
probes, candidates, instances and links an event costs either way (they follow from the trial's
own rates), the clock says how long it took; what the model leaves out, output above all, is the
same both ways. So the differences of the times are equations in the unit costs, which are solved
by least squares, each weighted by its trial's time: an error of a tenth counts the same in all.
What trials tell apart badly stays near the costs that are shipped, which enter as equations of
weight PRIOR. Costs are not negative; one that would be is COST_MIN.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, StringColumn
from rules import load
from rules.engine import make
from rules.engine.choice.costs import Costs, Estimate, Rates, estimate
from rules.pattern import RuleSet
from rules.planning.planner import compile_rule
from rules.planning.sequences import automaton_of

WAYS = ("cdp", "aip")
COST_MIN = 0.1
"""Nanoseconds."""
PRIOR = 0.1
TYPES = tuple(EventType.of(name, k="int", v="int") for name in ("A", "B", "C"))
VALUES = 100
"""Of the attribute ``v``, which no key serves."""
EVENTS_PER_S = 1_000
CHUNK = 1_024
SEED = 7
_NAMES = tuple(field.name for field in fields(Costs))


@dataclass(frozen=True, slots=True)
class Trial:
    """A rule over events: ``shares`` are those of A, B and C, the terminator; ``keys`` how many
    values joins have; ``policies`` those of B and of A; ``within`` the windows in milliseconds;
    ``join`` the condition between A and B.
    """

    shares: tuple[float, float, float]
    keys: int
    policies: tuple[str, str]
    within: int
    join: str

    def rules(self) -> RuleSet:
        """The rule."""
        second, third = self.policies
        schemas = " ".join(f"event {type_}" for type_ in TYPES)
        return load(
            f"{schemas} rule one: define X() from C() as c"
            f" and {second} B(k = c.k) as b within {self.within} ms from c"
            f" and {third} A({self.join}) as a within {self.within} ms from b"
        )

    def rates(self) -> Rates:
        """The rates of the events, as the model takes them."""
        of_a, of_b, of_c = (share * EVENTS_PER_S / MICROSECONDS for share in self.shares)
        keys = float(self.keys)
        return Rates(of_c, {1: of_b, 2: of_a}, lambda access: keys if access.keys else 1.0)


KEY, RANGE = "k = b.k", "v < b.v"
FEW, MANY = 10, 1_000
TRIALS = (
    Trial((0.05, 0.45, 0.5), MANY, ("each", "each"), 1_000, RANGE),
    Trial((0.05, 0.45, 0.5), FEW, ("each", "each"), 1_000, KEY),
    Trial((0.2, 0.6, 0.2), MANY, ("last", "last"), 1_000, KEY),
    Trial((0.2, 0.6, 0.2), FEW, ("each", "last"), 1_000, RANGE),
    Trial((0.2, 0.6, 0.2), MANY, ("each", "each"), 200, RANGE),
    Trial((0.25, 0.25, 0.5), MANY, ("last", "last"), 1_000, KEY),
    Trial((0.3, 0.4, 0.3), MANY, ("each", "each"), 1_000, RANGE),
    Trial((0.3, 0.4, 0.3), FEW, ("each", "each"), 200, KEY),
    Trial((0.3, 0.4, 0.3), FEW, ("last", "last"), 1_000, RANGE),
    Trial((0.45, 0.05, 0.5), FEW, ("each", "each"), 1_000, RANGE),
    Trial((0.45, 0.05, 0.5), FEW, ("each", "last"), 1_000, RANGE),
    Trial((0.5, 0.49, 0.01), FEW, ("each", "each"), 1_000, KEY),
    Trial((0.5, 0.49, 0.01), MANY, ("each", "last"), 1_000, RANGE),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Nanoseconds that an event of a trial took, by columns and by an automaton."""

    trial: Trial
    columns: float
    automaton: float


def measure(
    trial: Trial, events: int, repeats: int, clock_ns: Callable[[], int] = time.process_time_ns
) -> Measured:
    """Run a trial both ways in turn, each ``repeats`` times; the least counts."""
    rules, chunks = trial.rules(), _chunks(trial, events)
    spent = dict.fromkeys(WAYS, float("inf"))
    for _ in range(repeats):
        for way in WAYS:
            spent[way] = min(spent[way], _run(way, rules, chunks, clock_ns))
    return Measured(trial, *(spent[way] for way in WAYS))


def fitted(measured: Sequence[Measured]) -> Costs:
    """The unit costs that explain best how the two ways differ."""
    differences = np.array([_counts(one.trial) for one in measured])
    times = np.array([one.columns - one.automaton for one in measured])
    weights = 1 / np.array([max(one.columns, one.automaton) for one in measured])
    shipped = np.array([getattr(Costs(), name) for name in _NAMES])
    matrix = np.vstack([differences * weights[:, None], PRIOR * np.diag(1 / shipped)])
    vector = np.concatenate([times * weights, np.full(len(shipped), PRIOR)])
    found = np.maximum(least_squares(matrix, vector), COST_MIN)
    return Costs(**dict(zip(_NAMES, found.tolist(), strict=True)))


def least_squares(
    matrix: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The x without negative parts that makes ``matrix @ x`` nearly ``vector``, float64[columns].

    Parts that come out negative are taken to be nothing, the most negative first.
    """
    free = list(range(matrix.shape[1]))
    found = np.zeros(matrix.shape[1])
    while free:
        found[:] = 0.0
        found[free] = np.linalg.lstsq(matrix[:, free], vector, rcond=None)[0]
        worst = min(free, key=lambda place: float(found[place]))
        if found[worst] >= 0:
            break
        free.remove(worst)
    return np.maximum(found, 0.0)


def loss(measured: Measured, costs: Costs) -> float:
    """The time of the way that these costs would choose, as a multiple of the better one's."""
    expected = _estimated(measured.trial, costs)
    chosen = measured.automaton if expected.automaton < expected.columns else measured.columns
    return chosen / min(measured.columns, measured.automaton)


def _counts(trial: Trial) -> list[float]:
    """For each unit cost, how many more of it an event takes by columns than by an automaton."""
    counts = []
    for name in _NAMES:
        expected = _estimated(trial, Costs(**{**dict.fromkeys(_NAMES, 0.0), name: 1.0}))
        # An estimate is for a microsecond of event time.
        per_event = MICROSECONDS / EVENTS_PER_S
        counts.append((expected.columns - expected.automaton) * per_event)
    return counts


def _estimated(trial: Trial, costs: Costs) -> Estimate:
    plan = compile_rule(trial.rules().rules[0])
    model = automaton_of(plan)
    assert model is not None, "an event is anchored on a selected one"
    return estimate(plan, model, trial.rates(), costs)


def _run(
    way: str, rules: RuleSet, chunks: Sequence[list[EventBatch]], clock_ns: Callable[[], int]
) -> float:
    """Nanoseconds an event, once the longest chain of windows is full."""
    engine = make(way)
    engine.deploy(rules)
    spent = events = 0
    for place, batches in enumerate(chunks):
        begun = clock_ns()
        for batch in batches:
            engine.push(batch)
        engine.advance((place + 1) * CHUNK * MICROSECONDS // EVENTS_PER_S)
        if place * CHUNK >= 2 * EVENTS_PER_S:
            spent += clock_ns() - begun
            events += sum(map(len, batches))
    return spent / events


def _chunks(trial: Trial, events: int) -> list[list[EventBatch]]:
    """Events, one every millisecond, after those that fill the windows."""
    rng = np.random.default_rng(SEED)
    chunks = []
    for start in range(0, 2 * EVENTS_PER_S + events, CHUNK):
        kinds = rng.choice(len(TYPES), CHUNK, p=trial.shares)
        batches = []
        for number, type_ in enumerate(TYPES):
            places = start + np.flatnonzero(kinds == number)
            ids = EventIds(StringColumn.constant(type_.name, len(places)), places)
            columns = (
                rng.integers(0, trial.keys, len(places)),
                rng.integers(0, VALUES, len(places)),
            )
            times = places * (MICROSECONDS // EVENTS_PER_S)
            batches.append(EventBatch(type_, times, ids, columns))
        chunks.append(batches)
    return chunks
