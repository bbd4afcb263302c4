"""Five brokers with stores, each a process, and what befalls processes, links, disks and clocks.

Sources are at b1 and b3, the sink at b5; b2 or b4 is the root, and each can be reached without any
other. Every link leads over a relay, so that it can fail; every broker has a clock that can be set.
Where the user may mount file systems, the stores of SMALL are in small ones that can be filled; the
others have a limit on the size of files.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

from benchmarks.clocked import set_clock
from benchmarks.five import RULES, SINK, await_network
from benchmarks.relay import Relay, Weather
from broker import RuleManager
from broker.errors import BrokerError
from broker.process import BrokerProcess

LINKS: Mapping[str, Sequence[str]] = {
    "b2": (),
    "b1": ("b2",),
    "b3": ("b2",),
    "b4": ("b2", "b1"),
    "b5": ("b3", "b4"),
}
"""The brokers that each is linked to, of those that have been started before it."""
SMALL, SMALL_MIB = ("b3", "b5"), 512
"""Brokers whose stores are on small disks, and how large these are: three times a store, which is
what a repair may need.
"""
FILE_BYTES = 64 << 10
"""The limit on the size of files on a disk that counts as full: less than any store has."""
MISSED_MAX = 5
"""Heartbeats, one a second, after which a neighbour is lost whose connection stands."""
AGREED_S, STOP_S, DRAINED_S = 120.0, 30.0, 120.0
REPAIR = ("log", "check", "--repair", "--data")


class ClockedBroker(BrokerProcess):
    """A broker whose clock can be set."""

    def __init__(self, clock: Path, *arguments: str, listen: str, log: Path) -> None:
        self.program = (sys.executable, "-m", "benchmarks.clocked", str(clock))
        with log.open("a") as file:
            super().__init__(*arguments, listen=(listen,), log=file, patient=False)


class FaultyNetwork:
    """The brokers, with the rules of ``benchmarks.five``; a context manager that stops them."""

    def __init__(
        self, strategy: str, folder: Path, links: Mapping[str, Sequence[str]] = LINKS
    ) -> None:
        self._strategy, self._folder, self._links = strategy, folder, links
        self.names = tuple(links)
        self._brokers: dict[str, ClockedBroker] = {}
        self._endpoints: dict[str, str] = {}
        self._relays: dict[tuple[str, str], Relay] = {}
        self.small: frozenset[str] = frozenset()
        """Brokers whose disks can be filled."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.small = frozenset(
                name for name in SMALL if name in self.names and self._mount(name, stack)
            )
            stack.callback(self._stop)
            for name in self.names:
                set_clock(self._file(name, "clock"), 0.0)
                self.start([name])
            with RuleManager(self._endpoints[SINK], connect_timeout_s=AGREED_S) as manager:
                await_network(manager, len(self.names))
                manager.add(RULES)
            self._opened = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def endpoint(self, name: str) -> str:
        """Where clients reach a broker, whatever befalls it."""
        return self._endpoints[name]

    def endpoints(self, first: str) -> str:
        """The addresses of all brokers, for clients that may go on at any: this one's first."""
        names = [first, *(name for name in self.names if name != first)]
        return ",".join(self._endpoints[name] for name in names)

    def roles(self) -> dict[str, str]:
        """Whether each is root, inner broker or leaf of the single tree now."""
        return {name: self._role(name) for name in self.names}

    def _role(self, name: str) -> str:
        with RuleManager(self._endpoints[name], connect_timeout_s=AGREED_S) as manager:
            network = manager.status()["network"]
        if network["root"] == name:
            return "root"
        [tree, *_] = [one for one in network["trees"] if one["root"] == network["root"]] or [{}]
        return "inner" if tree.get("children") else "leaf"

    def home_of(self, durable: str) -> str:
        """The broker that has a durable sink; "" if none says so."""
        with RuleManager(self._endpoints[SINK], connect_timeout_s=AGREED_S) as manager:
            return {one["name"]: one["home"] for one in manager.durables()}.get(durable, "")

    # --- processes ---

    def start(self, names: Iterable[str]) -> None:
        """Start brokers where they were, and wait until they listen."""
        names = list(names)
        for name in names:
            self._brokers[name] = self._started(name)
        for name in names:
            self._brokers[name].await_ready()
            self._endpoints[name] = self._brokers[name].endpoint

    def _started(self, name: str) -> ClockedBroker:
        links = [word for other in self._links[name] for word in ("--link", self._way(name, other))]
        return ClockedBroker(
            self._file(name, "clock"),
            *("--name", name, "--strategy", self._strategy, "--log-level", "warning"),
            *("--heartbeats-missed-max", str(MISSED_MAX)),
            *("--data", str(self.store(name))),
            *links,
            listen=self._endpoints.get(name, "tcp://127.0.0.1:*"),
            log=self._file(name, "log"),
        )

    def kill(self, names: Iterable[str]) -> None:
        """SIGKILL for all of them, then wait until they are gone."""
        killed = [self._brokers[name] for name in names]
        for broker in killed:
            broker.child.kill()
        for broker in killed:
            broker.kill()

    def drain_and_start(self, name: str) -> None:
        """Have a broker leave as for an upgrade, and start it again on its store."""
        self._brokers[name].child.send_signal(signal.SIGUSR1)
        self._brokers[name].child.wait(DRAINED_S)
        self.start([name])

    def pause(self, name: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT later."""
        pid = self._brokers[name].child.pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)

    def _stop(self) -> None:
        for broker in self._brokers.values():
            broker.child.terminate()
        for broker in self._brokers.values():
            with suppress(subprocess.TimeoutExpired):
                broker.stop()
        for relay in self._relays.values():
            relay.close()

    # --- links ---

    def _way(self, name: str, other: str) -> str:
        """The endpoint of the relay by which a broker links to another."""
        if (name, other) not in self._relays:
            self._relays[name, other] = Relay(self._endpoints[other])
        return self._relays[name, other].endpoint

    @property
    def links(self) -> list[tuple[str, str]]:
        """Pairs of brokers that are linked."""
        return list(self._relays)

    def become(self, links: Iterable[tuple[str, str]], weather: Weather) -> None:
        """Change the weather of these links."""
        for link in links:
            self._relays[link].become(weather)

    # --- clocks ---

    def set_clock(self, name: str, seconds: float) -> None:
        """Have a broker's clock be off by so much."""
        set_clock(self._file(name, "clock"), seconds)

    # --- disks ---

    def store(self, name: str) -> Path:
        """The folder of a broker's store."""
        return self._folder / "stores" / name

    def fill_disk(self, name: str, seconds: float) -> None:
        """Leave no room on the disk of a broker for a while.

        SQLite writes its log of writes anew from the beginning, which needs no room, until it is
        as long as it was: so it is emptied before.
        """
        if name in self.small:
            self._settled_file(name)
            filler = self.store(name) / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            time.sleep(seconds)
            filler.unlink()
        else:
            pid = self._brokers[name].child.pid
            _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES, most))
            time.sleep(seconds)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))

    def garble_and_repair(self, name: str) -> None:
        """Kill a broker, overwrite the first page of its store, see it refused, repair it.

        Nothing is in that page but where all else is: so a repair has to keep everything.
        """
        self.kill([name])
        file = self._settled_file(name)
        with file.open("r+b") as page:
            page.write(os.urandom(4096))
        self._verify_refused(name)
        command = [sys.executable, "-m", "broker", *REPAIR, str(self.store(name))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr or done.stdout
        (file.parent / "broker.db.damaged").unlink()
        self.start([name])

    def truncate_and_restore(self, name: str) -> None:
        """Kill a broker, cut off the second half of its store, see it refused, restore a backup."""
        self.kill([name])
        file = self._settled_file(name)
        backup = self._file(name, "backup")
        shutil.copy(file, backup)
        os.truncate(file, file.stat().st_size // 2)
        self._verify_refused(name)
        shutil.move(backup, file)
        self.start([name])

    def back_up(self, name: str) -> Path:
        """A copy of a broker's store, made while the broker runs."""
        copy = self._file(name, "backup")
        with (
            closing(sqlite3.connect(self.store(name) / "broker.db", timeout=10.0)) as store,
            closing(sqlite3.connect(copy)) as backup,
        ):
            store.backup(backup)
        return copy

    def kill_and_set_back(self, name: str, backup: Path) -> None:
        """Kill a broker, and start it with an older copy of its store."""
        self.kill([name])
        file = self.store(name) / "broker.db"
        for suffix in ("", "-wal", "-shm"):
            Path(f"{file}{suffix}").unlink(missing_ok=True)
        shutil.move(backup, file)
        self.start([name])

    def _settled_file(self, name: str) -> Path:
        """The file of a broker's store, with all in it that was in its write-ahead log."""
        file = self.store(name) / "broker.db"
        with closing(sqlite3.connect(file, timeout=10.0)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return file

    def _verify_refused(self, name: str) -> None:
        try:
            self._started(name).await_ready()
        except BrokerError:
            said = self._file(name, "log").read_text().splitlines()[-1]
            assert "is damaged" in said, said
            assert "--repair" in said, said
        else:
            raise AssertionError(f"{name} takes a damaged store")

    def _mount(self, name: str, stack: ExitStack) -> bool:
        """Have a small disk for a broker's store; whether that may be."""
        folder = self.store(name)
        folder.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_MIB}m", "tmpfs", str(folder)]
        if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
            return False
        stack.callback(subprocess.run, ["umount", str(folder)], check=False)
        return True

    def _file(self, name: str, suffix: str) -> Path:
        return self._folder / f"{name}.{suffix}"
