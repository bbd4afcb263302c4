"""The protocol between brokers, in stories that are told in every host: simulated and live."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conversation import schema_of
from worlds import ByPcm, Live, Simulated, World

from routing.config import SessionConfig
from routing.network import strategy

TEMP = schema_of("Temp(room: string, value: float)")
SMOKE = schema_of("Smoke(room: string)")
FIRE = """
rule fire: define Fire(room: string, value: float)
from Smoke(room = $r) and last Temp(room = $r and value > 45) within 5 min from Smoke
where room = Smoke.room, value = Temp.value
"""
RING = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b1"), ("b1", "b3")]

Story = Callable[[], World]


@pytest.fixture(params=[Simulated, ByPcm, Live], ids=lambda host: host.__name__.lower())
def host(request: pytest.FixtureRequest) -> type[Simulated] | type[Live]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=strategy.names())
def world(
    host: type[Simulated] | type[Live], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[World]:
    made = host(request.param, RING, tmp_path)
    yield made
    made.end()


def place_of_rule(world: World) -> str:
    """The broker that evaluates the one rule."""
    (name,) = (name for name in ("b1", "b2", "b3", "b4") if not world.rule(name)["place"])
    return name


def test_a_rule_joins_events_of_two_brokers_for_a_sink_of_a_third(world: World) -> None:
    assert world.advertise("t", "b1", TEMP) == ""
    assert world.advertise("s", "b2", SMOKE) == ""
    assert world.deploy("b3", FIRE) == ""
    assert world.subscribe("k", "b4", "Fire(value < 65)") == ""
    assert world.subscribe("every", "b3", 'Temp(room = "b")') == ""
    world.publish("t", 'Temp@1("a", 50) Temp@2("b", 60) Temp@2("c", 70)', 10)
    world.publish("s", 'Smoke@3("a") Smoke@4("c")', 4)
    world.expect("k", 'Fire@3("a", 50.0) <- s#1 t#1')
    world.publish("s", 'Smoke@5("b")', 6)
    world.expect("k", 'Fire@3("a", 50.0) <- s#1 t#1', 'Fire@5("b", 60.0) <- s#3 t#2')
    world.expect("every", 't#2 Temp@2("b", 60.0)')


def test_of_two_schemas_or_sources_of_a_name_the_second_is_refused_wherever_it_is(
    world: World,
) -> None:
    assert world.advertise("t", "b2", TEMP) == ""
    other = schema_of("Temp(room: string, value: int)")
    for name, broker in (("there", "b2"), ("elsewhere", "b4")):
        assert world.advertise(name, broker, other) == "schema"
    world.connect("t again", "b3", SessionConfig("t", 2))
    assert world.ask("t again", lambda session: session.advertise([TEMP])) == "name-taken"
    world.schemas["Temp"] = TEMP
    assert world.subscribe("k", "b3", "Temp") == ""
    world.publish("t", 'Temp@1("a", 50)', 2)
    world.expect("k", 't#1 Temp@1("a", 50.0)')


def test_a_rule_waits_for_a_type_that_nobody_advertises_and_says_so(world: World) -> None:
    assert world.advertise("t", "b1", TEMP) == ""
    assert world.deploy("b2", "event Smoke(room: string)" + FIRE) == ""
    assert world.subscribe("k", "b4", "Fire") == ""
    world.publish("t", 'Temp@1("a", 50)', 10)
    waiting = [world.rule(name) for name in ("b1", "b2", "b3", "b4")]
    assert [one["says"] for one in waiting if not one["place"]] == ["waiting for types: Smoke"]
    assert world.advertise("s", "b3", SMOKE) == ""
    world.publish("s", 'Smoke@3("a")', 6)
    world.expect("k", 'Fire@3("a", 50.0) <- s#1 t#1')
    assert world.rule(place_of_rule(world))["state"] == "running"


def test_links_that_break_lose_nothing_and_repeat_nothing(world: World) -> None:
    assert world.advertise("t", "b2", TEMP) == ""
    assert world.subscribe("k", "b4", "Temp") == ""
    expected = []
    for number in range(1, 9):
        world.publish("t", f'Temp@{number}("a", {number})', number + 1)
        expected.append(f't#{number} Temp@{number}("a", {number}.0)')
        if number % 3 == 0:
            world.break_links("b4")
        world.run(0.02)
    world.expect("k", *expected)


def test_a_root_that_crashes_is_done_without_and_taken_in_again(world: World) -> None:
    """Sources, sinks and rules of the others go on; what came meanwhile is not lost."""
    root = world.status("b1")["network"]["root"]
    first, middle, last = (name for name in ("b1", "b2", "b3", "b4") if name != root)
    assert world.advertise("t", first, TEMP) == ""
    assert world.advertise("s", middle, SMOKE) == ""
    assert world.deploy(last, FIRE) == ""
    assert world.subscribe("k", last, "Fire") == ""
    world.publish("t", 'Temp@1("a", 50)', 10)
    world.crash(root)
    world.publish("s", 'Smoke@3("a")', 4)
    world.await_one_tree([first, middle, last])
    world.expect("k", 'Fire@3("a", 50.0) <- s#1 t#1')
    world.restart(root)
    world.await_one_tree(["b1", "b2", "b3", "b4"])
    assert world.subscribe("late", root, "Fire") == ""
    world.publish("t", 'Temp@11("a", 51)', 20)
    world.publish("s", 'Smoke@12("a")', 20)
    world.expect("late", 'Fire@12("a", 51.0) <- s#2 t#2')
