"""Five brokers with stores, and faults at random moments: what is lost, what comes twice?

    python -m benchmarks.faults [--strategy distributed-mt] [--faults 200] [--rate 200] [--seed 1]

Two sources publish all the time; a durable subscription takes what rules find. A fault is one of

    kill one    SIGKILL for a broker, which is started again after up to three seconds
    kill all    SIGKILL for all five at once, which are started again
    stop        SIGSTOP for a broker for longer than heartbeats may be missed, then SIGCONT
    client      the subscriber is killed, and another goes on under its name

At the end the events of the subscription, each by its number, are compared with those of ``rexmq
detect`` over what the sources published: lost, twice, wrong; and events that were marked as having
come before are counted apart. Detection goes on when something comes after the last broker listens
again: that time is told, the median and the most. Exit status 1 where anything is lost, twice or
wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.five import HOMES, LINKS, SINK, WANTED, network, started
from benchmarks.kill import LEVEL, QUIET_S, Source, detected
from benchmarks.processes import stop_children_on_sigterm
from broker import Subscriber
from broker.keys import STRATEGIES

KINDS = ("kill one", "kill one", "kill one", "stop", "client", "kill all")
CALM_S = (1.0, 4.0)
"""Seconds from one fault to the next."""
DEAD_S, STOPPED_S = 3.0, 6.0
NAME = "billing"
SUBSCRIBER = "benchmarks.durable"


class Campaign:
    """Brokers, sources and a subscriber, and faults that befall them."""

    def __init__(self, strategy: str, rate: float, seed: int, folder: Path) -> None:
        self._strategy = strategy
        self._random = random.Random(seed)
        self._folder = folder
        self._links = LINKS["star"]
        self._lines = folder / "sink.jsonl"
        self.counts: Counter[str] = Counter()
        self.waits_s: list[float] = []
        self._rate = rate

    def run(self, faults: int) -> bool:
        """Let so many happen; whether nothing was lost, twice or wrong."""
        with ExitStack() as stack:
            self._brokers = stack.enter_context(
                network(self._strategy, self._links, self._folder, LEVEL, data=self._folder)
            )
            # It is there, and attached to, before anything is published.
            with Subscriber(self._brokers[SINK].endpoint, *WANTED, name=NAME, durable=True):
                pass
            self._subscriber = self._subscribe()
            stack.callback(lambda: self._subscriber.kill())
            sources = [
                Source(self._brokers[home].endpoint, kind, self._rate, self._folder)
                for kind, home in HOMES.items()
            ]
            for number in range(1, faults + 1):
                time.sleep(self._random.uniform(*CALM_S))
                kind = self._random.choice(KINDS)
                self.counts[kind] += 1
                self._fault(kind)
                print(f"{number} {kind}: {self.waits_s[-1]:.1f} s", file=sys.stderr, flush=True)
            refused = sum(source.end() for source in sources)
            self._await_quiet()
        return self._judge(refused)

    def _subscribe(self) -> subprocess.Popen[bytes]:
        words = [self._brokers[SINK].endpoint, NAME, str(self._lines), *WANTED]
        return subprocess.Popen([sys.executable, "-m", SUBSCRIBER, *words])

    # --- faults ---

    def _fault(self, kind: str) -> None:
        names = list(self._links)
        one = self._random.choice(names)
        if kind == "client":
            self._subscriber.kill()
            self._subscriber.wait()
            self._subscriber = self._subscribe()
        elif kind == "stop":
            pid = self._brokers[one].child.pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(pid, signal.SIGCONT)
        else:
            killed = names if kind == "kill all" else [one]
            for name in killed:
                self._brokers[name].kill()
            time.sleep(self._random.uniform(0.0, DEAD_S))
            for name in killed:
                self._brokers[name] = started(
                    name,
                    self._strategy,
                    self._links,
                    self._brokers,
                    self._folder,
                    LEVEL,
                    data=self._folder,
                )
        self.waits_s.append(self._until_more())

    def _until_more(self) -> float:
        """Seconds until the subscriber has something more."""
        begun, size = time.monotonic(), self._lines.stat().st_size
        while self._lines.stat().st_size == size and time.monotonic() - begun < QUIET_S:
            time.sleep(0.02)
        return time.monotonic() - begun

    def _await_quiet(self) -> None:
        while self._until_more() < QUIET_S / 2:
            time.sleep(QUIET_S / 10)

    # --- what came ---

    def _judge(self, refused: int) -> bool:
        records = [self._folder / f"{kind}.jsonl" for kind in HOMES]
        events = sum(len(record.read_text().splitlines()) for record in records)
        wanted = detected(records)
        came: dict[int, str] = {}
        again = other = 0
        for line in self._lines.read_text().splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                continue  # the subscriber was killed in the midst of it, and has it again
            again += said["again"]
            number, event = said["number"], said["event"]
            other += came.setdefault(number, event) != event
        received = Counter(came.values())
        lost, more = (wanted - received).total(), received - wanted
        wrong = sum(count for one, count in more.items() if one not in wanted)
        twice = more.total() - wrong
        waits = sorted(self.waits_s)
        print(
            f"{self._strategy}: {sum(self.counts.values())} faults "
            f"({', '.join(f'{count} {kind}' for kind, count in sorted(self.counts.items()))}), "
            f"{events} events acknowledged, {refused} refused or not; {wanted.total()} composite "
            f"events: {lost} lost, {twice} twice, {wrong} wrong, {other} under another's number; "
            f"{again} marked as having come before; detection goes on after "
            f"{statistics.median(waits):.1f} s, {waits[-1]:.1f} s at most; "
            f"load {os.getloadavg()[0]:.1f}"
        )
        return not (lost or twice or wrong or other or refused)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strategy", choices=STRATEGIES, default="distributed-mt")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--rate", type=float, default=200.0, help="events a second of each source")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    stop_children_on_sigterm()
    os.environ.pop("REXMQ_BROKER", None)
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    print(f"seed {asked.seed}, files in {folder}", file=sys.stderr)
    is_good = Campaign(asked.strategy, asked.rate, asked.seed, folder).run(asked.faults)
    return not is_good


if __name__ == "__main__":
    sys.exit(main())
