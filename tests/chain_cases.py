"""Random cases of rules that hybrid parallelism takes: chains of two to six events, of ``each``.

Windows are short and conditions many, or matches are too many for the oracle; some chains have a
window for the whole of them too, and events of one type at several places.
"""

from dataclasses import replace
from random import Random

from cases import Case, Deploy, Remove, Step, random_events, scheduled
from iteration_cases import _asked, _links, _own
from rule_texts import Piece, RuleText
from sequence_cases import TYPES, _conditions, _piece

import rules
from rules.engine.chains.hybrid.chains import reason_against


def chain_case(seed: int, events: int = 40) -> Case:
    """The case of a seed: one or two rules."""
    random = Random(seed)
    types = random.sample(TYPES, random.randint(2, 4))
    texts = [_chain(random, f"r{place}", types) for place in range(random.choice((1, 1, 2)))]
    count = random.randint(events // 2, events)
    happened = random_events(random, types, count, random.choice((8, 12, 20)))
    return scheduled(random, seed, tuple(texts), happened)


def _chain(random: Random, name: str, types: list[str]) -> RuleText:
    length = random.choice((2, 2, 3, 3, 4, 5, 6))
    events = [random.choice(types)]
    conditions = _conditions(random, events[0], events, inner=True)
    pieces = [_piece("", events[0], conditions, " as e0")]
    windows = ("1 s", "2 s", "2500 ms") if length > 3 else ("1 s", "2500 ms", "4 s", "8 s")
    for number in range(1, length):
        event = random.choice(types)
        conditions = _conditions(random, event, events, inner=True)
        tail = f" as e{number} within {random.choice(windows)} from e{number - 1}"
        pieces.append(_piece("each ", event, conditions, tail))
        events.append(event)
        if number > 1 and random.random() < 0.4:
            earlier = random.randrange(number)
            pieces.append(Piece(f"e{number} within {random.choice(windows)} from e{earlier}"))
        if random.random() < 0.3:
            pieces += [Piece(item) for item in _conditions(random, "", events, inner=False)]
    return RuleText(name, "Z", tuple(pieces), (), ())


def decided_case(seed: int, events: int = 50) -> Case:
    """One of a chain of two to four events with runs, negations and aggregates."""
    random = Random(seed)
    types = random.sample("ABCD", random.randint(2, 3))
    texts = (_decided(random, "r0", types),)
    happened = random_events(random, types, random.randint(events // 2, events), 20)
    return scheduled(random, seed, texts, happened)


def _decided(random: Random, name: str, types: list[str]) -> RuleText:
    events, runs = [random.choice(types)], list[int]()
    pieces = [_piece("", events[0], _own(random, events[0], ()), " as e0")]
    windows = ("1 s", "2 s", "2500 ms", "4 s")
    for number in range(1, random.choice((2, 3, 3, 4))):
        event = random.choice(types)
        head, conditions = "each ", _own(random, event, events)
        if random.random() < 0.5:
            head = f"each {random.choice(('1..', '2..', '1..2', '2..3'))} "
            conditions = (*_asked(event), *conditions, *_links(random, event))
            runs.append(number)
        tail = f" as e{number} within {random.choice(windows)} from e{number - 1}"
        pieces.append(_piece(head, event, conditions, tail))
        events.append(event)
    for _ in range(random.choice((0, 1, 1, 2))):
        other, place = random.choice(types), random.randrange(len(events))
        inside = _piece("", other, _own(random, other, events), "")
        if place and random.random() < 0.5:
            span = f"between e{place} and e{random.randrange(place)}"
        else:
            span = f"within {random.choice(windows)} from e{place}"
        if random.random() < 0.5:
            pieces.append(Piece(f"not {inside} {span}"))
        else:
            pieces.append(Piece(f"Count({inside} {span}) {random.choice(('<', '>='))} 2"))
    if runs and random.random() < 0.5:
        pieces.append(Piece(f"Count(e{random.choice(runs)}) <= {random.choice((2, 3))}"))
    count = f"Count(e{random.choice(runs)})" if runs else "1"
    return RuleText(name, "X", tuple(pieces), (f"n = {count}", "v = 0.5", 's = "a"'), ())


def of_chains(case: Case) -> Case:
    """The same case with those of its rules alone that hybrid parallelism takes."""
    taken, steps = set[str](), list[Step]()
    texts = [text for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    loaded = [(text, rules.load(str(text), known=case.schemas).rules[0]) for text in texts]
    while True:  # a rule that goes may leave another's events to nobody
        defined = {rule.defines.name for text, rule in loaded if text.name not in taken}
        refused = {
            text.name
            for text, rule in loaded
            if text.name not in taken and reason_against(rule, defined)
        }
        if not refused:
            break
        taken |= refused
    for step in case.steps:
        match step:
            case Deploy():
                kept = tuple(text for text in step.rules if text.name not in taken)
                steps.append(replace(step, rules=kept))
            case Remove() if step.name in taken:
                pass
            case _:
                steps.append(step)
    return replace(case, steps=tuple(steps))
