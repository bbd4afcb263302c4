"""``rexmq lsp``: rules in editors, by the Language Server Protocol."""

from __future__ import annotations

EXAMPLE = "rexmq lsp"


def command() -> None:
    """Serve an editor on standard input and output (LSP)."""
    from broker.cli.outcome import UsageError

    try:
        from broker.language_server import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("lsprotocol", "pygls"):
            raise
        raise UsageError("lsp needs pygls: pip install 'rexmq[lsp]'") from None
    server().start_io()
