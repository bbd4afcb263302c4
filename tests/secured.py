"""Brokers with keys, as processes, and the options of who talks to them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forked import started

from broker.security.keys import create

FAST = ("--engine", "naive", "--heartbeat-s", "0.2")
KEYS = (
    '[user.alice]\nkey = "alice.key"\n[user.bob]\nkey = ["bob.key"]\n'
    '[broker.b1]\nkey = "b1.key"\n[broker.b2]\nkey = "b2.key"\n'
)


def make_keys(folder: Path) -> Path:
    """Keys of two brokers, two users and a stranger, and an access file without the stranger."""
    for name in ("b1", "b2", "alice", "bob", "stranger"):
        create(name, folder)
    (folder / "access.toml").write_text(KEYS)
    return folder


def keys(folder: Path, name: str, server: str = "b1") -> dict[str, Any]:
    """The options of a client with the keys of ``name``."""
    return {"key": folder / f"{name}.key_secret", "server_key": folder / f"{server}.key"}


def secured(folder: Path, name: str, access: str | Path = "access.toml") -> tuple[str, ...]:
    """The flags of a broker with the keys of ``name``."""
    return "--secret-key", str(folder / f"{name}.key_secret"), "--access", str(folder / access)


@contextmanager
def broker(
    *flags: str, listen: str = "tcp://127.0.0.1:*", log: int = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker that runs, and its endpoint."""
    words = "broker", *FAST, "--listen", listen, *flags
    with started(*words, stdout=subprocess.PIPE, stderr=log) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()
