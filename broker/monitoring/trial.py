"""The process in which rules of the playground are tried: one request, one answer, and the end.

``python -m broker.monitoring.trial`` reads a :class:`Request`, pickled, from its standard input and
writes its answer as JSON. Whoever starts it is the page's own process, and ends it when it takes
too long.

Trials find what ``rexmq detect`` and ``rexmq explain`` find over the same events. Memory is bounded
by the system (``MEMORY_MAX``): rules that keep too much end this process and no other.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.errors import StoreError
from broker.monitoring.rows import row
from broker.recorded import RecordedEvents
from broker.schemas import type_of
from matcher.errors import EventError
from matcher.model import MICROSECONDS, TIME_MIN, EventBatch, EventType
from routing.names import is_printable
from rules.errors import Problem, RuleErrors
from rules.explaining.document import document
from rules.explaining.explainer import explained
from rules.explaining.recording import Recording, Since
from rules.explaining.telling import told
from rules.language import declared_in, load
from rules.syntax import ast
from rules.syntax.parser import read

MEMORY_MAX = 4 * 2**30
"""Bytes of address space."""
FIRINGS_MAX = 1_000
EVENTS_SHOWN = 2_000
ANSWER_MAX = 4_000_000
"""Characters of an answer: of firings, and of events, half of that, and at least one."""
"""Composite events, and events beside them, that are told; the others are counted."""
LOG_EVENTS_MAX = 200_000
"""Events of a log that are taken."""
PROBLEMS_MAX = 50
NAIVE_UP_TO = 500
"""Over so few events the engine that needs no kernels is there sooner."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of events, whose form its name says. ``type``: of events that name none."""

    name: str
    content: bytes
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """Something to try: ``do`` is ``check``, ``inspect``, ``run`` or ``explain``.

    ``text`` are the rules, ``more`` those that are deployed beside them, ``schemas`` the types that
    are known. Events come as ``files``, as ``batches``, or from the store in the folder ``log``, of
    whose events the last ``log_s`` seconds are taken. ``rule`` and ``event`` are what to explain,
    ``since`` from when rules hold.
    """

    do: str
    text: str = ""
    more: str = ""
    schemas: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    batches: tuple[EventBatch, ...] = ()
    log: str = ""
    log_s: float = 0.0
    rule: str = ""
    event: str = ""
    since: Since = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A recording, its primitive events, and the names of the rules that were to be tried."""

    recording: Recording
    batches: Sequence[EventBatch]
    names: Sequence[str]


def answer(request: Request) -> dict[str, Any]:
    """The answer to a request; ``error`` says in words what is wrong with it."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return _ANSWERS[request.do](request, Path(folder))
            except (RuleErrors, EventError, StoreError) as error:
                return {"error": str(error).replace(f"{folder}/", "")}
    except MemoryError:
        return {"error": f"it would need more than {MEMORY_MAX >> 30} GiB of memory"}


def checked(text: str, schemas: Iterable[str]) -> dict[str, Any]:
    """Problems of a text, by places in UTF-16, as scripts count them; and its rules."""
    try:
        known = {one.name: one for one in map(type_of, schemas)}
        rules = load(text, known=_undeclared(text, known))
    except EventError as error:
        return {"problems": [_problem(Problem(str(error)), text)], "rules": []}
    except RuleErrors as error:
        shown = error.problems[:PROBLEMS_MAX]
        return {"problems": [_problem(one, text) for one in shown], "rules": []}
    return {"problems": [], "rules": [rule.name for rule in rules.rules]}


def _undeclared(text: str, known: Mapping[str, EventType]) -> dict[str, EventType]:
    declared = declared_in(read(text).file)
    return {name: one for name, one in known.items() if name not in declared}


def _problem(problem: Problem, text: str) -> dict[str, Any]:
    span = problem.span
    if span is None:
        return {"message": problem.message, "hint": problem.hint, "line": None}
    return {
        "message": problem.message,
        "hint": problem.hint,
        "line": span.line,
        "column": span.column,
        "start": _units(text[: span.start]),
        "end": _units(text[: span.end]),
    }


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _inspected(request: Request, folder: Path) -> dict[str, Any]:
    batches, schemas = _events(request, folder, {})
    times = [int(time) for batch in batches for time in (batch.time.min(), batch.time.max())]
    return {
        "events": sum(map(len, batches)),
        "schemas": [str(one) for one in schemas.values()],
        "first": min(times, default=None),
        "last": max(times, default=None),
    }


def _run(request: Request, folder: Path) -> dict[str, Any]:
    trial = _tried(request, folder)
    rules = [trial.recording.rule(name) for name in trial.names]
    firings = [(rule.name, one) for rule in rules for one in trial.recording.firings(rule)]
    firings.sort(key=lambda pair: pair[1].event.time)
    shown = _fitting(
        {
            **row(one.event),
            "rule": name,
            "cause": [f"{source}#{text}" for source, text in one.causes],
        }
        for name, one in firings[:FIRINGS_MAX]
    )
    causes = {cause for one in shown for cause in one["cause"]}
    events = [row(event) for batch in trial.batches for event in batch.events()]
    return {
        "events": _fitting(_chosen(events, causes)),
        "events_count": len(events),
        "firings": shown,
        "counts": {rule.name: len(trial.recording.firings(rule)) for rule in rules},
        "terminators": {rule.name: [one.name for one in rule.opening] for rule in rules},
    }


def _fitting(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rows, as many as fit into half of an answer, and at least one."""
    fitting: list[dict[str, Any]] = []
    room = ANSWER_MAX // 2
    for one in rows:
        room -= len(json.dumps(one, ensure_ascii=False))
        if room < 0 and fitting:
            break
        fitting.append(one)
    return fitting


def _explained(request: Request, folder: Path) -> dict[str, Any]:
    found = explained(_tried(request, folder).recording, request.rule, request.event)
    return {"text": told(found), "explanation": document(found)}


def _checked(request: Request, folder: Path) -> dict[str, Any]:
    return checked(request.text, request.schemas)


_ANSWERS = {"check": _checked, "inspect": _inspected, "run": _run, "explain": _explained}


def _chosen(events: list[dict[str, Any]], causes: set[str]) -> list[dict[str, Any]]:
    """Causes, and as many others, spread evenly, as may be shown."""
    others = [one for one in events if one["name"] not in causes]
    room = max(0, EVENTS_SHOWN - len(causes))
    step = max(1, -(-len(others) // room)) if room else len(others) + 1
    chosen = [one for one in events if one["name"] in causes][:EVENTS_SHOWN] + others[::step]
    return sorted(chosen, key=lambda one: one["time"])


def _tried(request: Request, folder: Path) -> Trial:
    """Trial of the rules over the events."""
    text = f"{request.text}\n{request.more}"  # places in the text are those of the page
    declared = declared_in(read(text, file="rules").file)
    batches, schemas = _events(request, folder, declared)
    known = {name: one for name, one in schemas.items() if name not in declared}
    checked = load(text, file="rules", known=known)
    own = len(checked.rules) - _rules_in(request.more)
    engine = "naive" if sum(map(len, batches)) <= NAIVE_UP_TO else "auto"
    recording = Recording(checked, batches, since=request.since, engine=engine)
    return Trial(recording, batches, [rule.name for rule in checked.rules][:own])


def _rules_in(text: str) -> int:
    statements = read(text, file="deployed").file.statements
    return sum(not isinstance(one, ast.Schema) for one in statements)


def _events(
    request: Request, folder: Path, declared: Mapping[str, EventType]
) -> tuple[list[EventBatch], dict[str, EventType]]:
    """The events, and the types that are known with them."""
    known = {one.name: one for one in map(type_of, request.schemas)}
    if not request.files:
        events = _logged(request) if request.log else request.batches
        kept = [batch for batch in events if not batch.is_composite]
        return kept, {**known, **{batch.type.name: batch.type for batch in kept}}
    by_type: dict[str | None, list[Path]] = {}
    for one in request.files:
        path = folder / Path(one.name).name
        is_name = is_printable(one.name) and path.name == one.name not in (".", "..")
        if not is_name or path.exists():
            raise EventError(f"{one.name}: expected files with names of their own")
        path.write_bytes(one.content)
        by_type.setdefault(one.type, []).append(path)
    batches, wrong = list[EventBatch](), list[str]()
    for type_name, paths in by_type.items():
        try:
            recorded = RecordedEvents(paths, declared=declared, type_name=type_name)
            batches += (batch for step in recorded.steps() for batch in step.batches)
            declared = {**declared, **recorded.intake.schemas}
        except EventError as error:
            found = _all_wrong(paths, declared, type_name)
            wrong += found if len(found) > 1 else [str(error)]
    if wrong:
        raise EventError("\n".join(wrong))
    return batches, {**known, **declared}


def _all_wrong(
    paths: Sequence[Path], declared: Mapping[str, EventType], type_name: str | None
) -> list[str]:
    """In words, the first things that are wrong with files, each file by itself."""
    wrong: list[str] = []
    for path in paths:
        try:
            recorded = RecordedEvents([path], declared=declared, type_name=type_name, skip_bad=True)
            for _ in recorded.steps():
                pass
            wrong += dict.fromkeys(map(str, recorded.intake.first_bad))
        except EventError as error:
            wrong.append(str(error))
    return wrong


def _logged(request: Request) -> list[EventBatch]:
    """The last events of a log. StoreError where there are too many."""
    from broker.store import Reader
    from broker.store.ordered import Ordered, Wanted

    with Reader.open(Path(request.log)) as reader:
        end = max((one.last_time for one in reader.outlines()), default=0)
        since = max(TIME_MIN, end - round(request.log_s * MICROSECONDS))
        batches, count = list[EventBatch](), 0
        for step in Ordered([reader], Wanted(None, since)).steps():
            batches += step.batches
            count += sum(map(len, step.batches))
            if count > LOG_EVENTS_MAX:
                raise StoreError(
                    f"the log has more than {LOG_EVENTS_MAX:,} events of that time: choose a "
                    f"shorter one (rexmq log export and rexmq detect take all)"
                )
    return batches


def main() -> None:
    """Answer what standard input asks."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    request: Request = pickle.load(sys.stdin.buffer)  # from the page's process, and nobody else
    text = json.dumps(found := answer(request), ensure_ascii=False, allow_nan=False)
    if len(text) > ANSWER_MAX and "firings" not in found:
        why = f"the answer has {len(text):,} characters, more than {ANSWER_MAX:,}"
        text = json.dumps({"error": why})
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
