"""Modules of a source checkout: they stand beside the packages, and no wheel has them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def module(name: str, command: str) -> Any:
    """The module of that dotted name; UsageError, for the command's sake, outside a checkout."""
    from broker.cli.outcome import UsageError

    package = ROOT / name.partition(".")[0]
    if not package.is_dir():
        raise UsageError(f"{command} needs a source checkout: there is no folder {package}")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(name)
