"""Users at the page: tokens of the access file, and what the broker allows those who have them."""

import shutil
import signal
import time
from pathlib import Path

import pytest
from paged import asked
from secured import broker, keys, make_keys, secured

from broker import RuleManager
from broker.cli import main
from broker.errors import ConfigurationError
from broker.monitoring.entry import OPERATOR, Entry, NoEntry, digest
from broker.security.access import load_access
from broker.security.gate import Gate, Peer
from broker.security.keys import new_pair
from routing.messages import Rights

TOKENS = {name: f"the-token-of-{name}-is-long" for name in ("alice", "bob")}
HOT = "event Temp(area: string, value: float)\nrule {}: define {} from Temp(value > 45)"
ALICE = f"""
[user.alice]
key = "alice.key"
token_sha256 = "{digest(TOKENS["alice"])}"
subscribe = ["Temp", "Hot"]
define = ["Hot", "Temp"]
deploy = ["hot*"]
remove = ["hot*"]
commands = ["status", "rule list", "rule show"]
"""
BOB = f"""
[user.bob]
token_sha256 = "{digest(TOKENS["bob"])}"
commands = ["rule list"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("keys"))


def bearing(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def test_a_token_is_a_users_or_that_of_the_pages() -> None:
    guard = Entry("the-token-of-the-pages", users={digest(TOKENS["alice"]): "alice"})
    assert guard.verify({"authorization": "Bearer the-token-of-the-pages"}, None, "a") == OPERATOR
    assert guard.verify({"authorization": f"Bearer {TOKENS['alice']}"}, None, "a") == "alice"
    assert guard.verify({}, guard.sign_in(TOKENS["alice"], "a"), "a") == "alice"
    with pytest.raises(NoEntry, match="not the token"):
        guard.sign_in(digest(TOKENS["alice"]), "a")


def test_the_access_file_says_whose_a_token_is(folder: Path) -> None:
    file = folder / "tokens.toml"
    file.write_text(ALICE + BOB)
    assert set(load_access(file).tokens.values()) == {"alice", "bob"}
    for text, reason in (
        ('[user.a]\ntoken_sha256 = "secret"', "line 2: .*64 hexadecimal digits"),
        (ALICE + BOB.replace(digest(TOKENS["bob"]), digest(TOKENS["alice"])), "has this token"),
        ('[broker.a]\nkey = "b1.key"\ntoken_sha256 = "x"', "has no key 'token_sha256'"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=reason):
            load_access(file)


def test_keys_act_for_a_user_while_the_access_file_has_it(folder: Path) -> None:
    file = folder / "gate.toml"
    file.write_text(ALICE + BOB + '[user.monitoring]\nkey = "stranger.key"\npublish = []\n')
    gate = Gate(new_pair(), load_access(file))
    pair = gate.stand_in("bob")
    assert gate.stand_in("bob") is pair
    assert gate.owner(pair.public) == Peer("bob")
    assert gate.rights(Peer("bob")).user == "bob"
    assert gate.rights(Peer("bob")).grants is not None
    own = gate.owner(gate.admit("monitoring").public)
    assert gate.rights(own).grants is not None, "a user of this name has no more than its rights"
    file.write_text(ALICE)
    gate.change(load_access(file))
    assert gate.owner(pair.public) is None
    assert gate.rights(own) == Rights("monitoring")


def test_a_broker_with_keys_needs_no_token(folder: Path) -> None:
    words = ["broker", "--check", *secured(folder, "b1"), "--http", "127.0.0.1:0"]
    assert main(words) == 0


def test_a_user_does_at_the_page_what_the_user_may(folder: Path) -> None:
    access = folder / "page.toml"
    access.write_text(ALICE + BOB)
    flags = "--name", "b1", *secured(folder, "b1", "page.toml"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, endpoint):
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        until(lambda: asked(url, "session")[0] == 200)
        assert asked(url, "session")[2]["signed_in"] is False
        assert asked(url, "session", **bearing("alice"))[2]["user"] == "alice"
        hot = {"text": HOT.format("hot", "Hot()"), "replace": False}
        status, _, _ = asked(url, "deploy", hot, **bearing("alice"))
        assert status == 200
        with RuleManager(endpoint, **keys(folder, "alice")) as manager:
            assert [one["owner"] for one in manager.list()] == ["alice"]
        for name, text, reason in (
            ("alice", HOT.format("cold", "Hot()"), "may not deploy 'cold'"),
            ("bob", HOT.format("hot2", "Hot()"), "may not"),
        ):
            content = {"text": text, "replace": False}
            status, _, answer = asked(url, "deploy", content, **bearing(name))
            assert (status, reason in answer["error"]) == (403, True), answer
        status, _, answer = asked(url, "rule", {"name": "hot"}, **bearing("bob"))
        assert status == 403
        assert "user 'bob' may not" in answer["error"]
        for path, content in (
            ("users", {}),
            ("log", {}),
            ("waiting", {"name": "billing"}),
            ("send-away", {"number": 1}),
            ("publish", {"type": "Temp", "data": {"area": "hall", "value": 1.5}}),
        ):
            status, _, answer = asked(url, path, content, **bearing("alice"))
            assert (status, "may not" in answer["error"]) == (403, True), (path, answer)
        access.write_text(ALICE)
        process.send_signal(signal.SIGHUP)
        until(lambda: asked(url, "session", **bearing("bob"))[2]["signed_in"] is False)
        assert asked(url, "session", **bearing("alice"))[2]["user"] == "alice"


def until(is_so) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if is_so():
                return
        except OSError:  # the process that serves is another one now
            pass
        time.sleep(0.1)
    raise TimeoutError


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install it"
)
def test_a_user_signs_in_and_deploys_in_a_browser(folder: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    (folder / "browser.toml").write_text(ALICE)
    flags = "--name", "b1", *secured(folder, "b1", "browser.toml"), "--http", "127.0.0.1:0"
    with broker(*flags) as (process, endpoint), playwright.sync_playwright() as started:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        until(lambda: asked(url, "session")[0] == 200)
        chromium = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_default_timeout(20_000)
        tab.goto(f"{url}/")
        field = tab.get_by_label("Token", exact=True)
        field.fill(TOKENS["alice"])
        field.press("Enter")
        tab.get_by_role("button", name="Sign out alice").wait_for()
        tab.get_by_role("link", name="Rules", exact=True).click()
        for name, shown in (("cold", "may not deploy 'cold'"), ("hot", None)):
            tab.get_by_role("button", name="Deploy rules…").click()
            tab.get_by_role("textbox", name="Rules").fill(HOT.format(name, "Hot()"))
            tab.get_by_role("dialog").get_by_role("button", name="Deploy", exact=True).click()
            if shown:
                tab.get_by_text(shown).wait_for()
                tab.get_by_role("button", name="Cancel").click()
        tab.get_by_role("button", name="hot", exact=True).click()
        tab.get_by_role("rowheader", name="Owner").wait_for()
        assert tab.get_by_role("row", name="Owner alice").count() == 1
        with RuleManager(endpoint, **keys(folder, "alice")) as manager:
            assert [one["owner"] for one in manager.list()] == ["alice"]
        browser.close()
