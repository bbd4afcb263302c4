"""Random cases of long sequences: rules in which most events are anchored on selected ones.

The rules of ``rule_texts`` have everything, but seldom an event anchored on one that is anchored
on the terminator, which is what automata are made for. These have little else: chains and trees
of up to five events, joined by equal and by ordered attributes, along the sequence and across it.
"""

from random import Random

from cases import Case, random_events, scheduled
from rule_texts import SCHEMAS, Piece, RuleText

from matcher.model import Kind

TYPES = ("A", "B", "C", "D")
POLICIES = ("each", "each", "last", "last", "first", "2-last", "2-first", "3-last")
EACH_MAX = 2
"""So many multiple selections, or matches are too many for the oracle."""


def sequence_case(seed: int) -> Case:
    """The case of a seed: one to three rules, the later ones perhaps over the first's events."""
    random = Random(seed)
    types = random.sample(TYPES, random.randint(2, 4))
    texts = [_rule(random, "r0", "Z", types)]
    for place in range(1, random.choice((1, 1, 2, 3))):
        texts.append(_rule(random, f"r{place}", random.choice(("Z", "X")), [*types, "Z", "Z"]))
    events = random_events(random, types, random.randint(20, 60), random.choice((8, 12, 20)))
    return scheduled(random, seed, tuple(texts), events)


def _rule(random: Random, name: str, defines: str, types: list[str]) -> RuleText:
    primitive = [one for one in types if one in TYPES]
    events = [_either(random, random.choice(primitive), primitive)]
    conditions = _conditions(random, events[0], events, inner=True)
    pieces = [_piece("", events[0], conditions, " as e0")]
    multiple = 0
    for number in range(1, random.randint(3, 5)):
        event = _either(random, random.choice(types), primitive)
        policy = random.choice(POLICIES)
        multiple += policy == "each"
        if multiple > EACH_MAX or not set(event.split("|")) <= set(TYPES):
            policy = random.choice(POLICIES[2:])
        anchor = number - 1 if random.random() < 0.7 else random.randrange(number)
        window = random.choice(("1 s", "2 s", "2500 ms", "4 s", "6 s", "8 s"))
        conditions = _conditions(random, event, events, inner=True)
        tail = f" as e{number} within {window} from e{anchor}"
        pieces.append(_piece(f"{policy} ", event, conditions, tail))
        events.append(event)
        if random.random() < 0.2:
            pieces += [Piece(item) for item in _conditions(random, "", events, inner=False)]
    if random.random() < 0.25:
        negated = random.choice(types)
        conditions = _conditions(random, negated, events, inner=True)
        between = f" within 2 s from e{random.randrange(len(events))}"
        pieces.append(Piece(f"not {negated}", conditions, between))
    where = {"Z": (), "X": ("n = Count(B() within 3 s from e1)", "v = 0.5", 's = "a"')}[defines]
    consuming = random.sample(range(len(events)), random.choice((0, 0, 0, 1, 2)))
    return RuleText(name, defines, tuple(pieces), where, tuple(f"e{one}" for one in consuming))


def _either(random: Random, event: str, others: list[str]) -> str:
    """A type, or two that an event may have (X2), with a bar between them."""
    other = random.choice(others)
    return f"{event}|{other}" if other != event and random.random() < 0.2 else event


def _piece(head: str, event: str, conditions: tuple[str, ...], tail: str) -> Piece:
    first, *others = event.split("|")
    or_else = "".join(f" or {other}({', '.join(conditions)})" for other in others)
    return Piece(f"{head}{first}", conditions, f"{or_else}{tail}")


def _conditions(random: Random, event: str, events: list[str], *, inner: bool) -> tuple[str, ...]:
    """Up to two conditions, of an event in its parentheses or between those already named."""
    found = []
    for _ in range(random.choice((0, 0, 0, 1, 1, 2) if inner else (1, 1, 2))):
        places = list(range(len(events)))
        left = "" if inner else f"e{random.choice(places[1:])}."
        own = event if inner else events[int(left[1:-1])]
        # The last events more often than the others: those are the anchors.
        other = random.choice((places or [0])[-2:] if random.random() < 0.7 else places or [0])
        numbers = _numbers(own)
        if not numbers:
            continue
        attribute = random.choice(numbers)
        if other >= len(events) or not _numbers(events[other]) or random.random() < 0.15:
            found.append(f"{left}{attribute} {random.choice(('>= 0', '<= 2', '> 0.5', '!= 1'))}")
            continue
        right = attribute if attribute in _numbers(events[other]) else _numbers(events[other])[0]
        comparison = random.choice(("=", "=", "=", "<=", ">", "!="))
        found.append(f"{left}{attribute} {comparison} e{other}.{right}")
    if inner and events == [event]:
        return tuple(item for item in found if "e0" not in item)  # the terminator's own
    return tuple(found)


def _numbers(type_name: str) -> list[str]:
    """The numeric attributes of a type, or of both, that hold small values."""
    first, *others = (SCHEMAS[name].attributes for name in type_name.split("|"))
    return [
        one.name
        for one in first
        if one.name in ("p", "v", "n") and one.kind in (Kind.INT, Kind.FLOAT)
        if all(one in other for other in others)
    ]
