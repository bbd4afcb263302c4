"""A broker that may have few file descriptors, and clients enough to use them up."""

import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
import zmtp

from broker import Publisher, RefusedError, RuleManager
from broker.descriptors import KEPT, Lookout, clients_max
from broker.process import BrokerProcess

LIMIT = 64
CLIENTS = 100


@pytest.fixture
def broker(tmp_path):
    """A broker's endpoint and its log, read when it is called."""
    limits = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))"
    code = f"{limits}; import sys; from broker.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "broker", "--engine", "naive"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--listen", "tcp://127.0.0.1:*"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with process:
            endpoint = process.stdout.readline().split()[-1]
            yield endpoint, (tmp_path / "log").read_text
            process.terminate()
        assert process.returncode == 0


def test_clients_are_refused_by_name_before_descriptors_run_out(broker):
    endpoint, log = broker
    welcomed = []
    with ExitStack() as clients:

        def fill():
            for number in range(CLIENTS):
                publisher = Publisher(endpoint, name=f"p{number}", types=[])
                welcomed.append(clients.enter_context(publisher))

        with pytest.raises(RefusedError, match=r"clients \(clients_max\)"):
            fill()
        assert 20 < len(welcomed) < LIMIT
        with RuleManager(endpoint) as operator:  # there is room for it
            assert len(operator.status()["clients"]) == len(welcomed) + 1
    with Publisher(endpoint, name="later", types=[]):
        pass
    assert "fewer clients than clients_max: too few file descriptors" in log()


def test_descriptors_that_have_run_out_are_told_in_the_log_once_a_second(broker):
    """Strangers that only connect are none of the clients that are counted."""
    endpoint, log = broker
    strangers = [zmtp.connect(endpoint) for _ in range(CLIENTS)]
    begun, line = time.monotonic(), "no file descriptors left: connections wait"
    while log().count(line) < 2:
        assert time.monotonic() - begun < 30
        time.sleep(0.1)
    assert log().count(line) <= time.monotonic() - begun + 2
    for stranger in strangers:
        stranger.close()
    with Publisher(endpoint, name="later", types=[]):
        pass
    assert "Too many open files" in log()


def test_room_for_clients():
    used = len(os.listdir("/dev/fd"))
    assert abs(clients_max(10_000, 0) - (10_000 - used - KEPT)) <= 2
    assert clients_max(10_000, 10) < clients_max(10_000, 0)
    assert clients_max(used, 0) == 1
    Lookout(0).look(0.0)  # there are some left


def test_a_broker_takes_all_that_it_may_have():
    with BrokerProcess("--engine", "naive") as broker:
        soft, hard = resource.prlimit(broker.child.pid, resource.RLIMIT_NOFILE)
        assert soft == hard
