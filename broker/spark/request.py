"""A request of rules over frames, held against both before anything runs.

The rules are checked with the types that the frames mean, the frames are brought into one form
with the attributes that the rules use, and what stays in one piece is told in a warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from broker.detection import defined_types
from broker.spark import frames as forms
from broker.spark.frames import Form, Frames, check_frames
from matcher.formats.timeform import TimeForm
from matcher.model import EventType
from rules.checking.checker import check
from rules.cutting.splitting import Splitting, Whole
from rules.errors import RuleErrors
from rules.pattern import TIMER, RuleSet
from rules.syntax import ast
from rules.syntax.parser import decode, read
from rules.syntax.printer import print_file


def checked_rules(rules: str | Path, events: Frames, time: str) -> RuleSet:
    """The rules, with the types of frames that they do not declare themselves."""
    check_frames(events)
    file = _file_of(rules)
    known: dict[str, EventType] = {}
    if isinstance(events, Mapping):
        if not events:
            raise ValueError("no frame of events is given")
        declared = {statement.type.text for statement in file.statements}
        known = {
            name: forms.inferred(name, frame, time)
            for name, frame in events.items()
            if name not in declared
        }
    return check(file, known)


def printed_rules(rules: str | Path) -> str:
    """The rules as the printer prints them, whatever lines and spaces they were written with."""
    return print_file(_file_of(rules))


def wide_of(events: Frames, ruleset: RuleSet, time: str, times: TimeForm) -> tuple[DataFrame, Form]:
    """The events in one form, with the attributes of the types that are of use to some rule."""
    parts, form = wide_parts(events, ruleset, time, times)
    return functools.reduce(DataFrame.unionAll, parts), form


def wide_parts(
    events: Frames, ruleset: RuleSet, time: str, times: TimeForm
) -> tuple[list[DataFrame], Form]:
    """The same, each given frame by itself."""
    types = {type_.name: type_ for rule in ruleset.rules for type_ in rule.used_types}
    defined = {rule.defines.name for rule in ruleset.rules}
    # What rules define may be published too, or not.
    given = [
        types[name]
        for name in sorted(types)
        if name != TIMER.name and (name in events if isinstance(events, Mapping) else True)
    ]
    if isinstance(events, Mapping):
        lacking = sorted(set(types) - set(events) - defined - {TIMER.name})
        if lacking:
            raise ValueError(f"the rules use {', '.join(lacking)}, of which no frame is given")
    return forms.wide_parts(events, given, optional=defined, time=time, times=times)


def wanted_types(ruleset: RuleSet, types: Collection[str] | None) -> tuple[EventType, ...]:
    """The defined types that are asked for; None: all of them."""
    defined = defined_types(ruleset)
    if types is None:
        return tuple(defined)
    unknown = set(types) - {type_.name for type_ in defined}
    if unknown:
        names = ", ".join(type_.name for type_ in defined)
        raise ValueError(f"types {', '.join(sorted(unknown))}: the rules define {names}")
    return tuple(type_ for type_ in defined if type_.name in types)


def warn_whole(splitting: Splitting) -> None:
    """Say which rules stay in one piece, to the caller of our caller."""
    for verdict in splitting.verdicts:
        if isinstance(verdict.way, Whole):
            warnings.warn(f"rule {verdict}, so one task runs it", stacklevel=3)


def warn_unordered(form: Form) -> None:
    """Say what orders simultaneous events where rows do not, to the caller of our caller."""
    if form.orders:
        return
    if form.has_sequence:
        told = (
            "no column source, so sources are called like the types, in whose order simultaneous "
            "ones come"
        )
    else:
        lacking = "sequence" if form.has_source else "source and none sequence"
        told = f"no column {lacking}, so simultaneous ones are ordered by what they hold"
    warnings.warn(f"the events have {told} (tesla.md E4)", stacklevel=3)


def _file_of(rules: str | Path) -> ast.File:
    if isinstance(rules, Path):
        name, text = str(rules), decode(rules.read_bytes(), str(rules))
    else:
        name, text = "<rules>", rules
    reading = read(text, file=name)
    if reading.problems:
        raise RuleErrors(reading.problems, text, name)
    return reading.file
