"""``rexmq check``: read and check TESLA files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq check fire.tesla flights.tesla"

Files = Annotated[list[Path], typer.Argument(metavar="RULES...", help="TESLA files.")]


def command(rules: Files) -> None:
    """Check TESLA files, each by itself.

    Prints how many rules and schemas they have, or every error in them.
    """
    from broker.cli.outcome import counted
    from matcher.formats.inputs import bytes_of, name_of, verify_files
    from rules import load
    from rules.errors import FilesErrors, RuleErrors
    from rules.syntax import ast
    from rules.syntax.parser import decode, parse

    refused: list[RuleErrors] = []
    rules_read = schemas = 0
    verify_files(rules)
    for file in rules:
        try:
            text = decode(bytes_of(file), name_of(file))
            load(text, file=name_of(file))
            statements = parse(text, file=name_of(file)).statements
        except RuleErrors as error:
            refused.append(error)
        else:
            declared = [one.type.text for one in statements if isinstance(one, ast.Schema)]
            rules_read += len(statements) - len(declared)
            schemas += len(set(declared))  # a type may be declared again, as the same
    if refused:
        raise FilesErrors(refused)
    print(f"{counted(rules_read, 'rule')}, {counted(schemas, 'schema')}: ok")
