"""Simulated networks: what a delivered message costs, protocols, codec and engine included.

Each broker of a random network (Waxman, mean degree 5, 5 ms) has a source of its own type and a
sink of two other types; rules join two types each at the centre, and every broker has a sink of
one of them. Events of all sources together come at the same rate whatever the number of brokers.
A message is anything that arrives over a lane, signs of life included. Figures are CPU time while
events flow: from the first one until a tenth of the time is left, when sources begin to close.
What it takes until all brokers agree, before that, and until all sources have closed, is told
beside them, and the greatest memory of the process so far, which grows with the largest network.
The baseline of each row is simpy alone: as many timeouts with one callback.

Networks of other sizes, such as that of the goals (1,000 brokers and 10^6 events in half an hour
and 8 GiB, a message at most twice as dear as at 20 brokers)::

    python -m benchmarks.simulator --brokers 20 1000 --events 1000000
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.report import Row, table
from broker.warmup import warm_up
from simulator import scenario
from simulator.experiment import Experiment
from simulator.simulation import Simulation

SEED = 11
EVENTS = 20_000
RULES = 20
GOAL_US = 40.0
BROKERS = (1, 20, 100)


def run(quick: bool) -> Iterator[Row]:
    """Microseconds a message, at several sizes."""
    warm_up("cdp")  # what kernels take to be compiled is no message's cost
    sizes = ((20, EVENTS // 10),) if quick else tuple((count, EVENTS) for count in BROKERS)
    for brokers, events in sizes:
        for rules in (0, RULES):
            yield _measured(brokers, events, rules)


def _measured(brokers: int, events: int, rules: int) -> Row:
    """Microseconds of CPU time a message of a simulated network."""
    with tempfile.TemporaryDirectory() as folder:
        path = _scenario(Path(folder), brokers, events, rules)
        experiment = Experiment(scenario.read(path), is_watched=False)
        simulation = experiment.simulation
        reached: list[tuple[float, int]] = []
        note = partial(_note, reached, simulation)
        note()
        simulation.at(experiment.first_time, note)
        simulation.at(0.1 * experiment.first_time + 0.9 * experiment.last_time, note)
        experiment.run()
        note()
    (begun_s, _), (ready_s, before), (closing_s, after), (ended_s, _) = reached
    messages, spent_s = after - before, closing_s - ready_s
    return Row(
        f"{brokers} brokers, {rules} rules",
        spent_s / messages * 1e6,
        "us a message",
        "simpy alone",
        _bare_us(messages),
        f"{messages:,} messages, {spent_s / events / 0.9 * 1e6:,.0f} us an event; "
        f"goal {GOAL_US:.0f} us; {ready_s - begun_s:,.1f} s and {before:,} messages to get ready, "
        f"{ended_s - closing_s:,.1f} s to close, {ended_s - begun_s:,.0f} s in all; "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB",
    )


def _note(reached: list[tuple[float, int]], simulation: Simulation) -> None:
    reached.append((time.process_time(), simulation.messages))


def _bare_us(messages: int) -> float:
    """What simpy needs for as many timeouts, one after another, in microseconds each."""
    simulation = Simulation(SEED)
    left = messages

    def step(_: object) -> None:
        nonlocal left
        left -= 1
        if left:
            simulation.after(0.001, step)

    begun = time.process_time()
    simulation.after(0.001, step)
    simulation.run(messages)
    return (time.process_time() - begun) / messages * 1e6


def _scenario(folder: Path, brokers: int, events: int, rules: int) -> Path:
    random = Random(SEED)
    names = [f"b{number:0{len(str(brokers))}}" for number in range(1, brokers + 1)]
    text = [f'seed = {SEED}\n[topology]\nkind = "waxman"\nbrokers = {brokers}\n']
    for place, name in enumerate(names):
        lines = "\n".join(_lines(random, place, brokers, events))
        (folder / f"{name}.jsonl").write_text(lines + "\n")
        text.append(f'[[source]]\nname = "{name}"\nbroker = "{name}"\nevents = "{name}.jsonl"\n')
        wanted = {f"T{random.randrange(brokers)}(v > 50)" for _ in range(2)}
        wanted |= {f"C{random.randrange(rules)}"} if rules else set()
        filters = ", ".join(f'"{one}"' for one in sorted(wanted))
        text.append(f'[[sink]]\nname = "k{place}"\nbroker = "{name}"\nsubscribe = [{filters}]\n')
    if rules:
        types = [f"event T{place}(v: int)" for place in range(brokers)]
        (folder / "rules.tesla").write_text("\n".join([*types, *_rules(random, brokers, rules)]))
        text.insert(0, 'rules = "rules.tesla"\n')
    path = folder / "scenario.toml"
    path.write_text("".join(text))
    return path


def _lines(random: Random, place: int, brokers: int, events: int) -> Iterator[str]:
    """One source's events: 1,000 a second from all of them, at random times, but for the last:
    no source closes before that, for every broker hears of it when one does.
    """
    count, end = events // brokers, 100 + events / 1_000
    times = [*sorted(random.uniform(100, end) for _ in range(count - 1)), end]
    for moment in times:
        data = {"v": random.randrange(100)}
        yield json.dumps({"type": f"T{place}", "time": round(moment, 6), "data": data})


def _rules(random: Random, brokers: int, rules: int) -> Iterator[str]:
    for place in range(rules):
        first, second = random.randrange(brokers), random.randrange(brokers)
        yield (
            f"rule r{place}: define C{place}(v: int) from T{first}(v > 95) as a "
            f"and last T{second}(v > 95) as b within 1 s from a where v = b.v"
        )


def main() -> None:
    """Measure the networks that the command line asks for, small ones first."""
    parser = argparse.ArgumentParser(description=_measured.__doc__)
    parser.add_argument("--brokers", type=int, nargs="+", default=[20, 1_000])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=RULES)
    asked = parser.parse_args()
    warm_up("cdp")
    rows = []
    for brokers in sorted(asked.brokers):
        rows.append(_measured(brokers, asked.events, asked.rules))
        print(table(rows[-1:]), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
