"""``rexmq format``: print a TESLA file in canonical form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq format fire.tesla"

File = Annotated[Path, typer.Argument(metavar="RULES", help="A TESLA file.")]


def command(rules: File) -> None:
    """Print a TESLA file in canonical form.

    Its comments stand before their statements.
    """
    from matcher.formats.inputs import bytes_of, name_of, verify_files
    from rules.syntax.formatter import format_text
    from rules.syntax.parser import decode

    verify_files([rules])
    name = name_of(rules)
    print(format_text(decode(bytes_of(rules), name), file=name), end="")
