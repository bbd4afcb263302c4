"""The state diagrams of the protocol's pages, drawn from the tables that the code goes by.

Prints each with the page that holds it; ``tests/tools/test_diagrams.py`` compares the two.

::

    python tools/diagrams.py
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from routing.conversation import SESSION_MOVES  # noqa: E402
from routing.overlay.ends import CHANNEL_MOVES  # noqa: E402
from routing.serving.sources import SOURCE_MOVES  # noqa: E402

_State = TypeVar("_State", bound=enum.Enum)


class Diagram(NamedTuple):
    """A drawing in the language of mermaid, and the page of ``docs`` where it belongs."""

    page: str
    text: str


def drawn(moves: Mapping[_State, Mapping[_State, str]]) -> str:
    """The diagram of a table: the first state is where all begins, one without moves the end."""
    return "\n".join(["```mermaid", "stateDiagram-v2", *_lines(moves), "```"])


def _lines(moves: Mapping[_State, Mapping[_State, str]]) -> Iterator[str]:
    names = {state: state.name.title().replace("_", "") for state in moves}
    yield f"    [*] --> {names[next(iter(moves))]}"
    for state, nexts in moves.items():
        yield from (f"    {names[state]} --> {names[to]}: {why}" for to, why in nexts.items())
        if not nexts:
            yield f"    {names[state]} --> [*]"


def diagrams() -> list[Diagram]:
    """All that are drawn from tables."""
    return [
        Diagram("protocol.md", drawn(SESSION_MOVES)),
        Diagram("protocol.md", drawn(SOURCE_MOVES)),
        Diagram("brokers.md", drawn(CHANNEL_MOVES)),
    ]


def main() -> None:
    """Print them."""
    for one in diagrams():
        print(f"docs/{one.page}:\n\n{one.text}\n")


if __name__ == "__main__":
    main()
