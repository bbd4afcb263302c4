"""``--device`` of commands and brokers: where rules are evaluated, what is refused, what fails."""

import subprocess
import sys
from pathlib import Path

import pytest
from fire_rules import EVENTS, FIRE
from pretended import Failing, Pretended

import rules
from broker import Publisher, RuleManager, Subscriber
from broker.cli import main
from broker.cli.status import page, rules_page
from broker.configuration import load
from broker.errors import ConfigurationError
from broker.parallel import engine_of
from matcher.gpu import device as device_module
from matcher.gpu.device import Device, NoDevice
from matcher.model import EventType
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.gpu import engine as gpu_engine
from rules.engine.gpu.placed import PlacedEngine
from rules.engine.oracle.naive import NaiveEngine
from rules.engine.threads.parts import PartedEngine
from simulator import scenario
from simulator.scenario import ScenarioError

DETECT = ["detect", "--rules", "fire.tesla", "--events", "events.jsonl"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("fire.tesla").write_text(FIRE)
    Path("events.jsonl").write_text(EVENTS)
    return tmp_path


@pytest.fixture
def pretending(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a device, and the processor answers for it."""
    pretend(monkeypatch, Pretended)


def pretend(patch: pytest.MonkeyPatch, kind: type) -> None:
    patch.setattr(device_module, "device", Device)
    patch.setattr(device_module, "is_there", lambda: True)
    patch.setattr(gpu_engine, "GpuEngine", kind)


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoDevice("CUDA finds no GPU on this machine")

    monkeypatch.setattr(device_module, "device", none)


# --- making --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pretending")
def test_engines_are_made_for_a_place() -> None:
    assert type(make("auto", device="cpu")) is CdpEngine
    assert type(make("naive", device="auto")) is NaiveEngine
    for name in ("auto", "cdp", "aip"):
        for place in ("gpu", "auto"):
            made = make(name, device=place)
            assert type(made) is PlacedEngine
            made.deploy(rules.load(FIRE))
            on_gpu = made.placement("fire").device
            assert on_gpu == ("gpu" if place == "gpu" else "cpu")
    assert type(engine_of("auto", 2, device="auto")) is PartedEngine
    for wrong, message in (
        (("naive", "gpu"), "device gpu: the engine naive has no form for a GPU; auto, cdp, aip"),
        (("aip-published", "gpu"), "the engine aip-published has no form for a GPU"),
        (("auto", "tpu"), "device: expected one of cpu, gpu, auto, found 'tpu'"),
        (("magic", "cpu"), "no engine is called 'magic'"),
    ):
        with pytest.raises(ValueError, match=message):
            make(wrong[0], device=wrong[1])
    with pytest.raises(ValueError, match="one thread detects beside a device, found threads 2"):
        engine_of("auto", 2, device="gpu")


@pytest.mark.usefixtures("missing")
def test_without_a_device_auto_is_the_processor_and_gpu_is_refused() -> None:
    assert type(make("auto", device="auto")) is CdpEngine
    with pytest.raises(NoDevice, match="device gpu: CUDA finds no GPU on this machine"):
        make("auto", device="gpu")
    assert rules.Engine(FIRE, device="auto").placement("fire") is None
    with pytest.raises(NoDevice):
        rules.Engine(FIRE, device="gpu")


def test_nothing_of_a_device_is_imported_unless_there_is_one() -> None:
    code = (
        "import sys; from rules.engine import make; make('auto', device='auto')\n"
        "from importlib.util import find_spec\n"
        "assert find_spec('cupy') or not [n for n in sys.modules if n.startswith('numba.cuda.')]\n"
        "assert find_spec('cupy') or 'rules.engine.gpu.placed' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("pretending")
def test_an_engine_in_process_says_where_its_rules_are() -> None:
    engine = rules.Engine(FIRE, device="gpu")
    assert engine.placement("fire").device == "gpu"
    assert engine.placement("once").reason == "it consumes events"
    engine.publish("Temp", time=10, area="hall", value=51.5)
    engine.publish("Smoke", time=70, area="hall")
    assert [event.type for event in engine.finish()] == ["Fire", "Once"]
    with pytest.raises(KeyError):
        engine.placement("none")


# --- rexmq detect --------------------------------------------------------------------------------


@pytest.mark.usefixtures("here", "pretending")
def test_detect_says_where_rules_were_evaluated(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*DETECT, "--device", "cpu", "--stats"]) == 0
    plain = capfd.readouterr()
    assert "evaluated on" not in plain.err
    assert main([*DETECT, "--device", "gpu", "--stats"]) == 0
    told = capfd.readouterr()
    assert told.out == plain.out
    assert told.out.count("\n") == 3
    lines = told.err.splitlines()
    assert "rules on the device\t1" in lines
    assert "evaluated on gpu: fire\tas it was told" in lines
    assert "evaluated on cpu: once\tit consumes events" in lines


@pytest.mark.usefixtures("here")
def test_a_device_that_fails_under_detect_costs_a_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*DETECT, "--device", "cpu"]) == 0
    plain = capfd.readouterr().out
    pretend(monkeypatch, Failing)
    monkeypatch.setattr(Failing, "at", 3)
    assert main([*DETECT, "--device", "gpu"]) == 0
    out, err = capfd.readouterr()
    assert out == plain
    assert err == (
        "rexmq: the device failed: detecting on the processor from now on: "
        "DeviceFailed: it is out of order\n"
    )


@pytest.mark.usefixtures("here", "missing")
def test_without_a_device_detect_refuses_gpu_before_it_opens_anything(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("events.jsonl").unlink()
    assert main([*DETECT, "--device", "gpu"]) == 2
    assert capfd.readouterr().err == "rexmq: --device gpu: CUDA finds no GPU on this machine\n"


@pytest.mark.usefixtures("here")
def test_without_the_extra_it_is_said_what_to_install(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    device_module.device.cache_clear()
    assert main([*DETECT, "--device", "gpu"]) == 2
    err = capfd.readouterr().err
    assert err.startswith("rexmq: --device gpu: CuPy cannot be imported (")
    assert err.endswith("pip install 'rexmq[gpu]'\n")
    device_module.device.cache_clear()


# --- rexmq broker --------------------------------------------------------------------------------


def test_a_configuration_that_makes_no_sense_is_refused() -> None:
    for words, message in (
        ({"engine": "naive"}, "device gpu: the engine naive has no form for a GPU"),
        ({"threads": "2"}, "device gpu: one thread detects beside a device"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            load(None, {}, {"device": "gpu", **words})
    assert load(None, {}, {"device": "auto", "threads": "2"}).threads == 2


def test_so_is_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('engine = "naive"\n[[broker]]\nname = "b1"\ndevice = "gpu"\n')
    with pytest.raises(ScenarioError, match=r"broker\[1\].device gpu: the engine naive has no"):
        scenario.read(path)


FAILING = """
import sys
sys.path.append({tests!r})
from matcher.gpu import device
from pretended import Failing
from rules.engine.gpu import engine

device.device = device.Device
Failing.at = 5
engine.GpuEngine = Failing
from broker import service
service.warm_up = lambda *words: None
service.warm_up_matching = lambda *words: None
from broker.cli import main
raise SystemExit(main())
"""
SMOKE = EventType.of("Smoke", area="string")
TEMP = EventType.of("Temp", area="string", value="float")


def test_a_broker_whose_device_fails_in_mid_stream_loses_nothing(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/b"
    code = FAILING.format(tests=str(Path(__file__).parents[1]))
    words = ["broker", "--device", "gpu", "--listen", endpoint]
    with (
        (tmp_path / "log").open("w+") as log,
        subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=log, text=True
        ) as broker,
    ):
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline().startswith("listening on ")
            with RuleManager(endpoint) as manager:
                manager.add(FIRE)
                before = {rule["name"]: rule for rule in manager.status()["rules"]}
            with Subscriber(endpoint, "Fire") as sink:
                got = []
                for number in range(4):
                    with Publisher(endpoint, name=f"s{number}", types=[SMOKE, TEMP]) as source:
                        source.publish("Temp", area="a", value=50.0 + number)
                        source.publish("Smoke", area="a")
                    got.append(sink.receive(timeout_s=20).data["value"])
            with RuleManager(endpoint) as manager:
                status = manager.status()
        finally:
            broker.terminate()
        log.seek(0)
        (line,) = (one for one in log if "the device failed" in one)
    assert got == [50.0 + number for number in range(4)]
    assert [before[name]["evaluated_on"] for name in ("fire", "once")] == [None, None]  # waiting
    after = {rule["name"]: rule for rule in status["rules"]}
    failed = "DeviceFailed: it is out of order"
    assert after["fire"]["evaluated_on"] == "cpu"
    assert after["fire"]["evaluated_why"] == f"the device failed: {failed}"
    assert after["once"]["evaluated_why"] == "it consumes events"
    assert "level=warning" in line
    assert "detecting on the processor from now on" in line
    assert failed in line
    text = page(status)
    assert "evaluated_on" in text
    assert "cpu (it consumes events)" in text
    assert "cpu (it consumes events)" in rules_page(status["rules"])


def test_tables_are_as_ever_where_there_is_no_device() -> None:
    rule = {"name": "r", "type": "T", "state": "running", "evaluated_on": None}
    assert "evaluated_on" not in rules_page([rule])
