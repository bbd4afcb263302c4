"""The page on keys, followed word by word: its commands, its file, two brokers and two users."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
SECTION = PAGE.partition("## Two brokers with keys")[2].partition("\n## ")[0]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def test_two_brokers_and_two_users(tmp_path):
    text = SECTION.replace("127.0.0.1:7461", f"127.0.0.1:{free_port()}")
    text = text.replace("127.0.0.1:7462", f"127.0.0.1:{free_port()}")
    keys, access, brokers, bob, alice = re.findall(r"```(?:toml)?\n(.*?)```", text, re.DOTALL)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(script, **streams):
        return subprocess.Popen(
            ["bash", "-ec", script], cwd=tmp_path, env=environment, text=True, **streams
        )

    assert run(keys, stdout=subprocess.DEVNULL).wait(60) == 0
    (tmp_path / "access.toml").write_text(access)
    running = [
        run(f"exec {line.removesuffix(' &')}", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in brokers.splitlines()
    ]
    try:
        assert all("listening on" in process.stdout.readline() for process in running)
        subscriber = run(
            f"exec {bob.strip().removesuffix(' &')}",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(subscriber)
        assert "subscription waits" in subscriber.stderr.readline()
        assert run(alice, stderr=subprocess.DEVNULL).wait(60) == 0
        assert '"value":46.5' in subscriber.communicate(timeout=60)[0].replace(" ", "")
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.communicate(timeout=60)
