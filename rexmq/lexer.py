"""TESLA for Pygments: documents, notebooks and ``pygmentize -l tesla``."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Whitespace, string_to_tokentype

from rules.syntax.highlighting import HIGHLIGHTS


class TeslaLexer(RegexLexer):
    """Rules in TESLA."""

    name = "TESLA"
    aliases: ClassVar[list[str]] = ["tesla"]
    filenames: ClassVar[list[str]] = ["*.tesla"]
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Whitespace),
            *((one.pattern, string_to_tokentype(one.token)) for one in HIGHLIGHTS),
        ]
    }
