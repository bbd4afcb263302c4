"""The page under many hands: each user and address has a share, and health is always told."""

import asyncio
import hashlib
import socket
import subprocess
import time
from contextlib import ExitStack, suppress

import pytest
from paged import TOKEN, asked, paged
from pages import get
from secured import broker, make_keys, secured

from broker.configuration import from_environment
from broker.errors import ConfigurationError
from broker.monitoring.api import SIGN_IN_BYTES_MAX
from broker.monitoring.bench import Bench, Busy
from broker.monitoring.deadlines import STRANGERS_MAX
from broker.monitoring.entry import SESSIONS_MAX, UNGUESSABLE, Entry, NoEntry, digest
from broker.monitoring.shares import NoShare, Shares
from broker.monitoring.trial import Request

BEHIND = "--http-proxies", "127.0.0.0/8", "--http-names", "page.example"


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(TOKEN)
    return "--http-token", str(file)


def test_a_user_signs_out_none_but_itself():
    guard = Entry(TOKEN, users={digest("token-of-ada"): "ada"})
    others = guard.sign_in(TOKEN, "a")
    sessions = [guard.sign_in("token-of-ada", "a") for _ in range(3 * SESSIONS_MAX)]
    assert guard.verify({}, others, "a") == ""
    assert guard.verify({}, sessions[-SESSIONS_MAX], "a") == "ada"
    with pytest.raises(NoEntry):
        guard.verify({}, sessions[-SESSIONS_MAX - 1], "a")


def test_a_holder_leaves_something_to_others():
    shares = Shares(16)
    with ExitStack() as held:
        for holder, its_share in (("greedy", 8), ("second", 4), ("third", 2), ("fourth", 1)):
            for _ in range(its_share):
                held.enter_context(shares.held(holder))
            with pytest.raises(NoShare):
                held.enter_context(shares.held(holder))
    with shares.held("greedy", "second"):
        pass


def test_trials_go_in_turns_among_those_who_ask(monkeypatch):
    done = []

    async def run(self, request):
        await asyncio.sleep(0.01)
        done.append(request.text)
        return {}

    monkeypatch.setattr(Bench, "_run", run)

    async def ask(bench, name, times):
        for _ in range(times):
            await bench.run(Request("run", text=name), name)

    async def ask_all():
        bench = Bench()
        greedy = asyncio.create_task(ask(bench, "greedy", 8))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await bench.run(Request("run"), "greedy")
        await ask(bench, "other", 3)
        await greedy

    asyncio.run(ask_all())
    assert done[:6] == ["greedy", "other"] * 3


def test_bytes_are_shared_out():
    shares = Shares(128)
    with ExitStack() as held:
        for holder, fits, is_refused in (
            ("ada", [21] * 3, 21),
            ("eve", [21, 1], 21),
            ("cy", [21], 2),
        ):
            for count in fits:
                held.enter_context(shares.held(holder, count=count))
            with pytest.raises(NoShare):
                held.enter_context(shares.held(holder, count=is_refused))
    with shares.held("ada", count=64):
        pass


def test_bodies_are_shared_out_from_their_first_byte_on():
    kinds = {"/api/try": "application/json", "/events": "application/cloudevents+json"}
    with paged() as (_, url), ExitStack() as opened:
        host = url.removeprefix("http://")

        def begun(path, size):
            slow = opened.enter_context(socket.create_connection(host.split(":"), 9))
            head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kinds[path]}\r\n"
            slow.sendall(f"{head}Content-Length: {size << 20}\r\n\r\n{{".encode())
            return slow

        for path, size, count in (("/api/try", 20, 2), ("/events", 1, 24)):
            for _ in range(count):
                begun(path, size)
        while asked(url, "check", {"text": "x"})[0] != 429:  # what has come before is heard then
            pass
        for path in kinds:
            said = begun(path, 1).makefile("rb").read()
            assert b" 429 " in said
            assert b"too many bytes of yours are under way" in said
        assert b" 413 " in begun("/events", 2).makefile("rb").read()
        assert asked(url, "session")[0] == 200


def test_a_trial_is_refused_before_its_files_are_read(tmp_path):
    long = "y" * UNGUESSABLE
    folder = make_keys(tmp_path)
    (folder / "page.toml").write_text(
        f'[user.eve]\ntoken_sha256 = "{digest(long)}"\ncommands = []\n'
    )
    flags = "--name", "b1", *secured(folder, "b1", "page.toml"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, _):
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        host = url.removeprefix("http://")
        with socket.create_connection(host.split(":"), 9) as slow:
            slow.sendall(
                f"POST /api/try HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {long}\r\nContent-Length: 20000000\r\n\r\n{{".encode()
            )
            said = slow.makefile("rb").read()
    assert b" 403 " in said
    assert b"user 'eve' may not run 'status'" in said


def test_strangers_at_many_addresses_keep_nobody_from_the_page(tmp_path):
    long, short = "y" * UNGUESSABLE, TOKEN
    users = "".join(
        f'[user.{name}]\ntoken_sha256 = "{digest(token)}"\n'
        for name, token in (("ada", long), ("eve", short))
    )
    folder = make_keys(tmp_path)
    (folder / "page.toml").write_text(users)
    flags = "--name", "b1", *secured(folder, "b1", "page.toml"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, _), ExitStack() as opened:
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        session = asked(url, "sign-in", {"token": short})[1]["set-cookie"].partition(";")[0]
        host = url.removeprefix("http://")
        address, _, port = host.partition(":")
        head = f"POST /api/sign-in HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        slow = []
        for number in range(2 * STRANGERS_MAX):
            own = f"127.0.0.{2 + number % 40}", 0
            stranger = socket.create_connection((address, int(port)), 5, own)
            slow.append(opened.enter_context(stranger))
            stranger.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
            if number % 16 == 0:
                for header in {"Authorization": f"Bearer {long}"}, {"Cookie": session}:
                    assert asked(url, "session", **header)[2]["signed_in"] is True
                assert get(f"{url}/healthz")[0] == 200
        assert asked(url, "sign-in", {"token": long})[0] == 200
        for stranger in slow:
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""


def test_a_stranger_who_signs_in_says_little():
    with paged() as (_, url):
        status, _, answer = asked(url, "sign-in", {"token": "x" * SIGN_IN_BYTES_MAX})
        assert (status, answer) == (413, {"error": "expected at most 4 KiB"})


def test_one_machine_has_one_share_of_tries_by_ipv6(token):
    with paged(*token, *BEHIND) as (_, url):
        statuses = [
            asked(
                url,
                "sign-in",
                {"token": "x" * 20},
                X_Forwarded_For=f"2001:db8:0:1:{number}::1",
                Host="page.example",
            )[0]
            for number in range(8)
        ]
        assert statuses == [401] * 5 + [429] * 3


def test_who_tries_short_tokens_learns_nothing_of_them_at_the_doorway():
    guard = Entry(TOKEN, users={digest("y" * UNGUESSABLE): "ada"})
    tried = [guard.known({"authorization": f"Bearer {one}"}, None) for one in (TOKEN, "x" * 20)]
    assert tried == [None, None]
    assert guard.known({"authorization": "Bearer " + "y" * UNGUESSABLE}, None) == "ada"
    assert guard.known({"authorization": "Bearer " + "z" * UNGUESSABLE}, None) is None
    assert guard.verify({"authorization": f"Bearer {TOKEN}"}, None, "a") == ""


def test_health_is_told_beside_connections_that_say_nothing():
    with paged() as (_, url):
        host, port = url.removeprefix("http://").split(":")
        silent = []
        try:
            for count in range(300):
                silent.append(socket.create_connection((host, int(port)), timeout=5))
                if count % 30 == 0:
                    assert get(f"{url}/healthz")[0] == get(f"{url}/metrics")[0] == 200
            begun = time.monotonic()
            assert silent[-1].recv(1) == b""
            assert time.monotonic() - begun < 8
        finally:
            for one in silent:
                one.close()


def test_a_header_of_ones_own_choice_gives_no_more_tries(token):
    with paged(*token) as (_, url):
        statuses = [
            asked(url, "sign-in", {"token": "x" * 20}, X_Forwarded_For=f"10.0.0.{number}")[0]
            for number in range(8)
        ]
        assert statuses == [401] * 5 + [429] * 3


def test_behind_a_proxy_addresses_are_told_apart_and_cookies_are_secure(token):
    with paged(*token, *BEHIND) as (_, url):
        for number in range(8):
            header = {"X_Forwarded_For": f"203.0.113.{number}", "Host": "page.example"}
            assert asked(url, "sign-in", {"token": "x" * 20}, **header)[0] == 401
        for proto, is_secure in (("https", True), (None, True), ("http", False)):
            more = {} if proto is None else {"X_Forwarded_Proto": proto}
            header = {"X_Forwarded_For": "203.0.113.9", "Host": "page.example", **more}
            status, headers, _ = asked(url, "sign-in", {"token": TOKEN}, **header)
            assert status == 200
            assert ("secure" in headers["set-cookie"].lower()) is is_secure
        status, headers, _ = asked(url, "sign-in", {"token": TOKEN})
        assert "secure" not in headers["set-cookie"].lower()


@pytest.mark.parametrize("flags", [(), BEHIND])
def test_a_stream_lasts_though_it_names_another_address(token, flags):
    with paged(*token, *flags) as (_, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as reader:
            reader.sendall(
                f"GET /api/stream HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: 203.0.113.9\r\n"
                f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            until = time.monotonic() + 12
            while time.monotonic() < until:
                assert reader.recv(65_536)


def test_a_right_that_is_missing_is_told_as_that(tmp_path):
    folder = make_keys(tmp_path)
    secret = hashlib.sha256(b"token-of-the-visitor").hexdigest()
    text = f'[user.visitor]\ntoken_sha256 = "{secret}"\ncommands = ["rule list"]\n'
    (folder / "page.toml").write_text(text)
    flags = "--name", "b1", *secured(folder, "b1", "page.toml"), "--http", "127.0.0.1:0"
    bearing = {"Authorization": "Bearer token-of-the-visitor"}
    with broker(*flags, log=subprocess.DEVNULL) as (process, _):
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        for path in ("status.json", "metrics"):
            status, _, said = get(f"{url}/{path}", **bearing)
            assert status == 403
            assert "user 'visitor' may not run 'status': line 3" in said
        for path, body in (
            ("rule", {"name": "r"}),
            ("check", {"text": ""}),
            ("remove", {"name": "r"}),
            ("deploy", {"text": "rule r: define A() from B()"}),
        ):
            status, _, answer = asked(url, path, body, **bearing)
            assert (status, "user 'visitor' may not" in answer["error"]) == (403, True), path


def test_proxies_are_numbers():
    from_environment({"REXMQ_HTTP_PROXIES": "127.0.0.1,10.0.0.0/8,::1"})
    for text in ("proxy.example", "10.0.0.1/8", "300.0.0.1"):
        with pytest.raises(ConfigurationError, match="addresses or networks such as"):
            from_environment({"REXMQ_HTTP_PROXIES": text})
