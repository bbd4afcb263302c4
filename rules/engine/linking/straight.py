"""Straight rules: those that one walk without choices evaluates.

Most rules of the thesis choose the last event of each kind and ask nothing of it but what columns
and one key decide. A terminator has then one match at most, no step is ever taken back, and all
that its evaluation needs is a few words. They stand in one place, for with a thousand rules and
more it is the reaching of tables, not the arithmetic, that takes the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.engine.kernels import layout
from rules.engine.linking.assembler import loaded
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.steps import probe_kind
from rules.pattern import Policy
from rules.planning.plan import RulePlan, Step, StepKind
from rules.planning.program import TRUE


def straight_words(
    plan: RulePlan, type_number: int, key: tuple[int, int], source: int, tables: ColumnTables
) -> list[int] | None:
    """The words of a rule (``layout.STRAIGHT_...``), or None if it is not straight.

    ``type_number`` is that of the type it defines, ``key`` two signed words. A straight rule has
    its records in the other tables as well; these words say nothing that is not told there.
    """
    values = [loaded(program) for program in plan.values]
    steps = [_step_words(step, place, tables) for place, step in enumerate(plan.steps)]
    if plan.rule.consuming or plan.rule.latest or len(plan.event_types) != len(steps) + 1:
        return None
    terminator = tables.type_number(plan.terminator.type)
    words = [type_number, len(steps), len(values), 0, *key, source, terminator]
    for found in (*values, *steps):
        if found is None:
            return None
        words.extend(found)
    return words


def _step_words(step: Step, place: int, tables: ColumnTables) -> Sequence[int] | None:
    """The words of a step, or None if it is more than a last event with at most one key."""
    if (
        step.kind is not StepKind.SELECT
        or step.policy is not Policy.LAST
        or (step.rank, step.event, step.span.earlier) != (1, place + 1, -1)
        or step.residue is not TRUE
        or step.access is None
        or step.inner
        or step.rivals
        or len(step.probes) > 1
    ):
        return None
    event, offset = -1, 0
    for probe, key in zip(step.probes, step.access.keys, strict=True):
        found = loaded(probe.program)
        if found is None or probe_kind(probe, step.access, key) != layout.PROBE_SAME:
            return None
        event, offset = found
    type_ = tables.type_number(step.access.column.type)
    access = tables.access_number(step.access)
    return access, type_, step.span.later + 1, step.span.duration, event, offset
