"""``rexmq check``: read and check TESLA files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.options import TypeName, takes_layout

if TYPE_CHECKING:
    from matcher.formats.inputs import InputFile
    from matcher.formats.layout import Layout
    from matcher.model import EventType

EXAMPLE = "rexmq check fire.tesla flights.tesla"

Files = Annotated[list[Path], typer.Argument(metavar="RULES...", help="TESLA files.")]


@takes_layout
def command(
    rules: Files,
    events: Annotated[
        list[Path] | None,
        typer.Option("--events", metavar="[TYPE=]FILE", help="Events that the rules are for."),
    ] = None,
    type_name: TypeName = None,
    *,
    layout: Layout,
) -> None:
    """Check TESLA files, each by itself.

    Prints how many rules and schemas they have, or every error in them; and warnings, of rules that
    may mean something else than they seem to. With --events (once for
    each file), types that the rules do not declare are those of the events, which are all read.
    """
    from broker.cli.outcome import UsageError, counted
    from broker.escaping import escaped_lines
    from matcher.formats.inputs import bytes_of, inputs_of, is_regular, name_of, verify_files
    from rules import load
    from rules.errors import FilesErrors, RuleErrors
    from rules.explaining.advice import advice
    from rules.language import declared_in
    from rules.syntax import ast
    from rules.syntax.parser import decode, read

    refused: list[RuleErrors] = []
    warnings: list[str] = []
    rules_read = schemas = 0
    inputs = inputs_of(events or ())
    paths = [one.path for one in inputs]
    verify_files([*rules, *paths])
    if len(rules) > 1 and not all(map(is_regular, paths)):
        raise UsageError("check: a pipe of events is read once; check one file of rules with it")
    for file in rules:
        try:
            text = decode(bytes_of(file), name_of(file))
            statements = read(text, file=name_of(file)).file
            known = _types_of(inputs, declared_in(statements), type_name, layout)
            found = load(text, file=name_of(file), known=known)
        except RuleErrors as error:
            refused.append(error)
        else:
            declared = [
                one.type.text for one in statements.statements if isinstance(one, ast.Schema)
            ]
            rules_read += len(statements.statements) - len(declared)
            schemas += len(set(declared))  # a type may be declared again, as the same
            warnings += [f"{name_of(file)}: {one}" for one in advice(found)]
    if refused:
        raise FilesErrors(refused)
    for warning in warnings:
        print(escaped_lines(f"warning: {warning}"), file=sys.stderr)
    print(f"{counted(rules_read, 'rule')}, {counted(schemas, 'schema')}: ok")


def _types_of(
    events: Sequence[InputFile],
    declared: Mapping[str, EventType],
    type_name: str | None,
    layout: Layout,
) -> Mapping[str, EventType]:
    """The types of the events that are not declared; EventError where an event is bad."""
    if not events:
        return {}
    from broker.cli.outcome import report_times
    from broker.recorded import RecordedEvents

    recorded = RecordedEvents(events, declared=declared, type_name=type_name, layout=layout)
    report_times(recorded.intake, layout.times.zone)
    for _ in recorded.steps():
        pass
    schemas = recorded.intake.schemas
    return {name: schemas[name] for name in schemas if name not in declared}
