"""TESLA: text, syntax tree, checked rule, plan; and the engines that detect composite events.

The pipeline is text, ``syntax``, ``checking``, ``pattern``, ``planning``, ``engine``; each stage
takes one type and gives one type. Beside it, ``cutting`` says how recordings can be divided, and
``explaining`` why a rule fired or did not. Time is in the events: nothing here reads a clock, but
where ``operators`` choose a place to compute in (:mod:`matcher.trials`).

``rules.load(text)`` goes from text to checked rules in one step; ``rules.Engine(text)`` detects in
process, without a broker; ``rules.explain(...)`` says why a rule fired at an event, or did not.

The names exported here are imported when they are first used: who detects need not explain.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rules.checking.checker import check
    from rules.errors import Problem, RuleErrors, Span
    from rules.explaining.explainer import explain
    from rules.explaining.explanation import Explanation, Summary
    from rules.explaining.survey import summarise
    from rules.language import load
    from rules.local import Engine, TooManyComposites
    from rules.pattern import Rule, RuleSet
    from rules.syntax.parser import parse
    from rules.syntax.printer import print_file

_HOMES = {
    "Engine": "rules.local",
    "Explanation": "rules.explaining.explanation",
    "Problem": "rules.errors",
    "Rule": "rules.pattern",
    "RuleErrors": "rules.errors",
    "RuleSet": "rules.pattern",
    "Span": "rules.errors",
    "Summary": "rules.explaining.explanation",
    "TooManyComposites": "rules.local",
    "check": "rules.checking.checker",
    "explain": "rules.explaining.explainer",
    "load": "rules.language",
    "parse": "rules.syntax.parser",
    "print_file": "rules.syntax.printer",
    "summarise": "rules.explaining.survey",
}

__all__ = [
    "Engine",
    "Explanation",
    "Problem",
    "Rule",
    "RuleErrors",
    "RuleSet",
    "Span",
    "Summary",
    "TooManyComposites",
    "check",
    "explain",
    "load",
    "parse",
    "print_file",
    "summarise",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rules' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
