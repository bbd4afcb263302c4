"""Signing in at the page by a key: codes, and what makes them good for nothing."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from paged import asked
from pages import get
from secured import broker, keys, make_keys, secured

from broker import RuleManager
from broker.cli import main
from broker.monitoring import entry
from broker.monitoring.entry import Entry, NoEntry
from broker.security import codes
from broker.security.codes import CODE_S, Codes, client_name, new_code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[tuple[str, str]]:
    """A broker with keys and without tokens: its endpoint, and the address of its page."""
    flags = "--name", "b1", *secured(folder, "b1"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, endpoint):
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        time.sleep(1.5)  # connections that may be older than its process sign nobody in
        yield endpoint, url


# --- codes ---


def shown(code: str, user: str | None = "alice", seconds: float = 1.0) -> dict[str, object]:
    return {"name": client_name(code), "user": user, "connected_s": seconds}


def test_a_code_is_good_once() -> None:
    now = [100.0]
    taken, one, other = Codes(lambda: now[0]), new_code(), new_code()
    now[0] += 2 * CODE_S
    clients = [shown(one), shown(other, "bob"), {"name": "", "user": "bob", "connected_s": 1.0}]
    assert taken.take(new_code(), clients) is None
    assert taken.take(one, clients) == "alice"
    assert taken.take(one, clients) is None, "it was used"
    assert taken.take(other, clients) == "bob"


def test_a_code_is_the_users_whose_key_was_shown() -> None:
    now = [100.0]
    taken, code = Codes(lambda: now[0]), new_code()
    now[0] += 2 * CODE_S
    assert taken.take(code, [shown(code), shown(code, "bob")]) is None, "whose is it?"
    assert taken.take(code, [shown(code, None)]) is None, "a broker without keys knows nobody"
    assert taken.take(client_name(code), [shown(code)]) is None, "what others see is no code"


def test_a_code_ends() -> None:
    now = [100.0]
    taken, code = Codes(lambda: now[0]), new_code()
    now[0] += 10
    assert taken.take(code, [shown(code, seconds=11)]) is None, "before it, it may have been used"
    now[0] += 2 * CODE_S
    assert taken.take(code, [shown(code, seconds=CODE_S)]) is None
    assert taken.take(code, [shown(code, seconds=CODE_S - 1)]) == "alice"


def test_what_is_kept_of_codes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "USED_MAX", 3)
    now = [100.0]
    taken = Codes(lambda: now[0])
    now[0] += 2 * CODE_S
    every = [new_code() for _ in range(4)]
    clients = [shown(code) for code in every]
    for _ in range(100):
        taken.take(new_code(), clients)
    assert [taken.take(code, clients) for code in every] == [*["alice"] * 3, None]
    other = new_code()
    assert taken.take(other, [shown(other, "bob")]) == "bob", "alice has used up her own"
    now[0] += 2 * CODE_S
    assert taken.take(every[3], clients) == "alice"


def test_wrong_codes_count_as_wrong_tokens() -> None:
    guard = Entry(None, takes_keys=True)
    assert guard.asks
    for _ in range(entry.TRIES):
        guard.spend_try("a")
    with pytest.raises(NoEntry, match="too many"):
        guard.spend_try("a")
    guard.return_try("a")
    guard.spend_try("a")
    with pytest.raises(NoEntry, match="too many"):
        guard.sign_in("token", "a")
    with pytest.raises(NoEntry, match="not the token"):
        guard.sign_in("token", "b")


# --- with a broker ---


@contextmanager
def linked(endpoint: str, url: str, folder: Path) -> Iterator[str]:
    """The code of the link that ``rexmq page`` prints, while it runs."""
    flags = "--key", str(folder / "alice.key_secret"), "--server-key", str(folder / "b1.key")
    command = [sys.executable, "-m", "broker", "page", f"{url}/", "--broker", endpoint, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, _, code = process.stdout.readline().strip().partition("#code=")
        assert address == f"{url}/"
        try:
            yield code
        finally:
            process.send_signal(signal.SIGTERM)


def test_the_owner_of_a_key_signs_in(page: tuple[str, str], folder: Path) -> None:
    endpoint, url = page
    assert asked(url, "session")[2]["takes_keys"]
    assert get(f"{url}/status.json")[0] == 401
    with linked(endpoint, url, folder) as code:
        status, headers, _ = asked(url, "sign-in", {"code": code})
        assert status == 200
        cookie = headers["set-cookie"].partition(";")[0]
        session = asked(url, "session", Cookie=cookie)[2]
        assert (session["signed_in"], session["user"]) == (True, "alice")
        assert code not in get(f"{url}/status.json", Cookie=cookie)[2]
        status, _, answer = asked(url, "sign-in", {"code": code})
        assert status == 401, "a link is good once"
        assert "not good" in answer["error"]


def test_a_link_ends_with_its_command(page: tuple[str, str], folder: Path) -> None:
    endpoint, url = page
    with linked(endpoint, url, folder) as code:
        pass
    time.sleep(1.1)  # a look is shown for a second
    assert asked(url, "sign-in", {"code": code})[0] == 401


def test_a_code_without_its_connection_is_worth_nothing(
    page: tuple[str, str], folder: Path
) -> None:
    endpoint, url = page
    mine, hers = new_code(), new_code()
    with (
        RuleManager(endpoint, **keys(folder, "bob"), name=client_name(mine)),
        RuleManager(endpoint, **keys(folder, "alice"), name=client_name(hers)),
    ):
        assert asked(url, "sign-in", {"code": client_name(hers)})[0] == 401
        status, headers, _ = asked(url, "sign-in", {"code": mine})
        assert status == 200
        cookie = headers["set-cookie"].partition(";")[0]
        assert asked(url, "session", Cookie=cookie)[2]["user"] == "bob"


def test_another_key_signs_nobody_in(page: tuple[str, str], folder: Path, capsys) -> None:
    endpoint, url = page
    flags = "--key", str(folder / "stranger.key_secret"), "--server-key", str(folder / "b1.key")
    assert main(["page", url, "--broker", endpoint, *flags]) != 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "does not let this client in" in said.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["ftp://x"], "expected an address such as"), (["http://x"], "expected --key")],
)
def test_bad_words(words: list[str], reason: str, capsys) -> None:
    assert main(["page", *words]) == 2
    assert reason in capsys.readouterr().err


def test_a_flood_of_codes_is_bounded(folder: Path) -> None:
    flags = "--name", "b1", *secured(folder, "b1"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, _):
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        with ThreadPoolExecutor(20) as pool:
            answers = pool.map(lambda _: asked(url, "sign-in", {"code": new_code()})[0], range(40))
            found = list(answers)
        assert found.count(401) <= entry.TRIES + 1
        assert found.count(401) + found.count(429) == len(found)


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install it"
)
def test_a_link_is_opened_in_a_browser(folder: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    flags = "--name", "b1", *secured(folder, "b1"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, endpoint), playwright.sync_playwright() as started:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        get(f"{url}/healthz")
        time.sleep(1.5)
        chromium = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_default_timeout(20_000)
        tab.goto(f"{url}/")
        tab.get_by_text(f"rexmq page {url}").wait_for()
        with linked(endpoint, url, folder) as code:
            tab.goto(f"{url}/#code={code}")
            tab.get_by_role("button", name="Sign out alice").wait_for()
            assert "code" not in tab.url
            another = browser.new_context().new_page()
            another.goto(f"{url}/#code={code}")
            another.get_by_text("this code is not good").wait_for()
        browser.close()
