"""Webhooks: events are posted until they are confirmed, or refused."""

import asyncio
import hashlib
import hmac
import socket
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from connectors import confirmed

from broker.connect import webhook
from broker.connect.systems import Outgoing, SystemLost
from matcher.errors import BadEvent

MESSAGE = Outgoing("alerts/a 1", b'{"id":"1"}', "s#1", "application/cloudevents+json")


@contextmanager
def receiving(port=0, answer=()):
    """A receiver that gives the statuses that it is told to, then 204, with these headers; and what
    it was posted.
    """
    statuses, posts = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posts.append((self.path, dict(self.headers), body))
            self.send_response(statuses.pop(0) if statuses else 204)
            self._end()

        def do_OPTIONS(self):
            posts.append((self.path, dict(self.headers), b""))
            self.send_response(statuses.pop(0) if statuses else 204)
            self._end()

        def _end(self):
            for name, value in [("Location", "/elsewhere"), *answer]:
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", statuses, posts
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def receiver():
    with receiving() as found:
        yield found


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(webhook, "PAUSE_MIN_S", 0.01)


def sent(folder, url, **settings):
    sink = webhook.Sink("w", webhook.Settings(url=url, **settings), folder, 1)
    asyncio.run(confirmed(sink, MESSAGE))


def test_a_body_is_posted_with_its_id_and_a_signature(tmp_path, receiver):
    url, _, posts = receiver
    (tmp_path / "secret").write_text("a-secret\n")
    sent(tmp_path, url, secret_file="secret")
    ((path, headers, body),) = posts
    assert (path, body, headers["Webhook-Id"]) == ("/hook/alerts/a%201", MESSAGE.body, "s#1")
    assert headers["Content-Type"] == "application/cloudevents+json"
    digest = hmac.new(b"a-secret", body, hashlib.sha256).hexdigest()
    assert headers["Webhook-Signature"] == f"sha256={digest}"


def test_what_fails_is_posted_again(tmp_path, receiver):
    url, statuses, posts = receiver
    statuses += [500, 429, 408, 503]
    sent(tmp_path, url, tries=3)
    assert len(posts) == 5


@pytest.mark.parametrize(("given", "count"), [([400], 1), ([307], 1), ([500] * 9, 3)])
def test_what_is_refused_is_not_posted_for_ever(tmp_path, receiver, given, count):
    url, statuses, posts = receiver
    statuses += given
    with pytest.raises(BadEvent, match=f"{url}.*{given[0]}"):
        sent(tmp_path, url, tries=3)
    assert len(posts) == count


def test_a_receiver_that_is_away_is_waited_for(tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sink = webhook.Sink("w", webhook.Settings(url=f"http://127.0.0.1:{port}"), tmp_path, 1)

    async def send():
        sending = asyncio.create_task(confirmed(sink, MESSAGE))
        while "webhook not confirmed" not in caplog.text:
            await asyncio.sleep(0.01)
        with receiving(port) as (_, _, posts):
            await sending
        return posts

    with caplog.at_level("WARNING"):
        assert len(asyncio.run(send())) == 1


@pytest.mark.parametrize("later", ["1", "at once + 2 s"])
def test_a_receiver_that_asks_for_later_is_left_alone_for_so_long(tmp_path, later):
    at = later if later.isdecimal() else formatdate(time.time() + 2, usegmt=True)
    with receiving(answer=[("Retry-After", at)]) as (url, statuses, posts):
        statuses += [429]
        begun = time.monotonic()
        sent(tmp_path, url)
        assert len(posts) == 2
        assert time.monotonic() - begun >= 0.9


@pytest.mark.parametrize("later", ["", "soon", "-1", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_pause_that_cannot_be_read_or_is_over_is_none(later):
    assert webhook._Answer(429, "", {"retry-after": later}).later_s == 0
    assert webhook._Answer(503, "", {"retry-after": "9" * 30}).later_s == webhook.LATER_MAX_S


@pytest.mark.parametrize("allowed", ["*", "plant.example"])
def test_a_receiver_is_asked_whether_it_wants_messages_and_how_many(tmp_path, allowed):
    answer = [("WebHook-Allowed-Origin", allowed), ("WebHook-Allowed-Rate", "300")]
    with receiving(answer=answer) as (url, _, posts):
        sink = webhook.Sink("w", webhook.Settings(url=url, origin="plant.example"), tmp_path, 1)

        async def send():
            await sink.open()
            await asyncio.gather(*(confirmed(sink, MESSAGE) for _ in range(4)))

        begun = time.monotonic()
        asyncio.run(send())
        assert time.monotonic() - begun >= 3 * 60 / 300
    assert posts[0][1]["Webhook-Request-Origin"] == "plant.example"
    assert len(posts) == 5


@pytest.mark.parametrize(
    ("given", "answer", "reason"),
    [([], [], "is ''"), ([405], [], "405"), ([], [("WebHook-Allowed-Origin", "other")], "'other'")],
)
def test_a_receiver_that_wants_nothing_is_sent_nothing(tmp_path, given, answer, reason):
    with receiving(answer=answer) as (url, statuses, posts):
        statuses += given
        sink = webhook.Sink("w", webhook.Settings(url=url, origin="plant.example"), tmp_path, 1)
        with pytest.raises(SystemLost, match=f"does not allow 'plant.example'.*{reason}"):
            asyncio.run(sink.open())
    assert len(posts) == 1
