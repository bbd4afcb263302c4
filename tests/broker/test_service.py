"""A broker as a process: whom its addresses are open to."""

import subprocess

import pytest
from forked import started

from broker.names import is_open_to_others


@pytest.mark.parametrize(
    ("endpoint", "is_open"),
    [
        ("tcp://127.0.0.1:7461", False),
        ("tcp://127.1.2.3:7461", False),
        ("tcp://[::1]:7461", False),
        ("tcp://[::ffff:127.0.0.1]:7461", False),
        ("http://127.0.0.1:9464", False),
        ("http://0.0.0.0:9464", True),
        ("ipc:///run/rexmq.sock", False),
        ("tcp://0.0.0.0:7461", True),
        ("tcp://[::]:7461", True),
        ("tcp://192.168.1.7:7461", True),
        ("tcp://[fe80::1%eth0]:7461", True),
    ],
)
def test_addresses_that_other_machines_may_reach(endpoint, is_open):
    assert is_open_to_others(endpoint) == is_open


@pytest.mark.parametrize("endpoint", ["tcp://*:*", "tcp://0.0.0.0:*", "tcp://localhost:*"])
def test_a_broker_warns_of_them_when_it_starts(endpoint):
    flags = ["--engine", "naive", "--insecure", "true", "--listen", endpoint]
    pipe = subprocess.PIPE
    with started("broker", *flags, stdout=pipe, stderr=pipe) as process:
        assert process.stdout.readline().startswith("listening")
        process.terminate()
        lines = process.communicate(timeout=60)[1]
    warned = "level=warning" in lines and "open to everybody" in lines and "security.md" in lines
    assert warned == (endpoint != "tcp://localhost:*")
