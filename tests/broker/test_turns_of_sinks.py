"""Many sinks of one user at a live broker: all get everything, in order, and so do others."""

from contextlib import ExitStack

import pytest
from secured import KEYS, broker, keys, make_keys, secured

from broker import Publisher, Subscriber
from matcher.model import EventType
from routing.delivery.sinks import TURN

TEMP = EventType.of("Temp", area="string", value="float")
EVENTS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_keys(tmp_path_factory.mktemp("keys"))
    (made / "access.toml").write_text(KEYS)
    return made


def test_sinks_beyond_their_users_turn_get_all_events_though_nothing_else_comes(folder):
    alice, bob = keys(folder, "alice"), keys(folder, "bob")
    with ExitStack() as stack:
        _, endpoint = stack.enter_context(broker("--name", "b1", *secured(folder, "b1")))
        source = stack.enter_context(Publisher(endpoint, name="p", types=[TEMP], **alice))
        users = [*[bob] * (TURN + 4), alice]
        sinks = [stack.enter_context(Subscriber(endpoint, "Temp", **user)) for user in users]
        for value in range(EVENTS):
            source.publish("Temp", area="a1", value=float(value))
        for sink in sinks:
            found = [sink.receive(timeout_s=60).data["value"] for _ in range(EVENTS)]
            assert found == [*range(EVENTS)]
