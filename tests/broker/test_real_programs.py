"""Programs as people write them: what was given a receipt comes once, and nothing hangs.

Each program is a process of its own before one broker with a store. It publishes Jobs under the
name that it is given, and prints how many of them have a receipt; a durable subscriber counts what
came of them.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker import Subscriber
from broker.process import BrokerProcess

WAIT_S = 60
SETTING = """
import asyncio, gc, multiprocessing, os, random, signal, sys, threading, time, warnings
from datetime import timedelta
from broker import AsyncPublisher, AsyncSubscriber, Publisher, Subscriber
from broker.errors import BrokerError, ForeignClient
from matcher.model import EventType
endpoint, name = sys.argv[1:]
job = EventType.of("Job", of="string", n="int")
class Late(Exception): pass
def ring(*_): raise Late
def publisher(**own): return Publisher(endpoint, name=name, types=[job], **own)
def publish(to, first, count):
    for n in range(first, first + count): to.publish("Job", of=name, n=n)
"""
PROGRAMS = {
    "exit": """
with publisher() as own:
    publish(own, 0, 3_000); print(3_000, flush=True)
    sys.exit(0)
""",
    "error": """
with publisher(delay_s=5.0) as own:
    publish(own, 0, 3_000); print(3_000, flush=True)
    raise ValueError
""",
    "interrupt": """
with publisher() as own:
    publish(own, 0, 3_000); print(3_000, flush=True)
    os.kill(os.getpid(), signal.SIGINT); time.sleep(5)
""",
    "cancelled": """
async def work():
    async with AsyncPublisher(endpoint, name=name, types=[job], delay_s=5.0) as own:
        for n in range(3_000): await own.publish("Job", of=name, n=n)
        print(3_000, flush=True)
        published.set()
        await asyncio.sleep(60)
async def main():
    global published
    published, task = asyncio.Event(), asyncio.create_task(work())
    await published.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
asyncio.run(main())
""",
    "fork": """
own = publisher()
def child():
    begun = time.monotonic()
    for use in (lambda: publish(own, 0, 1), lambda: own.wait(timeout_s=2), own.flush):
        try: use()
        except ForeignClient as error: assert "fork" in str(error)
        else: os._exit(1)
    own.close()
    assert time.monotonic() - begun < 2
    with Publisher(endpoint, name=name + " child", types=[job]) as other:
        other.publish("Job", of=name, n=1).wait(5)
publish(own, 0, 1)
process = multiprocessing.get_context("fork").Process(target=child)
process.start(); process.join(20)
assert process.exitcode == 0, process.exitcode
publish(own, 2, 8); own.close(); print(10)
""",
    "alarms": """
signal.signal(signal.SIGALRM, ring)
random.seed(1)
own, n, given, until, rings = publisher(), 0, [], time.monotonic() + 2, 0
while time.monotonic() < until and n < 50_000:  # the durable subscriber holds 65,536
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.01))
            while own.unacknowledged < 2_000:
                n += 1; own.publish("Job", of=name, n=n); given.append(n)
            own.wait()
        finally: signal.setitimer(signal.ITIMER_REAL, 0)
    except Late: rings += 1
assert rings > 20, rings
own.close(); print(*given)
""",
    "on_ack": """
told = []
def on_ack(number):
    told.append(number)
    if len(told) == 1: raise RuntimeError("its disk is full")
    if number == 100: own.wait(); own.close(); closed.set()
closed = threading.Event()
own = publisher(on_ack=on_ack)
own.publish("Job", of=name, n=0).wait()
publish(own, 1, 99)
assert closed.wait(10)
print(100)
""",
    "dropped": """
warnings.simplefilter("always")
def nightly(first): publish(publisher(delay_s=5.0), first, 10)
nightly(0); nightly(10); gc.collect()
class Holder:
    def __init__(self): self.own = publisher(on_ack=self.heard)
    def heard(self, number): pass
Holder().own.publish("Job", of=name, n=20).wait(5); gc.collect()
async def left_open():
    own = AsyncPublisher(endpoint, name=name + " async", types=[job], delay_s=5.0)
    await own.open()
    for n in range(21, 30): await own.publish("Job", of=name, n=n)
asyncio.run(left_open())
before = threading.active_count(), len(os.listdir("/proc/self/fd"))
for _ in range(5): Subscriber(endpoint, "Job()")
gc.collect(); time.sleep(1)
after = threading.active_count(), len(os.listdir("/proc/self/fd"))
assert after <= before and threading.active_count() == 1, (before, after)
print(30)
""",
    "threads": """
own, taken = publisher(), []
def work(first):
    publish(own, first, 500)
    own.publish_batch([{"of": name, "n": n} for n in range(first + 500, first + 1_000)], type="Job")
threads = [threading.Thread(target=work, args=(1_000 * k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
own.close(); print(4_000)
""",
    "another loop": """
own = AsyncPublisher(endpoint, name=name, types=[job])
async def publish_one(n): return await own.publish("Job", of=name, n=n)
async def first():
    await own.open()
    for n in range(10): await (await publish_one(n))
asyncio.run(first())
for use in (lambda: asyncio.run(publish_one(10)),):
    try: use()
    except ForeignClient as error: assert "event loop" in str(error)
    else: raise AssertionError("it was taken")
print(10)
""",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data = str(tmp_path_factory.mktemp("store"))
    with BrokerProcess("--data", data, "--engine", "naive") as process:
        with Subscriber(process.endpoint, "Job()", name="all", durable=True):
            pass
        yield process


def run(endpoint: str, name: str, program: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SETTING + program, endpoint, name]
    return subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S)


def came(subscriber: Subscriber, name: str, wanted: set[int]) -> Counter[int]:
    """How often each Job of a program came, until all that are wanted did."""
    found: Counter[int] = Counter()
    while not wanted <= found.keys():
        event = subscriber.receive(timeout_s=10)
        if event.data["of"] == name:
            found[event.data["n"]] += 1
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_has_a_receipt_comes_once(broker: BrokerProcess, name: str) -> None:
    done = run(broker.endpoint, name, PROGRAMS[name])
    printed = [int(word) for word in done.stdout.split()]
    assert printed, done.stderr
    assert "still unacknowledged" not in done.stderr
    wanted = set(printed) if len(printed) > 1 else set(range(printed[0]))
    with Subscriber(broker.endpoint, "Job()", name="all", durable=True) as subscriber:
        found = came(subscriber, name, wanted)
    assert set(found.values()) == {1}


SHARED = """
import asyncio, sys, threading
from broker import AsyncSubscriber, Publisher, Subscriber
from matcher.model import EventType
endpoint, name = sys.argv[1:]
task = EventType.of(name, n="int")
COUNT = 3_000
def publish():
    with Publisher(endpoint, name=name, types=[task]) as own:
        for n in range(COUNT): own.publish(name, n=n)
done = []
"""
BY_TASKS = """
async def main():
    async with AsyncSubscriber(endpoint, f"{name}()", name=name, durable=True) as jobs:
        async def work():
            async for event in jobs:
                await asyncio.sleep(0)
                done.append(event.data["n"])
        tasks = [asyncio.create_task(work()) for _ in range(4)]
        await asyncio.to_thread(publish)
        while len(done) < COUNT: await asyncio.sleep(0.01)
        for one in tasks: one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
asyncio.run(main())
print(*done)
"""
BY_THREADS = """
with Subscriber(endpoint, f"{name}()", name=name, durable=True) as jobs:
    def work():
        while len(done) < COUNT:
            try: done.append(jobs.receive(timeout_s=0.5).data["n"])
            except TimeoutError: pass
    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads: one.start()
    publish()
    for one in threads: one.join()
print(*done)
"""
FAILING = """
async def main():
    async with AsyncSubscriber(endpoint, f"{name}()", name=name, durable=True) as jobs:
        async def work(fails):
            async for event in jobs:
                await asyncio.sleep(0.001)
                if fails: raise ValueError(event.data["n"])
                done.append(event.data["n"])
        failing = asyncio.create_task(work(True))
        tasks = [asyncio.create_task(work(False)) for _ in range(3)]
        await asyncio.to_thread(publish)
        while len(done) < COUNT - 1: await asyncio.sleep(0.01)
        for one in tasks: one.cancel()
        await asyncio.gather(failing, *tasks, return_exceptions=True)
asyncio.run(main())
print(*done)
"""


@pytest.mark.parametrize(
    ("name", "program", "again"),
    [("ByTasks", BY_TASKS, 0), ("ByThreads", BY_THREADS, 0), ("Failing", FAILING, 1)],
)
def test_each_event_is_dealt_with_by_one_of_those_that_share_a_subscriber(
    broker: BrokerProcess, name: str, program: str, again: int
) -> None:
    with Subscriber(broker.endpoint, f"{name}()", name=name, durable=True):
        pass
    done = run(broker.endpoint, name, SHARED + program)
    handled = [int(word) for word in done.stdout.split()]
    assert len(handled) == len(set(handled)) == 3_000 - again, done.stderr
    left = []
    with Subscriber(broker.endpoint, f"{name}()", name=name, durable=True) as jobs:
        for _ in range(again):
            left.append(jobs.receive(timeout_s=10).data["n"])
        with pytest.raises(TimeoutError):
            jobs.receive(timeout_s=0.5)
    assert sorted(handled + left) == list(range(3_000))


def test_what_is_lost_is_said(broker: BrokerProcess, tmp_path: Path) -> None:
    """A program is left by an error while its broker has gone."""
    gone = BrokerProcess("--engine", "naive")
    program = (
        "with publisher(close_timeout_s=0.3) as own:\n"
        "    own.publish('Job', of=name, n=0).wait()\n"
        f"    os.kill({gone.child.pid}, 9); time.sleep(0.5)\n"
        "    publish(own, 1, 7)\n    raise ValueError\n"
    )
    done = run(gone.endpoint, "lost", program)
    gone.kill()
    assert "7 events are still unacknowledged at the end" in done.stderr
    assert done.returncode == 1


RUNG = """
signal.signal(signal.SIGALRM, ring)
random.seed(1)
jobs, got, rings = Subscriber(endpoint, "Rung()", name=name, durable=bool(name)), [], 0
kind = EventType.of("Rung", n="int")
def publish_all():
    with Publisher(endpoint, name="rung by " + name, types=[kind]) as own:
        for n in range(5_000): own.publish("Rung", n=n)
threading.Thread(target=publish_all).start()
while len(got) < 5_000:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.01))
            while len(got) < 5_000: event = jobs.receive(10); got.append(event.data["n"])
        finally: signal.setitimer(signal.ITIMER_REAL, 0)
    except Late: rings += 1
assert rings > 5, rings
jobs.close(); print(*got)
"""


@pytest.mark.parametrize("name", ["", "rung"])
def test_a_receive_that_is_interrupted_gives_its_event_to_the_next(
    broker: BrokerProcess, name: str
) -> None:
    done = run(broker.endpoint, name, RUNG)
    assert list(map(int, done.stdout.split())) == list(range(5_000)), done.stderr
