"""The environment's variables that are settings, and those that only look like some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from broker.client.endpoint import ENDPOINT_VARIABLE, KEY_VARIABLE, SERVER_KEY_VARIABLE
from broker.keys import KEYS

PREFIX = "REXMQ_"
COSTS_VARIABLE = "REXMQ_COSTS"
VARIABLES = (
    ENDPOINT_VARIABLE,
    KEY_VARIABLE,
    SERVER_KEY_VARIABLE,
    COSTS_VARIABLE,
    *(key.variable for key in KEYS),
)


def unknown(environment: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that is called like a setting and is none."""
    from difflib import get_close_matches  # rarely needed

    words = [name.removeprefix(PREFIX) for name in VARIABLES]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in VARIABLES:
            nearest = get_close_matches(name.removeprefix(PREFIX).upper(), words, 1)
            hint = f": did you mean {PREFIX}{nearest[0]}?" if nearest else ""
            yield f"{name} is no setting{hint}"
