"""A signal that ends a process in the midst of a rule: the rule is named, and does not end a broker
again and again.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from broker import BrokerUnreachable, Publisher, RuleManager, Subscriber
from broker.last_words import FILE
from broker.process import BrokerProcess
from matcher.model import EventType
from rules.engine.kernels.layout import SLOTS

TYPES = "event Spark(n: int)\nevent Fuel(n: int)\n"
ENDLESS = """define Mixture(n: int)
from Spark() and each Fuel() as one within 1 h from Spark
     and each Fuel(n > one.n) as other within 1 h from Spark
     and 0 > $m = Sum(Fuel(n > one.n and n < other.n and n % 2 = 1).n within 1 h from Spark)
where n = $m"""
"""A rule that is evaluated for minutes, over some thousand events, and finds nothing."""
QUICK = "define Lit(n: int) from Spark() where n = Spark.n"
FUEL = 3000
ALONE = f"""
import os, signal, threading, time
from broker import last_words
from rules import Engine
from rules.engine.order.last_words import LAST_WORDS
def end():
    slots = LAST_WORDS.words[{SLOTS[0]}:{SLOTS[-1] + 1}]
    while not slots.any():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGSEGV)
engine = Engine({TYPES!r} + "rule endless: " + {ENDLESS!r}, engine="cdp")
last_words.tell()
engine.push([{{"time": 0, "n": 2 * n}} for n in range({FUEL})], type="Fuel")
engine.push([{{"time": 1, "n": 1}}], type="Spark")
threading.Thread(target=end).start()
engine.finish()
"""


def test_a_process_that_a_signal_ends_names_the_rule_that_it_was_evaluating():
    ended = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=90
    )
    assert ended.returncode == -signal.SIGSEGV
    assert "ends this process while it evaluates rule endless\n" in ended.stderr
    assert "Segmentation fault" in ended.stderr  # faulthandler's own words


def publisher_of(endpoint: str, name: str) -> Publisher:
    types = [EventType.of("Spark", n="int"), EventType.of("Fuel", n="int")]
    return Publisher(endpoint, name=name, types=types, increasing=True)


def is_evaluating(data: Path) -> bool:
    words = np.fromfile(data / FILE, np.int64)
    return bool(words[SLOTS[0] : SLOTS[-1] + 1].any())


def end_in_the_midst(broker: BrokerProcess, data: Path) -> None:
    deadline = time.monotonic() + 60
    while not is_evaluating(data):
        assert time.monotonic() < deadline, "the rule is not evaluated"
        time.sleep(0.02)
    os.kill(broker.child.pid, signal.SIGSEGV)
    assert broker.child.wait(30) == -signal.SIGSEGV


def test_a_rule_in_whose_midst_a_signal_ends_a_broker_twice_is_out_of_force(tmp_path: Path):
    data, log = tmp_path / "data", tmp_path / "log"
    words = ("--data", str(data), "--engine", "cdp", "--log-format", "json")
    with log.open("w") as file:
        broker = BrokerProcess(*words, log=file)
        endpoint = (broker.endpoint,)
        with RuleManager(broker.endpoint) as rules:
            rules.add(TYPES + f"rule endless: {ENDLESS}\nrule quick: {QUICK}")
        publisher = publisher_of(broker.endpoint, "p")
        for number in range(FUEL):
            publisher.publish("Fuel", n=2 * number)
        publisher.publish("Spark", n=1)
        publisher.publish("Fuel", n=0)
        end_in_the_midst(broker, data)
        end_in_the_midst(BrokerProcess(*words, listen=endpoint, log=file), data)
        with BrokerProcess(*words, listen=endpoint, log=file):
            with publisher, Subscriber(endpoint[0], "Lit()") as lit:
                publisher.publish("Spark", n=7)
                publisher.publish("Fuel", n=0)
                assert lit.receive(timeout_s=20).data["n"] in (1, 7)
            status = status_of(endpoint[0])
            with RuleManager(endpoint[0]) as rules:
                rules.add(f"rule endless: {QUICK.replace('Lit', 'Again')}")
            with publisher_of(endpoint[0], "q") as again, Subscriber(endpoint[0], "Again()") as lit:
                again.publish("Spark", n=8)
                again.publish("Fuel", n=0)
                assert lit.receive(timeout_s=20).data["n"] == 8
    told = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    ends = [line["rules"] for line in told if line["message"] == "a signal has ended the broker"]
    assert ends == [["endless"], ["endless"]]
    ended = [line["rule"] for line in told if line["message"] == "a rule has ended"]
    assert ended == ["endless"]
    assert [rule["name"] for rule in status["rules"]] == ["quick"]
    assert "rule endless was being evaluated" in status["overruns"][0]
    assert status["totals"]["ended"] == 1


def status_of(endpoint: str):
    deadline = time.monotonic() + 30
    while True:
        try:
            with RuleManager(endpoint, timeout_s=5) as manager:
                status = manager.status()
            if status["overruns"] or time.monotonic() > deadline:
                return status
        except BrokerUnreachable:
            assert time.monotonic() < deadline
        time.sleep(0.2)
