"""Help is there by ``-h``, whole, and shells complete commands and options."""

import subprocess
import sys

import pytest
import typer
from command import run

from broker.cli.application import COMMANDS, application

LINE = 80


def lists():
    """The commands of each list of them."""
    group = typer.main.get_command(application())
    groups = [one for one in group.commands.values() if hasattr(one, "commands")]
    return [(" ".join((one.name or "", name)), command) for one in (group, *groups)
            for name, command in one.commands.items()]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_short_option_shows_the_same_help(name):
    assert run(name, "-h").stdout == run(name, "--help").stdout


@pytest.mark.parametrize(("name", "command"), lists(), ids=[name for name, _ in lists()])
def test_the_line_of_a_command_is_whole(name, command):
    line = command.get_short_help_str()
    assert line.endswith(".")
    assert not line.endswith("...")


def test_every_command_has_one_line_of_the_list():
    listed = run("-h").stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) == len(COMMANDS)
    assert max(map(len, listed)) <= LINE


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("rexmq de", ["detect", "demo"]),
        ("rexmq detect --time-", ["--time-column", "--time-unit", "--time-format"]),
        ("rexmq rule sh", ["show"]),
    ],
)
def test_a_shell_completes_commands_and_options(line, found):
    asked = {"_REXMQ_COMPLETE": "complete_bash", "COMP_WORDS": line}
    place = {"COMP_CWORD": str(len(line.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "broker"],
        env={**asked, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split()[: len(found)] == found
    assert done.stderr == ""
