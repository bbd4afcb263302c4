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


@pytest.mark.skipif(shutil.which("mosquitto") is None, reason="there is no mosquitto: apt-get it")
def test_a_fridge_that_gets_warm_is_told_to_the_webhook(tmp_path):
    ports = dict(zip(("1883", "7461", "8080"), free_ports(3), strict=True))
    for file in (EXAMPLES / "fridges").iterdir():
        if file.is_file():
            text = file.read_text()
            for usual, own in ports.items():
                text = text.replace(usual, own)
            (tmp_path / file.name).write_text(text)
    words = sys.executable, "-u", str(tmp_path / "start.py")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=EXAMPLES.parent) as process:
        try:
            lines = iter(process.stdout.readline, "")
            alert = next(line for line in lines if line.startswith("fridge "))
        finally:
            process.terminate()
    assert alert.startswith("fridge cellar is warm: ")
