"""``rexmq broker``: run a broker. Its options are the keys of ``broker/configuration.py``."""

from __future__ import annotations

import os
import sys
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "rexmq broker --name b1 --listen tcp://127.0.0.1:7461 --listen ipc:///run/rexmq.sock"

LISTS = ("listen", "link", "http_names", "http_proxies")
"""The keys whose flags may be given several times."""


def command(**given: Any) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    SIGHUP lets it read its configuration again. Every key can also be set in the file (--config),
    and as REXMQ_<KEY> in the environment.
    """
    from broker import configuration
    from broker.cli.outcome import UsageError
    from broker.errors import ConfigurationError

    file, check = given.pop("config"), given.pop("check")
    try:
        configuration.from_flags(given)
    except ConfigurationError as error:
        raise UsageError(str(error)) from None

    def read() -> configuration.Configuration:
        return configuration.load(file, os.environ, given)

    if check:
        from broker.service import check as check_security, store_warnings

        checked = read()
        check_security(checked)
        for warning in store_warnings(checked):
            print(f"rexmq: {warning}", file=sys.stderr)
        print(checked.toml())
        return
    _serve(read)


def _serve(read: Any) -> None:
    from broker.signals import Signals

    signals = Signals()  # before all that takes its time
    try:
        from broker import last_words
        from broker.process import READY
        from broker.service import Service

        service = Service(read, signals)
        last_words.tell()
    except Exception:
        signals.restore()
        raise

    def announce() -> None:
        for endpoint in service.endpoints:
            print(f"{READY}{endpoint}")
        if service.url is not None:
            print(f"metrics at {service.url}/metrics")
        sys.stdout.flush()

    service.run(announce)


def _signature() -> Signature:
    """The command's options, made from the table of keys so that none can be forgotten."""
    from broker.keys import KEYS

    options = [
        _option("config", Path | None, "--config", "FILE", "A TOML file."),
        _option("check", bool, "--check", None, "Validate, print the effective values, and end."),
    ]
    for key in KEYS:
        kind = list[str] | None if key.name in LISTS else str | None
        options.append(_option(key.name, kind, key.flag, key.kind.metavar, key.help))
    return Signature(options)


def _option(name: str, kind: Any, flag: str, metavar: str | None, text: str) -> Parameter:
    default = False if kind is bool else None
    annotation = Annotated[kind, typer.Option(flag, metavar=metavar, help=text)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


command.__signature__ = _signature()  # type: ignore[attr-defined]
