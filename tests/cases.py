"""Random small cases: rules, events and a schedule, all from one seed.

A case is a list of steps that any engine can be taken through by :func:`run`. Times lie on a grid
of seconds and so do windows, so that ties and windows hit exactly at their ends are common.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from msgspec import structs
from rule_texts import COMPOSITE, OPTIONAL, PRIMITIVE, SCHEMAS, STRINGS, RuleText, RuleWriter
from timeline import batches

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventType, Kind, Value
from rules.engine.chains.published.engine import AipPublished
from rules.engine.engine import Detector
from simulator.fuzzing.nulls import asking_for_nulls, with_nulls
from simulator.fuzzing.shrinking import reduced, smaller_rules, without_some


@dataclass(frozen=True, slots=True)
class Deploy:
    rules: tuple[RuleText, ...]
    since: int | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Remove:
    name: str


@dataclass(frozen=True, slots=True)
class Push:
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Advance:
    marks: int | Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ForgetMarks:
    pass


Step = Deploy | Remove | Push | Advance | ForgetMarks


@dataclass(frozen=True, slots=True)
class Case:
    """``steps`` in order; ``is_orderly`` when every schedule of the same events must agree (S14):
    nothing is deployed or removed in mid-stream and no event comes after its mark."""

    seed: int
    steps: tuple[Step, ...]
    is_orderly: bool
    has_nulls: bool = False

    @property
    def schemas(self) -> Mapping[str, EventType]:
        """The types of its events."""
        return OPTIONAL if self.has_nulls else SCHEMAS

    def at_once(self) -> "Case":
        """The same rules and events in three steps."""
        deployed = [step for step in self.steps if isinstance(step, Deploy)]
        events = tuple(
            event for step in self.steps if isinstance(step, Push) for event in step.events
        )
        return replace(self, steps=(*deployed, Push(events), Advance(TIME_MAX)))

    @property
    def has_common_marks(self) -> bool:
        """Whether every mark is one for all types, so that all rules advance together."""
        return all(isinstance(step.marks, int) for step in self.steps if isinstance(step, Advance))

    def __str__(self) -> str:
        """The case as rules text and events in JSON lines, for a report."""
        return "\n".join([f"seed {self.seed}", *(_told(step) for step in self.steps)])


@dataclass(slots=True)
class Outcome:
    """What an engine did: per advance, the composite events in order; then its counters."""

    advances: list[list[Event]] = field(default_factory=list)
    marks: list[Mapping[str, int]] = field(default_factory=list)
    duplicates: int = 0
    conflicts: int = 0

    def events(self) -> Iterator[Event]:
        return (event for events in self.advances for event in events)


def run(case: Case, engine: Detector) -> Outcome:
    """Take an engine through a case."""
    outcome = Outcome()
    for step in case.steps:
        match step:
            case Deploy():
                text = "\n\n".join(map(str, step.rules))
                ruleset = rules.load(text, known=case.schemas)
                engine.deploy(ruleset, since=step.since, version=step.version)
            case Remove():
                engine.remove(step.name)
            case Push():
                for batch in batches(step.events, case.schemas.values()):
                    engine.push(batch)
            case Advance():
                outcome.advances.append(list(engine.advance(step.marks).events()))
                outcome.marks.append(engine.marks)
            case ForgetMarks():
                engine.forget_marks()
    outcome.duplicates, outcome.conflicts = engine.duplicates, engine.conflicts
    return outcome


def nullable(case: Case) -> Case:
    """The same case where every attribute is optional, some are null, and rules ask for it."""
    random, steps = Random(case.seed), list[Step]()
    pushed = [event for step in case.steps if isinstance(step, Push) for event in step.events]
    events = iter(with_nulls(random, pushed))
    for step in case.steps:
        match step:
            case Push():
                step = Push(tuple(itertools.islice(events, len(step.events))))
            case Deploy():
                asking = tuple(asking_for_nulls(random, rule) for rule in step.rules)
                step = replace(step, rules=asking)
        steps.append(step)
    return replace(case, steps=tuple(steps), has_nulls=True)


def with_conflicts(case: Case) -> Case:
    """The same case where some events are followed by others of their ids."""
    random, steps = Random(case.seed), list[Step]()
    for step in case.steps:
        if isinstance(step, Push):
            others = [
                structs.replace(event, time=event.time + random.randint(0, 1))
                for event in step.events
                if random.random() < 0.2
            ]
            step = Push((*step.events, *others))
        steps.append(step)
    return replace(case, steps=tuple(steps), is_orderly=False)


# --- making cases ------------------------------------------------------------------------------


def random_case(seed: int, *, long: bool = False) -> Case:
    """The case of a seed; a ``long`` one has 100 to 200 events, so that columns grow and age."""
    random = Random(seed)
    primitives = random.sample(list(PRIMITIVE), random.randint(2, 3))
    count = random.choice((1, 1, 2, 2, 3, 4))
    composites = random.sample(list(COMPOSITE), random.randint(1, min(count, 3)))
    texts = tuple(
        RuleWriter(random, primitives, composites).write(
            f"r{place}", composites[place] if place < len(composites) else random.choice(composites)
        )
        for place in range(count)
    )
    published = primitives + (composites[:1] if random.random() < 0.15 else [])
    number = random.randint(100, 200) if long else random.randint(10, 36)
    seconds = random.choice((40, 80, 200) if long else (4, 8, 12))
    events = random_events(random, published, number, seconds)
    return scheduled(random, seed, texts, events)


def scheduled(random: Random, seed: int, texts: tuple[RuleText, ...], events: list[Event]) -> Case:
    """Rules and events on a random schedule."""
    schedule = random.choice((_whole, _whole, _in_order, _by_type, _late, _live))
    is_orderly = schedule in (_whole, _in_order, _by_type)
    return Case(seed, tuple(schedule(random, texts, events)), is_orderly)


def random_events(random: Random, types: Sequence[str], count: int, seconds: int) -> list[Event]:
    """Events in order of time, some of them twice."""
    named, numbers = random.random() < 0.2, {"a": 0, "b": 0}
    events = []
    for _ in range(count):
        time = random.randint(0, seconds) * MICROSECONDS
        if random.random() < 0.08:
            time += random.choice((-1, 1))
        source = random.choice("ab")
        numbers[source] += random.randint(1, 3)
        number = numbers[source]
        schema = SCHEMAS[random.choice(types)]
        data = {one.name: _random_value(random, one.name, one.kind) for one in schema.attributes}
        printed = f"n{number}" if named else str(number)
        events.append(Event(schema.name, time, source, printed, data, number))
    if random.random() < 0.2:
        events += random.sample(events, random.randint(1, 4))
    return sorted(events, key=lambda event: event.time)


def _random_value(random: Random, name: str, kind: Kind) -> Value:
    match kind:
        case Kind.INT if name == "q" and random.random() < 0.1:
            return random.choice((2**63 - 1, -(2**63), 2**62, 2**53 + 1))
        case Kind.INT:
            return random.randint(0, 3)
        case Kind.FLOAT:
            return random.randint(-4, 12) / 5
        case Kind.BOOL:
            return random.random() < 0.5
        case Kind.STRING:
            return random.choice(STRINGS)


def _deploy(random: Random, texts: tuple[RuleText, ...], events: Sequence[Event]) -> Iterator[Step]:
    """All rules at the start: together or apart, from the beginning or from some instant."""
    if not texts:
        return
    groups = [texts] if random.random() < 0.7 else [(text,) for text in texts]
    for version, group in enumerate(groups):
        late = random.random() < 0.15
        yield Deploy(group, random.choice(events).time if late else None, version)


def _whole(random: Random, texts: tuple[RuleText, ...], events: list[Event]) -> Iterator[Step]:
    """Everything in any order, then one advance."""
    yield from _deploy(random, texts, events)
    shuffled = random.sample(events, len(events))
    for chunk in _chunks(random, shuffled):
        yield Push(chunk)
    yield Advance(TIME_MAX)


def _in_order(random: Random, texts: tuple[RuleText, ...], events: list[Event]) -> Iterator[Step]:
    """In order of time, with a mark for all types after each chunk."""
    yield from _deploy(random, texts, events)
    rest = list(events)
    for chunk in _chunks(random, events):
        yield Push(tuple(random.sample(chunk, len(chunk))))
        rest = rest[len(chunk) :]
        if rest and random.random() < 0.8:
            yield Advance(random.choice((rest[0].time, chunk[-1].time)))
    yield Advance(TIME_MAX)


def _by_type(random: Random, texts: tuple[RuleText, ...], events: list[Event]) -> Iterator[Step]:
    """Every type in its own order of time and with its own marks, one ahead of the other.

    The first event comes first, so that timers know from the start where the input begins.
    """
    yield from _deploy(random, texts, events)
    yield Push((events[0],))
    queues = {name: [one for one in events if one.type == name] for name in SCHEMAS}
    waiting = [name for name, queue in queues.items() if queue]
    while waiting:
        name = random.choice(waiting)
        count = random.randint(1, 6)
        chunk, queues[name] = tuple(queues[name][:count]), queues[name][count:]
        yield Push(chunk)
        waiting = [name for name, queue in queues.items() if queue]
        named = random.sample(list(PRIMITIVE), random.randint(1, 4))
        # A composite type that is published has a mark of its own too, once it has been named.
        named += [one for one in COMPOSITE if queues[one]]
        marks = {one: queues[one][0].time if queues[one] else TIME_MAX for one in named}
        if random.random() < 0.5:
            marks["Timer"] = random.choice(events).time
        if random.random() < 0.3:
            yield ForgetMarks()
        yield Advance(marks)
    yield Advance(TIME_MAX)


def _late(random: Random, texts: tuple[RuleText, ...], events: list[Event]) -> Iterator[Step]:
    """In order of time, but some events come only after the mark has passed them."""
    late = [event for event in events if random.random() < 0.2]
    orderly = [event for event in events if event not in late]
    for step in _in_order(random, texts, orderly or events):
        yield step
        if isinstance(step, Push) and late and random.random() < 0.6:
            yield Push((late.pop(random.randrange(len(late))),))


def _live(random: Random, texts: tuple[RuleText, ...], events: list[Event]) -> Iterator[Step]:
    """Rules come and go between chunks; they hold from beyond everything pushed (S15)."""
    waiting, deployed, version = list(texts[1:]), [texts[0]], 0
    greatest = None
    for step in _in_order(random, texts[:1], events):
        yield step
        if isinstance(step, Push):
            greatest = max([event.time for event in step.events] + ([greatest] if greatest else []))
        if not isinstance(step, Advance) or step.marks == TIME_MAX:
            continue
        if waiting and random.random() < 0.7:
            text = waiting.pop(0)
            deployed.append(text)
            version += 1
            yield Deploy((text,), (greatest or 0) + random.randint(1, 2 * MICROSECONDS), version)
        elif deployed and random.random() < 0.3:
            text = deployed.pop(random.randrange(len(deployed)))
            waiting.append(text)
            yield Remove(text.name)


def _chunks(random: Random, events: Sequence[Event]) -> Iterator[tuple[Event, ...]]:
    rest = tuple(events)
    while rest:
        count = random.choice((1, 2, 3, 5, 8, len(rest)))
        yield rest[:count]
        rest = rest[count:]


# --- reducing cases ----------------------------------------------------------------------------


TRIES_MAX = 4000
"""So many smaller cases are tried; what is left then is small enough to be read."""


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that still fails; ``fails`` counts a case that cannot run as not failing.

    Every reduction leaves less, so there is an end; TRIES_MAX sees to it that it comes soon.
    """
    simpler = case.at_once()
    if fails(simpler):
        case = simpler
    return reduced(case, _smaller, fails, TRIES_MAX)


def _smaller(case: Case) -> Iterator[Case]:
    """The case with one thing less, big things first."""
    for place, step in enumerate(case.steps):
        for simpler in ((), *_smaller_steps(step)):
            yield replace(case, steps=case.steps[:place] + simpler + case.steps[place + 1 :])


def _smaller_steps(step: Step) -> Iterator[tuple[Step]]:
    match step:
        case Push():
            for events in without_some(step.events):
                yield (Push(events),)
        case Deploy():
            for texts in without_some(step.rules):
                yield (replace(step, rules=texts),)
            for place, text in enumerate(step.rules):
                for simpler in smaller_rules(text):
                    texts = (*step.rules[:place], simpler, *step.rules[place + 1 :])
                    yield (replace(step, rules=texts),)
        case _:
            return


def _told(step: Step) -> str:
    match step:
        case Deploy():
            told = "\n".join(map(str, step.rules))
            return f"deploy since={step.since} version={step.version}\n{told}"
        case Remove():
            return f"remove {step.name}"
        case Push():
            return "push\n" + "\n".join(
                json.dumps(
                    {
                        "type": event.type,
                        "time": event.time / MICROSECONDS,
                        "source": event.source,
                        "id": event.id,
                        "data": event.data,
                    }
                )
                for event in step.events
            )
        case Advance():
            return f"advance {step.marks}"
        case ForgetMarks():
            return "forget marks"


def of_sequences(case: Case) -> Case:
    """The same case with those of its rules alone that AIP as published takes."""
    gone, steps = set[str](), list[Step]()
    for step in case.steps:
        match step:
            case Deploy():
                kept = tuple(text for text in step.rules if is_sequence(text, case))
                gone |= {text.name for text in step.rules} - {text.name for text in kept}
                steps.append(replace(step, rules=kept))
            case Remove() if step.name in gone:
                pass
            case _:
                steps.append(step)
    return replace(case, steps=tuple(steps))


def is_sequence(text: RuleText, case: Case) -> bool:
    """Whether AIP as published takes a rule."""
    try:
        AipPublished().refuse(rules.load(str(text), known=case.schemas))
    except rules.RuleErrors:
        return False
    return True
