"""Calls of functions of texts and numbers, checked: how many operands, of which kinds (S10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matcher.model import Kind
from rules.checking.scope import Report
from rules.pattern import UTC
from rules.syntax import ast
from rules.terms import (
    TEXT_FUNCTIONS,
    Called,
    Convert,
    Expression,
    Literal,
    NumberFunction,
    OfText,
    TextFunction,
)
from rules.texts import is_network
from rules.zones import is_zone

_FLOATS = (NumberFunction.SQRT,)
_WHOLE = (NumberFunction.FLOOR, NumberFunction.CEIL, NumberFunction.ROUND)
_SEVERAL = (NumberFunction.LEAST, NumberFunction.GREATEST)
_NUMERIC: Mapping[str, NumberFunction] = {one.value: one for one in NumberFunction}
NAMES: Mapping[Kind, str] = {
    Kind.INT: "an int",
    Kind.FLOAT: "a float",
    Kind.BOOL: "a bool",
    Kind.STRING: "a string",
}
OPERANDS_MAX = 16
"""Operands of ``least`` and ``greatest``."""


def called(
    node: ast.Called, operands: Sequence[Expression | None], report: Report
) -> Expression | None:
    """The checked call; None when it is wrong, which is reported."""
    if node.function in TEXT_FUNCTIONS:
        return _of_text(node, operands, report)
    function = _NUMERIC[node.function]
    if function.is_of_time:
        return _of_time(function, node, operands, report)
    least, most = (2, OPERANDS_MAX) if function in _SEVERAL else (1, 1)
    if function is NumberFunction.DIV:
        least, most = 2, 2
    if not _has(node, least, most, report):
        return None
    wanted = (Kind.INT,) if function is NumberFunction.DIV else (Kind.INT, Kind.FLOAT)
    if not all(_is_of(one, wanted, at, node, report) for one, at in _pairs(node, operands)):
        return None
    sound = [one for one in operands if one is not None]
    if len(sound) < len(operands):
        return None
    ints = all(one.kind is Kind.INT for one in sound) and function not in _FLOATS
    if ints and function in _WHOLE:
        return sound[0]
    numbers = tuple(one if ints or one.kind is Kind.FLOAT else Convert(one) for one in sound)
    kind = Kind.INT if ints or function in _WHOLE else Kind.FLOAT
    return Called(function, numbers, kind)


def _of_text(
    node: ast.Called, operands: Sequence[Expression | None], report: Report
) -> Expression | None:
    count = 2 if node.function == "cidr" else 1
    if not _has(node, count, count, report):
        return None
    text, *networks = operands
    network = ""
    if networks:
        said = networks[0]
        network = str(said.value) if isinstance(said, Literal) else ""
        if not is_network(network):
            report(
                "cidr asks for a network",
                node.operands[1].span,
                'write cidr(ip, "10.0.0.0/8") or cidr(ip, "2001:db8::/32"), host bits being 0',
            )
            return None
    if not _is_of(text, (Kind.STRING,), node.operands[0], node, report) or text is None:
        return None
    return OfText(TextFunction(name=node.function, network=network), text)


def _of_time(
    function: NumberFunction,
    node: ast.Called,
    operands: Sequence[Expression | None],
    report: Report,
) -> Expression | None:
    if not _has(node, 1, 2, report):
        return None
    time, *zones = operands
    zone = UTC
    if zones:
        said = zones[0]
        zone = str(said.value) if isinstance(said, Literal) else ""
        if not isinstance(said, Literal) or said.kind is not Kind.STRING or not is_zone(zone):
            report(
                f"{node.function} is told in a time zone",
                node.operands[1].span,
                f'write {node.function}(A.time, "Europe/Rome"): zones are of the IANA database',
            )
            return None
    if not _is_of(time, (Kind.INT,), node.operands[0], node, report) or time is None:
        return None
    return Called(function, (time,), Kind.INT, zone)


def _pairs(
    node: ast.Called, operands: Sequence[Expression | None]
) -> Sequence[tuple[Expression | None, ast.Expression]]:
    return tuple(zip(operands, node.operands, strict=True))


def _has(node: ast.Called, least: int, most: int, report: Report) -> bool:
    """Whether a call has as many operands as its function takes."""
    count = len(node.operands)
    if least <= count <= most:
        return True
    wanted = f"{least}" if least == most else f"{least} to {most}"
    report(f"{node.function} takes {wanted} operands, not {count}", node.span)
    return False


def _is_of(
    operand: Expression | None,
    kinds: tuple[Kind, ...],
    at: ast.Expression,
    node: ast.Called,
    report: Report,
) -> bool:
    """Whether an operand is of a kind, or wrong already."""
    if operand is None or operand.kind in kinds:
        return True
    wanted = "a number" if Kind.FLOAT in kinds else NAMES[kinds[0]]
    report(f"the operand of {node.function} must be {wanted}, not {NAMES[operand.kind]}", at.span)
    return False
