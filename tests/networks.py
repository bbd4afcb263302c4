"""Random networks with random rules and events, as scenario files."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from cases import Case, Deploy, Push, random_case
from msgspec import structs
from rule_texts import SCHEMAS
from sharp_cases import SharpCase
from timeline import batches

from matcher.formats.printing import json_lines
from matcher.matching import Matching
from matcher.methods.matcher import Matcher
from matcher.model import Event
from routing.delivery import subscriber_index
from routing.network.tables import demand, filters
from simulator import scenario
from simulator.experiment import Experiment, Outcome

BELOW = (("loss", 0.2), ("repeats", 0.3), ("reordering", 0.05), ("delay", 0.3))
"""What may happen below links, and how much of it."""
MAKE = Matching.make
FILTERS = ("A", "A(v > 1)", "B", "B(p = 1, f)", "C()", "D(q > 0)", "X", "X(n > 1)", "Y()", "Z")
FORGETFUL = "[protocol]\nunasked_events_max = 3\n"
"""Brokers that let go of events as soon as nobody needs them."""


def usable(seed: int) -> tuple[str, list[Event]] | None:
    """Rules and events of a case; None for one that needs Timer or deploys a rule twice.

    Nor for one whose rules use a type that nobody publishes or defines: they wait for it.
    """
    return usable_of(random_case(seed))


def usable_of(case: Case) -> tuple[str, list[Event]] | None:
    """The same of any case."""
    texts = [str(text) for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    if len(set(texts)) < len(texts) or any("Timer" in text for text in texts):
        return None
    events = {
        (event.source, event.sequence): event
        for step in case.steps
        if isinstance(step, Push)
        for event in step.events
    }
    rules = "\n\n".join(texts)
    known = {event.type for event in events.values()} | set(re.findall(r"define (\w+)\(", rules))
    if any(f"{name}(" in rules for name in SCHEMAS.keys() - known):
        return None
    return rules, list(events.values())


def write(
    folder: Path,
    seed: int,
    rules: str,
    events: list[Event],
    strategy: str = "centralized",
    protocol: str = "",
) -> Path:
    """A scenario of a random network with these rules and events."""
    random = Random(f"network {seed}")
    declared = "\n".join(f"event {schema}" for schema in SCHEMAS.values())
    (folder / "rules.tesla").write_text(f"{declared}\n{rules}")
    brokers = [f"n{number}" for number in range(random.randint(2, 12))]
    text = f'seed = {seed}\nstrategy = "{strategy}"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += protocol
    text += "".join(f'[[broker]]\nname = "{name}"\n' for name in brokers)
    links = {frozenset((brokers[random.randrange(n)], brokers[n])) for n in range(1, len(brokers))}
    for _ in range(random.randint(0, len(brokers))):
        links.add(frozenset(random.sample(brokers, 2)))
    for one, other in sorted(map(sorted, links)):
        delay_ms = random.choice([0.5, 5.0, 40.0, 400.0])
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\ndelay_ms = {delay_ms}\n'
    homes = brokers
    if strategy != "centralized" and random.random() < 0.7:  # near each other, mostly
        homes = random.sample(brokers, min(2, len(brokers)))
    for source in sorted({event.source for event in events}):
        own = [event for event in events if event.source == source]
        lines = json_lines(batches(own, SCHEMAS.values()))
        (folder / f"{source}.jsonl").write_bytes(lines)
        broker = random.choice(homes)
        text += f'[[source]]\nname = "{source}"\nbroker = "{broker}"\nevents = "{source}.jsonl"\n'
    for number in range(random.randint(1, 4)):
        chosen = random.sample(FILTERS, random.randint(1, len(FILTERS)))
        filters = ", ".join(f'"{one}"' for one in chosen)
        text += f'[[sink]]\nname = "k{number}"\nbroker = "{random.choice(brokers)}"\n'
        text += f"subscribe = [{filters}]\n"
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


def apart(seed: int, events: list[Event]) -> list[Event]:
    """The events as if each type came from a source of its own, or from two."""
    random = Random(f"apart {seed}")
    homes = {name: [f"{name}{n}" for n in range(random.choice((1, 1, 2)))] for name in SCHEMAS}
    counts: dict[str, int] = {}
    found = []
    for event in events:
        home = random.choice(homes[event.type])
        number = counts[home] = counts.get(home, 0) + 1
        name = f"n{number}" if event.id.startswith("n") else str(number)
        found.append(structs.replace(event, source=home, sequence=number, id=name))
    return found


def sharp(seed: int) -> tuple[str, list[Event]] | None:
    """A rule made to be divided (tests/sharp_cases.py); None when a type of it has no events."""
    case = SharpCase(seed)
    events = [
        structs.replace(event, source=f"at {home}")
        for home, own in case.events.items()
        for event in own
    ]
    if not case.types <= {event.type for event in events}:
        return None
    return "\n".join(rule.text for rule in case.rules.rules), events


def run(path: Path) -> Outcome:
    return Experiment(scenario.read(path)).run()


def faulty(path: Path, random: Random, seconds: float) -> Path:
    """The scenario with links that break, each once."""
    text = path.read_text()
    pairs = [line for line in text.splitlines() if line.startswith("between")]
    for line in random.sample(pairs, random.randint(1, min(4, len(pairs)))):
        link = line.removeprefix("between = ")
        at_s, for_s = random.uniform(0.5, seconds), random.choice((0.2, 2.0, 6.0, 15.0))
        text += f'[[fault]]\nkind = "cut"\nat_s = {at_s}\nfor_s = {for_s}\nlinks = [{link}]\n'
    if random.random() < 0.5:
        kind, value = random.choice(BELOW)
        text += f'[[fault]]\nkind = "{kind}"\nat_s = 0.0\nfor_s = 20.0\nvalue = {value}\n'
    path.write_text(text)
    return path


def local(path: Path, strategy: str) -> Path:
    """A line of eight brokers; sources, sink and most of their events at one end."""
    rules = f"event {SCHEMAS['A']}\nevent {SCHEMAS['B']}\nrule r: define W(p: int)\n"
    rules += "from A() as a and last B(p = a.p) within 2 s from a where p = a.p"
    (path / "rules.tesla").write_text(rules)
    text = f'strategy = "{strategy}"\nengine = "naive"\nrules = "rules.tesla"\n'
    text += "".join(f'[[broker]]\nname = "n{number}"\n' for number in range(8))
    text += "".join(f'[[link]]\nbetween = ["n{n}", "n{n + 1}"]\n' for n in range(7))
    for place, name in enumerate("AB"):
        data = {"A": {"v": 0.0, "s": ""}, "B": {"q": 0, "f": True}}[name]
        events = [
            Event(name, second * 1_000_000, name, str(second), {"p": second % 3, **data}, second)
            for second in range(1 + place, 60)
        ]
        (path / f"{name}.jsonl").write_bytes(json_lines(batches(events, SCHEMAS.values())))
        text += f'[[source]]\nname = "{name}"\nbroker = "n{place}"\nevents = "{name}.jsonl"\n'
    text += '[[sink]]\nname = "k"\nbroker = "n0"\nsubscribe = ["W()"]\n'
    file = path / f"{strategy}.toml"
    file.write_text(text)
    return file


def match_few(patch: pytest.MonkeyPatch) -> None:
    """Have brokers match subscriptions together, however few they are."""
    for module in (subscriber_index, demand, filters):
        patch.setattr(module, "MANY", 1)
    filters._shared.cache_clear()


def matching_by(
    patch: pytest.MonkeyPatch, path: Path, text: str, name: str, device: str = "cpu"
) -> Callable[[], int]:
    """Have all brokers of a scenario match by a matcher, however few the subscriptions are; gives
    what tells how many matchers were made since.
    """
    match_few(patch)
    count = itertools.count()
    make = MAKE

    def counted(matching: Matching) -> Matcher:
        next(count)
        return make(matching)

    patch.setattr(Matching, "make", counted)
    keys = f'matcher = "{name}"\ndevice = "{device}"\n'
    path.write_text(re.sub(r'(\[\[broker\]\]\nname = "\w+"\n)', rf"\g<1>{keys}", text))
    return lambda: next(count)
