"""What the pages show of commands is true: they are run from top to bottom, and print just that.

A line of output that is ``...`` stands for any lines; within a line it stands for any text.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/tutorial.md")
MARK = "==== command"
LIMIT_S = 600
pytestmark = pytest.mark.timeout(3 * LIMIT_S)


def commands(page: str) -> list[tuple[str, str]]:
    """Each command, its continuation lines joined, and the output that follows it."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        for line in block.splitlines(keepends=True):
            command, output = found[-1] if found else ("", "")
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith(">"):
                found[-1] = command + line[1:].removeprefix(" "), output
            else:
                found[-1] = command, output + line
    return found


def free_endpoint() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def pattern(expected: str) -> str:
    return "".join(
        "(?:.*\n)*?" if line == "...\n" else ".*".join(map(re.escape, line.split("...")))
        for line in expected.splitlines(keepends=True)
    )


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> dict[str, list[str]]:
    """What each page's commands print, by page."""
    return {page: run(commands(page), tmp_path_factory.mktemp("page")) for page in PAGES}


def run(shown: list[tuple[str, str]], folder: Path) -> list[str]:
    (folder / "examples").symlink_to(ROOT / "examples")
    endpoint = free_endpoint()
    script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
    for number, (command, _) in enumerate(shown):
        script += f"echo '{MARK} {number}'\n{command}\n"
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "REXMQ_BROKER": endpoint,
        "REXMQ_LISTEN": endpoint,
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            printed, _ = running.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            printed, _ = running.communicate()
            printed += f"(not done after {LIMIT_S} s)\n"
    printed = re.sub(r"(?m)^rexmq: compiling what the rules need.*\n", "", printed)  # once
    _, *parts = re.split(rf"(?m)^{MARK} \d+\n", printed)
    return parts


CASES = [(page, number) for page in PAGES for number in range(len(commands(page)))]


@pytest.mark.parametrize(("page", "number"), CASES)
def test_commands_print_what_the_page_says(outputs, page: str, number: int) -> None:
    command, expected = commands(page)[number]
    assert len(outputs[page]) == len(commands(page)), outputs[page][-1]
    output = outputs[page][number]
    if not expected:
        assert output.strip() == "", command
        return
    assert re.fullmatch(pattern(expected), output.rstrip("\n") + "\n"), f"$ {command}{output}"
