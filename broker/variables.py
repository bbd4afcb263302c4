"""The environment's variables that are settings, and those that only look like some."""

from __future__ import annotations

import re
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


_OF_SERVICE = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")


def unknown(environment: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that is called like a setting and is none.

    Kubernetes sets variables in each pod for each service: those of services whose names begin with
    ``rexmq`` are nobody's mistake. REXMQ_PORT is theirs if it is an address, as it is there.
    """
    from difflib import get_close_matches  # rarely needed

    words = [name.removeprefix(PREFIX) for name in VARIABLES]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in VARIABLES:
            if _is_of_service(name.removeprefix(PREFIX), environment[name]):
                continue
            nearest = get_close_matches(name.removeprefix(PREFIX).upper(), words, 1)
            hint = f": did you mean {PREFIX}{nearest[0]}?" if nearest else ""
            yield f"{name} is no setting{hint}"


def _is_of_service(word: str, value: str) -> bool:
    """Whether a variable is one that Kubernetes sets for a service."""
    if _OF_SERVICE.fullmatch(word):
        return True
    return word.split("_")[-1] == "PORT" and _ADDRESS.fullmatch(value) is not None
