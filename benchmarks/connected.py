"""Connectors, and kills at random moments: what is lost, what comes twice?

    python -m benchmarks.campaign connected [--systems mqtt,nats] [--kills 30] [--rate 200]

Readings go into another system all the time; a connector brings them to a broker with a store, and
gives all of them to the other system again. One kill follows another, in turns: of the connector,
of the broker, of the other system; each is started again. The other system is killed by SIGKILL,
but Mosquitto is ended by SIGTERM: killed, it would lose what it has confirmed itself. The cluster
that librdkafka plays stands in for Kafka, and is not killed.

At the end the messages that went out are compared with those that the other system had confirmed
before: ``lost`` never came out; ``twice`` came out as two events; ``repeats`` are messages of one
event that went out more than once; ``marked`` are those that say so in their CloudEvent, if they
came again or might have. A line for each kill, then one for each system. Faults: anything that is
lost or twice.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from benchmarks.campaign import Outcome, Worker, faults_of, tell
from benchmarks.faults import GIVEN_UP_S, QUIET_S, Pace
from benchmarks.servers import free_port, program_of
from benchmarks.systems import SYSTEMS
from broker import Subscriber
from broker.process import BrokerProcess

LOT_S = 0.1
"""Seconds of readings that are published together."""
CONNECTED_S = 60.0
PACE = Pace(calm=(2.0, 4.0), dead=(0.0, 1.0))
FILE = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "plant"
events = ["Reading(area: string, number: int)"]
id_column = "number"
dead_letter = "plant.dead"
{source}

[[sink]]
name = "alerts"
filters = ["Reading()"]
dead_letter = "alerts.dead"
{sink}
"""


class Readings(Worker):
    """Readings that are published to a system until it is told to end, each until it is confirmed;
    ``count`` of them are.
    """

    def __init__(self, system: Any, rate: float) -> None:
        super().__init__()
        self._system, self.lot = system, max(1, round(rate * LOT_S))
        self.count = 0

    def run(self) -> None:
        while not self.ending.wait(LOT_S):
            numbers = range(self.count, self.count + self.lot)
            lot = [("a1", json.dumps({"number": number}).encode()) for number in numbers]
            while not self._is_published(lot):
                time.sleep(LOT_S)
            self.count += self.lot

    def _is_published(self, lot: list[tuple[str, bytes]]) -> bool:
        try:
            self._system.publish(lot)
        except Exception:  # whatever a client raises whose server is being killed
            return False
        return True


class Seen(threading.Thread):
    """The greatest number of a reading that the broker has given, for who looks how it goes on."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(daemon=True)
        self._endpoint = endpoint
        self.newest = -1

    def run(self) -> None:
        with Subscriber(self._endpoint, "Reading()", connect_timeout_s=GIVEN_UP_S) as subscriber:
            for event in subscriber:
                self.newest = max(self.newest, int(event.data["number"]))


class Connected:
    """A system, a broker and a connector between both, each of which can be killed."""

    def __init__(self, system: Any, folder: Path, seed: int) -> None:
        self._system, self._folder = system, folder
        self._random = random.Random(seed)
        self._endpoint = f"tcp://127.0.0.1:{free_port()}"
        own = {"source": system.source, "sink": system.sink}
        text = FILE.format(endpoint=self._endpoint, **own).replace("URL", system.url)
        self._file = folder / "plant.toml"
        self._file.write_text(text)
        self._broker = self._started()
        self._connector = self._connecting()
        self._seen = Seen(self._endpoint)
        self._seen.start()
        self.kinds: Mapping[str, Callable[[], None]] = {
            "connector": self._kill_connector,
            "broker": self._kill_broker,
        }
        if system.can_restart:
            self.kinds = {**self.kinds, "system": self._kill_system}

    def run(self, kills: int, rate: float) -> Outcome:
        """Publish while so many kills happen, and compare."""
        self._await_connected()
        readings = Readings(self._system, rate)
        readings.start()
        for number in range(1, kills + 1):
            self._calm()
            kind = [*self.kinds][number % len(self.kinds)]
            self.kinds[kind]()
            waited_s = self._until_more(readings)
            tell(number, f"kill {kind}", waited_s)
        self._calm()
        readings.end()
        sent = self._all_of(readings.count)
        return self._outcome(kills, readings.count, sent)

    def close(self) -> None:
        self._connector.kill()
        self._connector.wait()
        self._broker.kill()

    def _await_connected(self) -> None:
        """Publish readings that do not count, until one comes out: Mosquitto keeps messages for a
        session that was there before.
        """
        until = time.monotonic() + CONNECTED_S
        while not self._system.sent():
            if time.monotonic() > until:
                raise TimeoutError("nothing comes out")
            self._system.publish([("a1", b'{"number": -1}')])
            self._calm()

    # --- kills ---

    def _calm(self) -> None:
        """Wait a while, with a connector that runs."""
        until = time.monotonic() + self._random.uniform(*PACE.calm)
        while time.monotonic() < until:
            self._tend()
            time.sleep(0.1)

    def _tend(self) -> None:
        """Start the connector again if it has ended: it does if it finds nobody at its start."""
        if self._connector.poll() is not None:
            self._connector = self._connecting()

    def _dead(self) -> None:
        time.sleep(self._random.uniform(*PACE.dead))

    def _kill_connector(self) -> None:
        self._connector.kill()
        self._connector.wait()
        self._dead()
        self._connector = self._connecting()

    def _kill_broker(self) -> None:
        self._broker.kill()
        self._dead()
        self._broker = self._started()

    def _kill_system(self) -> None:
        self._system.server.kill(self._system.end_with)
        self._dead()
        self._system.server.start()

    def _started(self) -> BrokerProcess:
        return BrokerProcess("--data", str(self._folder / "store"), listen=(self._endpoint,))

    def _connecting(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "broker", "connect", str(self._file)]
        with (self._folder / "connect.log").open("a") as log:
            return subprocess.Popen(words, stderr=log)

    def _until_more(self, readings: Readings) -> float:
        """Seconds until the broker gives a reading that is published from now on."""
        since, first = time.monotonic(), readings.count + readings.lot
        while self._seen.newest < first and time.monotonic() < since + GIVEN_UP_S:
            self._tend()
            time.sleep(0.05)
        return time.monotonic() - since

    # --- what came ---

    def _all_of(self, count: int) -> list[dict[str, Any]]:
        """The events that have gone out, once all have or none comes any more."""
        before, until = -1, time.monotonic() + QUIET_S
        while time.monotonic() < until:
            self._calm()
            sent = [json.loads(body) for _, body, _ in self._system.sent()]
            if {*range(count)} <= {event["data"]["number"] for event in sent}:
                break
            if len(sent) > before:
                before, until = len(sent), time.monotonic() + QUIET_S
        return sent

    def _outcome(self, kills: int, published: int, sent: list[dict[str, Any]]) -> Outcome:
        sequences = defaultdict[int, set[int]](set)
        for event in sent:
            if event["data"]["number"] >= 0:
                sequences[event["data"]["number"]].add(event["sequence"])
        letters = [
            len(file.read_text().splitlines()) for file in sorted(self._folder.glob("*.dead"))
        ]
        came = sum(event["data"]["number"] >= 0 for event in sent)
        marked = sum(bool(event.get("again")) for event in sent)
        return Outcome(
            f"{kills} kills, {published:,} published, {came - sum(map(len, sequences.values())):,}"
            f" repeats, {marked:,} marked, {sum(letters):,} letters",
            faults_of(
                {
                    "lost": len({*range(published)} - sequences.keys()),
                    "twice": sum(len(own) > 1 for own in sequences.values()),
                }
            ),
        )


def campaign(
    folder: Path,
    systems: Annotated[str, Option(help="Of mqtt, nats, redis, amqp, kafka.")] = "mqtt,nats",
    kills: int = 30,
    rate: Annotated[float, Option(help="Messages a second.")] = 200.0,
    seed: int = 1,
) -> Iterator[Outcome]:
    """Kills between a broker and each of the systems that are installed."""
    for name in systems.split(","):
        if SYSTEMS[name].program and program_of(SYSTEMS[name].program) is None:
            print(f"{name}: left out, there is no {SYSTEMS[name].program}")
            continue
        with ExitStack() as stack:
            own = folder / name
            own.mkdir()
            system = SYSTEMS[name](own)
            stack.enter_context(system.server)
            system.prepare()
            stack.callback(system.close)
            connected = Connected(system, own, seed)
            stack.callback(connected.close)
            outcome = connected.run(kills, rate)
        yield Outcome(f"{name}: {outcome.said}", outcome.faults)
