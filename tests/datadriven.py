"""Tests as scripts: commands and the transcript that is expected of them.

A script is a text of cases, separated by blank lines:

    # what the case is about
    command argument key=value
    further lines of input
    ----
    the expected transcript

Comments and blank lines before a command are kept. ``--rewrite`` writes what the commands gave
into the script instead of comparing: review the difference as you would review code.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

SEPARATOR = "----"


@dataclass(frozen=True, slots=True)
class Case:
    """One command. ``line`` is its line in the script, ``lead`` the comments before it."""

    line: int
    lead: str
    heading: str
    body: str
    expected: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.heading)

    @property
    def command(self) -> str:
        return self.words[0]

    @property
    def arguments(self) -> list[str]:
        return [word for word in self.words[1:] if "=" not in word]

    @property
    def options(self) -> Mapping[str, str]:
        return dict(word.split("=", 1) for word in self.words[1:] if "=" in word)


def parse(text: str) -> list[Case]:
    """The cases of a script."""
    cases = []
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        lead = []
        while place < len(lines) and re.match(r"\s*(#|$)", lines[place]):
            lead.append(lines[place])
            place += 1
        if place == len(lines):
            assert not any(line.strip() for line in lead), "a comment without a command"
            break
        start = place
        end = lines.index(SEPARATOR, start)
        place = end + 1
        while place < len(lines) and lines[place].strip():
            place += 1
        expected = "\n".join(lines[end + 1 : place])
        body = "\n".join(lines[start + 1 : end])
        cases.append(Case(start + 1, "\n".join(lead), lines[start], body, expected))
    return cases


def printed(cases: list[Case]) -> str:
    """The inverse of parse."""
    blocks = []
    for case in cases:
        lines = [case.lead.strip("\n")] if case.lead.strip() else []
        lines += [case.heading] + ([case.body] if case.body else [])
        blocks.append("\n".join([*lines, SEPARATOR, *([case.expected] if case.expected else [])]))
    return "\n\n".join(blocks) + "\n"


def run(path: Path, perform: Callable[[Case], str], *, rewrite: bool) -> None:
    """Perform every case of a script and compare, or rewrite the script."""
    performed = []
    for case in parse(path.read_text()):
        # An empty line would end the case, so that none stands in a transcript.
        got = "\n".join(line.rstrip() for line in perform(case).splitlines() if line.strip())
        performed.append(replace(case, expected=got))
        if not rewrite:
            place = f"{path.name}:{case.line}: {case.heading}"
            assert got == case.expected, f"{place}\n--- got\n{got}\n--- expected\n{case.expected}"
    if rewrite:
        path.write_text(printed(performed))
