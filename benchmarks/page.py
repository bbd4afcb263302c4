"""A broker's page while 10,000 events a second go through the broker: does either slow the other?

    python -m benchmarks.page [--seconds 10] [--turns 3] [--rate 10000]

A process publishes at that pace, and a rule finds one event in a hundred, for a subscriber. In
turns nobody looks; *Network* is open in Chromium; *Events* is, with primitive events kept, too.
Printed for each, the medians of the turns: the broker's processor time for an event (events that
the page is given included), what the subscriber has got of what was to be found, the processor time
a second of the process that serves the page, and in the browser the longest time between two
frames and the 99th percentile, and how long scripts had the page wait at most (tasks above 50 ms).
It needs the extra ``dev`` and Debian's chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from benchmarks.processes import processor_s, stop_children_on_sigterm
from broker import Publisher, RuleManager, Subscriber
from broker.monitoring.tap import IDLE_S
from broker.process import BrokerProcess
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", value="float")
RULE = """event Temp(area: string, value: float)
rule hot: define Hot(area: string) from Temp(value >= 99) as t where area = t.area"""
STEP_S = 0.01
VIEWS = {"nobody looks": None, "Network": "#network", "Events, all kept": "#events"}
FRAMES = """() => { window.gaps = []; window.tasks = [0]; let last = performance.now();
  const frame = (now) => { gaps.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => list.getEntries().forEach((one) => tasks.push(one.duration)))
    .observe({ type: "longtask" }); }"""
FIGURES = """() => { const all = [...gaps].sort((a, b) => a - b);
  return [all[Math.floor(all.length * 0.99)], all.at(-1), Math.max(...tasks)]; }"""


def publish(endpoint: str, rate: int, seconds: float) -> None:
    """Publish at a pace; prints how many events."""
    step = max(1, round(rate * STEP_S))
    rows = [{"area": "hall", "value": float(number % 100)} for number in range(100)]
    sent = 0
    with Publisher(endpoint, name="source", types=[TEMP], increasing=True) as source:
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < seconds:
            if sent < now * rate:
                for number in range(sent, sent + step):
                    source.publish("Temp", **rows[number % 100])
                sent += step
            else:
                time.sleep(STEP_S / 4)
    print(sent)


def turn(broker: BrokerProcess, url: str, view: str | None, options: Any) -> list[float]:
    """The figures of one turn."""
    (server,) = children(broker.child.pid)
    got = 0
    ended = threading.Event()

    def take() -> None:
        nonlocal got
        with Subscriber(broker.endpoint, "Hot()") as sink:
            while not ended.is_set():
                with suppress(TimeoutError):
                    got += len(sink.receive_delivery(0.5))

    with ExitStack() as opened:
        page = opened.enter_context(Tab(url + view)) if view is not None else None
        if page is not None:
            if view == "#events":
                page.get_by_label("keep primitive events").check()
            page.wait_for_timeout(2_000)
            page.evaluate(FRAMES)
        sink = threading.Thread(target=take)
        sink.start()
        time.sleep(0.5)
        words = ["--publish", broker.endpoint, "--rate", str(options.rate)]
        before = processor_s(broker.child.pid), processor_s(server)
        source = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.page", *words, "--seconds", str(options.seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        if page is not None:
            page.wait_for_timeout(options.seconds * 1_000)
        sent = int(source.communicate()[0])
        used = processor_s(broker.child.pid) - before[0], processor_s(server) - before[1]
        frames = page.evaluate(FIGURES) if page is not None else [0.0, 0.0, 0.0]
        time.sleep(1.0)
        ended.set()
        sink.join()
    per_event, per_second = used[0] / sent * 1e6, used[1] / options.seconds * 1e3
    return [sent / options.seconds, per_event, got / (sent / 100), per_second, *frames]


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    texts = [one.read_text() for one in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(one) for text in texts for one in text.split()]


class Tab:
    """A tab of Chromium at an address."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> Any:
        from playwright.sync_api import sync_playwright

        self._started = sync_playwright().start()
        self._browser = self._started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = self._browser.new_page(viewport={"width": 1600, "height": 900})
        page.goto(self._url)
        return page

    def __exit__(self, *exception: object) -> None:
        self._browser.close()
        self._started.stop()


def measure(options: Any) -> None:
    """Measure in turns, and print."""
    found: dict[str, list[list[float]]] = {name: [] for name in VIEWS}
    with BrokerProcessOf("--name", "b1", "--http", "127.0.0.1:0") as (broker, url):
        with RuleManager(broker.endpoint) as manager:
            manager.add(RULE)
        for _ in range(options.turns):
            for name, view in VIEWS.items():
                if view is None and found[name]:
                    time.sleep(IDLE_S + 1)  # until it subscribes to nothing
                found[name].append(turn(broker, url, view, options))
                print(name, [round(one, 2) for one in found[name][-1]], file=sys.stderr)
    print(
        "| | events/s | broker, us an event | got | page's process, ms a second | "
        "frames p99, ms | longest | longest task |\n|---|---|---|---|---|---|---|---|"
    )
    for name, turns in found.items():
        middle = [statistics.median(column) for column in zip(*turns, strict=True)]
        texts = [f"{middle[0]:,.0f}", f"{middle[1]:.1f}", f"{middle[2]:.1%}"]
        texts += [f"{one:.0f}" for one in middle[3:]]
        print(f"| {name} | {' | '.join(texts)} |")


class BrokerProcessOf:
    """A broker with pages, and their address."""

    def __init__(self, *arguments: str) -> None:
        self._broker = BrokerProcess(*arguments)

    def __enter__(self) -> tuple[BrokerProcess, str]:
        assert self._broker.child.stdout is not None
        url = self._broker.child.stdout.readline().split()[-1].removesuffix("metrics")
        time.sleep(2.0)
        return self._broker, url

    def __exit__(self, *exception: object) -> None:
        self._broker.stop()


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--publish", metavar="ENDPOINT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    stop_children_on_sigterm()
    if options.publish:
        publish(options.publish, options.rate, options.seconds)
    else:
        measure(options)


if __name__ == "__main__":
    main()
