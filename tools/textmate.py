"""The grammar of TextMate for TESLA, by which VS Code and GitHub show rules in colours.

``rules/syntax/highlighting.py`` says how words are shown; ``tests/tools/test_textmate.py`` compares
the file with it.

::

    python tools/textmate.py > editors/vscode/syntaxes/tesla.tmLanguage.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GRAMMAR = ROOT / "editors" / "vscode" / "syntaxes" / "tesla.tmLanguage.json"


def textmate() -> str:
    """The text of the grammar."""
    from rules.syntax.highlighting import HIGHLIGHTS

    patterns = [{"name": f"{one.scope}.tesla", "match": one.pattern} for one in HIGHLIGHTS]
    grammar = {
        "name": "TESLA",
        "scopeName": "source.tesla",
        "fileTypes": ["tesla"],
        "patterns": patterns,
    }
    return json.dumps(grammar, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.stdout.write(textmate())
