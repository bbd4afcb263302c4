"""The random rules of the simulator's campaigns, for other tests too."""

from simulator.fuzzing.world import (
    COMPOSITE,
    OPTIONAL,
    PRIMITIVE,
    SCHEMAS,
    STRINGS,
    Piece,
    RuleText,
)
from simulator.fuzzing.writer import RuleWriter

__all__ = [
    "COMPOSITE",
    "OPTIONAL",
    "PRIMITIVE",
    "SCHEMAS",
    "STRINGS",
    "Piece",
    "RuleText",
    "RuleWriter",
]
