"""Exit statuses, and which exception means which (docs/cli.md).

The classes are imported when something has gone wrong, not before: they belong to packages that
most commands never load.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from matcher.formats.intake import Intake
    from matcher.formats.timeform import TimeForm

DONE = 0
REFUSED = 1
WRONG_USAGE = 2
UNREACHABLE = 3
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors by which the system says that it takes no more of a file."""
FIRST_PROCESS = 1
"""The number of the process that a container was started with."""
INTERRUPTED = 130
"""The status that a shell reports of a process that SIGINT ended."""


class UsageError(Exception):
    """Options that do not fit together: exit status 2, without the usage text."""


def end(number: int, frame: FrameType | None) -> None:
    """A handler of signals: end as Ctrl-C does, so that nothing that was started is left behind."""
    raise SystemExit(128 + number)


def end_by(*numbers: signal.Signals) -> None:
    """Have these signals end this command, but for those that it was started to ignore (nohup)."""
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def end_as_first_process() -> None:
    """Have SIGTERM and SIGHUP end this command if it is the first process of a container.

    The kernel spares such a process any signal that it has no handler for; any other process ends
    by them without our help, and at once.
    """
    if os.getpid() == FIRST_PROCESS:
        end_by(signal.SIGTERM, signal.SIGHUP)


@contextmanager
def writing(file: Path | None) -> Iterator[None]:
    """Let an error of writing, which does not know its file, name it (None: standard output)."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM and error.filename is None:
            error.filename = "standard output" if file is None else str(file)
        raise


def say(what: str, why: str) -> None:
    """Tell, on standard error, of what is done otherwise from now on (matcher.matching.Told)."""
    from broker.escaping import escaped

    print(escaped(f"rexmq: {what}: {why}"), file=sys.stderr)


def counted(count: int, what: str) -> str:
    """A number of things: ``1 event``, ``2 events``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def one_of(flag: str, value: str, choices: Sequence[str]) -> None:
    """Raise UsageError unless an option has one of the values that it may have."""
    if value not in choices:
        raise UsageError(f"{flag}: expected {' or '.join(choices)}, found {value!r}")


def amount_of(flag: str, text: str, kind: str) -> float:
    """The bytes of a ``SIZE`` such as ``500MB``, or the seconds of an ``AGE`` such as ``7d``.
    UsageError for what is none.
    """
    from broker.keys import AGE, SIZE

    known = {"AGE": AGE, "SIZE": SIZE}[kind]
    try:
        amount: float | None = known.parse(text)
    except ValueError:
        amount = None
    if amount is None:
        expected = known.expected.removesuffix(", or none")
        raise UsageError(f"{flag}: expected {expected}, found {text!r}")
    return amount


def duration_of(flag: str, text: str) -> float:
    """The seconds of a length of time such as ``10s`` or ``2 min``; a number alone counts seconds.

    Raises UsageError for what is none.
    """
    import re

    from rules.syntax.tokens import UNITS, duration

    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", text.strip().lower())
    unit = "" if found is None else found[2] or "s"
    if found is None or unit not in UNITS:
        raise UsageError(f"{flag}: expected a duration such as 10s, 500ms or 2min, found {text!r}")
    microseconds = duration(found[1], unit)
    if isinstance(microseconds, str):
        raise UsageError(f"{flag} {text}: {microseconds}")
    return microseconds / 1_000_000


def time_given(flag: str, text: str, times: TimeForm) -> int:
    """The time, in microseconds, that an option says in the form of those in files; where it lacks
    a zone, the one that was assumed is told.

    Raises UsageError for what is none.
    """
    from matcher.errors import BadEvent

    try:
        moment = times.time_of(text)
    except BadEvent as error:
        raise UsageError(f"{flag}: {error}") from None
    report_zones([flag] if moment.lacks_zone else [])
    return moment.time


def datetime_given(flag: str, text: str) -> datetime:
    """The same as a datetime, of RFC 3339 or seconds since the epoch."""
    from datetime import timedelta

    from matcher.formats.timeform import TimeForm
    from matcher.times import EPOCH

    return EPOCH + timedelta(microseconds=time_given(flag, text, TimeForm()))


def strategy_of(flag: str, name: str) -> None:
    """Raise UsageError unless a strategy is called that."""
    from broker.keys import is_strategy, strategies_expected

    if not is_strategy(name):
        raise UsageError(f"{flag}: expected {strategies_expected()}, found {name!r}")


def report_duplicates(count: int) -> None:
    """Say on standard error how many events were dropped as duplicates, if any were."""
    if count:
        print(
            f"rexmq: {counted(count, 'duplicate')} dropped: events of a source and an id that came "
            "before",
            file=sys.stderr,
        )


def report_zones(files: Iterable[str]) -> None:
    """Say on standard error, once, which files hold times without a zone, if any do."""
    from broker.escaping import escaped

    names = [*files]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print(
            f"rexmq: {escaped(names[0])}{more}: times without a time zone are taken for UTC; say "
            f"theirs, or that it is so: --time-zone Europe/Rome, --time-zone UTC",
            file=sys.stderr,
        )


def report_times(intake: Intake, zone: str | None) -> None:
    """Say on standard error what was assumed of times in files, which are local in ``zone``."""
    from broker.escaping import escaped
    from matcher.formats.wallclock import undecided_text

    report_zones(intake.without_zone)
    for name, count in intake.undecided.items():
        print(escaped(f"rexmq: {name}: {undecided_text(count, zone)}"), file=sys.stderr)


def report(error: BaseException) -> int | None:
    """Print what went wrong to standard error and give the status; None for a bug of ours."""
    if isinstance(error, BrokenPipeError):
        _silence_output()
        return DONE
    for kinds, status in _statuses():
        if isinstance(error, kinds):
            message = _message(error)
            if message:
                from broker.escaping import escaped_lines

                print(f"rexmq: {escaped_lines(message)}", file=sys.stderr)
            return status
    return None


def _statuses() -> tuple[tuple[tuple[type[BaseException], ...], int], ...]:
    from broker.errors import BrokerError, BrokerUnreachable
    from matcher.errors import EventError
    from matcher.gpu.device import NoDevice
    from routing.errors import SessionError
    from rules.errors import RuleErrors

    return (
        ((KeyboardInterrupt,), INTERRUPTED),
        ((UsageError, NoDevice), WRONG_USAGE),
        ((BrokerUnreachable,), UNREACHABLE),
        ((BrokerError, EventError, RuleErrors, SessionError, OSError), REFUSED),
    )


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error)


def _silence_output() -> None:
    """The reader has gone (``| head``): let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
