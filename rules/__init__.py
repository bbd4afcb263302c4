"""TESLA: text, syntax tree, checked rule, plan; and the engines that detect composite events.

The pipeline is text, ``syntax``, ``checking``, ``pattern``, ``planning``, ``engine``; each stage
takes one type and gives one type. Beside it, ``cutting`` says how recordings can be divided, and
``explaining`` why a rule fired or did not. Time is in the events: nothing here reads a clock.

``rules.load(text)`` goes from text to checked rules in one step; ``rules.Engine(text)`` detects in
process, without a broker; ``rules.explain(...)`` says why a rule fired at an event, or did not.
"""

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
