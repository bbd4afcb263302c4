"""Scripts that end without closing their clients: what was published is there, and nobody waits."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker import RuleManager, Subscriber
from broker.process import BrokerProcess

SETTING = """
import asyncio, os, sys, threading
from broker import AsyncPublisher, Publisher, RuleManager, Subscriber
from matcher.model import EventType
endpoint, name = sys.argv[1:]
temp = EventType.of("Temp", n="int")
"""
THREADED = """
manager, subscriber = RuleManager(endpoint), Subscriber(endpoint, name=name + " sink")
subscriber.subscribe("Temp()")
publisher = Publisher(endpoint, name=name, types=[temp], increasing=True, delay_s=5.0)
for n in range(5_000):
    publisher.publish("Temp", n=n)
"""
WARM = 'temp = EventType.of("Warm", n="int")' + THREADED.replace("Temp", "Warm")
LOOPED = """
async def publish():
    global publisher
    publisher = AsyncPublisher(endpoint, name=name, types=[temp], increasing=True, delay_s=5.0)
    await publisher.open()
    for n in range(5_000):
        await publisher.publish("Temp", n=n)
"""
ASYNC = LOOPED + "asyncio.run(publish())\n"
IN_A_THREAD = LOOPED + (
    "loop = asyncio.new_event_loop()\n"
    "threading.Thread(target=loop.run_forever, daemon=True).start()\n"
    "asyncio.run_coroutine_threadsafe(publish(), loop).result()\n"
)
LATE = ASYNC + "import time\ntime.sleep(4.0)\n"


def run(endpoint: str, name: str, script: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SETTING + script, endpoint, name]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def source(endpoint: str, name: str) -> tuple[str, str | None, int]:
    with RuleManager(endpoint) as manager:
        (found,) = (one for one in manager.status()["sources"] if one["name"] == name)
        return found["standing"], found["closed_by"], found["events"]


@pytest.mark.parametrize(
    ("ending", "status"),
    [("", 0), ("sys.exit(3)", 3), ("raise ValueError('no')", 1), ("del publisher", 0)],
)
def test_a_script_that_ends_normally_has_published_everything(
    endpoint: str, ending: str, status: int
) -> None:
    name = f"threaded {ending}"
    done = run(endpoint, name, f"{THREADED}{ending}\n")
    assert done.returncode == status, done.stderr
    assert "rexmq:" not in done.stderr
    assert source(endpoint, name) == ("closed", "goodbye", 5_000)


@pytest.mark.parametrize("script", [ASYNC, IN_A_THREAD, LATE])
def test_so_it_is_of_clients_in_event_loops(endpoint: str, script: str) -> None:
    name = f"looped {len(script)}"
    done = run(endpoint, name, script)
    assert done.returncode == 0, done.stderr
    assert source(endpoint, name) == ("closed", "goodbye", 5_000)


def test_one_that_ends_at_once_is_lost(endpoint: str) -> None:
    assert run(endpoint, "gone", THREADED + "publisher.wait()\nos._exit(0)\n").returncode == 0
    ends_at = time.monotonic() + 20
    while source(endpoint, "gone")[0] == "live" and time.monotonic() < ends_at:
        time.sleep(0.1)
    assert source(endpoint, "gone") == ("lost", None, 5_000)


def test_a_child_closes_nothing_of_its_parents(endpoint: str) -> None:
    forks = "child = os.fork()\nif not child:\n    sys.exit(0)\nos.waitpid(child, 0)\n"
    then = "for n in range(10):\n    publisher.publish('Temp', n=n)\n"
    done = run(endpoint, "parent", THREADED + forks + then)
    assert done.returncode == 0, done.stderr
    assert source(endpoint, "parent") == ("closed", "goodbye", 5_010)


def test_without_a_broker_the_end_comes_in_seconds_and_says_what_is_lost() -> None:
    with BrokerProcess("--engine", "naive") as broker:
        words = [sys.executable, "-c", SETTING + THREADED + WAIT, broker.endpoint, "alone"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        script = subprocess.Popen(words, text=True, **pipes)  # type: ignore[call-overload]
        assert script.stdout.readline() == "ready\n"
    begun = time.monotonic()
    _, errors = script.communicate("go on\n", timeout=60)
    assert time.monotonic() - begun < 20
    assert "10 events are still unacknowledged at the end" in errors


def test_what_was_refused_at_the_end_is_said(endpoint: str) -> None:
    ahead = "publisher.publish('Temp', n=1, at=2 * 10**15)\n"
    done = run(endpoint, "hasty", THREADED + ahead)
    assert "1 Temp ahead of the clock: 2033-05-18T03:33:20Z is more than 300 s" in done.stderr
    assert source(endpoint, "hasty") == ("closed", "goodbye", 5_000)


WAIT = """
publisher.wait()
print("ready", flush=True)
sys.stdin.readline()
for n in range(10):
    publisher.publish("Temp", n=n)
"""


def test_rules_go_on_when_the_script_has_ended(endpoint: str) -> None:
    """Of a type for which no other test has a source that is lost."""
    rule = "rule one: define One(n: int) from Warm() as w where n = w.n"
    with RuleManager(endpoint) as manager:
        manager.add(f"event Warm(n: int)\n{rule}")
        assert run(endpoint, "with a rule", WARM).returncode == 0
        for _ in range(200):  # on a busy machine the end comes after what is asked here
            (one,) = (found for found in manager.list() if found["name"] == "one")
            if not one["held_by"]:
                break
            time.sleep(0.05)
        assert (one["state"], one["held_by"]) == ("running", [])
        manager.remove("one")


def test_a_broker_that_is_killed_then_has_kept_that_nothing_follows(tmp_path: Path) -> None:
    flags = "--engine", "naive", "--data", str(tmp_path / "store")
    with BrokerProcess(*flags) as broker:
        for name, script in (("threaded", THREADED), ("looped", ASYNC)):
            done = run(broker.endpoint, name, script)
            assert done.returncode == 0, done.stderr
        broker.kill()
    with BrokerProcess(*flags) as again:
        for name in ("threaded", "looped"):
            assert source(again.endpoint, name)[:2] == ("closed", "goodbye")


DURABLE = """
subscriber = Subscriber(endpoint, "Temp()", name=name, durable=True)
with Publisher(endpoint, name="s", types=[temp], increasing=True) as publisher:
    for n in range(5):
        publisher.publish("Temp", n=n)
for _ in range(3):
    subscriber.receive(30)
"""


@pytest.mark.parametrize(("ending", "left"), [("", [2, 3, 4]), ("subscriber.close()\n", [3, 4])])
def test_what_a_durable_subscriber_gave_last_is_dealt_with_if_it_is_closed(
    tmp_path: Path, ending: str, left: list[int]
) -> None:
    with BrokerProcess("--engine", "naive", "--data", str(tmp_path / "store")) as broker:
        done = run(broker.endpoint, "billing", DURABLE + ending)
        assert done.returncode == 0, done.stderr
        with Subscriber(broker.endpoint, "Temp()", name="billing", durable=True) as again:
            assert [again.receive(30).data["n"] for _ in left] == left
