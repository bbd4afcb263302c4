"""The page on connecting, followed word by word: its lines of curl print what it shows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from paged import paged

PAGE = Path(__file__).parents[2] / "docs" / "connect.md"
MARK = "==== command"


def commands():
    """Each command of the page, with its lines that follow, and what it prints."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *lines = part.splitlines(keepends=True)
            own = [line.removeprefix("> ") for line in lines if line.startswith("> ")]
            yield first + "".join(own), "".join(line for line in lines if not line.startswith("> "))


def pattern(expected):
    """A line ``...`` stands for any lines, within a line it stands for any text."""
    return "".join(
        "(?:.*\n)*?" if line == "...\n" else ".*".join(map(re.escape, line.split("...")))
        for line in expected.splitlines(keepends=True)
    )


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl: apt-get install it")
def test_the_lines_of_curl_print_what_the_page_shows(tmp_path):
    shown = [*commands()]
    assert len(shown) == 9
    with paged("--data", str(tmp_path / "b1")) as (_, url):
        script = "".join(f"{command}\necho; echo '{MARK}'\n" for command, _ in shown)
        script = script.replace("http://127.0.0.1:9464", url)
        found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    printed = found.stdout.split(f"\n{MARK}\n")
    for (command, expected), text in zip(shown, printed, strict=False):
        whole = text.removesuffix("\n") + "\n"
        assert re.fullmatch(pattern(expected), whole), f"{command}\n{whole}\n{expected}"
