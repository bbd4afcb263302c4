"""The command ``rexmq`` (also ``python -m broker``): one module a command."""

from __future__ import annotations

from broker.cli.application import main

__all__ = ["main"]
