"""Templates: texts with attributes in braces, to be filled, or to be found in a text.

>>> Template("alerts/{area}").filled({"area": "a1"})
'alerts/a1'
>>> Template("sensors/{area}/temp").found("sensors/a1/temp")
{'area': 'a1'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter

from matcher.errors import BadEvent
from matcher.model import Value


class Template:
    """A text with attributes in braces; ``{{`` and ``}}`` are braces. ValueError for others.

    ``level``: the character between levels, which no attribute has that is found in a text.
    """

    def __init__(self, text: str, level: str = "/") -> None:
        self.text = text
        names, self._texts = list[str](), [""]
        try:
            pieces = [*Formatter().parse(text)]
        except ValueError:
            raise _unreadable(text) from None
        for before, name, form, conversion in pieces:
            self._texts[-1] += before
            if name is not None:
                if not name or form or conversion:
                    raise _unreadable(text)
                names.append(name)
                self._texts.append("")
        self.names = tuple(names)
        value = f"([^{re.escape(level)}]+)"
        self.regex = value.join(map(re.escape, self._texts))
        self._pattern = re.compile(self.regex)

    def filled(self, values: Mapping[str, Value | None]) -> str:
        """The text with these values. BadEvent for an attribute that is not there, or null."""
        parts = [self._texts[0]]
        for name, text in zip(self.names, self._texts[1:], strict=True):
            value = values.get(name)
            if value is None:
                raise BadEvent(f"{self.text!r} needs {name}, which is null or not there")
            parts += (_spelled(value), text)
        return "".join(parts)

    def found(self, text: str) -> dict[str, str] | None:
        """The values in a text that is made so, each of one level; None for another text."""
        if not self.names:
            return {} if text == self._texts[0] else None
        match = self._pattern.fullmatch(text)
        return None if match is None else dict(zip(self.names, match.groups(), strict=True))


def _unreadable(text: str) -> ValueError:
    return ValueError(f"expected attributes in braces, as in alerts/{{area}}, found {text!r}")


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
