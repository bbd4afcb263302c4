"""The seven packages must be this distribution's own (docs/decisions/0001-package-names.md).

Their names are generic, so another distribution, or a folder of the same name where the command
is run, may stand in the way. That would show as an obscure error much later, or as none at all:
so the command looks first, before it imports any of them.
"""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import broker
from broker.errors import ForeignPackage

PACKAGES = ("broker", "matcher", "rexmq", "routing", "rules", "runtime", "simulator")


def verify_packages() -> None:
    """Raise ForeignPackage, naming the intruder, unless all seven stand in one folder.

    Nothing is imported: the import system is only asked where it would look.
    """
    home = Path(broker.__file__).resolve().parent.parent
    for name in PACKAGES:
        found = _folder(find_spec(name))
        if found != home / name:
            raise ForeignPackage(
                f"package '{name}' would be imported from {found or 'nowhere'}, not from "
                f"{home / name}: another distribution or folder stands in the way. Install "
                f"rexmq in a virtual environment of its own, or run it from another folder."
            )


def _folder(spec: ModuleSpec | None) -> Path | None:
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return None if spec.origin is None else Path(spec.origin).resolve()
