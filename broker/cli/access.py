"""Look at an access file, as a broker reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from broker.security.access import Access
    from routing.messages import Rights

EXAMPLE = "rexmq access show alice --access /etc/rexmq/access.toml"
COLUMNS = ("right", "of", "conditions", "line")
File = Annotated[Path, typer.Option("--access", metavar="FILE", help="The access file.")]
DEFAULT = Path("access.toml")


def check(access: File = DEFAULT) -> None:
    """Read an access file and the keys that it names: says what is wrong, or whose keys there are.

    It is what a broker does at its start and at SIGHUP.
    """
    from broker.cli.outcome import counted
    from broker.security.access import load_access

    found = load_access(access)
    brokers = {owner.name for owner in found.owners.values() if owner.is_broker}
    limited = any(rights.grants is not None for rights in found.rights.values())
    rest = "" if limited else "; each user may do everything"
    users = counted(len(found.rights), "user")
    print(f"{access}: {users}, {counted(len(brokers), 'broker')}: ok{rest}")


def show(
    user: Annotated[str, typer.Argument(metavar="USER", help="A user of the file.")],
    access: File = DEFAULT,
) -> None:
    """Print what a user may do, its own rights and those of its groups, and the lines that say so.

    Names of sources, limits and the number of its keys as well.
    """
    from broker.cli.table import table
    from broker.errors import ConfigurationError
    from broker.security.access import load_access

    found = load_access(access)
    rights = found.rights.get(user)
    if rights is None:
        known = ", ".join(sorted(found.rights))
        raise ConfigurationError(f"{access}: there is no user {user!r}; expected one of {known}")
    print("\n".join(_head(user, rights, found)))
    rows = [
        {"right": one.act.value, "of": one.name, "conditions": one.filter, "line": one.line}
        for one in rights.grants or ()
    ]
    if rows:
        print(table(rows, COLUMNS))


def _head(user: str, rights: Rights, access: Access) -> Iterator[str]:
    from broker.escaping import escaped

    keys = sum(1 for one in access.owners.values() if one.name == user and not one.is_broker)
    token = ", a token" if user in access.tokens.values() else ""
    yield escaped(f"{', '.join(rights.tables)}: {keys} keys{token}")
    if rights.sources is not None:
        yield escaped(f"sources: {', '.join(rights.sources) or 'none'}")
    for name in rights.limits.__struct_fields__:
        if (most := getattr(rights.limits, name)) is not None:
            yield f"{name}: {most:,}"
    if rights.grants is None:
        yield "may do everything: the file says nothing of rights"
    elif not rights.grants:
        yield "may do nothing"


EXAMPLES = {"check": "rexmq access check --access /etc/rexmq/access.toml", "show": EXAMPLE}

commands = {"check": check, "show": show}
