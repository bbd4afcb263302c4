"""Last words of a broker or a command: which rule it was evaluating when a signal ended it.

``faulthandler`` tells where each thread was, and the handler beneath it names the rules
(:mod:`rules.engine.order.last_words`). A broker with a store keeps the words in a file there, which
outlives the process. A rule that was being evaluated at two such ends is out of force from then on:
it would end the broker at each start. An end by SIGKILL or SIGTERM says nothing of a rule, and does
not count.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import mmap
import os
import signal
from pathlib import Path

import numpy as np

from broker.log import log
from matcher.identity import plain_name
from matcher.model import Int64s
from rules.engine.kernels.last_words import last_words
from rules.engine.kernels.layout import (
    BEFORE_AT,
    NAME_BYTES,
    NAMES_AT,
    NAMES_COUNT,
    PREFIX_AT,
    PREFIX_LENGTH,
    SIGNAL,
    WORDS_BYTES,
)
from rules.engine.linking.loading import pointer_to_handler
from rules.engine.order.last_words import LAST_WORDS

FILE = "last_words"
_STANDARD_ERROR = 2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
"""Signals that a fault of the process itself sends."""
PREFIX = b"rexmq: a signal ends this process while it evaluates rule "


def tell() -> None:
    """Have the process name the rules that it evaluates when one of SIGNALS ends it."""
    words = LAST_WORDS.words
    words.view(np.uint8)[PREFIX_AT : PREFIX_AT + len(PREFIX)] = np.frombuffer(PREFIX, np.uint8)
    words[PREFIX_LENGTH] = len(PREFIX)
    last_words(words.ctypes.data)
    handle = ctypes.CDLL(None).signal
    handle.argtypes, handle.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    faulthandler.disable()  # it hands on to the handler that it finds
    for number in SIGNALS:
        handle(number, pointer_to_handler())
    faulthandler.enable(_STANDARD_ERROR)


def keep_in(folder: Path) -> None:
    """Have the words stand in a file of a store, which this process holds, and learn from those
    that the process before has left there.
    """
    memory = _mapped(folder / FILE)
    words = np.frombuffer(memory, np.int64)
    if (number := int(words[SIGNAL])) in SIGNALS:
        names, before = _names(words, NAMES_AT)[: words[NAMES_COUNT]], _names(words, BEFORE_AT)
        told = {"signal": signal.Signals(number).name}
        log("error", "a signal has ended the broker", told | {"rules": [*map(plain_name, names)]})
        LAST_WORDS.banned = frozenset(names) & frozenset(before)
        _put(words, BEFORE_AT, dict.fromkeys([*names, *before]))
    words[: BEFORE_AT // 8] = 0
    LAST_WORDS.stand_in(memory)


def _mapped(file: Path) -> mmap.mmap:
    """The file's memory, of WORDS_BYTES bytes, shared with whoever maps it next. On a full disk it
    is memory alone: to write to a page for which there is no room would end the process.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, WORDS_BYTES)
        return mmap.mmap(descriptor, WORDS_BYTES)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        return mmap.mmap(-1, WORDS_BYTES)
    finally:
        os.close(descriptor)


def _names(words: Int64s, start: int) -> list[str]:
    """The names from a byte on, up to the first that is empty."""
    text = words.view(np.uint8)[start:].tobytes()
    found = []
    for place in range(0, BEFORE_AT - NAMES_AT, NAME_BYTES):
        name = text[place : place + NAME_BYTES].partition(b"\0")[0]
        if not name:
            break
        found.append(name.decode(errors="replace"))
    return found


def _put(words: Int64s, start: int, names: dict[str, None]) -> None:
    """Write as many names as there is room for."""
    bytes_ = words.view(np.uint8)
    room = (BEFORE_AT - NAMES_AT) // NAME_BYTES
    for place, name in enumerate([*names][:room]):
        text = name.encode()[: NAME_BYTES - 1].ljust(NAME_BYTES, b"\0")
        first = start + NAME_BYTES * place
        bytes_[first : first + NAME_BYTES] = np.frombuffer(text, np.uint8)
