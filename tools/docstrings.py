"""Docstrings as Markdown, for the reference of the site (mkdocs.yml)."""

from __future__ import annotations

import re

import griffe

_ROLES = re.compile(r":(?:class|func|meth|mod|attr|data):`~?")
_EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


class Markdown(griffe.Extension):
    """Fences examples and leaves out the roles before what they name."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rewrite the docstring of an object, if it has one."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """A docstring as Markdown.

    >>> markdown("As :class:`Table` has it.")
    'As `Table` has it.'
    """
    plain = _ROLES.sub("`", text)
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", plain)
