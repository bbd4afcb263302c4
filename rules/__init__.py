"""TESLA: text, syntax tree, checked rule, plan; and the engines that detect composite events.

The pipeline is ``parser -> ast -> checker -> pattern -> plan -> engine``; each stage takes one
type and gives one type. Time is in the events: nothing here reads a clock.

``rules.load(text)`` goes from text to checked rules in one step; ``rules.Engine(text)`` detects in
process, without a broker; ``rules.explain(...)`` says why a rule fired at an event, or did not.
"""

from rules.checker import check
from rules.errors import Problem, RuleErrors, Span
from rules.explainer import explain
from rules.explanation import Explanation, Summary
from rules.language import load
from rules.local import Engine
from rules.parser import parse
from rules.pattern import Rule, RuleSet
from rules.printer import print_file
from rules.survey import summarise

__all__ = [
    "Engine",
    "Explanation",
    "Problem",
    "Rule",
    "RuleErrors",
    "RuleSet",
    "Span",
    "Summary",
    "check",
    "explain",
    "load",
    "parse",
    "print_file",
    "summarise",
]
