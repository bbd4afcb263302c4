"""Names as they are written in TESLA: those that are no plain words stand in backquotes.

A name is plain when it is a letter or ``_`` and then letters, digits and ``_``, and no reserved
word. Within backquotes a backquote is written twice: ``a`b`` is `` `a``b` ``.
"""

from __future__ import annotations

import functools
import re

RESERVED = frozenset(
    (
        *("define", "from", "where", "consuming", "and", "or", "not", "within", "between"),
        *("true", "false"),
    )
)
"""Words that are never names by themselves, in any case (tesla.md section 2)."""
PLAIN = r"[^\W\d]\w*"
"""The pattern of a plain name."""
_PLAIN = re.compile(PLAIN)


@functools.lru_cache(maxsize=4_096)
def spelled(name: str) -> str:
    """A name as TESLA reads it again."""
    if _PLAIN.fullmatch(name) and name.lower() not in RESERVED:
        return name
    return quoted(name)


def quoted(name: str) -> str:
    """A name in backquotes, which it may have even where it needs none."""
    return f"`{name.replace('`', '``')}`"


QUOTED = r"`(?:[^`]|``)*`"
"""The pattern of a name in backquotes."""


def unquoted(text: str) -> str:
    """The name that a text stands for, in backquotes or without."""
    return text[1:-1].replace("``", "`") if re.fullmatch(QUOTED, text) else text
