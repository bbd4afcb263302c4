"""Signals that come while a broker loads its kernels, which takes a minute at the first start."""

import signal
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "broker"]


def loading(*arguments):
    """A broker that has begun to load."""
    command = [*COMMAND, "broker", "--listen", "tcp://127.0.0.1:*", *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    while "loading kernels" not in process.stderr.readline():
        assert process.poll() is None
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_that_is_stopped_while_it_loads_ends_as_always(number):
    with loading() as process:
        process.send_signal(number)
        process.send_signal(number)
        output, lines = process.communicate(timeout=100)
    assert process.returncode == 0
    assert output == ""
    assert f"message=stopping signal={number.name}" in lines
    assert lines.endswith("message=stopped\n")
    assert "Traceback" not in lines


def test_a_reload_that_is_asked_for_while_it_loads_is_done_once_it_serves(tmp_path):
    file = tmp_path / "b.toml"
    file.write_text('[broker]\nlog_level = "info"\n')
    with loading("--config", str(file)) as process:
        file.write_text("[limits]\nclients_max = 7\n")
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline().startswith("listening")
        lines = []
        while "configuration reloaded" not in (line := process.stderr.readline()):
            lines.append(line)
            assert line
        assert "changed=clients_max" in line
        process.terminate()
        process.communicate(timeout=100)
    assert process.returncode == 0
    assert "message=listening" in lines[-1]
