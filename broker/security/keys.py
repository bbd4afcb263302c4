"""Pairs of CURVE keys, in files as pyzmq writes them: ``b1.key``, and ``b1.key_secret``.

The first holds the public key alone, to be given to others; the second both keys, to be read by
its owner alone. Keys are 40 characters (Z85).

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     secret_file = create("b1", Path(folder))
...     len(load_pair(secret_file).public)
40
"""

from __future__ import annotations

import os
import re
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import zmq
from zmq.utils import z85

from broker.documents import text_of
from broker.errors import ConfigurationError

if TYPE_CHECKING:
    from zmq import Socket

SECRET_SUFFIX, PUBLIC_SUFFIX = ".key_secret", ".key"
NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)
KEY_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key and its secret one, in Z85."""

    public: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Curve:
    """The keys of a connection that is made: one's own, and the public one of who is there."""

    own: KeyPair
    server: str

    def apply(self, socket: Socket[bytes]) -> None:
        """Have a socket that is not yet connected prove and ask for these keys."""
        socket.set(zmq.CURVE_SERVERKEY, self.server.encode())
        socket.set(zmq.CURVE_PUBLICKEY, self.own.public.encode())
        socket.set(zmq.CURVE_SECRETKEY, self.own.secret.encode())


def new_pair() -> KeyPair:
    """A pair that nobody else has."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def check_new(name: str, folder: Path) -> tuple[Path, Path]:
    """The files of a pair, public and secret, that can be made. Raises ConfigurationError for a
    name that is none, and for files that are there already.
    """
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r}: expected letters, digits, '_', '-' and '.'")
    public_file = folder / f"{name}{PUBLIC_SUFFIX}"
    secret_file = folder / f"{name}{SECRET_SUFFIX}"
    for file in (public_file, secret_file):
        if os.path.lexists(file):
            raise ConfigurationError(f"{file}: there already; a key is not written over")
    return public_file, secret_file


def create(name: str, folder: Path) -> Path:
    """Make a pair, and the two files of it in ``folder``; gives that of the secret key. Raises
    ConfigurationError as ``check_new``.
    """
    public_file, secret_file = check_new(name, folder)
    pair = new_pair()
    folder.mkdir(parents=True, exist_ok=True)
    _write(secret_file, 0o600, f'public-key = "{pair.public}"', f'secret-key = "{pair.secret}"')
    _write(public_file, 0o644, f'public-key = "{pair.public}"')
    return secret_file


def load_pair(file: Path) -> KeyPair:
    """The pair of a file with a secret key.

    Raises ConfigurationError for what is none, and for a file that others may read.
    """
    content = _read(file)
    secret = _key_in(content, "secret")
    if secret is None:
        raise ConfigurationError(f"{file}: expected a secret key, as rexmq keys new writes it")
    check_secret(file)
    public = zmq.curve_public(secret.encode()).decode()
    if _key_in(content, "public") not in (None, public):
        raise ConfigurationError(f"{file}: its public key is not that of its secret key")
    return KeyPair(public, secret)


def check_secret(file: Path) -> None:
    """Raise ConfigurationError for the file of a secret that others may read.

    Root's own file may be readable by a group: so systemd gives a service its credentials, as an
    entry of an access list that shows as the group's mode, and Kubernetes a pod its secrets.
    """
    status = file.stat()
    is_given = status.st_uid == 0 and os.geteuid() != 0
    if status.st_mode & (~stat.S_IRGRP if is_given else ~0) & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(f"{file}: others may read this secret: chmod 600 {file}")


def public_key(text: str, place: str) -> str:
    """A public key, given as such, or by a file that holds one: a path may look like a key, which
    has 40 characters. ConfigurationError names ``place``.
    """
    path = Path(text)
    if not os.path.exists(path):  # Path.exists raises for a name that is too long
        if _is_key(text):
            return text
        raise ConfigurationError(
            f"{place}: expected a public key of {KEY_CHARACTERS} characters or the file of one, "
            f"found {text!r}"
        )
    found = _key_in(_read(path), "public")
    if found is None:
        raise ConfigurationError(f"{path}: expected a public key, as rexmq keys new writes it")
    return found


def _key_in(content: str, kind: str) -> str | None:
    found = re.search(rf'^\s*{kind}-key\s*=\s*"([^"\n]*)"\s*$', content, re.MULTILINE)
    return found[1] if found and _is_key(found[1]) else None


def _is_key(text: str) -> bool:
    if len(text) != KEY_CHARACTERS or not text.isascii():
        return False
    try:
        return len(z85.decode(text.encode())) == 32
    except (KeyError, struct.error):  # another character; five that are beyond 2^32
        return False


def _read(file: Path) -> str:
    return text_of(file)


def _write(file: Path, mode: int, *lines: str) -> None:
    """A file that nobody else can open between its making and its mode."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "w", encoding="utf-8") as opened:
        # The form of zmq.auth.create_certificates, without the time of its making.
        opened.write("metadata\ncurve\n")
        opened.writelines(f"    {line}\n" for line in lines)
