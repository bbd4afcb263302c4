"""What telling the texts of rules on demand saves (docs/decisions/0020-rules-known-everywhere.md).

The bytes of all messages that say what is known, over all links, from the start of a simulated
network until its rules are deployed and its sinks have subscribed: types and homes are in them,
too. The baseline is the same network in which every broker knows every text. They are counts of one
seed, the same on every machine.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.report import Row
from routing.config import RuleTexts
from simulator import scenario
from simulator.experiment import Experiment
from simulator.simulation import Trace

SIZES = ((20, 100, 10), (60, 300, 5), (150, 750, 3))
"""Brokers, rules, and subscriptions of each broker."""
KNOWN, AMENDED = "49+55", "49+72"
"""As traces name packets with these messages."""
TEXT = """seed = 1
strategy = "distributed-mt"
[topology]
kind = "waxman"
brokers = {brokers}
degree = 5.0
[workload]
horizon_s = 0.2
types = {types}
rules = {rules}
subscriptions = {subscriptions}
"""


def run(quick: bool = False) -> Iterator[Row]:
    """The bytes on demand, beside those of everywhere, for networks of growing size."""
    for brokers, rules, subscriptions in ((6, 20, 2),) if quick else SIZES:
        text = TEXT.format(
            brokers=brokers, types=6 * rules // 5, rules=rules, subscriptions=subscriptions
        )
        everywhere, on_demand = (bytes_of(text, texts) for texts in RuleTexts)
        name = f"{rules} rules told among {brokers} brokers, {subscriptions} subscriptions each"
        yield Row(name, on_demand, "bytes", "all texts everywhere", everywhere)


def bytes_of(text: str, texts: RuleTexts) -> int:
    """The bytes of what is told of what is known, in a scenario with texts told so."""
    carried = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(text)
        made = replace(scenario.read(path), rule_texts=texts.value)
    Experiment(made, Trace(carried), keeps_deliveries=False, is_watched=False).run()
    lines = (line.rsplit(" ", 2) for line in carried.getvalue().splitlines())
    return sum(int(size) for _, kind, size in lines if kind in (KNOWN, AMENDED))
