"""What the page is fed: who is let in, the state of a network, checks, trials and changes."""

import asyncio
import base64
import dataclasses
import http.client
import json
import re
import threading
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paged import RULES, TEMP, TOKEN, asked, hot, paged
from pages import get

from broker import Publisher, RuleManager, Subscriber
from broker.errors import ConfigurationError
from broker.monitoring import entry, tap
from broker.monitoring.doorway import is_number
from broker.monitoring.entry import Entry, NoEntry, load_token
from broker.monitoring.gathered import Look
from broker.monitoring.history import STEP_S, History
from broker.monitoring.layout import places
from broker.monitoring.tap import placed
from broker.monitoring.trial import ANSWER_MAX, File, Request, answer, checked
from broker.monitoring.turns import Turns
from broker.monitoring.view import view
from broker.monitoring.windows import PAGE_ROWS, Window, windowed
from matcher.model import Causes, EventIds
from routing.serving.telling import ROWS_MAX, told
from rules.syntax.words import RESERVED


@pytest.fixture(scope="module")
def page():
    with paged() as (endpoint, url):
        with RuleManager(endpoint) as manager:
            manager.add(RULES)
        time.sleep(1.1)  # a look is shown for a second
        yield endpoint, url


def streamed(url, query, wanted):
    """The first content of a stream that is of the kind and does as ``wanted`` says."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("GET", f"/api/stream{query}")
    answer = connection.getresponse()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        line = answer.readline().decode()
        if line.startswith("event: "):
            kind, content = line[7:].strip(), json.loads(answer.readline()[6:])
            if wanted(kind, content):
                connection.close()
                return content
    raise TimeoutError


# --- who is let in ---


def test_a_token_is_asked_for():
    guard = Entry(TOKEN)
    with pytest.raises(NoEntry, match="a token is asked for"):
        guard.verify({}, None, "a")
    with pytest.raises(NoEntry, match="not the token"):
        guard.verify({"authorization": "Bearer another"}, None, "a")
    guard.verify({"authorization": f"Bearer {TOKEN}"}, None, "a")
    session = guard.sign_in(TOKEN, "a")
    guard.verify({}, session, "a")
    guard.sign_out(session)
    with pytest.raises(NoEntry):
        guard.verify({}, session, "a")


def test_sessions_end():
    now = [0.0]
    guard = Entry(TOKEN, clock=lambda: now[0])
    session = guard.sign_in(TOKEN, "a")
    now[0] = entry.SESSION_S + 1
    with pytest.raises(NoEntry):
        guard.verify({}, session, "a")


def test_wrong_tokens_are_bounded_for_each_address():
    now, short = [0.0], "x" * (entry.UNGUESSABLE - 1)
    guard = Entry(short, clock=lambda: now[0])
    for _ in range(entry.TRIES):
        with pytest.raises(NoEntry, match="not the token"):
            guard.sign_in("x", "a")
    with pytest.raises(NoEntry, match="too many wrong tokens") as refused:
        guard.sign_in(short, "a")
    assert refused.value.status == 429
    guard.sign_in(short, "b")
    now[0] = entry.TRY_AGAIN_S
    guard.sign_in(short, "a")


def test_a_long_token_that_is_right_gets_in_beside_wrong_ones_from_its_address():
    long = "y" * entry.UNGUESSABLE
    guard = Entry(None, users={entry.digest(long): "alice"})
    for number in range(3 * entry.TRIES):
        assert guard.verify({"authorization": f"Bearer {long}"}, None, "a") == "alice"
        with pytest.raises(NoEntry):
            guard.sign_in(f"{long}{number}", "a")
    assert guard.sign_in(long, "a")
    with pytest.raises(NoEntry, match="too many"):
        guard.sign_in("z" * entry.UNGUESSABLE, "a")


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("127.0.0.1:9464", True),
        ("[::1]:9464", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:80", False),
        ("[::1].evil.example", False),
        ("[::1]:evil", False),
        ("127.0.0.1:evil", False),
        ("127.0.0.1:99999", False),
        ("", False),
    ],
)
def test_hosts_by_number(host, is_one):
    assert is_number(host) is is_one


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("short", 0o600, "at least 16"),
        (TOKEN, 0o644, "chmod 600"),
        ("ü" * 20, 0o600, "not ASCII"),
    ],
)
def test_bad_files_of_tokens(tmp_path, content, mode, reason):
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match=reason):
        load_token(file)


def test_pages_that_others_reach_ask_for_a_token(capfd):
    from broker.cli import main

    words = ["broker", "--listen", "tcp://127.0.0.1:*", "--http", "0.0.0.0:0"]
    assert main([*words, "--engine", "naive"]) == 1
    assert "other machines can reach this, and there is no token" in capfd.readouterr().err


def test_another_site_changes_nothing(page):
    url, body = page[1], {"name": "hot"}
    assert asked(url, "remove", body, Origin="http://evil.example")[0] == 403
    assert asked(url, "remove", body, Content_Type="text/plain")[0] == 403
    assert asked(url, "remove", body, Host="evil.example")[0] == 403
    for path in ("", "/healthz", "/readyz", "/metrics", "/status.json", "/api/session"):
        assert get(f"{url}{path}", Host="evil.example:9464")[0] == 403
        assert get(f"{url}{path}", Host="localhost")[0] == 200
    assert asked(url, "stream", Host="evil.example")[0] == 403


def test_signing_in(tmp_path):
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(TOKEN)
    with paged("--http-token", str(file)) as (_, url):
        assert get(f"{url}/status.json")[0] == get(f"{url}/metrics")[0] == 401
        assert get(f"{url}/")[0] == get(f"{url}/readyz")[0] == 200
        for path in ("rule", "history", "check", "deploy", "remove", "why", "try"):
            assert asked(url, path, {})[0] == 401
        assert asked(url, "stream")[0] == 401
        assert asked(url, "sign-in", {"token": "another-one-that-is-long"})[0] == 401
        status, headers, _ = asked(url, "sign-in", {"token": TOKEN})
        assert status == 200
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        mine = cookie.partition(";")[0]
        assert get(f"{url}/status.json", Cookie=mine)[0] == 200
        asked(url, "sign-out", {}, Cookie=mine)
        assert get(f"{url}/status.json", Cookie=mine)[0] == 401


def test_nothing_from_outside_runs_in_the_page(page):
    connection = http.client.HTTPConnection(page[1].removeprefix("http://"))
    connection.request("GET", "/")
    found = connection.getresponse()
    text = found.read().decode()
    assert "default-src 'none'; script-src 'self'" in found.headers["content-security-policy"]
    assert "unsafe" not in found.headers["content-security-policy"]
    files = [text, *(one.read_text() for one in folder().iterdir())]
    assert not [one for one in files if re.search(r"""(src|href|from)[= ]+["']https?:""", one)]
    assert "innerHTML" not in "".join(files)


def folder():
    return Path(entry.__file__).parent / "page"


def test_the_highlighter_knows_the_words_of_the_language():
    text = (folder() / "highlight.js").read_text()
    assert json.loads(re.search(r"RESERVED = (\[.*?\])", text)[1]) == list(RESERVED)


# --- the state of a network ---


def status_of(name, **more):
    network = {
        "strategy": "centralized",
        "root": "b1",
        "settled": True,
        "brokers": [
            {"name": "b1", "reachable": True, "neighbours": [{"name": "b2", "delay_us": 9}]},
            {"name": "b2", "reachable": True, "neighbours": [{"name": "b1", "delay_us": 9}]},
        ],
        "links": [],
        "trees": [{"root": "b1", "epoch": 1, "father": None, "children": ["b2"]}],
        "places": {"hot": "b2"},
    }
    found = {"broker": name, "version": 1, "uptime_s": 1.0, "clients": [], "network": network}
    lists = {"sources": [], "types": [], "rules": [], "sinks": []}
    return {**found, **lists, "totals": {"received": 0}, **more}


def test_brokers_that_tell_nothing_stand_there_without_figures():
    before, after = status_of("b1"), status_of("b1", totals={"received": 30})
    found = view({"b1": Look(before, after, 2.0)}, "b1", 0)
    one, other = found["brokers"]
    assert (one["rates"], one["rules"]) == ({"received": 15.0}, [])
    assert (other["known"], other["rates"], other["rules"]) == (False, None, ["hot"])
    assert found["unknown"] == ["b2"]
    assert found["links"][0]["rates"] is None
    assert found["trees"][0]["edges"] == [("b2", "b1")]


def test_traffic_is_told_by_either_end():
    def linked(sent):
        status = status_of("b2")
        link = {"neighbour": "b1", "link": None, "buffered": 3, "sent": sent, "received": 0}
        return {**status, "network": {**status["network"], "links": [link]}}

    first = status_of("b1")
    looks = {"b1": Look(first, first, 1.0), "b2": Look(linked(0), linked(8), 2.0)}
    (link,) = view(looks, "b1", 0)["links"]
    assert (link["ends"], link["rates"], link["buffered"]) == (["b1", "b2"], [0, 4.0], 3)


def test_a_window_is_a_page_of_what_is_searched_and_sorted():
    rows = [{"name": f"s{n}", "queued": n % 7, "asks": [{"filter": f"T{n}()"}]} for n in range(120)]
    found = windowed(rows, Window())
    assert (len(found["rows"]), found["count"], found["pages"]) == (PAGE_ROWS, 120, 3)
    found = windowed(rows, Window(sort="-queued", page=9))
    assert (found["page"], found["first"], found["rows"][-1]["queued"]) == (2, 101, 6)
    found = windowed(rows, Window(search="t11", sort="queued", chosen="s3"))
    assert {row["name"] for row in found["rows"]} == {"s11", *(f"s{n}" for n in range(110, 120))}
    assert (found["rows"][0]["queued"], found["chosen"]["name"], found["count"]) == (6, "s3", 120)
    assert windowed([], Window(sort="no"))["rows"] == []


@pytest.mark.parametrize("asked_for", ['{"rules": {"page": -1}}', "[]", '{"rules": {"no": 1}}'])
def test_windows_that_make_no_sense_are_refused(page, asked_for):
    status, _, answer = asked(page[1], f"stream?lists={quote(asked_for)}")
    assert (status, "error" in answer) == (400, True)


def test_types_that_come_have_their_places_and_the_others_go_round():
    rates = {f"T{n:03}": 0.0 for n in range(100)} | {"Zz": 2.0, "Zy": 1.0}
    seen, places = set(), []
    for _ in range(10):
        places = placed(rates, places)
        assert places[:2] == ["Zz", "Zy"]
        assert len(set(places)) == tap.TYPES_MAX
        seen |= {*places}
    assert seen == rates.keys()
    assert len(placed(dict.fromkeys(rates, 1.0), [])) == tap.TYPES_MAX


def test_the_rate_lately_and_a_line_of_rates():
    history = History()
    for step in range(4):
        history.note({"fire": 10 * step, "new": step} if step else {"fire": 0}, step * STEP_S)
    history.note({"fire": 99}, 3 * STEP_S + 1)  # it is too soon for another sample
    assert history.line("fire") == [2.0, 2.0, 2.0]
    assert history.line("new") == [0.2, 0.2]
    assert history.lately("fire", 40, 4 * STEP_S) == 2.0
    assert history.lately("none", 5, 1.0) == 0.0


def test_one_overlay_has_one_drawing():
    links = frozenset([("b1", "b2"), ("b2", "b3"), ("b3", "b4")])
    places.cache_clear()
    first = places(frozenset(["b1", "b2", "b3", "b4"]), links)
    places.cache_clear()
    assert places(frozenset(["b4", "b3", "b2", "b1"]), links) == first
    assert all(0 <= value <= 1 for place in first.values() for value in place)
    assert places(frozenset(["b1"]), frozenset()) == {"b1": (0.5, 0.5)}


# --- checks, changes and trials ---


def test_problems_have_places_as_scripts_count_them():
    text = "# \U0001f525\nrule x: define A(y: int) from B() as b where y = b.w"
    (problem,) = checked(text, ["B(z: int)"])["problems"]
    there = text.encode("utf-16-le")[2 * problem["start"] : 2 * problem["end"]]
    assert there.decode("utf-16-le") == "w"
    assert problem["line"] == 2
    assert checked(text.replace("b.w", "b.z"), ["B(z: int)"])["rules"] == ["x"]


def test_rules_are_checked_with_the_types_of_the_broker(page):
    text = "rule cold: define Cold(area: string) from Temp(value < 0) as t where area = t.area"
    assert asked(page[1], "check", {"text": text})[2] == {"problems": [], "rules": ["cold"]}


def test_types_that_cannot_be_are_told_of():
    (problem,) = checked("define A() from B()", ["("])["problems"]
    assert problem["message"] == "expected an event type, found '('"


def test_a_long_text_keeps_no_other_check_waiting(page):
    long = "".join(f"rule r{n}: define R{n}() from Temp()\n" for n in range(3_000))
    answers = []
    ask = lambda text: answers.append(asked(page[1], "check", {"text": text})[2])  # noqa: E731
    slow = [threading.Thread(target=ask, args=[long]) for _ in range(8)]
    for thread in slow:
        thread.start()
    ask("rule cold: define Cold() from Temp()")
    for thread in slow:
        thread.join()
    rules = [len(one["rules"]) for one in answers if "rules" in one]
    assert rules == [1, 3_000]  # one at a time: "another trial is under way"


def test_requests_of_one_user_take_turns_and_keep_no_other_waiting():
    async def taken():
        turns, order = Turns(), []

        async def ask(user, until):
            async with turns.of(user):
                order.append(user)
                await until

        released = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group:
            group.create_task(ask("mallory", released))
            group.create_task(ask("mallory", released))
            await group.create_task(ask("alice", asyncio.sleep(0)))
            order.append("released")
            released.set_result(None)
        return order

    assert asyncio.run(taken()) == ["mallory", "alice", "released", "mallory"]


def test_rules_are_deployed_shown_replaced_and_removed(page):
    endpoint, url = page
    text = "rule cold: define Cold(area: string) from Temp(value < 0) as t where area = t.area"
    assert asked(url, "deploy", {"text": text})[0] == 200
    status, _, refusal = asked(url, "deploy", {"text": text})
    assert (status, "cold" in refusal["error"]) == (422, True)
    assert asked(url, "deploy", {"text": text.replace("0", "9"), "replace": True})[0] == 200
    assert "value < 9" in asked(url, "rule", {"name": "cold"})[2]["text"]
    assert asked(url, "remove", {"name": "cold"})[0] == 200
    with RuleManager(endpoint) as manager:
        assert "cold" not in [rule["name"] for rule in manager.list()]


@pytest.mark.parametrize("body", [{"no": 1}, [], {"text": 5}])
def test_bad_requests(page, body):
    assert asked(page[1], "check", body)[0] == 400


def test_a_client_has_a_number_that_can_be(page):
    assert asked(page[1], "send-away", {"number": 2**70})[0] == 400


def test_requests_are_bounded(page):
    assert asked(page[1], "check", {"text": "#" * 300_000})[0] == 413


SMOKE = """{"type": "Temp", "time": 10, "source": "s", "id": "t1", "data": {"value": 47.5}}
{"type": "Smoke", "time": 330, "source": "s", "id": "m1", "data": {"n": 1}}
{"type": "Temp", "time": 335, "source": "s", "id": "t2", "data": {"value": 60.0}}
{"type": "Smoke", "time": 340, "source": "s", "id": "m2", "data": {"n": 2}}
"""
SMOKES = (File("events.jsonl", SMOKE.encode()),)
TABLE = b"time,value\n1,46.5\n2,3.0\n"
FIRE = """rule fire: define Fire(v: float)
from Smoke() as s and last Temp(value > 45) as t within 5 min from s where v = t.value"""


def test_a_trial_finds_what_detect_finds():
    found = answer(Request("run", text=FIRE, files=SMOKES))
    (firing,) = found["firings"]
    assert (firing["rule"], firing["data"], firing["cause"]) == (
        "fire",
        {"v": 60.0},
        ["s#m2", "s#t2"],
    )
    assert found["terminators"] == {"fire": ["Smoke"]}
    assert [one["name"] for one in found["events"]] == ["s#t1", "s#m1", "s#t2", "s#m2"]


def test_a_trial_shows_as_many_firings_as_fit_into_its_answer():
    long = "y" * (ANSWER_MAX // 10)
    text = """event Note(text: string)
    event Call()
    rule answered: define Answer(text: string) from Call() and last Note() as note within 1 h
    from Call where text = note.text"""
    events = [("Note", 0, {"text": long})] + [("Call", number, {}) for number in range(1, 31)]
    lines = [
        json.dumps({"type": kind, "time": number, "source": "s", "id": f"{number}", "data": data})
        for kind, number, data in events
    ]
    files = (File("calls.jsonl", "\n".join(lines).encode()),)
    found = answer(Request("run", text, files=files))
    assert found["counts"] == {"answered": 30}
    assert 1 <= len(found["firings"]) < 10
    assert len(json.dumps(found)) <= ANSWER_MAX


def test_a_trial_says_why_not():
    text = answer(Request("explain", text=FIRE, files=SMOKES, rule="fire", event="s#m1"))["text"]
    assert "It does not fire." in text


def test_deployed_rules_beside_a_trial_are_not_told_of():
    above = "rule alarm: define Alarm(v: float) from Fire() as f where v = f.v"
    found = answer(Request("run", text=above, more=FIRE, files=SMOKES))
    assert list(found["counts"].items()) == [("alarm", 1)]


def test_wrong_events_are_told_without_the_name_of_a_folder():
    error = answer(Request("run", text=FIRE, files=(File("events.jsonl", b"{"),)))["error"]
    assert error.startswith("events.jsonl:1")


def test_a_trial_over_a_table(page):
    table = {"name": "a.csv", "content": base64.b64encode(TABLE).decode(), "type": "Temp"}
    given = {"do": "run", "files": [table]}
    text = "rule high: define High(v: float) from Temp(value > 45) as t where v = t.value"
    assert asked(page[1], "try", {**given, "text": text})[2]["counts"] == {"high": 1}


def test_a_trial_over_several_files_of_several_forms(tmp_path):
    columns = {"time": [330, 340], "n": [1, 2]}
    pq.write_table(pa.table(columns), tmp_path / "Smoke.parquet")
    temps = b"time,value\n10,47.5\n335,60.0\n"
    files = (
        File("Smoke.parquet", (tmp_path / "Smoke.parquet").read_bytes(), "Smoke"),
        File("temps.csv", temps, "Temp"),
    )
    found = answer(Request("run", text=FIRE, files=files))
    assert [(one["time"], one["data"]) for one in found["firings"]] == [(340_000_000, {"v": 60.0})]
    error = answer(Request("inspect", files=(files[1], File("temps.csv", temps, "Temp"))))["error"]
    assert error == "temps.csv: expected files with names of their own"
    for name in ("../a.csv", "a\0.csv", "a\x1b.csv", ""):
        error = answer(Request("inspect", files=(File(name, temps, "Temp"),)))["error"]
        assert error == f"{name}: expected files with names of their own"


def test_all_that_is_wrong_with_files_is_told_at_once():
    lines = [*SMOKE.splitlines()[:2], '{"type": 5}', "{", '{"type": "Temp", "time": 1, "data": {}}']
    files = (
        File("a.jsonl", "\n".join(lines).encode()),
        File("b.csv", b"time,value\nnever,1\nsoon,2\n", "Temp"),
        File("c.pdf", b""),
    )
    lines = answer(Request("inspect", files=files))["error"].split("\n")
    places = [line.split(": ")[0] for line in lines]
    assert places[:4] == ["a.jsonl:3", "a.jsonl:4", "a.jsonl:5", "c.pdf"]
    assert places[4:] == ["b.csv:row 1", "b.csv:row 2"]


# --- events as they come ---


def test_events_come_with_their_causes_and_why(page):
    """Though ``wet``, which waits for events that nobody publishes, would hold up all others."""
    endpoint, url = page
    with hot(endpoint):
        streamed(url, "?events=1&whole=1", lambda kind, one: kind == "events" and one["count"])
        found = streamed(
            url, "?events=1&whole=1&types=Hot", lambda kind, one: kind == "events" and one["count"]
        )
        name = found["events"][-1]["name"]
        first, *causes = asked(url, "history", {"name": name})[2]["events"]
        assert first["type"] == "Hot"
        assert [one["type"] for one in causes] == ["Temp"]
        assert "It fires: 1 match." in asked(url, "why", {"name": name})[2]["text"]
        text = "rule two: define Two(area: string) from Hot() as h where area = h.area"
        found = asked(url, "try", {"do": "run", "text": text})[2]  # beside the deployed rules
        assert found["counts"]["two"] > 0
        assert {one["type"] for one in found["events"]} == {"Temp"}


def test_a_sample_is_of_the_newest():
    from broker.client.address import Address
    from matcher.rows import batch_of

    one = tap.Tap(Address("tcp://127.0.0.1:9", None))
    rows = [{"area": "a", "value": float(n), "time": n} for n in range(100)]
    one._keep([batch_of(TEMP, rows, source="s")])
    found = one.sample(0, {"Temp"})
    assert (found.count, len(found.events), found.last) == (100, tap.SAMPLE_MAX, 100)
    assert found.events[-1]["data"]["value"] == 99.0
    assert one.sample(found.last, {"Temp"}).count == 0
    assert one.sample(0, ()).count == 0  # none of them is composite


def test_what_is_kept_is_bounded(monkeypatch):
    from broker.client.address import Address
    from matcher.rows import batch_of

    monkeypatch.setattr(tap, "EVENTS_MAX", 150)
    one = tap.Tap(Address("tcp://127.0.0.1:9", None))
    for start in range(0, 500, 100):
        rows = [{"area": "a", "value": 1.0, "time": start + n} for n in range(100)]
        one._keep([batch_of(TEMP, rows, source="s")])
    assert one.facts["events"] <= 150
    assert one.last == 500


def in_a_chain(text):
    """A tap that keeps a hundred events which all bear one text, each the cause of the next."""
    from broker.client.address import Address
    from matcher.rows import batch_of

    one = tap.Tap(Address("tcp://127.0.0.1:9", None))
    rows = [{"area": text, "value": 1.0, "time": n} for n in range(1, 101)]
    batch = batch_of(TEMP, rows, source="s")
    no, ids = np.zeros(99, np.bool_), batch.ids.take(np.arange(99))
    causes = Causes(np.array([0, *range(100)], np.int64), ids, no, no)
    one._keep([dataclasses.replace(batch, causes=causes)])
    return one


def test_a_text_that_many_events_bear_is_not_sent_with_each():
    one = in_a_chain("x" * 1_000_000)
    shown = one.sample(0, {"Temp"})
    assert (shown.count, len(shown.events)) == (100, tap.SAMPLE_MAX)
    assert len(shown.events[-1]["data"]["area"]) == 1_000_000, "the newest is whole"
    found = one.history("s#50")
    assert (found[0]["name"], found[0]["cause"]) == ("s#50", ["s#49"])
    for rows in (shown.events, found):
        assert sum(row["time"] is not None for row in rows) <= 2
        assert all(row["name"] for row in rows)


def test_a_history_of_many_steps_looks_once_at_what_is_kept(monkeypatch):
    looks = []
    printed = EventIds.printed
    one = in_a_chain("a")
    monkeypatch.setattr(EventIds, "printed", lambda self: looks.append(self) or printed(self))
    assert [row["name"] for row in one.history("s#100")] == [f"s#{n}" for n in range(100, 0, -1)]
    assert sum(len(ids) == 100 for ids in looks) == 1


def test_long_texts_are_kept_as_far_as_there_is_room(monkeypatch):
    from broker.client.address import Address
    from matcher.rows import batch_of

    monkeypatch.setattr(tap, "BYTES_MAX", 100_000)
    one = tap.Tap(Address("tcp://127.0.0.1:9", None))
    for n in range(20):
        row = {"area": f"{n}" * 10_000, "value": 1.0, "time": n}
        one._keep([batch_of(TEMP, [row], source="s")])
    assert 4 <= one.facts["events"] < 10


def test_sinks_are_seen(page):
    endpoint, url = page

    def has_it(kind, found):
        return kind == "state" and found["lists"]["sinks"]["found"] == 1

    with Subscriber(endpoint, "Temp()", name="s1"):
        found = streamed(url, f"?lists={quote(json.dumps({'sinks': {'search': 's1'}}))}", has_it)
    assert found["lists"]["sinks"]["rows"][0]["name"] == "s1"


# --- a network ---


def test_a_network_is_told_of_over_itself_and_a_killed_broker_by_name():
    with paged("--strategy", "centralized") as (first, url):
        with paged("--link", first, name="b2") as (second, other_url):
            while get(f"{other_url}/readyz")[0] != 200:
                time.sleep(0.1)
            with RuleManager(first) as manager, Subscriber(first, "Hot()") as sink:
                manager.add(RULES)
                with Publisher(second, name="p2", types=[TEMP], increasing=True) as source:
                    for _ in range(10):
                        source.publish("Temp", area="hall", value=50.0)
                assert [sink.receive(timeout_s=20).type for _ in range(10)] == ["Hot"] * 10
                brokers = manager.network()["brokers"]
            totals = {one["broker"]: one["totals"] for one in brokers}
            assert {name: one["received"] for name, one in totals.items()} == {"b1": 0, "b2": 10}
            assert sum(one["detected"] for one in totals.values()) == 10
            lists = quote(json.dumps({"sources": {}, "brokers": {}}))
            found = streamed(url, f"?lists={lists}", lambda kind, one: "b2" not in one["unknown"])
            (row,) = found["lists"]["sources"]["rows"]
            assert (row["name"], row["broker"], row["events"]) == ("p2", "b2", 10)
        found = streamed(url, f"?lists={lists}", lambda kind, one: "b2" in one["unknown"])
    assert [one["reachable"] for one in found["lists"]["brokers"]["rows"]] == [True, False]


def test_sums_of_a_network_are_over_the_brokers_that_tell():
    def status(name, received, line):
        history = {"received": line, "detected": [0.0] * len(line)}
        return status_of(name, totals={"received": received}, history=history)

    one, other = status("b1", 0, [1.0, 2.0]), status("b2", 0, [5.0])
    looks = {
        "b1": Look(one, status("b1", 30, [1.0, 2.0]), 2.0),
        "b2": Look(other, status("b2", 5, [5.0]), 1.0),
    }
    found = view(looks, "b1", 0)
    assert found["rates"] == {"received": 20.0}
    assert found["lines"]["received"] == [1.0, 7.0]


def test_a_status_is_told_to_others_in_short():
    sinks = [{"name": f"s{n}", "queued": n, "limit": 1_000} for n in range(ROWS_MAX + 50)]
    rules = [{"name": name, "cost": None} for name in ("hot", "cold")]
    status = status_of("b2", sinks=sinks, rules=rules, evaluates=["hot"])
    short = told({**status, "clients": [{}, {}]})
    assert [rule["name"] for rule in short["rules"]] == ["hot"]
    assert (len(short["sinks"]), short["sinks"][0]["queued"]) == (ROWS_MAX, ROWS_MAX + 49)
    assert (short["rows"]["sinks"], short["connected"]) == (ROWS_MAX + 50, 2)
    assert "brokers" not in short["network"]
