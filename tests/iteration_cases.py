"""Random cases of iterations (tesla.md X4), which the rules of ``rule_texts`` have none of.

A rule has one or two, anchored on the terminator or on an event between, of primitive events or of
those of the rule before it, its own among them; what comes before and behind them in the text may
be of their type. Values are few and times on a grid, so that neighbours are often simultaneous.
"""

from random import Random

from cases import Case, random_events, scheduled
from rule_texts import SCHEMAS, Piece, RuleText

TYPES = ("A", "B", "C", "D")
POLICIES = ("each", "each", "last", "last", "first", "2-last", "2-first")
NUMBERS = {"A": ("p", "v"), "B": ("p",), "C": ("p", "v"), "D": ("v",), "X": ("n", "v")}
FUNCTIONS = ("Count", "Sum", "Avg", "Min", "Max", "StdDev", "First")


def iteration_case(seed: int, *, long: bool = False) -> Case:
    """The case of a seed: one or two rules, the second perhaps over the first's events."""
    random = Random(seed)
    types = random.sample(TYPES, random.randint(2, 3))
    texts = iteration_rules(random, types)
    number = random.randint(100, 160) if long else random.randint(20, 60)
    events = random_events(random, types, number, random.choice((8, 12, 30)))
    return scheduled(random, seed, texts, events)


def iteration_rules(random: Random, types: list[str]) -> tuple[RuleText, ...]:
    """One or two rules over primitive types, the second perhaps over the first's events."""
    first = _rule(random, "r0", "X", types)
    if random.random() < 0.6:
        return (first,)
    return first, _rule(random, "r1", random.choice("XZ"), [*types, "X"])


def _rule(random: Random, name: str, defines: str, types: list[str]) -> RuleText:
    primitive = [one for one in types if one in TYPES]
    events, runs = [random.choice(primitive)], list[int]()
    pieces = [Piece(events[0], _own(random, events[0], ()), " as e0")]
    for _ in range(random.choice((1, 1, 2, 2, 3))):
        repeats = not runs or random.random() < 0.2
        event = random.choice(types)
        if repeats and random.random() < 0.7:
            event = events[0] if random.random() < 0.4 else random.choice(primitive)
        anchor = random.randrange(len(events))
        times = f" {random.choice(('1..', '2..', '1..2', '2..3', '3..3', '2..', '3..'))}"
        if event == "X" and not repeats:
            policy = random.choice(POLICIES[2:])
        else:
            policy = random.choice(POLICIES)
        conditions = _own(random, event, events)
        if repeats:
            conditions = (*_asked(event), *conditions, *_links(random, event))
            runs.append(len(events))
        window = random.choice(("1 s", "2 s", "2500 ms", "4 s", "8 s", "20 s"))
        tail = f" as e{len(events)} within {window} from e{anchor}"
        pieces.append(Piece(f"{policy}{times if repeats else ''} {event}", conditions, tail))
        events.append(event)
    if random.random() < 0.25:
        negated = random.choice(types)
        tail = f" within {random.choice(('1 s', '2 s'))} from e{random.choice(runs)}"
        pieces.append(Piece(f"not {negated}", _own(random, negated, events), tail))
    if random.random() < 0.2:
        pieces.append(Piece(f"Count(e{random.choice(runs)}) <= {random.choice((2, 3, 5))}"))
    where = (
        f"n = {_aggregated(random, random.choice(runs), events, 'int')}",
        f"v = {_aggregated(random, random.choice(runs), events, 'float')}",
        's = "a"',
    )
    consuming = random.sample(range(len(events)), random.choice((0, 0, 0, 1, 1, 2)))
    names = tuple(f"e{one}" for one in sorted(consuming))
    return RuleText(name, defines, tuple(pieces), where if defines == "X" else (), names)


def _asked(event: str) -> tuple[str, ...]:
    """What may be null is asked for, as aggregates of runs need it."""
    return tuple(f"{one} > -9" for one in NUMBERS[event])


def _own(random: Random, event: str, others: object) -> tuple[str, ...]:
    """Up to two conditions of an event alone, or that compare it with an earlier one."""
    found = []
    names = list(others) if isinstance(others, list) else []
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        attribute = random.choice(NUMBERS[event])
        place = random.randrange(len(names)) if names and random.random() < 0.6 else -1
        shared = [] if place < 0 else [x for x in NUMBERS[names[place]] if x == attribute]
        if shared:
            comparison = random.choice(("=", "<=", ">=", "!="))
            found.append(f"{attribute} {comparison} e{place}.{shared[0]}")
        else:
            found.append(f"{attribute} {random.choice(('>= 0', '<= 2', '> 0.5', '!= 1'))}")
    return tuple(found)


def _links(random: Random, event: str) -> tuple[str, ...]:
    """Up to two conditions between neighbours."""
    found = []
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        attribute = random.choice(NUMBERS[event])
        comparison = random.choice(("=", "<", "<=", ">", ">=", "!="))
        found.append(
            random.choice(
                (
                    f"{attribute} {comparison} previous.{attribute}",
                    f"{attribute} {comparison} previous.{attribute}",
                    f"({attribute} >= 1 and previous.{attribute} >= 1)",
                    f"while {attribute} >= 1",
                    f"while ({attribute} = 1 or {attribute} > 2)",
                    f"time - previous.time <= {random.choice(('0 s', '1 s', '2 s'))}",
                    f"({attribute} = previous.{attribute} or time > previous.time)",
                    f"10 / {attribute} >= 10 / previous.{attribute}",
                    f"{attribute} - previous.{attribute} < e0.{random.choice(NUMBERS[event])}",
                )
            )
        )
    return tuple(one for one in found if "e0" not in one)


def _aggregated(random: Random, run: int, events: list[str], kind: str) -> str:
    """A value of a run's events."""
    name, event = f"e{run}", events[run]
    schema = SCHEMAS[event]
    whole = [one.name for one in schema.attributes if one.name in NUMBERS[event]]
    wanted = [one for one in whole if schema.attributes[schema.names.index(one)].kind.value == kind]
    if kind == "int":
        if not wanted or random.random() < 0.5:
            return f"Count({name})"
        function = random.choice(("Sum", "Min", "Max", "First"))
        more = random.choice(("", " * 2", f" - {name}.{wanted[0]}"))
        return f"{function}({name}.{wanted[0]}{more})"
    attribute = random.choice(whole)
    if not wanted or random.random() < 0.5:
        return f"{random.choice(('Avg', 'StdDev'))}({name}.{attribute})"
    if random.random() < 0.3:
        return f"{name}.{wanted[0]}"
    return f"{random.choice(FUNCTIONS[1:])}({name}.{wanted[0]})"
