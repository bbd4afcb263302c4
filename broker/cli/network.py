"""``rexmq network``: several brokers as processes of this machine."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from broker.network import BrokerNetwork
    from broker.throwaway import ThrowawayKeys

EXAMPLE = "rexmq network scenario.toml"
STOPS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""SIGHUP comes when the terminal is closed: no broker must be left behind."""


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A scenario, in TOML.")],
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="NAME", help="Instead of the file's.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Instead of the file's.")
    ] = None,
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="The least level of their logs.")
    ] = "warning",
    secure: Annotated[
        bool, typer.Option("--secure", help="With keys, which are made for it and go with it.")
    ] = False,
) -> None:
    """Run the brokers of a scenario file, linked as it says.

    Until SIGTERM or Ctrl-C. Prints each broker's name and endpoint once it can be reached, and
    `ready` once all can. One that ends by itself is reported; the others go on.
    """
    from broker.cli.outcome import one_of, strategy_of
    from broker.errors import ConfigurationError
    from broker.keys import ENGINES, LEVELS
    from broker.network import BrokerNetwork, members
    from simulator.blueprint import blueprint

    read = blueprint(file, refuse=ConfigurationError)
    strategy, engine = strategy or read.strategy, engine or read.engine
    strategy_of("--strategy", strategy)
    one_of("--engine", engine, ENGINES)
    one_of("--log-level", log_level, LEVELS)
    told: list[int] = []
    for number in _heeded(STOPS):  # a broker that is being started must not be left behind
        signal.signal(number, lambda number, frame: told.append(number))
    flags = ["--strategy", strategy, "--ordering", read.ordering]
    flags += ["--engine", engine, "--log-level", log_level]
    planned = members(read.brokers, read.links, read.flags)
    with BrokerNetwork(planned, *flags, log=None, secure=secure) as network:
        for number in _heeded(STOPS):
            signal.signal(number, _end)
        if told:
            return
        for name, endpoint in network.await_ready():
            keys = "" if network.keys is None else f" with {_words(network.keys, name)}"
            print(f"{name} listening on {endpoint}{keys}", flush=True)
        with _signals(signal.SIGCHLD, *STOPS) as wait:
            print("ready", flush=True)
            _serve(network, wait)


def _words(keys: ThrowawayKeys, name: str) -> str:
    """The options of a command by which a broker lets it in."""
    return f"--key {keys.client_key} --server-key {keys.server_key(name)}"


def _serve(network: BrokerNetwork, wait: Callable[[], bytes]) -> None:
    """Report who ends, until told to stop or until nobody is left."""
    from broker.errors import BrokerError

    while True:
        for name, status in network.take_ended():
            print(f"rexmq: broker {name} has ended: {_told(status)}", file=sys.stderr, flush=True)
        if not network.running:
            raise BrokerError("no broker is left")
        if not STOPS.isdisjoint(wait()):
            return


@contextmanager
def _signals(*numbers: signal.Signals) -> Iterator[Callable[[], bytes]]:
    """Gives what waits for these signals, and gives their numbers.

    A socket, since a signal may interrupt any thread of the process, and ``sigwait`` hears only
    of those that the waiting one was meant by. Afterwards they say nothing.
    """
    heard, told = socket.socketpair()
    with heard, told:
        told.setblocking(False)
        signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        for number in _heeded(numbers):
            signal.signal(number, _hear)
        try:
            yield lambda: heard.recv(64)
        finally:
            signal.set_wakeup_fd(-1)


def _heeded(numbers: Iterable[signal.Signals]) -> Iterator[signal.Signals]:
    """The signals that this command was not started to ignore: nohup has SIGHUP ignored."""
    return (number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)


def _end(number: int, frame: FrameType | None) -> None:
    """Stop what has come up, and end as at any other time; to be told again says nothing new."""
    for stop in STOPS:
        signal.signal(stop, signal.SIG_IGN)
    raise SystemExit(0)


def _told(status: int) -> str:
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


def _hear(number: int, frame: FrameType | None) -> None:
    """The number is in the socket already."""
