"""Rules that a device evaluates, and the reasons why others stay on the processor.

Example: of ``... and consuming B`` it says "it consumes events".
"""

from __future__ import annotations

from collections.abc import Iterable

from matcher.model import Kind
from rules.engine.gpu.linking import is_multiple
from rules.engine.gpu.machine import DEPTH
from rules.engine.gpu.records import LEVELS_MAX, STEPS_MAX
from rules.engine.kernels.words import GREATER, LESS, SAME, WANTED
from rules.engine.order.timers import uses_timer
from rules.pattern import Rule
from rules.planning.plan import RulePlan, Step, StepKind
from rules.planning.planner import compile_rule
from rules.planning.program import TRUE, Op, Program
from rules.terms import Function

TIED = "it has to do with other rules' composite events"
"""Why a rule stays on the processor whatever it says itself."""
TERMS_MAX = 16
"""Conditions of one step, at most."""
TAKEN = (Function.COUNT, Function.MIN, Function.MAX)
"""Aggregates of all numbers; sums only of ints, for those of floats are exact on the processor."""


def reason_against(rule: Rule) -> str | None:
    """Why a device does not evaluate a rule; None if it does. The reason is a phrase of
    :doc:`docs/gpu.md`: of ``... and consuming B`` it is "it consumes events".
    """
    if uses_timer(rule):
        return "it uses the Timer"
    if rule.together is not None:
        return "its events come in any order"
    if rule.alternatives:
        return "it has alternatives"
    if rule.consuming:
        return "it consumes events"
    return _against_plan(compile_rule(rule))


def _against_plan(plan: RulePlan) -> str | None:
    if 1 + sum(map(is_multiple, plan.steps)) > LEVELS_MAX or len(plan.steps) > STEPS_MAX:
        return "it has too many clauses"
    for step in plan.steps:
        if found := _against_step(step):
            return found
    return _against_programs(plan.values)


def _against_step(step: Step) -> str | None:
    if step.inner:
        return "it aggregates anew for each candidate"
    if step.kind is StepKind.AGGREGATE:
        if step.function is Function.SUM and step.value_kind is Kind.INT:
            pass
        elif step.function not in TAKEN:
            return f"{step.function.value} of {step.value_kind.value}s is rounded exactly"
        elif step.value_kind is Kind.STRING and step.function is not Function.COUNT:
            return "it orders strings"
        elif step.function is Function.COUNT and step.program is not TRUE:
            return "it counts the values of an expression"
    if sum(one.op is Op.CHECK for one in step.residue.code) > TERMS_MAX - 4:
        return "it has too many conditions"
    probes = [probe.program for probe in step.probes]
    return _against_programs([step.residue, step.program, *probes])


def _against_programs(programs: Iterable[Program]) -> str | None:
    for program in programs:
        if program.depth > DEPTH:
            return "an expression is nested too deeply"
        for one in program.code:
            if one.op >= Op.ABS_I:
                return "it has a function of numbers"
            if one.op is Op.TEXT:
                return "it computes with strings"
            if one.op is Op.COMPARE_S and (WANTED.get(one.offset) not in (SAME, LESS | GREATER)):
                return "it orders or searches strings"
    return None
