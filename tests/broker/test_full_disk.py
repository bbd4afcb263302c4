"""A broker whose disk is full can be asked what is the matter, and goes on when there is room."""

import re
import resource
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import command
import pytest

from broker import PublishBlocked, Publisher, RefusedError, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventType

NOTE = EventType.of("Note", n="int", text="string")
OTHER = EventType.of("Other", n="int")
TEXT = "x" * 2_000
FULL = "store takes nothing more"


@contextmanager
def files_of_at_most(pid: int, size: int) -> Iterator[None]:
    """Have a process find no room beyond the first bytes of any file."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def fill(publisher: Publisher, manager: RuleManager) -> str:
    """Publish until the store takes nothing more; gives why."""
    for _ in range(100):
        with suppress(PublishBlocked):
            for n in range(publisher.published, 100_000):
                publisher.publish("Note", n=n, text=TEXT)
        if problem := manager.status()["store_problem"]:
            return str(problem)
    raise AssertionError("there is room for all")


def page(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def refused(change: Callable[[], object]) -> str:
    with pytest.raises(RefusedError) as error:
        change()
    return str(error.value)


def test_a_full_disk_mutes_no_answer_and_is_gone_on_from(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = "--engine", "naive", "--data", str(tmp_path / "b1"), "--http", "127.0.0.1:0"
    with (
        log.open("w") as lines,
        BrokerProcess(*options, log=lines) as broker,
        RuleManager(broker.endpoint, timeout_s=5) as manager,
    ):
        (http,) = re.findall(r"serving http.*(http://[\d.:]+)", log.read_text())
        subscriber = Subscriber(broker.endpoint, name="all")
        subscriber.subscribe("Note()")
        publisher = Publisher(
            broker.endpoint, name="p", types=[NOTE], unacknowledged_max=300, timeout_s=0.3
        )
        with files_of_at_most(broker.child.pid, 200_000):
            assert "cannot be written" in fill(publisher, manager)
            assert manager.list() == []
            for words in ("status",), ("top", "--count", "1", "--interval", "0.1"):
                done = command.run(*words, "--broker", broker.endpoint)
                assert done.returncode == 0, done.stderr
                assert FULL in done.stdout
            done = command.run("durable", "list", "--broker", broker.endpoint)
            assert done.returncode == 0, done.stderr
            assert page(f"{http}/healthz") == (200, "ok\n")
            code, text = page(f"{http}/readyz")
            assert (code, FULL in text) == (503, True)
            assert "rexmq_store_blocked 1.0" in page(f"{http}/metrics")[1]
            assert FULL in refused(lambda: Publisher(broker.endpoint, name="q", types=[OTHER]))
            assert FULL in refused(lambda: manager.add("rule r: define R() from Note()"))
        publisher.wait(timeout_s=30)
        assert manager.status()["store_problem"] is None
        publisher.close()
        numbers = [subscriber.receive(timeout_s=10).data["n"] for _ in range(publisher.published)]
        assert numbers == [*range(publisher.published)]
        subscriber.close()
    assert FULL in log.read_text()
    assert "the store takes what waits" in log.read_text()
