"""Processes that run ``rexmq`` without its two seconds of imports: forks of one that has them.

One process has imported what a broker needs, has no thread, and forks for each that is asked for.
A fork has the streams, the variables and the folder that a new process would have had, and becomes
a child of whoever asked, whose own it is from there on.
"""

import contextlib
import ctypes
import gc
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from pairs import WHOLE

TESTS = Path(__file__).parent
SET_CHILD_SUBREAPER = 36
"""Of prctl(2): orphans among the descendants become this process's children."""

PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
STREAMS = ("p2cread", "c2pwrite", "errwrite")
"""Of these the child's own: its input, its output, its errors."""


class Forked(subprocess.Popen[str]):
    """``python -m broker`` with these words, as subprocess.Popen would start it; that starts what
    is another program.
    """

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        """Have it forked, in the place of what Popen does to start a process."""
        if args[:3] != [sys.executable, "-m", "broker"]:
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        # By the names of what Popen hands over: these have stayed while places changed.
        said = inspect.signature(super()._execute_child).bind(args, *rest).arguments  # type: ignore[misc]
        pipes = [said[name] for name in PIPES]
        streams = [said[name] for name in STREAMS]
        given = [number if own == -1 else own for number, own in enumerate(streams)]
        folder, variables = said["cwd"] or os.getcwd(), dict(said["env"] or os.environ)
        asked = {"words": args[3:], "variables": variables, "folder": str(folder)}
        self.pid = server().fork(asked, given)
        self._child_created = True
        self._close_pipe_fds(*pipes)


def started(*words: str, **options: Any) -> subprocess.Popen[str]:
    """``rexmq`` with these words, as a child: a fork, and where all combinations are asked for a
    process that begins anew.
    """
    kind = subprocess.Popen if WHOLE else Forked
    return kind([sys.executable, "-m", "broker", *words], text=True, **options)


@contextlib.contextmanager
def forked_brokers() -> Iterator[None]:
    """Have brokers that tests start be forks; those that commands start which are processes are
    not, nor any where all combinations are asked for.
    """
    words = vars(subprocess) | ({} if WHOLE else {"Popen": Forked})
    with patch("broker.process.subprocess", SimpleNamespace(**words)):
        yield


class Server:
    """The process that forks."""

    def __init__(self) -> None:
        self._one_at_a_time = Lock()
        self._socket, theirs = socket.socketpair()
        folders = os.pathsep.join((str(TESTS), str(TESTS.parent)))
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"import forked; forked.serve({theirs.fileno()})"],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": folders, "OPENBLAS_NUM_THREADS": "1"},
        )
        theirs.close()

    def fork(self, asked: dict[str, Any], streams: list[int]) -> int:
        """The process id of a new child of this process."""
        content = json.dumps(asked).encode()
        prctl = ctypes.CDLL(None).prctl
        with self._one_at_a_time:
            prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._socket, [b"!"], streams)
                self._socket.sendall(len(content).to_bytes(4, "big") + content)
                return int.from_bytes(_received(self._socket, 4), "big")
            finally:
                prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@cache
def server() -> Server:
    """The one of this process, from the first fork until it ends."""
    return Server()


def _received(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise EOFError
        content += part
    return content


def serve(number: int) -> None:
    """Fork for whoever is at the other end of this socket, until it has gone."""
    import broker.service  # noqa: F401
    from broker.warmup import warm_up

    warm_up("cdp")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as connection, contextlib.suppress(EOFError):
        while True:
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            size = int.from_bytes(_received(connection, 4), "big")
            asked = json.loads(_received(connection, size))
            reading, writing = os.pipe()
            between = os.fork()
            if between == 0:
                forked = os.fork()
                if forked == 0:
                    connection.close()
                    os.close(reading)
                    os.close(writing)
                    sys.exit(_run(asked, streams))
                os.write(writing, forked.to_bytes(4, "big"))
                os._exit(0)
            os.waitpid(between, 0)  # from here on the fork is an orphan, and theirs
            connection.sendall(os.read(reading, 4))
            for descriptor in (reading, writing, *streams):
                os.close(descriptor)


def _run(asked: dict[str, Any], streams: list[int]) -> int:
    """The command, in what it is given."""
    from broker.cli import main

    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)
    for descriptor in {*streams} - {0, 1, 2}:
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["variables"])
    os.chdir(asked["folder"])
    sys.argv = ["rexmq", *asked["words"]]
    return main()
