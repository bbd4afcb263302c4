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
    from rules.syntax.formatter import format_text
    from rules.syntax.parser import decode

    print(format_text(decode(rules.read_bytes(), str(rules)), file=str(rules)), end="")
