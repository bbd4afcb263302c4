"""Events over HTTP: what is posted is published, and streams bring what is subscribed to."""

import asyncio
import http.client
import json
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from paged import RULES, TEMP, paged
from secured import broker, make_keys, secured

from broker import Publisher, RuleManager, Subscriber
from broker.client.address import address_of
from broker.cloudevents import events_of
from broker.errors import BrokerError, PublishBlocked
from broker.monitoring import posts
from broker.monitoring.bodies import Bodies
from broker.monitoring.entry import digest
from broker.monitoring.event_streams import EventStreams, Wish
from broker.monitoring.events import EventRequests

EVENT = {"specversion": "1.0", "type": "Temp", "source": "fridge/1", "id": "1"}
WARM = {"area": "hall", "value": 21.5}
ONE, MANY = "application/cloudevents+json", "application/cloudevents-batch+json"
DEEP = '{"data": {"a": ' + "[" * 5_000 + "]" * 5_000 + "}}"
HEADERS = {
    "ce-specversion": "1.0",
    "ce-type": "Temp",
    "ce-source": "fridge/1",
    "ce-id": "1",
    "Content-Type": "application/json",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "b1"
    with paged("--data", str(folder)) as (endpoint, url):
        with RuleManager(endpoint) as manager:
            manager.add(RULES)
        yield endpoint, url


def posted(url, body, query="", **headers):
    """The status, the headers and the JSON that a post is answered."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)) as link:
        link.request("POST", f"/events{query}", text, named)
        answer = link.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())


@contextmanager
def streamed(url, query, **headers):
    """An answer that is read line by line."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)) as link:
        link.request("GET", f"/events?{query}", headers=named)
        yield link.getresponse()


def brought(answer, count):
    """The next events of a stream: each its id and its JSON."""
    found, number = [], None
    while len(found) < count:
        name, _, value = answer.readline().decode().rstrip("\n").partition(": ")
        if name == "id":
            number = int(value)
        elif name == "data":
            found.append((number, json.loads(value)))
    return found


def event(**members):
    return EVENT | {"data": WARM} | members


def test_each_content_mode_publishes_the_event(page):
    endpoint, url = page
    with Subscriber(endpoint, "Temp()") as sink:
        for n, (body, headers) in enumerate(
            [
                (event(source="mode/0"), {"Content_Type": ONE}),
                ([event(source="mode/1")], {"Content_Type": f"{MANY}; charset=utf-8"}),
                (WARM, HEADERS | {"ce-source": "mode%2F2"}),
            ]
        ):
            assert posted(url, body, **headers)[::2] == (200, {"published": 1})
            event_ = sink.receive(timeout_s=20)
            assert (event_.source, event_.id, dict(event_.data)) == (f"mode/{n}", "1", WARM)


def test_a_batch_keeps_the_order_and_the_times_of_its_events(page):
    endpoint, url = page
    batch = [
        event(source="order", id=str(n), time=f"2030-01-01T00:00:0{n}Z" if n == 9 else None)
        for n in range(3)
    ]
    with Subscriber(endpoint, 'Temp(area = "hall")') as sink:
        assert posted(url, batch, Content_Type=MANY)[0] == 200
        assert [sink.receive(timeout_s=20).id for _ in batch] == ["0", "1", "2"]


def test_what_is_posted_again_counts_once(page):
    endpoint, url = page
    timed = event(type="Frost", source="again/2", time=datetime.now(UTC).isoformat())
    late = "?disorder_s=60"
    with Subscriber(endpoint, "Temp()", "Frost()") as sink:
        for body, query in ((event(source="again/1"), ""), (timed, late)):
            for _ in range(2):
                assert posted(url, body, query, Content_Type=ONE)[0] == 200
        assert posted(url, event(source="last"), Content_Type=ONE)[0] == 200
        found = [sink.receive(timeout_s=20).source for _ in range(3)]
    assert found == ["again/1", "again/2", "last"]
    other = timed | {"data": WARM | {"value": 3.0}}
    status, _, answer = posted(url, other, late, Content_Type=ONE)
    assert (status, "with the id of another event" in answer["error"]) == (409, True)


def test_events_may_be_stamped_as_they_come(page):
    endpoint, url = page
    old = event(source="stamped", time="2020-01-01T00:00:00Z")
    with Subscriber(endpoint, "Temp()") as sink:
        assert posted(url, old, "?time=arrival", Content_Type=ONE)[0] == 200
        assert sink.receive(timeout_s=20).time > datetime.now(UTC).timestamp() * 1e6 - 60e6
    status, _, answer = posted(url, old, "?time=now", Content_Type=ONE)
    assert (status, answer["error"]) == (400, "time: expected arrival, found 'now'")


def test_late_events_are_told_by_their_place_and_the_others_are_taken(page):
    url = page[1]
    assert posted(url, event(source="tardy"), Content_Type=ONE)[0] == 200
    assert posted(url, event(source="tardy", id="2"), "?disorder_s=60", Content_Type=ONE)[0] == 200
    batch = [
        event(source="tardy", id="3"),
        event(source="tardy", id="4", time="2020-01-01T00:00:00Z"),
    ]
    status, _, answer = posted(url, batch, Content_Type=MANY)
    assert (status, answer["published"]) == (422, 1)
    assert [(one["event"], one["code"]) for one in answer["refused"]] == [(2, "late")]


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        ("{", {"Content_Type": ONE}, 400, "expected a CloudEvent"),
        (event(id=""), {"Content_Type": ONE}, 400, "$.id"),
        (event(specversion="0.3"), {"Content_Type": ONE}, 400, "expected '1.0', found '0.3'"),
        (event(time="noon"), {"Content_Type": ONE}, 400, "noon"),
        (event(source="rexmq/x"), {"Content_Type": ONE}, 400, "reserved"),
        (event(data=[1]), {"Content_Type": ONE}, 400, "data: expected an object"),
        (
            event(data=WARM | {"value": "x"}),
            {"Content_Type": ONE},
            400,
            "expected float, found",
        ),
        (event(data=WARM | {"hue": 1}), {"Content_Type": ONE}, 400, "no attribute hue"),
        ([event(), event(id="2", data={})], {"Content_Type": MANY}, 400, "event 2: "),
        (DEEP, {"Content_Type": ONE}, 400, "recursion"),
        ([], {"Content_Type": MANY}, 400, "expected 1 to 10,000 events"),
        (WARM, HEADERS | {"ce-id": ""}, 400, "headers ce-*"),
        (WARM, HEADERS | {"Content-Type": "text/plain"}, 415, "expected application/json"),
        (WARM, {"Content_Type": "application/json"}, 415, "expected application/cloudevents+json"),
        (event(data_base64="aa"), {"Content_Type": ONE}, 415, "data_base64"),
        (" " * (2**20 + 1), {"Content_Type": ONE}, 413, "1,024 KiB"),
        (event(), {"Content_Type": ONE, "Origin": "http://elsewhere"}, 403, "another site"),
        (event(), {"Content_Type": ONE, "Sec_Fetch_Site": "cross-site"}, 403, "another site"),
    ],
)
def test_a_post_is_refused_in_words(page, body, headers, status, reason):
    found, _, answer = posted(page[1], body, **headers)
    assert (found, reason in answer["error"]) == (status, True), answer


def test_a_source_of_a_live_client_is_its_own(page):
    endpoint, url = page
    with Publisher(endpoint, name="python/1", types=[TEMP]):
        status, _, answer = posted(url, event(source="python/1"), Content_Type=ONE)
    assert (status, "python/1" in answer["error"]) == (409, True), answer


def test_a_durable_stream_goes_on_behind_the_last_id(page):
    endpoint, url = page
    query = f"filter={quote('Temp(value > 70)')}&name=alerts"
    with streamed(url, query) as answer:
        assert answer.getheader("content-type").startswith("text/event-stream")
        with Publisher(endpoint, name="s", types=[TEMP], increasing=True) as source:
            for n in range(4):
                source.publish("Temp", area="hall", value=71.0 + n)
        found = brought(answer, 4)
    assert [(number, one["data"]["value"]) for number, one in found] == [
        (n + 1, 71.0 + n) for n in range(4)
    ]
    with streamed(url, query, Last_Event_ID="2") as answer:
        again = brought(answer, 2)
        assert [(number, one["again"]) for number, one in again] == [(3, True), (4, True)]
        with streamed(url, query, Last_Event_ID="3") as newer:
            assert [number for number, _ in brought(newer, 1)] == [4]
            assert answer.read() is not None, "the new stream of a name ends the old one"


def test_a_stream_without_a_name_is_live_and_has_no_ids(page):
    endpoint, url = page
    with streamed(url, "filter=Temp()&filter=Rain()") as answer:
        with Publisher(endpoint, name="live", types=[TEMP]) as source:
            source.publish("Temp", area="attic", value=1.0)
        ((number, found),) = brought(answer, 1)
    assert (number, found["source"], found["data"]) == (
        None,
        "live",
        {"area": "attic", "value": 1.0},
    )


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "expected one, as in"),
        ("filter=Temp(", "expected an expression"),
        ("filters=Temp()", "filters: expected filter"),
        ("filter=Temp()&when_full=wait", "expected block, drop-oldest, disconnect"),
        ("filter=Temp()&name=x&last_event_id=two", "expected the number of an event"),
    ],
)
def test_a_stream_that_cannot_be_is_refused_in_words(page, query, reason):
    with streamed(page[1], query) as answer:
        assert (answer.status, reason in json.loads(answer.read())["error"]) == (400, True)


def test_a_post_is_blocked_while_a_sink_that_blocks_is_full(monkeypatch):
    monkeypatch.setattr(posts, "PATIENCE_S", 1.0)
    flags = "--queue-events-max", "1", "--publish-credit", "1"
    with broker(*flags) as (_, endpoint), Subscriber(endpoint, "Temp()", queue=1, credit=1):

        async def post_until_blocked():
            posting = posts.Posts()
            try:
                for n in range(10):
                    body = json.dumps(event(id=str(n))).encode()
                    one = events_of({"content-type": ONE}, body)
                    known = {"Temp": TEMP}
                    await posting.publish(address_of(endpoint), "", one, known, None)
            finally:
                await posting.close()

        with pytest.raises(PublishBlocked):
            asyncio.run(post_until_blocked())


def test_back_pressure_is_answered_429_with_a_time_to_come_back():
    def blocked(request):
        raise PublishBlocked("full")

    async def alive():
        return None

    sent = []

    async def send(message):
        sent.append(message)

    requests = EventRequests(blocked, Bodies(), alive, lambda *_: None)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/events",
        "headers": [],
        "query_string": b"",
        "peer": None,
    }
    asyncio.run(requests.routes[0].app(scope, None, send))
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"retry-after"]) == (429, b"1")


def test_the_rights_of_the_token_hold(tmp_path):
    folder = make_keys(tmp_path)
    token = "the-token-of-alice-is-long"
    (folder / "access.toml").write_text(
        f'[user.alice]\nkey = "alice.key"\ntoken_sha256 = "{digest(token)}"\n'
        'publish = ["Temp"]\nsubscribe = ["Rain"]\nsources = ["alice/*"]\n'
    )
    flags = "--name", "b1", *secured(folder, "b1"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, _):
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        bearer = {"Content_Type": ONE, "Authorization": f"Bearer {token}"}
        for body, headers, status in (
            (event(), {"Content_Type": ONE}, 401),
            (event(source="alice/1"), bearer, 200),
            (event(source="bob/1"), bearer, 403),
            (event(source="alice/1", id="2", type="Smoke"), bearer, 403),
        ):
            assert waited(lambda b=body, h=headers: posted(url, b, **h))[0] == status, body
        with streamed(url, "filter=Temp()", Authorization=f"Bearer {token}") as answer:
            assert answer.status == 403


def waited(ask):
    """What is answered once the page's process listens."""
    for _ in range(200):
        try:
            return ask()
        except OSError:
            asyncio.run(asyncio.sleep(0.1))
    return ask()


def test_a_page_remembers_no_name_whose_stream_is_closed(tmp_path):
    async def open_and_close(endpoint: str, name: str, kept: EventStreams) -> None:
        wish = Wish(("A()",), name)
        first = await kept.open(address_of(endpoint), "", wish, 60.0)
        second = await kept.open(address_of(endpoint), "", wish, 60.0)
        await first.close()
        assert len(kept._named) == 1, "the second stream has the name"
        await second.close()

    kept = EventStreams()
    with broker("--data", str(tmp_path)) as (_, endpoint):
        asyncio.run(open_and_close(endpoint, "alerts", kept))
        assert not kept._named
    with pytest.raises(BrokerError):
        asyncio.run(open_and_close(endpoint, "alerts", kept))
    assert not kept._named
