"""Examples that start by one command, at ports of their own."""

import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def free_ports(count):
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [str(one.getsockname()[1]) for one in taken]


def first_line(folder, name, begins, usual, *words):
    """The first line that the example of a name prints which begins so, at ports of its own."""
    ports = dict(zip(usual, free_ports(len(usual)), strict=True))
    for file in (EXAMPLES / name).iterdir():
        if file.is_file():
            text = file.read_text()
            for port, own in ports.items():
                text = text.replace(port, own)
            (folder / file.name).write_text(text)
    start = sys.executable, "-u", str(folder / "start.py"), *words
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True, cwd=EXAMPLES.parent) as process:
        try:
            lines = iter(process.stdout.readline, "")
            return next(line for line in lines if line.startswith(begins))
        finally:
            process.terminate()


@pytest.mark.skipif(shutil.which("mosquitto") is None, reason="there is no mosquitto: apt-get it")
def test_a_fridge_that_gets_warm_is_told_to_the_webhook(tmp_path):
    alert = first_line(tmp_path, "fridges", "fridge ", ("1883", "7461", "8080"))
    assert alert.startswith("fridge cellar is warm: ")


def test_a_login_after_three_failures_is_told(tmp_path):
    journal = str(EXAMPLES.parent / "tests" / "docs" / "testdata" / "journal.jsonl")
    alert = first_line(tmp_path, "logins", "web1", ("7461",), journal)
    text = "Accepted password for root from 198.51.100.7 port 50128 ssh2"
    assert alert == f"web1, after three wrong ones: {text}\n"


def test_cloud_events_go_in_and_out_by_http(tmp_path):
    alert = first_line(tmp_path, "cloudevents", "2", ("7461", "9464", "8080"))
    assert alert.endswith("Z Flapping billing\n")
