"""The paper on hybrid parallelism again: its figures 6 to 10, on a simulated multicore.

Two cores are at hand, the paper has 24. So the figures are simulated (:mod:`studies.multicore`),
in simulated time, by what steps of the real kernels cost; a table holds the simulation to real runs
on one core and two, and another sets real runs of other engines beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from studies.multicore.printed import AS_BUILT, Printed
from studies.reproduction import hybrid_claims as claims
from studies.reproduction.engine_claims import NONE, course
from studies.reproduction.experiment import Chart, Claim, Experiment, Outcome, Table
from studies.reproduction.hybrid_replay import COLUMNS as REPLAYED, replays, replays_told
from studies.reproduction.hybrid_runs import (
    OFFERED,
    REPEATS,
    Figures,
    Pattern,
    hybrid,
    real,
    rip,
    sequential,
    stream_of,
)
from studies.reproduction.verdicts import ABOVE, RULE, Asked, Estimate

PAGE = "hybrid-figures"
PAPER = "the paper says"
OURS = "this project asks"
OTHER_WAY = "over AIP as published, which ran for real"
CORES = 24
INTRODUCTION = f"""# One heavy rule on many cores: the figures

Figures 6 to 10 of *Scalable complex event processing: a hybrid parallelization approach*
([what of it is built here, and how](hybrid.md)), each sentence on them beside a measurement.
`rexmq reproduce hybrid-6 hybrid-7 hybrid-8 hybrid-9 hybrid-10` makes the figures anew, and
`hybrid-purge`, `hybrid-roles`, `hybrid-real`, `hybrid-indexes` and `hybrid-replay` the tables at
the end; a name stands for all its parts.

**Simulated.** The paper has 24 cores, and here there are two. Whatever is called *simulated* comes
from a [simulated multicore](../../studies/multicore/__init__.py): each worker has a core, looks
for work, takes, stores, tries and sends as the engine's do; roles, shares of threads, fusion and
slices are chosen by the engine's own functions. Each step takes the time that it took on the real
kernels (`python -m studies.bench_multicore --out studies/multicore/measured.toml` measures
that). Pairs and matches are those of the stream, as many as the engine has. Not in it: caches and
memory that cores share, and clocks that fall as more of them work. *Real* figures are processor
time on one core, and the wall clock on two. The section `hybrid-real` says how far the simulation
is off there.

**Sequential** is here the same pipeline on one core: one thread finds all, by the same steps. Some
sentences are judged once more over *AIP as published*, the thesis's sequential engine, whose time
is real; it is slower by more than parallelism gains, since it asks about the window of a whole
match at the terminator alone. **RIP** cuts the stream into runs, eight for each core but none
shorter than the window, which cores take in turn; each is worked off as by one core, so that RIP
shares out what one thread does for hybrid, too. **Kleene**: the third state comes up to {REPEATS}
times in a row, by a loop at its agent. The engine decides on runs at their end instead
([why](hybrid.md)), so this is simulated alone.

**The streams** are not the paper's. *Stocks*: six correlated random walks, a tick a minute, related
by the correlation of their last 20 prices. *Sensors*: activities that last for some six events,
a second apart, related by one of 33 levels. Windows, thresholds and lengths are ours too, since the
paper's stand in pictures alone.

**All of a detection** is measured: events that come in, and composite events that are sorted and
written, which one thread does, too. *Workers alone* leaves that out. Latency is the mean time from
the coming of a match's last event until the match is complete, while events come {OFFERED:g} times
as fast as one core works them off; an engine works off slices of up to 2,048 events, and what waits
for a slice to fill counts. Memory is the most bytes that sequences took (of RIP: of each core,
added up).

{RULE}"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large streams are, and what is varied, for stocks and sensors.

    ``window``, ``many`` (cores) and ``length`` (states) are those of figures that vary another.
    """

    sizes: dict[str, int]
    windows: dict[str, tuple[int, ...]]
    window: dict[str, int]
    cores: tuple[int, ...]
    many: int
    states: tuple[int, ...]
    length: int


KINDS = {"stocks": "correlation", "sensors": "sensors"}
UNITS = {"stocks": "min", "sensors": "s"}
WHOLE = Sizes(
    {"stocks": 1_800, "sensors": 6_000},
    {"stocks": (6, 8, 10, 12, 14), "sensors": (80, 90, 100, 110, 120)},
    {"stocks": 12, "sensors": 110},
    (1, 2, 4, 8, 10, 16, 24, 32, 64),
    CORES,
    (3, 4, 5, 6, 7),
    6,
)
QUICK = Sizes(
    {"stocks": 240, "sensors": 1_500},
    {"stocks": (8, 10), "sensors": (80, 100)},
    {"stocks": 10, "sensors": 100},
    (1, 4, 24),
    24,
    (3, 5),
    5,
)
LEAST_APART, LEAST_BY_STATE = 10, 5
"""Threads that five agents take at least where none are fused: by static roles, and by state."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place of a figure: the pattern, and on how many cores."""

    pattern: Pattern
    cores: int

    @property
    def kleene(self) -> Pattern:
        one = self.pattern
        return Pattern(one.kind, one.size, one.window, one.states, is_kleene=True)

    @property
    def events(self) -> int:
        return stream_of(self.pattern).events


def points(data: str, varied: str, quick: bool, least: int = 1) -> Iterator[tuple[int, Point]]:
    """The places of a figure, by what is varied: the window, the cores, or the states."""
    sizes = QUICK if quick else WHOLE
    kind, size, window = KINDS[data], sizes.sizes[data], sizes.window[data]
    states = sizes.length
    if varied == "window":
        cores = max(least, sizes.many)
        for one in sizes.windows[data]:
            yield one, Point(Pattern(kind, size, one, states), cores)
    elif varied == "cores":
        for one in sorted({max(least, one) for one in sizes.cores}):
            yield one, Point(Pattern(kind, size, window, states), one)
    else:
        for one in sizes.states:
            yield one, Point(Pattern(kind, size, window, one), sizes.many)


def first_column(data: str, varied: str) -> str:
    return f"window [{UNITS[data]}]" if varied == "window" else varied


# --- the figures ---------------------------------------------------------------------------------

Told = Callable[[Table], tuple[Claim, ...]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One part of a figure: what is varied, what of each place is measured, and what is said."""

    title: str
    data: str
    varied: str
    columns: tuple[str, ...]
    drawn: tuple[str, ...]
    y_label: str
    row: Callable[[Point], Sequence[float | None]]
    claims: Told
    least: int = 1

    def run(self, quick: bool) -> Outcome:
        rows = tuple(
            (value, *self.row(point))
            for value, point in points(self.data, self.varied, quick, self.least)
        )
        return self.told(Table((first_column(self.data, self.varied), *self.columns), rows))

    def told(self, table: Table) -> Outcome:
        chart = Chart(self.drawn, self.y_label, (False, self.y_label == SPEED_UP))
        return Outcome(table, (chart,), self.claims(table))


SPEED_UP = "speed-up over one core"
ALONE, AIP = "one core, simulated [s]", "AIP as published, real [s]"
OF_SEQUENCES = (claims.HYBRID, claims.WORKERS, claims.RIP)
OF_KLEENE = (claims.KLEENE, claims.RIP_KLEENE)
BESIDE = (claims.OVER_AIP, ALONE, AIP)


def speed_ups(point: Point) -> list[float]:
    """Over one core, and over AIP as published."""
    alone, ours = sequential(point.pattern), hybrid(point.pattern, point.cores)
    published = _timed(point.pattern, "aip-published", 1)
    return [
        alone.seconds / ours.seconds,
        alone.pairing_s / ours.pairing_s,
        alone.seconds / rip(point.pattern, point.cores).seconds,
        published / ours.seconds,
        alone.seconds,
        published,
    ]


def speed_ups_and_kleene(point: Point) -> list[float]:
    """The same, and those of the pattern with Kleene closure over one core."""
    *first, over_aip, alone, published = speed_ups(point)
    kleene = sequential(point.kleene).seconds
    return [
        *first,
        kleene / hybrid(point.kleene, point.cores).seconds,
        kleene / rip(point.kleene, point.cores).seconds,
        over_aip,
        alone,
        published,
    ]


def of_three(
    measure: Callable[[Figures], float | None], is_offered: bool, point: Point
) -> list[float | None]:
    """A figure of the three systems."""
    return [
        measure(hybrid(point.pattern, point.cores, is_offered=is_offered)),
        measure(rip(point.pattern, point.cores, is_offered)),
        measure(sequential(point.pattern, is_offered)),
    ]


def latency_ms(one: Figures) -> float | None:
    """The mean latency; None where nothing was found, so that nothing was late."""
    return one.latency_s * 1e3 if one.composites else None


latencies = partial(of_three, latency_ms, True)
memories = partial(of_three, lambda one: one.megabytes, False)


def dynamic(point: Point) -> list[float]:
    """Events a second by roles."""
    full, state = (hybrid(point.pattern, point.cores, roles) for roles in ("full", "state"))
    return [point.events / full.seconds, point.events / state.seconds]


def fused(point: Point) -> list[float]:
    """Events a second by static roles, with two of the agents fused and with none."""
    agents = point.pattern.states - 1
    return [
        point.events / hybrid(point.pattern, point.cores, "static", most).seconds
        for most in (agents - 1, agents)
    ]


def _panels() -> Iterator[tuple[str, Panel]]:
    over = {"window": "time window", "cores": "number of cores", "states": "pattern length"}
    for letters, data in (("abc", "stocks"), ("def", "sensors")):
        for letter, varied, told in zip(
            letters, over, (claims.windows, claims.cores, claims.lengths), strict=True
        ):
            has_kleene = varied != "states"
            lines = OF_SEQUENCES + (OF_KLEENE if has_kleene else ())
            yield (
                f"hybrid-6{letter}",
                Panel(
                    f"speed-up over the {over[varied]}, {data}",
                    *(data, varied, lines + BESIDE, lines, SPEED_UP),
                    speed_ups_and_kleene if has_kleene else speed_ups,
                    partial(told, data),
                ),
            )
    for number, name, unit, row, told_of in (
        (7, "latency", "ms", latencies, claims.latencies),
        (8, "memory", "MB", memories, claims.memories),
    ):
        columns = claims.columns_of(unit)
        for letter, (data, varied) in zip(
            "abcd",
            ((data, varied) for data in KINDS for varied in ("window", "cores")),
            strict=True,
        ):
            yield (
                f"hybrid-{number}{letter}",
                Panel(
                    f"{name} over the {over[varied]}, {data}",
                    *(data, varied, columns, columns, f"{name} [{unit}]"),
                    *(row, told_of),
                ),
            )
    fast, fuse = "fully dynamic allocation", "fusion of two agents"
    for number, name, columns, row, told_of, least in (
        (9, fast, (claims.FULL, claims.STATE), dynamic, claims.dynamic, LEAST_BY_STATE),
        (10, fuse, (claims.FUSED, claims.APART), fused, claims.fused, LEAST_APART),
    ):
        for letter, varied in (("a", "window"), ("b", "cores")):
            yield (
                f"hybrid-{number}{letter}",
                Panel(
                    f"{name} over the {over[varied]}, stocks",
                    *("stocks", varied, columns, columns, "events a second", row),
                    partial(told_of, varied == "cores"),
                    least,
                ),
            )


# --- the simulation beside what is real ----------------------------------------------------------

HELD = (1 / 1.25, 1.25)
"""A simulated time is to be within a quarter of the real one."""
REAL_COLUMNS = (
    "run",
    "real [s]",
    "simulated [s]",
    "error [%]",
    "workers, real [s]",
    "workers, simulated [s]",
    "workers, error [%]",
)


def patterns(quick: bool) -> Iterator[Pattern]:
    """The patterns of the two tables: both kinds of conditions on stocks, and the sensors."""
    sizes = QUICK if quick else WHOLE
    for kind, data in (("changes", "stocks"), ("correlation", "stocks"), ("sensors", "sensors")):
        yield Pattern(kind, sizes.sizes[data], sizes.window[data], sizes.length)


def held(quick: bool) -> Outcome:
    """Real and simulated times on one core and two."""
    rows = []
    for pattern in patterns(quick):
        for threads in (1, 2):
            truth, told = real(pattern, "hybrid", threads), hybrid(pattern, threads)
            if truth.composites != told.composites:
                raise AssertionError(f"{pattern}: {truth.composites}, not {told.composites}")
            rows.append(
                (
                    f"{pattern.kind}, {threads} {'core' if threads == 1 else 'cores'}",
                    *(truth.seconds, told.seconds, _error(told.seconds, truth.seconds)),
                    *(truth.pairing_s, told.pairing_s, _error(told.pairing_s, truth.pairing_s)),
                )
            )
    return held_told(Table(REAL_COLUMNS, tuple(rows)))


def _error(told: float, truth: float) -> float:
    return 100 * (told / truth - 1)


def held_told(table: Table) -> Outcome:
    ratios = [
        Estimate.single(float(told) / float(truth), str(run))
        for run, truth, told, *_ in table.rows
        if isinstance(told, float) and isinstance(truth, float)
    ]
    published = "simulated times are within a quarter of real ones"
    asked = [(ratio, HELD) for ratio in ratios]
    claim = Claim.judged(published, course("simulated over real", ratios), asked)
    return Outcome(table, (Chart(("real [s]", "simulated [s]"), "seconds"),), (claim,))


REAL_WAYS = (
    ("AIP as published, 1 core, real", "aip-published", 1),
    ("hybrid, 1 core, real", "hybrid", 1),
    ("hybrid, 2 cores, real", "hybrid", 2),
    ("columns (cdp), 1 core, real", "cdp", 1),
    ("automata (aip), 1 core, real", "aip", 1),
)


def _timed(pattern: Pattern, engine: str, threads: int) -> float:
    """Seconds of a real run, the best of three; of the sequential engine, the slowest, of one."""
    return real(pattern, engine, threads, 1 if engine == "aip-published" else 3).seconds


def indexes(quick: bool) -> Outcome:
    """Events a second in every way, pattern by pattern."""
    chosen = list(patterns(quick))
    rows = [
        (name, *(stream_of(one).events / _timed(one, engine, threads) for one in chosen))
        for name, engine, threads in REAL_WAYS
    ]
    many = QUICK.many if quick else WHOLE.many
    simulated: tuple[tuple[str, Callable[[Pattern, int], Figures]], ...] = (
        (f"RIP, {many} cores, simulated", rip),
        (f"hybrid, {many} cores, simulated", hybrid),
    )
    rows += [
        (name, *(stream_of(one).events / run(one, many).seconds for one in chosen))
        for name, run in simulated
    ]
    return indexes_told(Table(("way", *(f"{one.kind} [events/s]" for one in chosen)), tuple(rows)))


def indexes_told(table: Table) -> Outcome:
    rows = {str(row[0]): row[1:] for row in table.rows}
    ours = rows["automata (aip), 1 core, real"]
    name, many = list(rows.items())[-1]
    ratios = [
        Estimate.single(float(one) / float(other), pattern)
        for pattern, one, other in zip(table.columns[1:], ours, many, strict=True)
        if isinstance(one, int | float) and isinstance(other, int | float)
    ]
    told = f"automata over {name}: " + ", ".join(f"{one.value:.3g}" for one in ratios)
    claim = Claim.judged(
        "automata on one core are faster than hybrid parallelism on many",
        told,
        [(one, ABOVE) for one in ratios],
    )
    return Outcome(table, (Chart(table.columns[1:], "events a second", (False, True)),), (claim,))


LOSSES = "lost by the published purge"


def purged(quick: bool) -> Outcome:
    """Matches that the published purge loses, by how many cores work."""
    chosen = [one for one in patterns(quick) if one.kind != "changes"]
    rows = []
    for cores in (QUICK if quick else WHOLE).cores:
        found = [hybrid(one, cores, printed=Printed(purge=True)) for one in chosen]
        pairs = [(one.composites + one.lost, one.lost) for one in found]
        rows.append((cores, *(figure for pair in pairs for figure in pair)))
    columns = [f"{one.kind}, {what}" for one in chosen for what in ("matches", LOSSES)]
    return purged_told(Table(("cores", *columns), tuple(rows)))


def purged_told(table: Table) -> Outcome:
    """What is drawn and said of such a table."""
    lines = tuple(name for name in table.columns if name.endswith(LOSSES))
    asked: list[Asked] = []
    for name in lines:
        pairs = zip(table.column("cores"), table.column(name), strict=True)
        asked += [
            (Estimate.exact(float(count), f"{name}, {cores} cores"), NONE)
            for cores, count in pairs
            if count is not None
        ]
    told = "; ".join(
        f"{name}: {', '.join(str(one) for one in table.column(name))}" for name in lines
    )
    says = "items can be safely removed by the latest timestamps (III-A): no match is lost"
    claim = Claim.judged(says, told, asked)
    return Outcome(table, (Chart(lines, "matches lost", (True, False)),), (claim,))


def by_roles(quick: bool) -> Outcome:
    """Events a second by roles, as the engine has them and as printed, and who is idle."""
    rows = []
    for cores, point in points("stocks", "cores", quick, LEAST_APART):
        agents = point.pattern.states - 1
        ways = [
            hybrid(point.pattern, cores, roles, units, printed=printed)
            for roles, units, printed in (
                ("full", None, AS_BUILT),
                ("full", None, Printed(choice=True)),
                ("state", None, AS_BUILT),
                ("state", None, Printed(caps=True)),
                ("static", agents, AS_BUILT),
                ("static", agents, Printed(caps=True)),
            )
        ]
        if len({one.composites for one in ways}) > 1:
            raise AssertionError(f"{cores} cores: roles change what is found")
        rows.append((cores, *(point.events / one.seconds for one in ways), ways[-1].idle))
    return by_roles_told(Table(("cores", *claims.ROLES, claims.IDLE), tuple(rows)))


def by_roles_told(table: Table) -> Outcome:
    """What is drawn and said of such a table."""
    return Outcome(table, (Chart(claims.ROLES, "events a second"),), claims.roles(table))


SETTING = (
    "Six states, 10,800 ticks or 6,000 readings, 24 cores, windows of 12 min or 110 s, unless "
    "these are what varies. A figure of two windows, two lengths or three numbers of cores was "
    "made with `--quick`: five states, 1,200 ticks or 1,500 readings, windows of 10 min or 100 s."
)
EXPERIMENTS: tuple[Experiment, ...] = (
    *(
        Experiment(
            *(name, PAGE, panel.title, SETTING, panel.run),
            says=PAPER,
            other_way=OTHER_WAY,
            judge=panel.told,
        )
        for name, panel in _panels()
    ),
    Experiment(
        "hybrid-purge",
        PAGE,
        "what the published purge loses",
        "The simulated machine, events worked off in slices, but items let go of as published: "
        "sequences by the newest event at their agent, events by the newest sequence. Other "
        "workers still hold older ones. Without slices, as in the paper, nothing would bound how "
        "far workers are apart; that is not simulated. " + SETTING,
        purged,
        says=PAPER,
        judge=purged_told,
    ),
    Experiment(
        "hybrid-roles",
        PAGE,
        "roles, the caps of workers, and the choice of another agent as printed",
        "No agents are fused. *Capped*: an agent has no more event workers, and no more match "
        "workers, than its pairs would keep busy (IV-A); who is beyond the cap goes to the other "
        "group, and is idle beyond both. *As printed* (VI-A): a worker looks at its own agent "
        "first, then where it found something last, then at the others at random; the engine's "
        "looks first where it found something last. " + SETTING,
        by_roles,
        says=PAPER,
        judge=by_roles_told,
    ),
    Experiment(
        "hybrid-real",
        PAGE,
        "the simulation held to the real engine",
        "The best of three runs: on one core processor time, on two the wall clock.",
        held,
        says=OURS,
        judge=held_told,
    ),
    Experiment(
        "hybrid-indexes",
        PAGE,
        "how far do indexes get",
        "The question that the paper does not ask: the same patterns by our own engines, whose "
        "columns have indexes and whose automata keep shared beginnings once, on one core.",
        indexes,
        says=OURS,
        judge=indexes_told,
    ),
    Experiment(
        "hybrid-replay",
        PAGE,
        "a broker that replays a log",
        "The other question that the paper does not ask. A store's log of messages of 64 events is "
        "read as a broker reads it for `rexmq rule add --since`, and each engine has the rule. "
        "*Distant*: the earliest of four events exceeds the third by 3, windows of 60 s. Events a "
        "second of processor time, of all threads, the better of two runs in turns: so a second "
        "thread gains nothing here, and what sharing costs is seen.",
        replays,
        says=OURS,
        judge=replays_told,
        unmeasured=Table(REPLAYED, ()),
    ),
)
