"""The table of commands, and the one place where an exception becomes an exit status.

Results go to standard output, errors to standard error, and a user's mistake never shows a
traceback (docs/cli.md). A command raises; it never prints an error or chooses a status itself. A
command module imports nothing heavy (numpy, numba, pyarrow, zmq, the other packages) but inside its
functions, so that ``rexmq --help`` answers within 0.3 s.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from broker.cli import outcome
from broker.cli.streams import occupy
from broker.errors import ForeignPackage
from broker.packages import verify_packages
from broker.variables import unknown

Words = Annotated[list[str] | None, typer.Argument(hidden=True)]

# To register a command, add its name here, at the place that it shall have in the help. Its
# module broker/cli/<name>.py holds EXAMPLE, a command line, and either `command`, a function
# whose docstring is the help, or `commands`, a dict of such functions by the second word, with
# the module's docstring as the help of the group, and EXAMPLES for each of them.
COMMANDS = (
    "check",
    "format",
    "lsp",
    "detect",
    "match",
    "explain",
    "broker",
    "network",
    "pub",
    "sub",
    "connect",
    "conformance",
    "rule",
    "durable",
    "status",
    "top",
    "page",
    "log",
    "trace",
    "drain",
    "keys",
    "access",
    "simulate",
    "demo",
    "bench",
    "reproduce",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``rexmq`` with ``arguments`` (default: the process's) and give its exit status."""
    occupy()
    outcome.end_as_first_process()
    try:
        verify_packages()
    except ForeignPackage as error:
        print(f"rexmq: {error}", file=sys.stderr)
        return outcome.REFUSED
    for warning in unknown(os.environ):
        print(f"rexmq: {warning}", file=sys.stderr)
    try:
        words = sys.argv[1:] if arguments is None else arguments
        application(*words[:1])(args=arguments, prog_name="rexmq")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else outcome.REFUSED
    except OSError as error:  # help that cannot be printed
        status = outcome.report(error)
        assert status is not None, "an OSError is always told"
        return status
    return outcome.DONE


def application(word: str = "") -> typer.Typer:
    """The command line with every command of the contract; if ``word`` is one of them, with that
    alone, since to make all of them takes longer than most take to be carried out.
    """
    app = typer.Typer(
        help="A network of brokers that detects composite events, defined by TESLA rules.",
        no_args_is_help=True,
        rich_markup_mode=None,  # rich would take longer to import than the help to print
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for name in (word,) if word in COMMANDS else COMMANDS:
        _register(app, name)
    return app


class _Command(TyperCommand):
    """A command that refuses an option given twice, where only one of its values could count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a command line; typer.BadParameter for what is wrong with them."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option, times in Counter(one for one in given if _counts_once(one)).items():
            if times > 1:
                raise typer.BadParameter(f"{option.opts[0]} is given twice", ctx)
        return super().parse_args(ctx, args)


def _counts_once(parameter: Any) -> bool:
    """Whether it is an option with one value; a flag may be said again."""
    return parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"rexmq {version('rexmq')}")
        raise typer.Exit(outcome.DONE)


Version = Annotated[
    bool,
    typer.Option(
        "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
    ),
]


def options(version: Version = False) -> None:
    """Options that stand before any command."""


def _register(app: typer.Typer, name: str) -> None:
    module = importlib.import_module(f"broker.cli.{name}")
    epilog = _epilog(module.EXAMPLE)
    if not hasattr(module, "commands"):
        _add(app, name, module.command, module.EXAMPLE)
        return
    group = typer.Typer(
        help=module.__doc__,
        short_help=_first_line(module.__doc__),
        epilog=epilog,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for word, function in module.commands.items():
        _add(group, word, function, module.EXAMPLES[word])
    app.add_typer(group, name=name)


def _add(app: typer.Typer, name: str, function: Callable[..., None], example: str) -> None:
    """Add a command; the first line of its docstring stands in lists of commands, whole."""
    add = app.command(
        name, cls=_Command, short_help=_first_line(function.__doc__), epilog=_epilog(example)
    )
    add(guarded(function))


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def _epilog(example: str) -> str:
    return f"\b\nExample: {example}"  # \b: as it stands, not filled into lines


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """``function``, its exceptions turned into a message on standard error and a status.

    What ``outcome`` does not know is a bug of ours, and passes with its traceback.
    """

    @wraps(function)
    def run(*positional: Any, **named: Any) -> None:
        from runtime.compiling import awaited  # which takes longer to import than help to print

        awaited.tell = awaited.Line()
        try:
            function(*positional, **named)
            with outcome.writing(None):
                sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except (Exception, KeyboardInterrupt) as error:
            status = outcome.report(error)
            if status is None:
                raise
            raise typer.Exit(status) from None

    return run
