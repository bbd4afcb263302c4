"""How long the steps of brokers are: what one does between two looks at its links.

    python -m benchmarks.campaign steps [--rules 1000] [--events 500000] [--strategy centralized]
    python -m benchmarks.campaign steps --rules 10000 --events 0

Three brokers in a line, each a process, with a source at either end and a sink at one. Texts of
many rules are deployed there, then one rule more, and one is removed; then no rule changes, and
events come that make the root ask for checkpoints; a broker is killed, so that all rules begin
anew. In another such network events come that are kept, and a broker is killed:
they are sent once more. Printed: of each broker the longest steps of each phase, in milliseconds of
its thread's processor time, so that other programs do not count.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option

from benchmarks.campaign import Outcome
from benchmarks.five import await_network
from benchmarks.language import rules_text
from broker import Publisher, RuleManager, Subscriber
from broker.cli import main as rexmq
from broker.process import BrokerProcess
from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, StringColumn
from routing.network.brokers.broker import Broker

LINE: Mapping[str, tuple[str, ...]] = {"b2": (), "b1": ("b2",), "b3": ("b2",)}
"""The brokers, and those that each is linked to; b2 is the root."""
STEPS = ("receive_together", "receive_frames", "handle_timer", "stored", "lose")
"""The steps of a broker as its host calls them; the first calls the second."""
TOLD_MS = 5.0
"""A step that is longer is told."""
TEMP = EventType.of("Temp", area="string", value="float")
SMOKE = EventType.of("Smoke", area="string", level="int")
RAIN = EventType.of("Rain", area="string", amount="float")
SOURCES = {"b1": (SMOKE,), "b3": (TEMP, RAIN)}
"""Brokers, and what is published there while rules are deployed."""
WANTED = "Fire0", "Fire1"
"""Types that a tenth of the rules define each; the first may be found on a tree of its sinks."""
CONSUMING = re.compile(r"(define Fire[02468]\(.*?)consuming Temp\n", re.DOTALL)
AREAS, APART_US = 50, 1_000
NAMES = tuple(f"area-{number}" for number in range(AREAS))
BEGIN_US = 1_700_000_000 * MICROSECONDS
TEXT_RULES = 1_000
"""Rules of one text: what a text may have is less than 10,000 such rules (rules.syntax.words)."""
QUIET_EVENTS, QUIET_SIZE = 32_768, 64
"""Events that come while no rule changes, for some checkpoints, and those of a batch."""
SETTLED_S, SHOWN = 3.0, 6
KEEPING = """event Temp(area: string, value: float)
event Smoke(area: string, level: int)
rule kept: define Kept(area: string, value: float)
from Smoke(area = $a) and last Temp(area = $a) within 1 hours from Smoke
where area = $a, value = Temp.value
"""


class MeasuredBroker(BrokerProcess):
    """A broker that says on standard error how long its steps take."""

    program = (sys.executable, "-m", "benchmarks.steps")


def serve() -> int:
    """Be the command ``rexmq``, with the broker's steps measured."""
    under_way: list[str] = []
    for name in STEPS:
        setattr(Broker, name, _measured(name, getattr(Broker, name), under_way))
    return rexmq()


def _measured(name: str, step: Callable[..., Any], under_way: list[str]) -> Callable[..., Any]:
    @wraps(step)
    def measured(*given: Any) -> None:
        if under_way:
            step(*given)
            return
        under_way.append(name)
        begun = time.thread_time()
        step(*given)
        under_way.pop()
        ms = (time.thread_time() - begun) * 1e3
        if ms > TOLD_MS:
            print(json.dumps({"step": name, "ms": ms}), file=sys.stderr, flush=True)

    return measured


@contextmanager
def network(strategy: str, folder: Path) -> Iterator[tuple[dict[str, BrokerProcess], Steps]]:
    """The brokers, once they have agreed on their network, and what they say of their steps."""
    brokers: dict[str, BrokerProcess] = {}
    folder.mkdir()
    with ExitStack() as stack:
        for name, others in LINE.items():
            links = [word for one in others for word in ("--link", brokers[one].endpoint)]
            options = ("--name", name, "--strategy", strategy, "--log-level", "error")
            with (folder / name).open("w") as log:
                brokers[name] = MeasuredBroker(*options, *links, log=log)
            stack.callback(brokers[name].stop)
        with RuleManager(brokers["b2"].endpoint) as manager:
            await_network(manager, len(LINE))
        steps = Steps(folder)
        steps.tell("agreeing")
        yield brokers, steps


class Steps:
    """What the brokers have said of their steps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = dict.fromkeys(LINE, 0)

    def tell(self, phase: str) -> None:
        """Print the longest since the last call, once nothing happens any more."""
        time.sleep(SETTLED_S)
        for name in sorted(LINE):
            lines = (self._folder / name).read_text().splitlines()
            new, self._read[name] = lines[self._read[name] :], len(lines)
            found = [json.loads(line) for line in new if line.startswith("{")]
            longest = sorted(found, key=lambda one: -one["ms"])[:SHOWN]
            words = ", ".join(f"{one['ms']:.0f} ({one['step']})" for one in longest)
            print(f"{phase}: {name}: {words or 'none'}", flush=True)


def deploy(brokers: Mapping[str, BrokerProcess], steps: Steps, rules: int) -> None:
    """Deploy many rules, then one more, and remove that; then let events come."""
    with ExitStack() as stack:
        for name, types in SOURCES.items():
            endpoint = brokers[name].endpoint
            publisher = Publisher(endpoint, name=f"at-{name}", types=types, live=False)
            stack.enter_context(publisher)
        sink = stack.enter_context(Subscriber(brokers["b1"].endpoint))
        manager = stack.enter_context(RuleManager(brokers["b1"].endpoint))
        steps.tell("two sources")
        for first in range(0, rules, TEXT_RULES):
            manager.add(text_of(min(TEXT_RULES, rules - first), first))
        steps.tell(f"{rules} rules in texts of {TEXT_RULES} at most")
        for wanted in WANTED:
            sink.subscribe(wanted)
        steps.tell("a sink of two types")
        manager.add(text_of(1).replace("fire0", "other"))
        steps.tell("one rule more")
        manager.remove("other")
        steps.tell("one rule less")
        publish(brokers, QUIET_EVENTS, QUIET_SIZE)
        steps.tell(f"no rule changes, {QUIET_EVENTS} events")
        brokers["b3"].kill()
        steps.tell("b3 is killed")


def text_of(rules: int, first: int = 0) -> str:
    """The rules of benchmarks.language, of which every other type's consume nothing."""
    return CONSUMING.sub(r"\1", rules_text(rules, first))


def begin_anew(brokers: Mapping[str, BrokerProcess], steps: Steps, events: int, size: int) -> None:
    """Have brokers begin anew that keep many events, which came in batches of a size."""
    with RuleManager(brokers["b2"].endpoint) as manager:
        manager.add(KEEPING)
    publish(brokers, events, size)
    steps.tell(f"{events} events")
    brokers["b3"].kill()
    steps.tell("b3 is killed")


def publish(brokers: Mapping[str, BrokerProcess], events: int, size: int) -> None:
    """Publish Temps at the root, and few Smokes."""
    endpoint = brokers["b2"].endpoint
    with Publisher(endpoint, name="temps", types=[TEMP], increasing=True) as publisher:
        for first in range(0, events, size):
            publisher.publish_batch(temps(first, size))
        publisher.wait(60.0)


def temps(first: int, size: int) -> EventBatch:
    """Some Temps, by the number of the first."""
    numbers = np.arange(first, first + size)
    ids = EventIds(StringColumn.constant("", size), np.zeros(size, np.int64))
    areas = StringColumn((numbers % AREAS).astype(np.int32), NAMES)
    times = BEGIN_US + numbers * APART_US
    return EventBatch(TEMP, times, ids, (areas, (numbers % 100).astype(np.float64)))


def campaign(
    folder: Path,
    rules: int = 1_000,
    events: int = 500_000,
    size: Annotated[int, Option(help="Events of a batch.")] = 1_024,
    strategy: str = "centralized",
) -> Iterator[Outcome]:
    """Measure; the lines of each phase."""
    if rules:
        with network(strategy, folder / "rules") as (brokers, steps):
            deploy(brokers, steps, rules)
    if events:
        with network(strategy, folder / "events") as (brokers, steps):
            begin_anew(brokers, steps, events, size)
    yield Outcome(f"{rules:,} rules, {events:,} events", None)


if __name__ == "__main__":
    sys.exit(serve())
