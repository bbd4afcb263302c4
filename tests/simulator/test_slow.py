"""Links that are slower than what is to cross them: sources wait, and nothing else is different."""

from functools import partial
from random import Random

import pytest
from networks import run
from pairs import WHOLE, some_of

from routing.config import NodeConfig
from routing.network.brokers.back_pressure import BackPressure
from routing.network.strategy import names
from routing.overlay.config import OverlayConfig
from simulator.checkers import check

WORKLOAD = """
[workload]
types = 8
rates = [2.0, 60.0]
rules = 6
window_s = 0.5
subscriptions = 3
selection = { last = 1.0, each = 0.5 }
negations = 0.3
"""


SEEDS = some_of((4, 6), 0)
HORIZON_S = 8.0 if WHOLE else 5.0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers and credit are."""
    overlay = partial(OverlayConfig, window_max=8, buffer_max=96)
    monkeypatch.setattr("simulator.network.OverlayConfig", overlay)
    monkeypatch.setattr("simulator.network.NodeConfig", partial(NodeConfig, publish_credit=16))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether something was full, each time that a broker said something else of it."""
    found: list[bool] = []
    tell = BackPressure.tell

    def noted(back_pressure: BackPressure) -> None:
        before = back_pressure.told
        tell(back_pressure)
        if back_pressure.told != before:
            found.append(bool(back_pressure.told))

    monkeypatch.setattr(BackPressure, "tell", noted)
    return found


def slow(strategy: str, seed: int) -> str:
    """A random network of which some links carry little."""
    random = Random(f"slow {seed}")
    count = random.randint(3, 7)
    links = {tuple(sorted((random.randrange(n), n))) for n in range(1, count)}
    links |= {tuple(sorted(random.sample(range(count), 2))) for _ in range(random.randint(0, 3))}
    text = f'seed = {seed}\nstrategy = "{strategy}"\n{WORKLOAD}horizon_s = {HORIZON_S}\n'
    text += "".join(f'[[broker]]\nname = "b{n}"\n' for n in range(count))
    for one, other in sorted(links):
        text += f'[[link]]\nbetween = ["b{one}", "b{other}"]\ndelay_ms = 5.0\n'
        if random.random() < 0.4:
            text += f"bandwidth_mbps = {random.choice([0.05, 0.1, 0.3])}\n"
    return text


@pytest.mark.parametrize("strategy", names())
def test_networks_with_slow_links_detect_what_one_engine_does(
    written, told: list[bool], strategy: str
) -> None:
    for seed in SEEDS:
        text = slow(strategy, seed)
        outcome = run(written(text))
        assert outcome.settled, text
        assert check(outcome) == [], text
        for host in outcome.experiment.brokers.values():
            assert not host.broker.back_pressure.told
    assert any(told)
