"""The parts of a random scenario: rules, who is where, events, changes, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from matcher.model import MICROSECONDS, Event, EventType, Kind, Value
from simulator.fuzzing.case import LEAD_S, Case, Change, Fault, Sink, used
from simulator.fuzzing.sharp import SharpWriter
from simulator.fuzzing.world import COMPOSITE, PRIMITIVE, SCHEMAS, STRINGS, RuleText
from simulator.fuzzing.writer import RuleWriter
from simulator.mishaps import BOUNDS

FILTERS = ("A", "A(v > 1)", "B", "B(p = 1, f)", "C()", "D(q > 0)", "X", "X(n > 1)", "Y()", "Z")
FAULTS = {
    kind: BOUNDS.get(kind) for kind in ("loss", "repeats", "reordering", "delay", "slow", "cut")
}
"""The faults on links and brokers, and between what bounds their values are."""
ATTEMPTS_MAX = 50
"""At many changes in a row that leave no rule waiting for a type."""


def seconds_of(events: Sequence[Event]) -> float:
    """From the first event to the last, in seconds."""
    return (events[-1].time - events[0].time) / MICROSECONDS


def moment_s(random: Random, span_s: float) -> float:
    """Some moment of a stream that takes so long."""
    return round(random.uniform(0.0, span_s), 3)


def changed(case: Case, make: Callable[[], Iterable[Change]]) -> Case:
    """The case with other changes, the first that make sense; as it is, where none do."""
    for _ in range(ATTEMPTS_MAX):
        changed = replace(case, changes=tuple(make()))
        if changed.is_sound:
            return changed
    return case


class Maker:
    """Draws all of a case from one generator. Draws are made in one order, so a seed means one
    case.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def case(self, seed: int, strategy: str) -> Case:
        """All of it, but for what is made of it then (making)."""
        random = self._random
        sharp = random.random() < 0.5
        rules = self._sharp_rules() if sharp else self._any_rules()
        brokers = tuple(f"n{number}" for number in range(random.randint(2, 12)))
        links = self._links(brokers)
        homes = self._homes(brokers)
        events = tuple(self._events(homes, used(rules), sharp))
        sources = sorted({event.source for event in events})
        changes = tuple(self._some_changes(brokers, rules, events))
        every = [*rules, *(rule for change in changes for rule in change.rules)]
        faulty = random.random() < 0.5
        return Case(
            seed,
            strategy,
            brokers,
            links,
            rules,
            events,
            tuple((source, homes[source]) for source in sources),
            tuple(self._sinks(brokers, [rule.defines for rule in every])),
            tuple(self._faults(links)) if faulty else (),
            random.choice((0.0, 0.0, 50.0, 500.0, 5_000.0)),
            changes,
            "arrival" if random.random() < 0.15 else "watermark",
        )

    # --- rules ---

    def _sharp_rules(self) -> tuple[RuleText, ...]:
        count = self._random.choice((1, 1, 1, 2))
        return tuple(SharpWriter(self._random).write(f"r{place}") for place in range(count))

    def _any_rules(self) -> tuple[RuleText, ...]:
        random = self._random
        primitives = random.sample(list(PRIMITIVE), random.randint(2, 4))
        count = random.choice((1, 1, 2, 2, 3, 4))
        composites = random.sample(list(COMPOSITE), random.randint(1, min(count, 3)))
        return tuple(
            RuleWriter(random, primitives, composites).write(
                f"r{place}",
                composites[place] if place < len(composites) else random.choice(composites),
            )
            for place in range(count)
        )

    def _some_changes(
        self, brokers: Sequence[str], rules: Sequence[RuleText], events: Sequence[Event]
    ) -> Iterator[Change]:
        """None in more than half of the networks, in the others while events come."""
        random = self._random
        if random.random() < 0.45:
            span_s = seconds_of(events)
            count = random.choice((1, 1, 2, 4))
            times = sorted(random.uniform(0.0, span_s) for _ in range(count))
            yield from self.changes(brokers, rules, events, times)

    def changes(
        self,
        brokers: Sequence[str],
        rules: Sequence[RuleText],
        events: Sequence[Event],
        times_s: Sequence[float],
    ) -> Iterator[Change]:
        """Some rules more, others in the place of these, and some removed, at these times."""
        random = self._random
        held = {rule.name: rule for rule in rules}
        published = sorted({event.type for event in events})
        for at_s in times_s:
            broker, place = random.choice(brokers), f"r{random.randrange(len(rules) + 2)}"
            if place in held and random.random() < 0.6:
                del held[place]
                yield Change(round(at_s, 3), broker, removed=place)
                continue
            rule = self._another(place, published, {one.defines for one in held.values()})
            held[place] = rule
            yield Change(round(at_s, 3), broker, (rule,))

    def additions(
        self, brokers: Sequence[str], rules: Sequence[RuleText], events: Sequence[Event]
    ) -> Iterator[Change]:
        """Some rules more. None uses what another of them defines: that one may be refused, and who
        wants what the first would find waits for as long as it does.
        """
        random, span_s = self._random, seconds_of(events)
        published = sorted({event.type for event in events})
        defined = {one.defines for one in rules}
        times = sorted(random.uniform(0.0, span_s) for _ in range(random.randint(1, 4)))
        for number, at_s in enumerate(times, len(rules)):
            rule = self._another(f"r{number}", published, defined)
            yield Change(round(at_s, 3), random.choice(brokers), (rule,))

    def replacement(
        self, brokers: Sequence[str], name: str, others: Iterable[RuleText], events: Sequence[Event]
    ) -> Change:
        """A rule in the place of the one of a name, beside these others."""
        random = self._random
        published = sorted({event.type for event in events})
        rule = self._another(name, published, {one.defines for one in others})
        at_s = random.uniform(0.0, seconds_of(events))
        return Change(round(at_s, 3), random.choice(brokers), (rule,))

    def past_rules(
        self,
        brokers: Sequence[str],
        rules: Iterable[RuleText],
        events: Sequence[Event],
        at_s: float,
    ) -> Iterator[Change]:
        """A rule or two more from a time on, most of them when most events have come, which hold
        from a past instant; some end again.
        """
        random, span_s = self._random, seconds_of(events)
        published = sorted({event.type for event in events})
        defined = {one.defines for one in rules}
        least, most = random.choice(((0.0, 1.0), (0.7, 1.3), (0.7, 1.3)))
        shares = sorted(random.uniform(least, most) for _ in range(random.choice((1, 1, 2))))
        for number, time_s in enumerate(at_s + share * span_s for share in shares):
            rule = self._another(f"p{number}", published, defined)
            back_s = random.uniform(-1.0, random.choice((time_s, time_s / 2)))
            since_s = random.choice((round(back_s, 3), float(round(back_s))))
            yield Change(round(time_s, 3), random.choice(brokers), (rule,), since_s=since_s)
            if random.random() < 0.25:
                end_s = time_s + random.choice((0.0, random.uniform(0.0, span_s)))
                yield Change(round(end_s, 3), random.choice(brokers), removed=rule.name)

    def _another(self, name: str, published: Sequence[str], defined: Collection[str]) -> RuleText:
        """A rule of any kind, which may use what others define."""
        random = self._random
        if random.random() < 0.4:
            return SharpWriter(random).write(name)
        defines = random.choice(list(COMPOSITE))
        return RuleWriter(random, published, sorted({defines, *defined})).write(name, defines)

    # --- the network ---

    def _links(self, brokers: Sequence[str]) -> tuple[tuple[str, str, float], ...]:
        """A tree, and some links more, which make cycles."""
        random = self._random
        pairs = {
            (brokers[random.randrange(number)], brokers[number])
            for number in range(1, len(brokers))
        }
        for _ in range(random.randint(0, len(brokers))):
            one, other = sorted(random.sample(range(len(brokers)), 2))
            pairs.add((brokers[one], brokers[other]))
        return tuple(
            (one, other, random.choice((0.5, 5.0, 40.0, 400.0))) for one, other in sorted(pairs)
        )

    def _homes(self, brokers: Sequence[str]) -> dict[str, str]:
        """Each type has a source or two of its own; mostly they are near each other."""
        random = self._random
        near = random.sample(brokers, min(2, len(brokers))) if random.random() < 0.6 else brokers
        return {
            f"{name}{number}": random.choice(near)
            for name in PRIMITIVE
            for number in range(random.choice((1, 1, 2)))
        }

    def _sinks(self, brokers: Sequence[str], detected: Sequence[str]) -> Iterator[Sink]:
        """Each wants something that may be detected, and mostly more."""
        random = self._random
        for number in range(random.randint(1, 4)):
            others = random.sample(FILTERS, random.randint(0, len(FILTERS) // 2))
            filters = dict.fromkeys([random.choice(detected), *others])
            yield Sink(f"k{number}", random.choice(brokers), tuple(filters))

    # --- events ---

    def _events(self, homes: dict[str, str], used: Sequence[str], sharp: bool) -> Iterator[Event]:
        """Mostly of types that rules use; the others are foreign traffic."""
        random = self._random
        wanted = [source for source in homes if source[0] in used] or list(homes)
        count = random.randint(30, 80) if sharp else random.randint(10, 36)
        seconds = random.choice((20, 40, 80) if sharp else (4, 8, 12, 40))
        numbers: dict[str, int] = {}
        times = sorted(self._time(seconds) for _ in range(count))
        for time in times:
            source = random.choice(wanted if random.random() < 0.9 else list(homes))
            number = numbers[source] = numbers.get(source, 0) + random.randint(1, 2)
            schema = SCHEMAS[source[0]]
            data = self._data(schema, sharp)
            yield Event(schema.name, time, source, str(number), data, number)

    def _time(self, seconds: int) -> int:
        """On a grid of seconds, mostly, so that ties and windows hit exactly are common."""
        random = self._random
        slip = random.choice((-1, 1)) if random.random() < 0.08 else 0
        return random.randint(0, seconds) * MICROSECONDS + slip

    def _data(self, schema: EventType, sharp: bool) -> dict[str, Value]:
        """Where rules are sharp values are few, so that conditions are mostly true."""
        return {one.name: self._value(one.name, one.kind, sharp) for one in schema.attributes}

    def _value(self, name: str, kind: Kind, sharp: bool) -> Value:
        random = self._random
        match kind:
            case Kind.INT:
                return random.randint(0, 1 if sharp and name == "p" else 3)
            case Kind.FLOAT:
                return random.randint(0, 3) / 2 if sharp else random.randint(-4, 12) / 5
            case Kind.BOOL:
                return random.random() < 0.5
            case Kind.STRING:
                return random.choice(STRINGS)

    # --- faults ---

    def _faults(self, links: Sequence[tuple[str, str, float]]) -> Iterator[Fault]:
        """One of a kind at most, since those of one kind must not overlap."""
        random = self._random
        for kind in random.sample(list(FAULTS), random.randint(1, 3)):
            bounds = FAULTS[kind]
            value = None if bounds is None else round(random.uniform(*bounds), 4)
            for_s = random.uniform(0.1, 2.0 if kind == "cut" else 30.0)
            chosen = random.sample(links, random.randint(1, len(links)))
            some = tuple((one, other) for one, other, _ in chosen)
            where = () if kind == "slow" or random.random() < 0.5 else some
            yield Fault(kind, round(random.uniform(-LEAD_S, 10), 3), round(for_s, 3), value, where)
