"""``rexmq page``: sign in at the page of a broker by a key."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address

EXAMPLE = "rexmq page http://127.0.0.1:9464 --key alice.key_secret --server-key b1.key"


@takes_broker
def command(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the broker's page.")],
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Print a link that signs you in at a broker's page, by your key.

    It is good once, for a minute, and while this command runs.
    """
    import time

    from broker import RuleManager
    from broker.cli.outcome import UsageError
    from broker.security.codes import CODE_S, client_name, new_code

    if not url.startswith(("http://", "https://")):
        raise UsageError(f"page: expected an address such as http://127.0.0.1:9464, not {url!r}")
    if broker.curve is None:
        raise UsageError("page: expected --key and --server-key; others sign in by a token")
    code = new_code()
    with RuleManager(broker, name=client_name(code), connect_timeout_s=connect_timeout_s):
        print(f"{url.rstrip('/')}/#code={code}", flush=True)
        print(f"good once, for {CODE_S:g} s, and while this command runs", file=sys.stderr)
        time.sleep(CODE_S)
