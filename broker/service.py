"""A broker as a process: configuration, log, signals, and a host that runs until told to stop.

SIGTERM and SIGINT stop it gracefully, SIGUSR1 once nobody needs it any more (broker.drain).
SIGHUP reads the configuration again. A configuration that is refused then, for whatever reason,
leaves the old one in force, whole, with an error in the log; so does a change of what a running
broker cannot change, with a warning.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from threading import Thread
from typing import TypeAlias

import numba

from broker import costs, descriptors, last_words
from broker.clock import Clock
from broker.configuration import Configuration
from broker.errors import ConfigurationError, StoreError
from broker.host import Host
from broker.last_lines import keep_lines
from broker.links import LinkedTransport, peer_of
from broker.log import log, set_level, start_logging
from broker.monitoring.entry import load_token
from broker.monitoring.monitor import Monitor
from broker.monitoring.settings import User
from broker.names import is_open_to_others
from broker.node_store import Keeping, StoreChoices
from broker.parallel import engine_of
from broker.security.access import Access, load_access
from broker.security.gate import Gate
from broker.security.keys import load_pair
from broker.signals import Signals, Stopped
from broker.store.folder import open_to_others
from broker.traces import Tracer
from broker.transport import Transport
from broker.warmup import place, warm_up, warm_up_matching
from matcher.model import MICROSECONDS
from routing.config import FIXED, NodeConfig
from routing.installed import load_installed
from routing.network import strategy
from routing.network.brokers.broker import Broker
from rules.engine import settled
from rules.patience import PATIENCE
from runtime.ageing import Ageing
from runtime.compiling import awaited
from runtime.compiling.compiled import IS_KNOWN, KNOWN
from runtime.library_pages import give_back

OWN_FIXED = (
    "listen",
    "engine",
    "threads",
    "link",
    "strategy",
    "forget_s",
    "matcher",
    "device",
    "http",
    "http_token",
    "http_names",
    "http_proxies",
    "log_format",
    "secret_key",
    "insecure",
    "data",
    "sync",
    "retain",
    "retain_bytes",
    "trace_events_max",
)
FIXED_KEYS = frozenset({*OWN_FIXED, *FIXED})
"""The keys that a running broker cannot change."""


def _say_where_kernels_are() -> None:
    if not IS_KNOWN:
        known = " to before ".join(".".join(map(str, version)) for version in KNOWN)
        fields = {"numba": numba.__version__, "known": known}
        log("warning", "kernels take longer to compile with this version of numba", fields)
    if (folder := place()) is not None:
        log("info", "loading kernels, which the first start compiles", {"kept_in": folder})
        return
    fields = {"set": "NUMBA_CACHE_DIR, to a folder that the broker's user may write"}
    log("warning", "compiling kernels, which are kept nowhere: each start takes longer", fields)


def _log_instead(what: str, why: str) -> None:
    log("warning", what, {"reason": why})


def _log_compiling(name: str | None) -> None:
    if name is not None:
        log("info", "compiling a kernel", {"kernel": name})


_Read: TypeAlias = tuple[Configuration, Access | None]


class Service:
    """One broker. ``read`` reads its configuration, now and at each SIGHUP.

    Raises ConfigurationError, NoDevice or AddressTaken, before anything runs, and Stopped when a
    signal has told it to stop meanwhile.
    """

    def __init__(self, read: Callable[[], Configuration], signals: Signals) -> None:
        self._read = read
        self._is_reading = False
        """Whether configuration is read since a SIGHUP, or was and is to be taken over."""
        self._was_read: _Read | Exception | None = None
        self._signals = signals
        self._configuration = read()
        level, form = self._configuration.log_level, self._configuration.log_format
        start_logging(level, form, broker=self._configuration.values["name"])
        matching = replace(self._configuration.node.matching, tell=_log_instead).settled()
        place = settled(self._configuration.device)
        self._gate = make_gate(self._configuration)
        transport = self._transport = make_transport(self._configuration, self._gate)
        self._monitor: Monitor | None = None
        try:
            self._monitor = make_monitor(self._configuration, self._gate)
            self.endpoints = tuple(map(transport.listen, self._configuration.listen))
            for endpoint in self.endpoints if self._gate is None else ():
                if is_open_to_others(endpoint):
                    self._open_to_others(endpoint)
            if self._monitor is not None and self._gate is None and not self._monitor.asks:
                self._open_pages(self._monitor.url)
            self._clients_max = self._room_for_clients()
            _say_where_kernels_are()
            if not sys.stderr.isatty():
                awaited.tell = _log_compiling
            warm_up(self._configuration.engine, place)
            warm_up_matching(matching)
            give_back()
            are_known = self._gate is not None or not any(map(is_open_to_others, self.endpoints))
            node = replace(self._configuration.node, matching=matching, drainable=are_known)
            node = self._affordable(node)
            PATIENCE.begin(time.monotonic, time.thread_time)
            self._host = make_host(self._configuration, transport, node)
            self._host.change_rights({} if self._gate is None else self._gate.users)
            signals.serve(self._host.stop, self._host.wake_descriptor)
        except BaseException as error:
            transport.close(0)
            if self._monitor is not None:
                self._monitor.end()
            if isinstance(error, Stopped):
                log("info", "stopped")
            raise
        self._ageing = Ageing(self._host.wake)
        self._host.when_woken = self._take_wake

    @property
    def url(self) -> str | None:
        """The address of its pages; None where it has none."""
        return None if self._monitor is None else self._monitor.url

    def run(self, when_ready: Callable[[], None] = lambda: None) -> None:
        """Serve until a signal or ``stop``; then say goodbye to the clients.

        ``when_ready`` is called once everything is in place.
        """
        self._ageing.begin()
        for endpoint in self.endpoints:
            log("info", "listening", {"endpoint": endpoint})
        if self._monitor is not None:
            log("info", "serving http", {"url": self._monitor.url})
            self._monitor.begin(self.endpoints[0], self._gate)
        when_ready()
        try:
            self._take_wake()
            self._host.run()
        finally:
            self._ageing.end()
            self._signals.ignore()
            if self._monitor is not None:
                self._monitor.end()
            self._host.close("the broker stops")
            log("info", "stopped")

    def stop(self) -> None:
        """Let ``run`` return soon, from any thread."""
        self._host.stop()

    def _take_wake(self) -> None:
        self._ageing.take()
        self._take_over()
        self._read_if_wanted()
        if self._signals.drain_wanted:
            self._signals.drain_wanted = False
            self._host.drain()

    def _read_if_wanted(self) -> None:
        """Read beside the broker's own thread: of megabytes that takes many seconds."""
        if self._signals.reload_wanted and not self._is_reading:
            self._signals.reload_wanted, self._is_reading = False, True
            Thread(target=self._read_anew, daemon=True).start()

    def _read_anew(self) -> None:
        try:
            fresh, access = self._read(), None
            if self._gate is not None and fresh.security_files is not None:
                access = load_access(fresh.security_files[1], fresh.user_limits)
            self._was_read = fresh, access
        except Exception as error:  # a file that its reader fails at is no reason to end
            self._was_read = error
        with suppress(OSError):  # it may have stopped meanwhile
            self._host.wake()

    def _take_over(self) -> None:
        """Go by what was read, if something was."""
        read = self._was_read
        if read is None:
            return
        self._was_read, self._is_reading = None, False  # the thread that read has done its work
        try:
            if isinstance(read, Exception):
                raise read
            fresh, access = read
            node = self._affordable(fresh.node)
            if self._gate is not None and access is not None:
                self._gate.change(access)
        except Exception as error:
            known = isinstance(error, ConfigurationError | OSError)
            reason = error if known else f"{type(error).__name__}: {error}"
            log("error", "configuration refused; the old one stays in force", {"reason": reason})
            return
        if self._gate is not None:
            self._transport.look_again()
            if self._monitor is not None:
                self._monitor.know(page_users(self._gate))
            self._host.change_rights(self._gate.users)
        old, self._configuration = self._configuration, fresh
        changed = [key for key, value in fresh.values.items() if value != old.values[key]]
        set_level(fresh.log_level)
        self._host.configure(node)
        later = [key for key in changed if key in FIXED_KEYS]
        if later:
            log("warning", "takes effect at the next start", {"keys": ",".join(later)})
        log("info", "configuration reloaded", {"changed": ",".join(changed) or "nothing"})

    def _open_to_others(self, endpoint: str) -> None:
        """Say so, where that was asked for; else refuse to start."""
        if not self._configuration.is_insecure:
            raise _exposed(endpoint)
        log("warning", OPEN, {"endpoint": endpoint, "see": "docs/security.md"})

    def _open_pages(self, url: str) -> None:
        """Refuse to start where more than this machine could see and change all, by pages that ask
        for nothing.
        """
        if not is_open_to_others(url):
            return
        if not self._configuration.is_insecure:
            raise _unguarded(url)
        log("warning", OPEN, {"endpoint": url, "see": "docs/security.md"})

    def _room_for_clients(self) -> int:
        """How many clients the system lets it have."""
        links = len(self._configuration.links)
        return descriptors.clients_max(descriptors.raise_limit(), links)

    def _affordable(self, node: NodeConfig) -> NodeConfig:
        """``node``, with no more clients than there is room for."""
        if node.clients_max <= self._clients_max:
            return node
        log(
            "warning",
            "fewer clients than clients_max: too few file descriptors (ulimit -n)",
            {"clients": self._clients_max, "clients_max": node.clients_max},
        )
        return replace(node, clients_max=self._clients_max)


OPEN = "open to everybody who can reach this address: there is no authentication"


OPEN_STORE = "others may read the store"


def store_warnings(configuration: Configuration) -> Iterator[str]:
    """A sentence if others than its owner may read what a broker's store has."""
    if configuration.store is not None:
        directory = configuration.store.directory
        if files := open_to_others(directory):
            names = ", ".join(map(str, files))
            yield f"data: {OPEN_STORE} ({names}): chmod -R go= {directory}"


def check(configuration: Configuration) -> None:
    """Raise ConfigurationError where a broker would not start for its keys, or for want of them.

    Addresses that are names are for the broker to find out about.
    """
    gate = make_gate(configuration)
    if configuration.http_token is not None:
        load_token(configuration.http_token)
    if gate is not None or configuration.is_insecure:
        return
    for endpoint in configuration.listen:
        plain = endpoint.replace("//*:", "//0.0.0.0:")
        if NUMERIC.match(plain) and is_open_to_others(plain):
            raise _exposed(endpoint)


NUMERIC = re.compile(r"tcp://[\d\[]")
"""An endpoint whose address is given in numbers."""


def _exposed(endpoint: str) -> ConfigurationError:
    return ConfigurationError(
        f"{endpoint}: other machines can reach this, and there are no keys. Either\n"
        f"  --secret-key b1.key_secret --access access.toml  (rexmq keys new b1; "
        f"docs/security.md)\n"
        f"  --insecure true                                  (whoever comes may do all)"
    )


def make_gate(configuration: Configuration) -> Gate | None:
    """The gate of a broker with keys; None for one without. ConfigurationError for bad files."""
    if configuration.security_files is None:
        return None
    key, access = configuration.security_files
    return Gate(load_pair(key), load_access(access, configuration.user_limits), configuration.links)


def _unguarded(url: str) -> ConfigurationError:
    return ConfigurationError(
        f"{url}: other machines can reach this, and there is no token. Either\n"
        f"  --http-token b1.token  (openssl rand -hex 32 > b1.token; docs/page.md)\n"
        f"  --secret-key, --access (users sign in by their keys; docs/security.md)\n"
        f"  no --http, or --insecure true  (whoever comes may do all)"
    )


def page_users(gate: Gate) -> tuple[User, ...]:
    """The users who may sign in at the pages, with keys that act for them."""
    tokens = {name: token for token, name in gate.tokens.items()}
    found = []
    for name, own in sorted(gate.keys.items()):
        pair = gate.stand_in(name)
        found.append(User(name, tokens.get(name), own, (pair.public, pair.secret)))
    return tuple(found)


def make_monitor(configuration: Configuration, gate: Gate | None = None) -> Monitor | None:
    """The pages of a broker, which are not yet served; None for one that has none."""
    if configuration.http is None:
        return None
    file = configuration.http_token
    token = None if file is None else load_token(file)
    data = configuration.values["data"]
    folder = None if data is None else os.path.abspath(data)
    names, proxies = configuration.values["http_names"], configuration.values["http_proxies"]
    form = configuration.log_format
    monitor = Monitor(configuration.http, form, token, folder, names, proxies)
    if gate is not None:
        monitor.know(page_users(gate))
    return monitor


def make_transport(configuration: Configuration, gate: Gate | None = None) -> Transport:
    """The sockets that a broker needs. ``gate``: who is let in."""
    links = configuration.links
    return LinkedTransport(links, gate) if links else Transport(gate)


def make_host(
    configuration: Configuration, transport: Transport, node: NodeConfig | None = None
) -> Host:
    """A broker, linked to whom it is to be linked to, and what drives it.

    ``node``: what it works by, if not the configuration's own. Without links and without a strategy
    it works alone, and refuses brokers that greet it.
    """
    clock = Clock()
    now = clock.now()
    try:
        load_installed()
    except ValueError as error:
        raise ConfigurationError(str(error)) from None

    node = node or configuration.node
    store, links = configuration.store, configuration.links
    keeping = None if store is None else opened(store)
    engine = engine_of(
        configuration.engine,
        configuration.threads,
        costs.of_this_machine(os.environ),
        configuration.device,
        _log_instead,
        node.composites_per_instant_max,
    )
    most = configuration.trace_events_max
    tracer = Tracer(most) if most else None
    if store is None:
        log("info", "what it knows is kept in memory alone", {"see": "docs/durability.md"})
    overlay = configuration.overlay(round(now * MICROSECONDS))
    name = configuration.strategy or (strategy.Centralized.name if links else None)
    chosen = None if name is None else strategy.make(name)
    broker = Broker(node, overlay, engine, chosen, now)
    broker.node.inspection.log_lines = keep_lines()
    if keeping is not None:
        recall(broker, keeping, configuration.values["data"], now)
    for endpoint in links:
        broker.add_link(peer_of(endpoint), now)
    return Host(broker, transport, clock, keeping, tracer)


def opened(choices: StoreChoices) -> Keeping:
    """The store of a broker, which has its last words as well. ConfigurationError if it cannot be
    opened.
    """
    try:
        keeping = Keeping(choices)
        last_words.keep_in(choices.directory)
    except (StoreError, OSError) as error:
        raise ConfigurationError(f"data: {error}") from None
    if files := open_to_others(choices.directory):
        names = ",".join(one.name for one in files)
        log("warning", OPEN_STORE, {"data": choices.directory, "files": names})
    return keeping


def recall(broker: Broker, keeping: Keeping, directory: object, now: float) -> None:
    """Have a broker go on from what its store has kept. ConfigurationError if that cannot be."""
    try:
        broker.recall(keeping.read(), now)
    except (StoreError, ValueError) as error:
        keeping.close()
        raise ConfigurationError(f"data: {directory}: {error}") from None
    sources, events = len(list(broker.context.sources)), len(broker.context.detection.replay_buffer)
    log("info", "store opened", {"data": directory, "sources": sources, "events": events})
