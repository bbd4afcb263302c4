"""Tables as HTML, for notebooks; whatever they show is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of HTML with a caption and a line of headings."""
    lines = ["".join(f"<td>{escape(str(value))}</td>" for value in row) for row in rows]
    heads = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )
