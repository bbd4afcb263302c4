"""Rules that have ended and still have to be evaluated somewhere, up to where they ended (S15).

Where rules are evaluated in several places, these are not equally far; and what was evaluated once
may have to be once more, in another tree. So a rule that has ended stays on, beside the version
that has taken its place, until everybody has what it found.

Law 1: it is a rule of its own, curtailed to what comes before its end
(:mod:`rules.curtailing`). Its name tells all that it was: ``fire@0@26000000`` is version 0 of
``fire``, which ended at 26 s. So whatever goes by names (marks, places, dues) tells it from every
other version; no text of rules can name one.

Law 2: to clients it is what it was. Its composite events have the ids of its version, and bear the
rule's own name where they are delivered (:func:`told`), and among causes (:func:`told_causes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matcher.identity import ENDED, RULE_SOURCE, plain_name
from matcher.model import Causes, EventBatch, EventIds, StringColumn
from rules.curtailing import curtailed
from rules.pattern import Rule


def name_of(name: str, version: int, until: int) -> str:
    """What a rule's version is called from its end on; ``until`` in microseconds."""
    return f"{name}{ENDED}{version}{ENDED}{until}"


def has_ended(name: str) -> bool:
    """Whether that is the name of a rule that has ended."""
    return ENDED in name


def outlasted(name: str, version: int) -> str:
    """What it is called by those who keep what it found, and do not know that it lingers."""
    return f"{name}{ENDED}{version}"


def until_of(name: str) -> int:
    """When a rule of that name ended."""
    return int(name.rpartition(ENDED)[2])


def version_of(name: str) -> int:
    """Which version it was."""
    return int(name.split(ENDED)[1])


def ended(rule: Rule, name: str) -> Rule:
    """A rule as it is from its end on, when it bears this name."""
    return replace(curtailed(rule, until_of(name)), name=name)


def told(batches: Sequence[EventBatch]) -> tuple[EventBatch, ...]:
    """Composite events as clients are told of them (Law 2), but for their causes."""
    return tuple(
        batch if (ids := _plain(batch.ids)) is batch.ids else replace(batch, ids=ids)
        for batch in batches
    )


def told_causes(batches: Sequence[EventBatch]) -> tuple[EventBatch, ...]:
    """The same for their causes, which nobody goes by but clients."""
    return tuple(
        batch if batch.causes is None else replace(batch, causes=_plain_causes(batch.causes))
        for batch in batches
    )


def _plain_causes(causes: Causes) -> Causes:
    return replace(causes, ids=_plain(causes.ids))


def _plain(ids: EventIds) -> EventIds:
    ended = [one for one in ids.source.values if one.startswith(RULE_SOURCE) and ENDED in one]
    if not ended:
        return ids
    return replace(ids, source=renamed(ids.source, {one: plain_name(one) for one in ended}))


def renamed(column: StringColumn, names: Mapping[str, str]) -> StringColumn:
    """A column with other strings in place of some."""
    found = StringColumn.from_strings([names.get(one, one) for one in column.values])
    return StringColumn(found.codes[column.codes], found.values)
