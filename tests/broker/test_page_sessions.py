"""What a session has opened ends with it, whoever ends it."""

import asyncio
import http.client
import signal
import subprocess
from contextlib import contextmanager, suppress

import pytest
from paged import asked
from pages import get
from secured import broker, make_keys, secured

from broker.monitoring import entry
from broker.monitoring.entry import Entry, NoEntry, digest
from broker.monitoring.web_sockets import PATH, SIGNED_OUT

client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
exceptions = pytest.importorskip("websockets.exceptions")
ADA = "the-token-of-ada-is-long"
STREAMS = "/api/stream", "/events?filter=Temp()"


@contextmanager
def opened(folder):
    """A broker, its page, the cookie of ada, and what she has opened: a WebSocket and streams."""
    make_keys(folder)
    (folder / "page.toml").write_text(f'[user.ada]\ntoken_sha256 = "{digest(ADA)}"\n')
    flags = "--name", "b1", *secured(folder, "b1", "page.toml"), "--http", "127.0.0.1:0"
    with broker(*flags, log=subprocess.DEVNULL) as (process, _):
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        cookie = asked(url, "sign-in", {"token": ADA})[1]["set-cookie"].partition(";")[0]
        streams = []
        for path in STREAMS:
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
            connection.request("GET", path, headers={"Cookie": cookie})
            streams.append(connection.getresponse())
            assert streams[-1].status == 200
            assert streams[-1].readline() == b"retry: 1000\n"
        where = url.replace("http", "ws", 1) + PATH
        with client.connect(where, additional_headers={"Cookie": cookie}, proxy=None) as socket:
            yield process, url, cookie, streams, socket


def test_streams_and_web_sockets_end_as_their_user_signs_out(tmp_path):
    with opened(tmp_path) as (_, url, cookie, streams, socket):
        other = asked(url, "sign-in", {"token": ADA})[1]["set-cookie"].partition(";")[0]
        where = url.replace("http", "ws", 1) + PATH
        with client.connect(where, additional_headers={"Cookie": other}, proxy=None) as stays:
            assert asked(url, "sign-out", {}, Cookie=cookie)[0] == 200
            for stream in streams:
                stream.read()  # to its proper end, or this raises IncompleteRead
            with pytest.raises(exceptions.ConnectionClosedError) as end:
                socket.recv(timeout=60)
            assert (end.value.rcvd.code, end.value.rcvd.reason) == (
                SIGNED_OUT,
                "the session has ended",
            )
            assert stays.ping().wait(60)
        assert asked(url, "session", Cookie=other)[2]["signed_in"] is True


def test_streams_and_web_sockets_end_as_their_user_is_taken_away(tmp_path):
    with opened(tmp_path) as (process, _, _, streams, socket):
        (tmp_path / "page.toml").write_text(f'[user.eve]\ntoken_sha256 = "{digest(ADA)}"\n')
        process.send_signal(signal.SIGHUP)
        with pytest.raises(exceptions.ConnectionClosed):
            socket.recv(timeout=60)
        for stream in streams:
            with suppress(http.client.IncompleteRead, ConnectionResetError):
                stream.read()


def test_what_a_session_has_opened_ends_with_its_hours(monkeypatch):
    monkeypatch.setattr(entry, "SESSION_S", 0.2)
    guard = Entry(ADA)

    async def stay(session):
        async with guard.stay({}, session, "a"):
            await asyncio.sleep(60)

    with pytest.raises(NoEntry, match="the session has ended"):
        asyncio.run(stay(guard.sign_in(ADA, "a")))


def test_a_session_that_gives_way_takes_along_what_it_has_opened():
    guard = Entry(ADA)

    async def give_way():
        session = guard.sign_in(ADA, "a")
        async with guard.stay({}, session, "a"):
            for _ in range(entry.SESSIONS_MAX):
                guard.sign_in(ADA, "a")
            await asyncio.sleep(60)

    with pytest.raises(NoEntry, match="the session has ended"):
        asyncio.run(give_way())


def test_who_shows_a_token_stays():
    guard = Entry(ADA)

    async def stay():
        async with guard.stay({"authorization": f"Bearer {ADA}"}, None, "a"):
            await asyncio.sleep(0)
        with pytest.raises(NoEntry):
            async with guard.stay({}, "another", "a"):
                pass

    asyncio.run(stay())
