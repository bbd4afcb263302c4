"""A rules file in canonical form, with its comments (``rexmq format``).

The syntax tree knows no comments, so they are carried over beside it: a comment stands before the
statement that it precedes or stands in, or that ends on its line; those after the last statement
stay there. Formatting what has been formatted changes nothing.
"""

from __future__ import annotations

from rules.syntax import ast
from rules.syntax.parser import parse
from rules.syntax.printer import are_schemas, print_statement
from rules.syntax.words import comments


def format_text(text: str, *, file: str = "<rules>") -> str:
    """The canonical form of a rules file; RuleErrors when it cannot be parsed."""
    tree = parse(text, file=file)
    remaining = comments(text)
    paragraphs: list[str] = []
    previous: ast.Statement | None = None
    for statement in tree.statements:
        end = statement.span.end
        last_line = text.count("\n", 0, end) + 1
        own: list[str] = []
        while remaining and (remaining[0][0].start < end or remaining[0][0].line == last_line):
            own.append(remaining.pop(0)[1])
        if previous is not None and (own or not are_schemas(previous, statement)):
            paragraphs.append("")
        paragraphs.extend((*own, print_statement(statement)))
        previous = statement
    if remaining and previous is not None:
        paragraphs.append("")
    paragraphs.extend(comment for _, comment in remaining)
    return "".join(f"{paragraph}\n" for paragraph in paragraphs)
