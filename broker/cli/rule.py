"""Add, apply, list, show and remove the rules of a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.options import CONNECT_TIMEOUT_S, ConnectTimeout, takes_broker

if TYPE_CHECKING:
    from broker.client.address import Address

EXAMPLE = "rexmq rule add fire.tesla"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The rule's name.")]


@takes_broker
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TESLA file.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace rules of the same names.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="They hold from then on: see the logs."),
    ] = None,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Deploy the rules of a file: all of them, or none.

    With --since they hold from a past instant on, and find in the brokers' logs what they would
    have found had they been there.
    """
    from broker import RuleManager
    from broker.cli.outcome import UsageError, datetime_given
    from broker.cli.texts import text_of
    from broker.escaping import escaped
    from matcher.formats.inputs import name_of

    if replace and since is not None:
        raise UsageError("--since and --replace: what replaces a rule holds from its end on")
    begin = None if since is None else datetime_given("--since", since)
    text = text_of(file)
    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        if replace:
            deployed = manager.replace(text, file=name_of(file))
        else:
            deployed = manager.add(text, file=name_of(file), since=begin)
        for rule in deployed["rules"]:
            print(escaped(rule["name"]))


@takes_broker
def apply(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of TESLA files.")],
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove the rules that the folder does not have.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Have the rules of a folder deployed, as they stand there: all of them, or none.

    Takes the files *.tesla of the folder and of those in it. Rules that are deployed as they stand
    there go on as they are. Prints what changes: + a new rule, ~ another version, - one removed.
    """
    from broker import RuleManager
    from broker.cli.applying import Application, texts_in
    from broker.escaping import escaped

    files = texts_in(folder)
    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        application = Application.of(files, manager, prune=prune)
        if application.changes and not dry_run:
            manager.replace(application.text, file=str(folder), remove=application.removed)
    for change in application.changes:
        print(escaped(change))
    print(application.summary)


@takes_broker
def list_rules(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON line each.")] = False,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """List the deployed rules, and whether they run."""
    from broker import RuleManager
    from broker.cli.status import rules_page

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        rules = manager.list()
    if as_json:
        for rule in rules:
            print(json.dumps(rule))
        return
    print(rules_page(rules))


@takes_broker
def show(
    name: Name,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Print a rule in canonical form."""
    from broker import RuleManager
    from broker.escaping import escaped_lines

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        print(escaped_lines(manager.show(name)["text"].rstrip("\n")))


@takes_broker
def remove(
    name: Name,
    *,
    broker: Address,
    connect_timeout_s: ConnectTimeout = CONNECT_TIMEOUT_S,
) -> None:
    """Remove a rule."""
    from broker import RuleManager

    with RuleManager(broker, connect_timeout_s=connect_timeout_s) as manager:
        manager.remove(name)


EXAMPLES = {
    "add": EXAMPLE,
    "apply": "rexmq rule apply rules/ --prune --dry-run",
    "list": "rexmq rule list --json",
    "show": "rexmq rule show fire",
    "remove": "rexmq rule remove fire",
}

commands = {"add": add, "apply": apply, "list": list_rules, "show": show, "remove": remove}
