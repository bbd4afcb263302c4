"""The costs by which ``auto`` chooses, as a file (docs/performance.md, the choice of a method).

``rexmq bench calibrate`` writes it; whoever makes an engine reads it. It is named by REXMQ_COSTS,
or else is ``rexmq/costs.toml`` in the user's configuration folder (``XDG_CONFIG_HOME``, by default
``~/.config``). Without it the costs that are shipped hold. A file that is there must be sound: one
that is passed over in silence would be thought to be in force.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from broker.documents import document_of
from broker.errors import ConfigurationError
from broker.variables import COSTS_VARIABLE
from matcher.formats.outputs import write_text
from rules.engine.choice.costs import Costs

TABLE = "nanoseconds"
_NAMES = tuple(field.name for field in dataclasses.fields(Costs))
_OF_HYBRID = frozenset({"pair", "sequence"})
"""Costs that are not calibrated: a file without them leaves them as they are shipped."""


def place(environment: Mapping[str, str]) -> Path:
    """Where the costs of this machine are, or would be."""
    if named := environment.get(COSTS_VARIABLE):
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME", "")
    # Paths that are not absolute are to be ignored (XDG Base Directory Specification).
    folder = Path(home) if Path(home).is_absolute() else Path.home() / ".config"
    return folder / "rexmq" / "costs.toml"


def of_this_machine(environment: Mapping[str, str]) -> Costs:
    """The costs of the file, or those that are shipped where there is none.

    Raises ConfigurationError for a file that is not sound, and for one that is named and is not
    there.
    """
    file = place(environment)
    if environment.get(COSTS_VARIABLE) or file.is_file():
        return read(file)
    return Costs()


def read(file: Path) -> Costs:
    """The costs that a file holds; ConfigurationError says what is wrong with it."""
    document = document_of(file, "costs")
    figures = document.get(TABLE)
    if (
        set(document) != {TABLE}
        or not isinstance(figures, dict)
        or set(figures) | _OF_HYBRID != set(_NAMES)
    ):
        raise ConfigurationError(
            f"costs: {file}: expected one table [{TABLE}] with {', '.join(_NAMES)}"
        )
    for name, figure in figures.items():
        if isinstance(figure, bool) or not isinstance(figure, int | float):
            raise ConfigurationError(
                f"costs: {file}: [{TABLE}] {name}: expected a number, found {figure!r}"
            )
    try:
        return Costs(**{name: float(figure) for name, figure in figures.items()})
    except ValueError as error:
        raise ConfigurationError(f"costs: {file}: [{TABLE}] {error}") from None


def write(file: Path, costs: Costs, origin: str) -> None:
    """Write the costs; ``origin`` says in a line where they come from. OSError if it cannot be."""
    lines = [f"# {origin}", f"[{TABLE}]"]
    lines += [f"{name} = {getattr(costs, name):.1f}" for name in _NAMES]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, "\n".join(lines) + "\n")
