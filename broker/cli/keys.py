"""Make key pairs, and show what is in their files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq keys new b1 alice bob --dir /etc/rexmq"


def new(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Whose keys: users, brokers.")
    ],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where the two files are made.")
    ] = Path(),
) -> None:
    """Make key pairs: NAME.key_secret, for its owner alone, and NAME.key, for others.

    Prints the public keys. Where a file is there already, or a name is none, nothing is made.
    """
    from broker.security.keys import check_new, create, load_pair

    for name in names:
        check_new(name, folder)
    for name in dict.fromkeys(names):
        secret_file = create(name, folder)
        print(f"{load_pair(secret_file).public}  {secret_file}")


def show(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of keys.")],
) -> None:
    """Print the public keys of files, of either kind; secrets are never printed."""
    from broker.security.keys import SECRET_SUFFIX, load_pair, public_key

    for file in files:
        is_secret = file.suffix == SECRET_SUFFIX
        public = load_pair(file).public if is_secret else public_key(str(file), str(file))
        print(f"{public}  {file}")


EXAMPLES = {"new": EXAMPLE, "show": "rexmq keys show /etc/rexmq/b1.key"}

commands = {"new": new, "show": show}
