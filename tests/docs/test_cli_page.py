"""docs/cli.md names every command and every option of it."""

import re
from pathlib import Path

import pytest
import typer

from broker.cli.application import COMMANDS, application
from broker.cli.options import LAYOUT

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def sections() -> dict[str, str]:
    """Texts about each command: the lines that name it, and whole sections whose headings do."""
    headed = re.findall(r"^###? (.*)\n((?:(?!##).*\n)*)", PAGE, re.M)
    parts = [*PAGE.splitlines(), *(f"{head}\n{body}" for head, body in headed if "`" in head)]
    return {
        name: "\n".join(
            part for part in parts if re.search(rf"\brexmq {name}\b", part.partition("\n")[0])
        )
        for name in COMMANDS
    }


def options(name: str) -> set[str]:
    command = typer.main.get_command(application()).commands[name]  # type: ignore[attr-defined]
    below = getattr(command, "commands", {"": command}).values()
    return {
        flag
        for one in below
        for parameter in one.params
        for flag in parameter.opts
        if flag.startswith("--") and flag != "--help"
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_tells_of_every_option(name: str) -> None:
    told = sections()[name]
    assert told, f"nothing is said of rexmq {name}"
    # Told once, of all that talk to a broker.
    shared = {"--broker", "--connect-timeout-s", "--key", "--server-key"}
    if name != "detect":  # told once, of all that read events
        shared |= {"--type", *(f"--{one.replace('_', '-')}" for one in LAYOUT)}
    for flag in sorted(options(name) - shared):
        key = f"`{flag.removeprefix('--').replace('-', '_')}`"
        said = flag in told or (name == "broker" and (key in PAGE or flag in PAGE))
        assert said, f"rexmq {name} {flag}"


def test_what_is_shared_is_told_once() -> None:
    assert "`--broker ENDPOINT`" in PAGE
    assert "`--connect-timeout-s`" in PAGE
