"""``rexmq broker --matcher --device``: matched as it is told, refused before it binds, told of."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker import Publisher, RuleManager, Subscriber
from broker.cli import main
from broker.cli.status import page
from broker.configuration import load
from broker.errors import ConfigurationError
from broker.network import members
from broker.process import BrokerProcess
from broker.service import FIXED_KEYS
from broker.warmup import warm_up_matching
from matcher.gpu import device as device_module
from matcher.gpu.device import NoDevice
from matcher.matching import Matching
from matcher.methods.counting import CountingMatcher
from matcher.model import EventType
from routing.delivery.subscriber_index import MANY
from rules.filter_index import IN_TURN_MAX
from simulator.blueprint import blueprint

TEMP = EventType.of("Temp", value="float")


def test_a_broker_matches_by_what_it_is_told_and_says_so() -> None:
    with BrokerProcess("--engine", "naive", "--matcher", "pcm") as broker:
        filters = [f"Temp(value > {number})" for number in range(MANY + 2)]
        with (
            Publisher(broker.endpoint, name="s", types=[TEMP]) as source,
            Subscriber(broker.endpoint, *filters) as sink,
        ):
            for value in (-1.0, 3.5, 100.0):
                source.publish("Temp", value=value)
            assert [sink.receive(timeout_s=20).data["value"] for _ in range(2)] == [3.5, 100.0]
            with RuleManager(broker.endpoint) as manager:
                status = manager.status()
    (facts,) = status["matching"]
    assert facts == {
        "type": "Temp",
        "to": None,
        "filters": MANY + 2,
        "method": "pcm",
        "device": None,
        "device_from_events": None,
        "device_failed": None,
    }
    lines = page(status).splitlines()
    place = lines.index("matching:")
    assert lines[place + 1].split() == [
        *("type", "to", "filters", "method", "device", "device_from_events")
    ]
    assert lines[place + 2].split() == ["Temp", "-", str(MANY + 2), "pcm", "-", "-"]


def test_a_device_that_failed_is_shown() -> None:
    facts = {"type": "Temp", "to": "b2", "filters": 30, "method": "index", "device": None}
    facts |= {"device_from_events": None, "device_failed": "CudaError: lost"}
    status = {"broker": "b1", "uptime_s": 1.0, "clients": [], "totals": {}, "rates": {}}
    status |= {"parts": [1], "memory": {}, "network": {"brokers": []}, "matching": [facts]}
    status |= {name: [] for name in ("sources", "types", "rules", "sinks")}
    assert page(status).splitlines()[-1] == (
        "Temp  b2  30       index   failed (CudaError: lost)  -"
    )


def test_every_place_can_say_it(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text('[broker]\nmatcher = "pcm"\ndevice = "auto"\n')
    assert load(file, {}, {}).node.matching == Matching("pcm", "auto")
    made = load(file, {"REXMQ_MATCHER": "auto"}, {"device": "gpu"})
    assert made.node.matching == Matching("auto", "gpu")
    assert made.device == "gpu"
    assert load(None, {}, {}).node.matching == Matching("auto", "cpu")
    assert {"matcher", "device"} <= FIXED_KEYS
    with pytest.raises(ConfigurationError, match="REXMQ_DEVICE: expected one of cpu, gpu, auto"):
        load(None, {"REXMQ_DEVICE": "tpu"}, {})
    refused = "device gpu: the matcher counting has no form for a GPU; auto, pcm, ccm, batched have"
    with pytest.raises(ConfigurationError, match=refused):
        load(file, {}, {"device": "gpu", "matcher": "counting"})


@pytest.mark.parametrize(
    ("flags", "asked"),
    [(["--device", "gpu"], "device gpu"), (["--matcher", "ccm"], "matcher ccm")],
)
def test_without_a_device_it_is_refused_before_it_binds(
    flags: list[str],
    asked: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing(monkeypatch)
    place = tmp_path / "b"
    assert main(["broker", "--listen", f"ipc://{place}", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == f"rexmq: {asked}: CUDA finds no GPU on this machine"
    assert not place.exists()


def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoDevice("CUDA finds no GPU on this machine")

    monkeypatch.setattr(device_module, "device", none)


def test_a_device_is_made_ready_before_the_broker_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class OnDevice(CountingMatcher):
        def _run(self, events, begin, found):
            seen.append(len(events))
            return super()._run(events, begin, found)

    monkeypatch.setattr(Matching, "_on_device", lambda self: OnDevice())
    warm_up_matching(Matching("batched"))
    assert seen == [1, 2]


def test_brokers_of_a_scenario_are_told(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        '[[broker]]\nname = "a"\nmatcher = "pcm"\n[[broker]]\nname = "b"\n'
        '[[link]]\nbetween = ["a", "b"]\n'
    )
    read = blueprint(file)
    one, other = members(read.brokers, read.links, read.flags)
    assert (one.flags, other.flags) == (("--matcher", "pcm", "--device", "cpu"), ())


FAILING = """
from matcher.gpu import device
from matcher.matching import Matching
from matcher.methods.counting import CountingMatcher

class Failing(CountingMatcher):
    calls = 0
    def _run(self, *words):
        Failing.calls += 1
        if Failing.calls > 6:
            raise RuntimeError("an illegal address")
        return super()._run(*words)

device.device = lambda: None
Matching._on_device = lambda self: Failing()
from broker.cli import main
raise SystemExit(main())
"""


def test_a_device_that_fails_in_mid_stream_is_logged_and_loses_nothing(tmp_path: Path) -> None:
    words = ["broker", "--engine", "naive", "--matcher", "ccm", "--listen", f"ipc://{tmp_path}/b"]
    with (
        (tmp_path / "log").open("w+") as log,
        subprocess.Popen(
            [sys.executable, "-c", FAILING, *words], stdout=subprocess.PIPE, stderr=log, text=True
        ) as broker,
    ):
        try:
            assert broker.stdout.readline().startswith("listening on ")
            endpoint = f"ipc://{tmp_path}/b"
            filters = [f"Temp(value > {number})" for number in range(2 * IN_TURN_MAX)]
            with (
                Publisher(endpoint, name="s", types=[TEMP]) as source,
                Subscriber(endpoint, *filters) as sink,
            ):
                for number in range(12):
                    source.publish("Temp", value=number + 0.5)
                    source.flush()
                got = [sink.receive(timeout_s=20).data["value"] for _ in range(12)]
            assert got == [number + 0.5 for number in range(12)]
        finally:
            broker.terminate()
        log.seek(0)
        (line,) = (one for one in log if "the device failed" in one)
    assert "level=warning" in line
    assert "matching on the processor from now on" in line
    assert "RuntimeError: an illegal address" in line
