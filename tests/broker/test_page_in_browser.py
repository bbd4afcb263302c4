"""The page in a real browser, Debian's Chromium without a head: by mouse, keyboard and reader."""

import shutil
import time

import pytest
from paged import RULES, TOKEN, hot, paged
from pairs import some_of

from broker import RuleManager, Subscriber
from broker.errors import RefusedError

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install it")
VIEWS = ("network", "rules", "events", "playground", "clients", "operate")
EMPTY = "rule cold: define Cold(area: string) from Temp(value < 0) as t where area = t.area"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "token"
    file.touch(0o600)
    file.write_text(TOKEN)
    with paged("--http-token", str(file)) as (endpoint, url):
        with RuleManager(endpoint) as manager:
            manager.add(RULES)
        with hot(endpoint):
            yield endpoint, url


@pytest.fixture
def tab(browser, served):
    """A tab at the page; what goes wrong in it fails the test."""
    wrong = []
    context = browser.new_context(
        viewport={"width": 1600, "height": 900},
        extra_http_headers={"Authorization": f"Bearer {TOKEN}"},
    )
    found = context.new_page()
    found.set_default_timeout(20_000)
    found.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.goto(f"{served[1]}/")
    yield found
    context.close()
    assert wrong == []


def button(tab, name):
    return tab.get_by_role("button", name=name, exact=True)


def look_at(tab, view):
    """Follow the link to a view, which is shown a moment later."""
    tab.get_by_role("link", name=view.title(), exact=True).click()
    tab.locator("nav [aria-current=page]", has_text=view.title()).wait_for()


def test_the_network_is_drawn_and_alive(tab):
    broker = tab.get_by_role("button", name="Broker b1, 2 rules")
    broker.wait_for()
    tab.get_by_text("wet: waiting for types: Rain").wait_for()
    rates = tab.locator("dl div", has_text="events/s in").locator("dd")
    seen = set()
    deadline = time.monotonic() + 20
    while len(seen - {"…", "0"}) < 1 and time.monotonic() < deadline:
        seen.add(rates.text_content())
        time.sleep(0.3)
    assert seen - {"…", "0"}


def test_a_rule_is_deployed_read_and_removed_by_keyboard(tab, served):
    tab.get_by_role("link", name="Rules").focus()
    tab.keyboard.press("Enter")
    button(tab, "Deploy rules…").focus()
    tab.keyboard.press("Enter")
    area = tab.get_by_role("dialog").get_by_label("Rules", exact=True)
    assert area.evaluate("one => one === document.activeElement")
    tab.keyboard.insert_text(EMPTY.replace("value", "valve"))
    tab.get_by_text("did you mean value?").wait_for()
    assert area.get_attribute("aria-invalid") == "true"
    assert tab.locator(".editor .wrong").first.text_content() == "valve"
    assert button(tab, "Deploy").is_disabled()
    area.fill(EMPTY)
    tab.get_by_text("ok: cold").wait_for()
    button(tab, "Deploy").press("Enter")
    button(tab, "cold").press("Enter")
    tab.locator("pre .keyword", has_text="define").wait_for()
    button(tab, "Remove…").press("Enter")
    button(tab, "Remove").press("Enter")
    button(tab, "cold").wait_for(state="detached")
    with RuleManager(served[0]) as manager:
        assert [rule["name"] for rule in manager.list()] == ["hot", "wet"]


def test_an_event_opens_its_causes(tab):
    tab.get_by_role("link", name="Events").click()
    tab.get_by_label("keep primitive events").check()
    tab.wait_for_timeout(1_500)  # the first ones may have come before their causes were kept
    tab.get_by_role("row", name="Hot").first.get_by_role("button").click()
    tab.get_by_role("region", name="Causes").get_by_role("rowheader", name="p1#").wait_for()
    button(tab, "Why did it fire?").click()
    tab.get_by_text("It fires: 1 match.").wait_for()


def test_the_playground_says_why_not(tab):
    tab.get_by_role("link", name="Playground").click()
    tab.get_by_text("ok: fire").wait_for()
    button(tab, "Run").click()
    tab.get_by_text("1 composite event of 5 events.").wait_for()
    smoke = tab.get_by_role("button", name="Smoke at 1970-01-01 00:05:30.000")
    smoke.focus()
    tab.keyboard.press("Enter")
    button(tab, "Why did fire fire here, or not?").click()
    tab.get_by_text("It does not fire.").wait_for()


def test_an_operator_publishes_an_event_and_sends_a_client_away(tab, served):
    look_at(tab, "operate")
    button(tab, "Temp").click()
    tab.get_by_label("area: string").fill("roof")
    tab.get_by_label("value: float").fill("3.5")
    button(tab, "Publish now").click()
    tab.get_by_text('by page: area="roof" value=3.5').wait_for()
    tab.get_by_text("the broker has no keys").wait_for()
    tab.get_by_label("Last lines of the log").get_by_text("message=welcomed client=p1").wait_for()
    with Subscriber(served[0], "Rain()", name="idler") as idler:
        tab.get_by_role("row", name="idler").get_by_role("button").click()
        button(tab, "Send away").click()
        with pytest.raises(RefusedError, match="sent away"):
            idler.receive(timeout_s=20)
        tab.get_by_role("row", name="idler").wait_for(state="detached")


def uploaded(name, text):
    return {"name": name, "mimeType": "application/octet-stream", "buffer": text.encode()}


def test_the_playground_takes_several_files_and_tells_all_that_is_wrong(tab):
    look_at(tab, "playground")
    tab.get_by_text("ok: fire").wait_for()
    files = tab.get_by_label("Files: JSON lines")
    bad = "time,area,value\nnever,hall,1\nsoon,hall,2\n"
    files.set_input_files([uploaded("Temp.csv", bad), uploaded("x.pdf", "")])
    tab.get_by_role("status").get_by_role("listitem").nth(2).wait_for()
    good = [
        uploaded("Temp.csv", "time,area,value\n1,hall,50\n"),
        uploaded("Smoke.csv", "time,area\n2,hall\n"),
    ]
    files.set_input_files(good)
    tab.get_by_text("2 events from").wait_for()
    button(tab, "Run").click()
    tab.get_by_text("1 composite event of 2 events.").wait_for()


@pytest.mark.parametrize("scheme", some_of(["light", "dark"], 1))
def test_it_fits_from_a_telephone_to_a_wall(tab, scheme):
    tab.emulate_media(color_scheme=scheme)
    tab.locator("tbody").first.wait_for()
    grounds = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, grounds[4:-1].split(","))) < 60) is (scheme == "dark")
    for width in (360, 1600):
        tab.set_viewport_size({"width": width, "height": 740})
        for view in VIEWS:
            look_at(tab, view)
            beyond = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert beyond <= 0, (view, width)


BEYOND = """[...document.body.querySelectorAll("*")].filter(
    one => one.getBoundingClientRect().right > innerWidth + 0.5).map(
    one => one.outerHTML.slice(0, 200))"""
"""Elements that end beyond the right edge of the window, be it in a box that scrolls."""


def test_nothing_stands_beyond_the_edge_of_a_telephone(tab):
    tab.set_viewport_size({"width": 360, "height": 740})
    for view, row in (("network", "b1"), ("rules", "hot"), ("clients", "p1")):
        look_at(tab, view)
        tab.get_by_role("row", name=row).first.wait_for()
        assert tab.evaluate(BEYOND) == [], view
    look_at(tab, "rules")
    button(tab, "hot").click()
    tab.locator("pre .keyword", has_text="define").wait_for()
    assert tab.evaluate(BEYOND) == [], "a rule"
    look_at(tab, "events")
    tab.get_by_role("row", name="Hot").first.get_by_role("button").click()
    tab.get_by_role("region", name="Event").get_by_role("heading", name="Hot at").wait_for()
    assert tab.evaluate(BEYOND) == [], "events"
    look_at(tab, "playground")
    button(tab, "Run").click()
    tab.get_by_role("row", name="fire").first.wait_for()
    assert tab.evaluate(BEYOND) == [], "the playground"


def test_a_reader_finds_its_way(tab):
    tab.get_by_role("main").wait_for()
    tab.get_by_role("navigation", name="Views").wait_for()
    tab.get_by_role("heading", level=1).wait_for()
    assert tab.get_by_role("heading", level=1).count() == 1
    assert tab.evaluate("document.documentElement.lang") == "en"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"
    unnamed = """[...document.querySelectorAll('input, select, textarea')].filter(
        one => !one.labels.length && !one.ariaLabel).map(one => one.outerHTML)"""
    for view in VIEWS:
        look_at(tab, view)
        assert tab.evaluate(unnamed) == [], view
        assert tab.locator("nav [aria-current=page]").text_content() == view.title()


CHANGES = """() => new Promise(told => {
    const watch = new MutationObserver(() => { watch.disconnect(); told(); });
    watch.observe(document.querySelector("tbody"),
                  {subtree: true, childList: true, characterData: true, attributes: true});
})"""
"""Wait until anything in the first list is another."""


def test_what_stands_there_stays_as_things_change(tab):
    tab.get_by_role("link", name="Rules").click()
    hot_rule = button(tab, "hot").element_handle()
    hot_rule.focus()
    for _ in range(3):
        tab.evaluate(CHANGES)
    assert hot_rule.evaluate("one => one.isConnected && one === document.activeElement")


SLOW = "rule slow_{0:03}: define Slow{0:03}() from Temp(value > 90)"
LONG = f"rule_{'of_a_very_large_project_' * 5}"
MANY = [
    "event Temp(area: string, value: float)",
    *(SLOW.format(n) for n in range(503)),
    f"rule {LONG}: define Long_{LONG}() from Temp(value > 99)",
    "rule zz: define Zz(area: string) from Temp(value > 45) as t where area = t.area",
]


@pytest.fixture(scope="module")
def many():
    """A broker with 505 rules, of which the last in the alphabet fires."""
    with paged() as (endpoint, url):
        with RuleManager(endpoint) as manager:
            manager.add("\n".join(MANY))
        with hot(endpoint):
            yield url


IN_SIGHT = """one => { const {top, bottom, left, right} = one.getBoundingClientRect();
    return top >= 0 && top < innerHeight && left >= 0 && right <= innerWidth + 0.5; }"""


@pytest.mark.parametrize("width", [360, 1280, 1600])
def test_among_many_rules_with_long_names(browser, many, width):
    tab = browser.new_page(viewport={"width": width, "height": 800})
    tab.set_default_timeout(20_000)
    tab.goto(f"{many}/#rules")
    rows = tab.locator("tbody tr")
    rows.first.get_by_role("button", name="zz").wait_for()  # it fires, so it is the first
    tab.get_by_label("Later Rules").click()
    tab.get_by_text("51–100 of 505").wait_for()
    tab.get_by_label("Search Rules").fill("large_project")
    tab.get_by_text("1 of 505").wait_for()
    state = rows.get_by_role("cell", name="running")
    assert state.evaluate(IN_SIGHT)
    assert tab.evaluate(BEYOND) == []
    tab.get_by_label("Search Rules").fill("")
    fifth = rows.nth(4).get_by_role("button")
    rows.nth(40).wait_for()
    name = fifth.text_content()
    fifth.scroll_into_view_if_needed()
    box = fifth.bounding_box()
    tab.mouse.move(box["x"] + 5, box["y"] + 5)
    tab.mouse.down()
    for _ in range(2 if width == 1280 else 0):
        tab.wait_for_timeout(1_100)  # a slow hand: meanwhile the page is told of another state
    tab.mouse.up()
    text = tab.get_by_role("region", name="Rule", exact=True).locator(
        "pre", has_text=f"rule {name}:"
    )
    text.wait_for()
    assert text.evaluate(IN_SIGHT), "the text of a chosen rule is in sight"
    assert tab.evaluate(BEYOND) == []
    tab.goto(f"{many}/#events")
    tab.get_by_role("row", name="Zz").first.get_by_role("button").click()
    shown = tab.get_by_role("region", name="Event", exact=True).get_by_role("heading", name="Zz at")
    shown.wait_for()
    assert shown.evaluate(IN_SIGHT)
    tab.close()


def test_a_list_is_sorted_by_its_headings(browser, many):
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(f"{many}/#rules")
    first = tab.locator("tbody tr").first
    for times, name in (1, LONG), (2, "zz"):
        button(tab, "name").click()
        first.get_by_role("button", name=name).wait_for()
        sorted_by = tab.locator("th[aria-sort]").get_attribute("aria-sort")
        assert sorted_by == ("ascending" if times == 1 else "descending")
    tab.close()


def test_signing_in(browser, served):
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(f"{served[1]}/")
    field = tab.get_by_label("Token", exact=True)
    field.fill("another-one-that-is-long")
    field.press("Enter")
    tab.get_by_text("this is not the token").wait_for()
    field.fill(TOKEN)
    field.press("Enter")
    tab.get_by_role("heading", name="Network").wait_for()
    assert tab.evaluate("document.cookie") == ""
    button(tab, "Sign out").click()
    tab.get_by_label("Token", exact=True).wait_for()
    context.close()
