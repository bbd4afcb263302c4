"""Random networks whose brokers match on a device deliver what they deliver without one."""

from pathlib import Path

import pytest

from matcher.gpu.device import device

networks = pytest.importorskip("networks")  # a machine with a device may lack what it takes

SEEDS = [40] if device().simulated else [40, 41, 44, 45]


@pytest.mark.parametrize("seed", SEEDS)
def test_networks_give_the_same_deliveries(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, events = networks.usable(seed)
    path = networks.write(tmp_path, seed, text, events[: 30 if device().simulated else None])
    expected, text = networks.run(path).digest, path.read_text()
    for name, place in (("batched", "cpu"), ("ccm", "cpu"), ("auto", "auto")):
        made = networks.matching_by(monkeypatch, path, text, name, place)
        outcome = networks.run(path)
        assert outcome.digest == expected, name
        assert made()
    assert capsys.readouterr().err == ""  # no device has failed
