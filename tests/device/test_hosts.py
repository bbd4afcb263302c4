"""Whoever runs rules on a device: in process, over a file, and what a broker does at its start."""

from pathlib import Path

import pytest
from fire_rules import EVENTS, FIRE

import rules
from matcher.gpu.device import device
from rules.engine import make
from rules.engine.gpu.placed import PlacedEngine


def test_an_engine_in_process() -> None:
    engine = rules.Engine(FIRE, device="gpu")
    engine.publish("Temp", time=10, area="hall", value=51.5)
    engine.publish("Smoke", time=70, area="hall")
    assert [(event.type, event.data["area"]) for event in engine.finish()] == [
        ("Fire", "hall"),
        ("Once", "hall"),
    ]
    assert [engine.placement(name).device for name in ("fire", "once")] == ["gpu", "cpu"]


@pytest.mark.parametrize("place", ["gpu", "auto"])
def test_detect(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer")  # a machine with a device may lack it
    from broker.cli import main

    monkeypatch.chdir(tmp_path)
    Path("fire.tesla").write_text(FIRE)
    Path("events.jsonl").write_text(EVENTS)
    words = ["detect", "--rules", "fire.tesla", "--events", "events.jsonl", "--stats", "--device"]
    assert main([*words, "cpu"]) == 0
    expected = capfd.readouterr().out
    assert main([*words, place]) == 0
    out, err = capfd.readouterr()
    assert out == expected
    assert f"rules on the device\t{int(place == 'gpu')}\n" in err
    assert "evaluated on cpu: once\tit consumes events\n" in err


def test_a_broker_makes_its_kernels_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its small detection evaluates rules on the device, and does not fail there."""
    from broker import warmup

    made = make("auto", device="gpu", tell=lambda *words: pytest.fail(str(words)))
    assert isinstance(made, PlacedEngine)
    if device().simulated:
        monkeypatch.setattr(warmup, "INDEXED", 8)
    warmup._run_on_device(made)
    assert list(map(list, made.parts)) == [[], ["Every", "Found"]]
