"""Where a client finds its broker when it is told nothing else (docs/cli.md)."""

from __future__ import annotations

import os

DEFAULT_ENDPOINT = "tcp://127.0.0.1:7461"
ENDPOINT_VARIABLE = "REXMQ_BROKER"
KEY_VARIABLE, SERVER_KEY_VARIABLE = "REXMQ_KEY", "REXMQ_SERVER_KEY"


def endpoint_or_default(endpoint: str | None) -> str:
    """``endpoint``, else what REXMQ_BROKER says, else the default."""
    return endpoint or os.environ.get(ENDPOINT_VARIABLE) or DEFAULT_ENDPOINT
