"""Brokers of a network evaluate rules on a device: the same deliveries, in the same traces."""

import itertools
import re
from pathlib import Path

import pytest
from eligible_cases import eligible_case
from networks import run, usable_of, write
from pretended import Failing, Pretended

from matcher.gpu import device as device_module
from matcher.gpu.device import Device
from matcher.matching import Matching
from matcher.methods.counting import CountingMatcher
from rules.engine.gpu import engine as gpu_engine
from simulator.checkers import check

CASES = list(
    itertools.islice(filter(None, (usable_of(eligible_case(n)) for n in itertools.count(40))), 3)
)


def on_device(path: Path, place: str) -> None:
    """Have all brokers of a scenario compute there."""
    text = path.read_text().replace('engine = "naive"', 'engine = "auto"')
    told = f'device = "{place}"\n'
    pattern = r'(\[\[broker\]\]\nname = "\w+"\n)(?:device = "\w+"\n)?'
    path.write_text(re.sub(pattern, rf"\g<1>{told}", text))


@pytest.mark.parametrize(
    ("number", "strategy", "kind"),
    [
        (0, "centralized", Pretended),
        (1, "distributed-st", Pretended),
        (2, "push-pull-mt", Pretended),
        (1, "distributed-mt", Failing),
    ],
)
def test_the_place_changes_no_delivery(
    number: int,
    strategy: str,
    kind: type,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(device_module, "device", Device)
    monkeypatch.setattr(device_module, "is_there", lambda: True)
    monkeypatch.setattr(Matching, "_on_device", lambda self: CountingMatcher())
    monkeypatch.setattr(gpu_engine, "GpuEngine", kind)
    path = write(tmp_path, 40 + number, *CASES[number], strategy)
    on_device(path, "cpu")
    expected = run(path).digest
    on_device(path, "gpu")
    outcome = run(path)
    assert check(outcome) == []
    assert outcome.digest == expected
    told = [
        rule["evaluated_on"]
        for host in outcome.experiment.brokers.values()
        for rule in host.broker.status(0.0)["rules"]
        if rule["place"] is None and rule["state"] not in ("idle", "waiting")
    ]
    has_failed = kind is Failing
    assert set(told) == {"cpu" if has_failed else "gpu"}
    said = capsys.readouterr().err
    assert ("the device failed: detecting on the processor from now on" in said) == has_failed
