"""List, show, remove, keep and resend durable subscriptions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.client.address import Address
    from broker.client.manager import RuleManager

Answer = TypeVar("Answer")

EXAMPLE = "rexmq durable list"
COLUMNS = ("name", "home", "clients", "queued", "bytes", "given", "acknowledged", "last", "dropped")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The durable subscription's name.")]


@takes_broker
def list_durables(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON line each.")] = False,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """List the durable subscriptions: their clients, and how many events wait or were dropped."""
    from broker.cli.table import table

    found = _durables(broker, connect_timeout_s)
    if as_json:
        for one in found:
            print(json.dumps(one))
        return
    print(table(found, COLUMNS))


@takes_broker
def show(
    name: Name,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Print one durable subscription, with its filters, as JSON."""
    from broker.errors import RefusedError

    found = [one for one in _durables(broker, connect_timeout_s) if one["name"] == name]
    if not found:
        raise RefusedError(f"no durable sink is named {name!r}", "unknown")
    print(json.dumps(found[0], indent=2))


@takes_broker
def remove(
    name: Name,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Remove a durable subscription that no client uses, with what waits for it."""
    removed = _asked(broker, connect_timeout_s, lambda manager: manager.remove_durable(name))
    print(f"{removed['queued']} events were waiting")


@takes_broker
def keep(
    name: Name,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Go on with a durable subscription that went to a broker which does not come back."""
    kept = _asked(broker, connect_timeout_s, lambda manager: manager.keep_durable(name))
    print(f"{kept['queued']} events wait")


@takes_broker
def resend(
    name: Name,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Queue the dead letters of a durable subscription once more."""
    resent = _asked(broker, connect_timeout_s, lambda manager: manager.resend_durable(name))
    print(f"{resent['queued']} dead letters wait again")


def _durables(broker: Address, connect_timeout_s: float) -> Sequence[Mapping[str, Any]]:
    return _asked(broker, connect_timeout_s, lambda manager: manager.durables())


def _asked(
    broker: Address, connect_timeout_s: float, ask: Callable[[RuleManager], Answer]
) -> Answer:
    """The answer to one request at a broker."""
    from broker import RuleManager

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        return ask(manager)


EXAMPLES = {
    "list": EXAMPLE,
    "show": "rexmq durable show billing",
    "remove": "rexmq durable remove billing",
    "keep": "rexmq durable keep billing",
    "resend": "rexmq durable resend billing",
}

commands = {
    "list": list_durables,
    "show": show,
    "remove": remove,
    "keep": keep,
    "resend": resend,
}
