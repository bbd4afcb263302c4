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


def is_as_shown(expected: str, output: str) -> bool:
    if not expected:
        return not output.strip()
    return re.fullmatch(pattern(expected), output.rstrip("\n") + "\n") is not None


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_the_page_says(tmp_path: Path, page: str) -> None:
    """One test for each page, so that no two workers run the same page."""
    shown = commands(page)
    outputs = run(shown, tmp_path)
    assert len(outputs) == len(shown), outputs[-1]
    wrong = [
        f"$ {command}{output}"
        for (command, expected), output in zip(shown, outputs, strict=True)
        if not is_as_shown(expected, output)
    ]
    assert wrong == []
