"""What an operator does by the page: an event, a client, a queue, users and the log."""

import time

import pytest
from paged import RULES, TEMP, asked, paged

from broker import Publisher, RuleManager, Subscriber
from broker.errors import RefusedError

WARM = {"area": "hall", "value": 21.5}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A broker with a store and rules."""
    folder = tmp_path_factory.mktemp("store") / "b1"
    with paged("--data", str(folder)) as (endpoint, url):
        with RuleManager(endpoint) as manager:
            manager.add(RULES)
        time.sleep(1.1)  # a look is shown for a second
        yield endpoint, url


def test_an_event_is_published(page):
    endpoint, url = page
    assert asked(url, "type", {"name": "Temp"})[2] == {
        "attributes": [["area", "string", False], ["value", "float", False]]
    }
    with Subscriber(endpoint, "Temp()") as sink:
        for _ in range(2):  # a source of one name, one time after the other
            status, _, answer = asked(url, "publish", {"type": "Temp", "data": WARM})
            assert (status, answer) == (200, {"source": "page"})
            event = sink.receive(timeout_s=20)
            assert (event.source, dict(event.data)) == ("page", WARM)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"type": "Tempo", "data": {}}, "no event type 'Tempo'"),
        ({"type": "Temp", "data": {"area": "hall"}}, "value"),
        ({"type": "Temp", "data": {**WARM, "value": "warm"}}, "value"),
        ({"type": "Temp", "data": {**WARM, "colour": 1}}, "colour"),
    ],
)
def test_an_event_that_does_not_fit_is_refused(page, event, reason):
    status, _, answer = asked(page[1], "publish", event)
    assert (status, reason in answer["error"]) == (422, True)


def test_what_waits_in_a_durable_queue_is_seen_and_still_waits(page):
    endpoint, url = page
    with Subscriber(endpoint, "Temp()", name="billing", durable=True):
        pass
    with Publisher(endpoint, name="s", types=[TEMP], increasing=True) as source:
        for n in range(60):
            source.publish("Temp", area="hall", value=float(n))
    seen = asked(url, "waiting", {"name": "billing"})[2]
    assert (seen["queued"], seen["hidden"], len(seen["events"])) == (60, 0, 50)
    assert [one["data"]["value"] for one in seen["events"]] == [float(n) for n in range(50)]
    assert [one["number"] for one in seen["events"]] == list(range(1, 51))
    with Subscriber(endpoint, "Temp()", name="billing", durable=True) as sink:
        assert [sink.receive(timeout_s=20).data["value"] for _ in range(60)] == list(range(60))
    assert asked(url, "waiting", {"name": "none"})[0] == 422


def test_a_client_is_sent_away_and_does_not_come_back(page):
    endpoint, url = page
    with RuleManager(endpoint) as manager, Subscriber(endpoint, "Temp()", name="k") as sink:
        (number,) = [one["number"] for one in manager.status()["clients"] if one["name"] == "k"]
        assert asked(url, "send-away", {"number": number})[2] == {"name": "k"}
        with pytest.raises(RefusedError, match="sent away"):
            sink.receive(timeout_s=20)
        assert "k" not in [one["name"] for one in manager.status()["clients"]]
    assert asked(url, "send-away", {"number": number})[0] == 422
    lines = asked(url, "log", {})[2]["lines"]
    assert any("message=closed" in line and "client=k" in line for line in lines)


def test_a_broker_without_keys_has_no_users(page):
    assert asked(page[1], "users", {})[2] == {"users": []}
