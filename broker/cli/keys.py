"""Make key pairs, and show what is in their files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq keys new b1 --dir /etc/rexmq"


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose keys: a user, a broker.")],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where the two files are made.")
    ] = Path(),
) -> None:
    """Make a key pair: NAME.key_secret, for its owner alone, and NAME.key, for others.

    Prints the public key. Files that are there already are left as they are.
    """
    from broker.security.keys import create, load_pair

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
