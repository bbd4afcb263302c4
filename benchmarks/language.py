"""Reading rules: text to checked rules to plan, and filters over columns.

Rules are compared with what Siddhi takes to deploy a thousand of them (4.5 s on a machine like
the one these figures were first taken on; T-Rex, in C++ and without a language to parse, takes
4.5 ms); filters with the same test in Python, event by event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.files import temperatures
from benchmarks.report import Row, seconds_of
from rules import load, parse
from rules.checking.checker import check
from rules.pattern import Rule
from rules.planning.plan import RulePlan
from rules.planning.planner import compile_rule
from rules.subscription import parse_subscription
from rules.syntax.printer import print_file
from runtime.collector import collector_paused

SIDDHI_SECONDS = 4.5
SCHEMAS = """event Smoke(area: string, level: int)
event Temp(area: string, value: float)
event Rain(area: string, amount: float)
"""
RULE = """rule fire{number}:
define Fire{type}(area: string, measuredTemp: float)
from Smoke(area = $a, level > {number}) and
     last Temp(area = $a, value > {threshold}) within 5 min from Smoke and
     not Rain(area = $a, amount > 3.5) between Temp and Smoke and
     20 < $t = Avg(Temp(area = $a).value within 5 min from Smoke)
where area = Smoke.area, measuredTemp = $t
consuming Temp
"""
FILTER = 'Temp(value > 20 and area prefix "area-1")'


def run(quick: bool) -> Iterator[Row]:
    yield from reading(100 if quick else 1_000)
    yield from filtering(20_000 if quick else 200_000)


def rules_text(count: int, first: int = 0) -> str:
    """Rules of three clauses over ten composite types, numbered from the first on."""
    return SCHEMAS + "".join(
        RULE.format(number=number, type=number % 10, threshold=number % 50)
        for number in range(first, first + count)
    )


def reading(count: int) -> list[Row]:
    text = rules_text(count)
    file = parse(text)
    checked = check(file).rules
    each = f"{count} rules of three clauses"
    parsing, checking, printing, planning, loading = (
        seconds_of(action)
        for action in (
            lambda: parse(text),
            lambda: check(file),
            lambda: print_file(file),
            lambda: plan(checked),
            lambda: plan(load(text).rules),
        )
    )
    siddhi = SIDDHI_SECONDS * count / 1_000
    return [
        Row("parse", parsing, "s", note=each),
        Row("check", checking, "s", note=each),
        Row("plan", planning, "s", note=each),
        Row("print", printing, "s", note=each),
        Row("parse, check and plan", loading, "s", "Siddhi deploys", siddhi, each),
    ]


@collector_paused()
def plan(rules: Sequence[Rule]) -> list[RulePlan]:
    """What an engine does first with the rules that it is given, and as it does it."""
    return [compile_rule(rule) for rule in rules]


def filtering(count: int) -> list[Row]:
    batch = temperatures(count)
    subscription = parse_subscription(FILTER, {"Temp": batch.type})
    areas, values = batch.column("area").tolist(), batch.column("value").tolist()

    def one_by_one() -> list[bool]:
        return [
            value > 20 and area.startswith("area-1")
            for area, value in zip(areas, values, strict=True)
        ]

    assert subscription.mask(batch).tolist() == one_by_one()
    columns = count / seconds_of(lambda: subscription.mask(batch))
    return [
        Row(
            "filter of two conditions",
            columns,
            "events/s",
            "Python, one by one",
            count / seconds_of(one_by_one),
        )
    ]
