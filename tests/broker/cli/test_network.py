"""``rexmq network``: brokers as processes, linked as a scenario file says."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import forked
import pytest
from pairs import some_of

from broker import Publisher, RuleManager, Subscriber
from broker.cli import main
from broker.cli.network import _signals
from broker.errors import BrokerError, BrokerUnreachable
from broker.network import BrokerNetwork, Member, members
from matcher.model import EventType

TEMP = EventType.of("Temp", value="float")
HOT = "rule hot: define Hot(value: float) from Temp(value > 45) as t where value = t.value"
TRIANGLE = """
engine = "naive"
[topology]
kind = "ring"
brokers = 2
[[broker]]
name = "third"
listen = "tcp://127.0.0.1:*"
[[link]]
between = ["third", "b1"]
[[link]]
between = ["b2", "third"]
"""
PAIR = """
engine = "naive"
[[broker]]
name = "b1"
[[broker]]
name = "b2"
[[link]]
between = ["b1", "b2"]
"""


@pytest.fixture
def pair(tmp_path):
    """Where it does not matter how many brokers there are."""
    file = tmp_path / "pair.toml"
    file.write_text(PAIR)
    return file


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "scenario.toml"
    file.write_text(TRIANGLE)
    return file


@contextmanager
def ended(process):
    """Whatever happens, this process ends."""
    with process:
        try:
            yield process
        except BaseException:
            process.terminate()
            raise


def children(process):
    return [
        int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def shown_status(capsys, endpoint):
    assert main(["status", "--broker", endpoint]) == 0
    return capsys.readouterr().out


def shown_when(pattern, capsys, endpoint):
    """The status once a line is like the pattern: a link is known everywhere a little later."""
    return shown_somewhere(pattern, capsys, [endpoint])


def shown_somewhere(pattern, capsys, endpoints):
    """The status of the first broker in which a line is like the pattern."""
    deadline = time.monotonic() + 10
    while True:
        for endpoint in endpoints:
            if re.search(pattern, page := shown_status(capsys, endpoint), re.MULTILINE):
                return page
        assert time.monotonic() < deadline, page
        time.sleep(0.05)


def test_no_broker_outlives_a_terminal(pair):
    """SIGHUP killed the command alone, and its brokers went on with their ports."""
    command = [sys.executable, "-m", "broker", "network", str(pair)]
    pipe = subprocess.PIPE
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # if the tests run under nohup, too
    started = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    signal.signal(signal.SIGHUP, before)
    with ended(started) as running:
        assert running.stdout is not None
        while running.stdout.readline() != "ready\n":
            assert running.poll() is None
        brokers = children(running.pid)
        assert len(brokers) == 2
        running.send_signal(signal.SIGHUP)
        assert running.wait(20) == 0
    assert not [pid for pid in brokers if Path(f"/proc/{pid}").exists()]


def test_a_secure_network_lets_in_who_has_the_keys_that_it_names(pair):
    command = [sys.executable, "-m", "broker", "network", str(pair), "--secure"]
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline().split() for _ in range(3)]
        assert lines.pop() == ["ready"]
        for name, _, _, endpoint, _, *options in lines:
            with pytest.raises(BrokerUnreachable, match="asks for keys"):
                RuleManager(endpoint, connect_timeout_s=2)
            assert options[::2] == ["--key", "--server-key"]
            with RuleManager(endpoint, key=options[1], server_key=options[3]) as manager:
                assert manager.status()["broker"] == name
                deadline = time.monotonic() + 20
                while len(manager.status()["network"]["brokers"]) < 2:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
        running.terminate()
        assert running.wait(20) == 0
    assert not Path(options[1]).exists()


@pytest.mark.parametrize("number", some_of([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], 0))
def test_a_network_that_is_stopped_while_it_comes_up_ends_as_always(pair, number):
    command = [sys.executable, "-m", "broker", "network", str(pair)]
    pipe = subprocess.PIPE
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # if the tests run under nohup, too
    started = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    signal.signal(signal.SIGHUP, before)
    with ended(started) as running:
        while len(brokers := children(running.pid)) < 2:
            assert running.poll() is None
            time.sleep(0.005)
        running.send_signal(number)
        assert running.wait(60) == 0
        assert running.stderr is not None
        assert "Traceback" not in running.stderr.read()
    assert not [pid for pid in brokers if Path(f"/proc/{pid}").exists()]


def test_brokers_come_up_work_together_and_go(capsys, scenario):
    """One is killed: that is said, the others go on, and SIGTERM stops them all. The terminal may
    have gone meanwhile, under nohup.
    """
    command = ["nohup", sys.executable, "-m", "broker", "network", str(scenario)]
    pipe = subprocess.PIPE
    with ended(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        lines = [running.stdout.readline() for _ in range(4)]
        assert lines.pop() == "ready\n"
        endpoints = dict(line.rstrip().split(" listening on ") for line in lines)
        assert list(endpoints) == ["b1", "b2", "third"]
        assert endpoints["b1"].startswith("ipc://")
        assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", endpoints["third"])
        with (
            RuleManager(endpoints["b1"]) as manager,
            Publisher(endpoints["b2"], name="t", types=[TEMP]) as publisher,
            Publisher(endpoints["b1"], name="u", types=[TEMP]) as other,
            Subscriber(endpoints["third"], "Hot") as subscriber,
        ):
            manager.add(HOT)
            publisher.publish("Temp", value=50.0)
            # While sources are there; once they have gone nothing is sent any more. Of two brokers
            # with sources one is not the root, whichever that is by the delays that are measured.
            shown_somewhere(r"^  send all Temp\(\)", capsys, endpoints.values())
            publisher.close()
            other.close()
            assert subscriber.receive(10).data == {"value": 50.0}
            for name, endpoint in endpoints.items():
                page = shown_when(r"^third +yes +b1, b2$", capsys, endpoint)
                assert page.startswith(f"broker {name}: ")
                assert "network: strategy centralized, the rules' root is " in page
                shown_when(r"^hot +Hot +running ", capsys, endpoint)  # as the root tells it
        running.send_signal(signal.SIGHUP)
        *_, third = children(running.pid)
        os.kill(third, signal.SIGKILL)
        while "has ended" not in (line := running.stderr.readline()):
            assert line
        assert line == "rexmq: broker third has ended: SIGKILL\n"
        with RuleManager(endpoints["b1"]) as manager:
            assert [rule["name"] for rule in manager.list()] == ["hot"]
        running.terminate()
        assert running.wait(20) == 0
    assert not Path(endpoints["b1"].removeprefix("ipc://")).parent.exists()


def test_a_signal_is_heard_whichever_thread_it_interrupts():
    before, done = signal.getsignal(signal.SIGUSR1), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    with _signals(signal.SIGUSR1) as wait:
        assert thread.ident is not None
        signal.pthread_kill(thread.ident, signal.SIGUSR1)
        assert wait() == bytes([signal.SIGUSR1])
    signal.signal(signal.SIGUSR1, before)
    done.set()
    thread.join()


@pytest.mark.usefixtures("broker")  # the process that forks brokers is there from then on
def test_one_that_does_not_come_up_leaves_none(capsys, pair):
    listens = 'name = "b2"\nlisten = "tcp://nowhere.invalid:1"\n'
    pair.write_text(PAIR.replace('name = "b2"\n', listens))
    forked.server()  # a child that stays
    before = children(os.getpid())
    assert main(["network", str(pair)]) == 1
    assert "rexmq: broker b2: the broker did not start" in capsys.readouterr().err
    assert children(os.getpid()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strategy = 'steam'\n[[broker]]\nname = 'b1'\n", "strategy: expected one of centralized"),
        ("[[broker]]\nname = 'b1'\ndata = 'x'\n", "broker[1].data: comes later"),
        ("[[broker]]\nname = 'b1'\n[[broker]]\nname = 'b2'\n", "no link joins b1 and b2"),
        ("[[broker]]\nnmae = 'b1'\n", "broker[1]: "),
        ("engine = 'foo'\n[[broker]]\nname = 'b1'\n", "bad.toml: engine: expected one of auto"),
        ("[[broker]]\nname = 'b1'\n[sweep]\nseed = [1]\n", "sweep: is for rexmq simulate"),
    ],
)
def test_a_bad_file_starts_nothing(capsys, tmp_path, text, message):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert main(["network", str(file)]) in (1, 2)
    assert message in capsys.readouterr().err


def test_of_a_links_brokers_the_later_one_makes_it():
    found = members([("a", None), ("b", "tcp://x:1"), ("c", None)], [("b", "a"), ("a", "c")])
    assert found == (Member("a"), Member("b", ("a",), "tcp://x:1"), Member("c", ("a",)))


def test_a_folder_with_a_long_name_is_refused(monkeypatch, tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with pytest.raises(BrokerError, match="too long for a socket file"):
        BrokerNetwork([Member("a")])
