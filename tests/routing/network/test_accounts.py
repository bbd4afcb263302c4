"""One account of a source in the whole network: where it is, and where it has closed."""

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of

TEMP = SCHEMAS["Temp"]
HOT = "rule hot: define Hot(room: string) from Temp(value > 45) as t where room = t.room"


@pytest.fixture(autouse=True, params=["centralized", "distributed-st", "push-pull-mt"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def furnished() -> Network:
    """t at b1, u at b3, both of Temp, and a sink of what b2 finds in them."""
    network = Network(3)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("u", "b3").advertise([TEMP])
    network.connect("m", "b2").deploy(HOT)
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    network.publish("t", 'Temp@10("t", 50)', 11)
    network.publish("u", 'Temp@10.5("u", 50) Temp@40("u", 50)', 41)
    assert network.take_lines()[-2:] == ['k: Hot@10("t") <- t#1', 'k: Hot@10.5("u") <- u#1']
    return network


@pytest.mark.parametrize("to", ["b2", "b3"])
@pytest.mark.parametrize("how", ["is sent away", "loses its link"])
def test_a_source_that_moves_is_not_late_though_another_one_of_its_type_is_ahead(
    to: str, how: str
) -> None:
    """It began where the other one had promised to be, and what it had yet to say was refused."""
    network = furnished()
    session = network.clients["t"]
    if how == "is sent away":
        network.drain("b1")
        network.move("t", to)
    else:
        network.lose("t", "b1")
        session = network.connect("t", to)
        session.advertise([TEMP])
    network.run(1)
    network.take_lines()
    event = batches_of('Temp@12("t", 60)', SCHEMAS)
    session.publish_all(event, network.mesh.now, 13_000_000, numbered=False)
    network.run(0.5)
    assert network.take_lines() == ['k: Hot@12("t") <- t#2']
    network.publish("t", 'Temp@39("t", 60)', 50)
    network.publish("u", 'Temp@41("u", 60)', 50)
    network.run(0.5)
    assert network.take_lines() == [
        'k: Hot@39("t") <- t#3',
        'k: Hot@40("u") <- u#2',
        'k: Hot@41("u") <- u#3',
    ]
