"""Brokers match as a scenario says: the same deliveries, to the last byte of the trace."""

import itertools
from pathlib import Path

import pytest
from networks import matching_by, run, usable, write

from matcher import matching
from matcher.gpu import device as device_module
from matcher.gpu.device import NoDevice
from matcher.matching import MATCHERS, Matching
from matcher.methods.counting import CountingMatcher
from simulator import scenario
from simulator.checkers import check
from simulator.scenario import ScenarioError

SEEDS = list(itertools.islice(filter(usable, itertools.count(40)), 3))


@pytest.mark.parametrize(
    ("seed", "strategy"),
    list(zip(SEEDS, ("centralized", "distributed-st", "push-pull-mt"), strict=True)),
)
def test_any_matcher_gives_the_same_deliveries(
    tmp_path: Path, seed: int, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, seed, *usable(seed), strategy)
    text, digests = path.read_text(), set()
    digests.add(run(path).digest)  # each sink for itself
    for name in MATCHERS[:6]:
        made = matching_by(monkeypatch, path, text, name)
        outcome = run(path)
        assert check(outcome) == [], f"{name}\n{path.read_text()}"
        assert made(), "nothing was matched together"
        digests.add(outcome.digest)
    assert len(digests) == 1


class Failing(CountingMatcher):
    """A matcher on a device that fails in mid-stream."""

    calls = 0

    def _run(self, *words):
        Failing.calls += 1
        if Failing.calls % 3 == 0:
            raise RuntimeError("an illegal address")
        return super()._run(*words)


def test_devices_that_fail_in_mid_stream_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device_module, "device", lambda: None)
    monkeypatch.setattr(Matching, "_on_device", lambda self: Failing())
    path = write(tmp_path, SEEDS[0], *usable(SEEDS[0]), "centralized")
    expected = run(path).digest
    matching_by(monkeypatch, path, path.read_text(), "batched")
    outcome = run(path)
    assert outcome.digest == expected
    told = capsys.readouterr().err.splitlines()
    assert told
    assert all(
        "the device failed: matching on the processor from now on: Run" in one for one in told
    )
    facts = [host.broker.status(0.0)["matching"] for host in outcome.experiment.brokers.values()]
    methods = {one["method"]: one["device_failed"] for one in itertools.chain(*facts)}
    assert methods["index"] == "RuntimeError: an illegal address"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ('matcher = "magic"', "broker[1].matcher: expected one of auto, pcm"),
        ('device = "tpu"', "broker[1].device: expected one of cpu, gpu, auto, found 'tpu'"),
        (
            'matcher = "index"\ndevice = "gpu"',
            "broker[1].device gpu: the matcher index has no form",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(
    tmp_path: Path, key: str, message: str
) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(f'[[broker]]\nname = "b1"\n{key}\n')
    with pytest.raises(ScenarioError) as refused:
        scenario.read(path)
    assert message in str(refused.value)


def test_a_matcher_for_devices_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise NoDevice("CUDA finds no GPU on this machine")

    monkeypatch.setattr(device_module, "device", missing)
    path = write(tmp_path, SEEDS[0], *usable(SEEDS[0]), "centralized")
    expected, text = run(path).digest, path.read_text()
    matching_by(monkeypatch, path, text, "ccm")
    with pytest.raises(NoDevice, match="matcher ccm: CUDA finds no GPU on this machine"):
        run(path)
    matching_by(monkeypatch, path, text, "auto", "auto")
    assert run(path).digest == expected
    said = {line.partition(": matching")[2] for line in capsys.readouterr().err.splitlines()}
    assert said == {" on the processor: CUDA finds no GPU on this machine"}
    assert Matching() == matching.ON_PROCESSOR
