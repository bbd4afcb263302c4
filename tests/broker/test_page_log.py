"""The playground over the log of a broker that has a store."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from paged import TEMP, asked, paged

from broker import Publisher, RuleManager
from broker.monitoring import trial
from broker.monitoring.trial import Request, answer

RULE = """
rule high: define High(area: string, n: float) from Temp(value > 45) as t where area = t.area,
n = t.value
"""
SCHEMAS = ("Temp(area: string, value: float)",)
MINUTE = 60_000_000


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A broker with a store that has ten Temps, a minute apart."""
    folder = tmp_path_factory.mktemp("store") / "b1"
    with paged("--data", str(folder)) as (endpoint, url):
        with Publisher(endpoint, name="s", types=[TEMP], replay=True) as source:
            for n in range(10):
                source.publish("Temp", area="hall", value=40.0 + n, at=1_000 * MINUTE + n * MINUTE)
        yield endpoint, url, folder


def test_a_rule_runs_over_the_log(stored: tuple[str, str, Path]) -> None:
    endpoint, url, _ = stored
    assert asked(url, "session")[2]["log"] is True
    for minutes, seen, found in ((60, 10, 4), (2, 3, 3)):
        experiment = {"do": "run", "text": RULE, "log_s": 60.0 * minutes}
        status, _, answer = asked(url, "try", experiment)
        assert status == 200, answer
        assert (answer["events_count"], answer["counts"]) == (seen, {"high": found})
    why = {"do": "explain", "text": RULE, "log_s": 3600.0, "rule": "high", "event": "s#1"}
    assert "does not fire" in asked(url, "try", why)[2]["text"]
    with RuleManager(endpoint) as manager:
        assert manager.list() == []


def test_a_broker_without_a_store_has_no_log() -> None:
    with paged() as (_, url):
        assert asked(url, "session")[2]["log"] is False
        told = asked(url, "try", {"do": "run", "text": RULE, "log_s": 60.0})[2]
        assert told["error"] == "there is no log here, or not for you"


def test_what_is_too_long_is_refused(
    stored: tuple[str, str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "LOG_EVENTS_MAX", 5)
    request = Request("inspect", log=str(stored[2]), log_s=3600.0)
    assert "more than 5 events of that time" in answer(request)["error"]
    assert answer(Request("inspect", log=str(stored[2]), log_s=120.0))["events"] == 3
    assert "error" in answer(Request("inspect", log=str(stored[2] / "none"), log_s=120.0))


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install it"
)
def test_the_log_is_chosen_in_a_browser(stored: tuple[str, str, Path]) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        chromium = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 360, "height": 740})
        tab.set_default_timeout(20_000)
        tab.goto(f"{stored[1]}/#playground")
        tab.get_by_label("the log of this broker").check()
        tab.get_by_text("10 events from").wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        tab.get_by_role("textbox", name="Rules").fill(RULE)
        tab.get_by_role("button", name="Run", exact=True).click()
        tab.get_by_text("4 composite events of 10 events.").wait_for()
        tab.get_by_label("Last minutes of the log").fill("2")
        tab.get_by_label("Last minutes of the log").press("Tab")
        tab.get_by_text("3 events from").wait_for()
        browser.close()
