"""The command line, end to end: results, messages and exit statuses.

Commands run in this process but where a process is the point: those that run beside others, and one
way through all of them (``shell``).
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import command
import pytest
from forked import started
from pairs import some_of

from broker import Publisher, RuleManager, Subscriber
from broker.cli.application import COMMANDS, main
from broker.cli.outcome import UsageError, duration_of
from broker.process import BrokerProcess
from matcher.model import EventType

RULE = """# A comment.
rule hot: define Hot(area: string) from Reading(value > 45) as r where area = r.area
"""
SCHEMA = "event Reading(area: string, value: float)\n"


def rexmq(*words, endpoint=None, stdin=""):
    return command.run(*words, stdin=stdin, **_at(endpoint))


def shell(*words, endpoint=None):
    """The same as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "broker", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | _at(endpoint),
        timeout=30,
    )


def _at(endpoint):
    return {} if endpoint is None else {"REXMQ_BROKER": endpoint}


def start(*words, endpoint):
    pipe = subprocess.PIPE
    return started(*words, "--broker", endpoint, stdout=pipe, stderr=pipe)


def wait_for_sinks(endpoint, count):
    with RuleManager(endpoint) as manager:
        for _ in range(600):
            if len(manager.status()["sinks"]) >= count:
                return
            time.sleep(0.05)
    raise AssertionError("the subscriber never came")


# --- help and usage ----------------------------------------------------------------------------


def test_help_names_every_command():
    done = shell("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_the_version_is_that_of_the_distribution(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rexmq {version('rexmq')}\n"


HEAVY = {"numpy", "numba", "pyarrow", "zmq", "lark", "rich", "pandas", "networkx", "simpy"}


def imported(*words):
    """The modules that a command of a process of its own has imported at its end."""
    script = (
        "import sys; from broker.cli import main; assert main(sys.argv[1:]) == 0; "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_help_imports_nothing_heavy():
    assert not HEAVY & imported("--help")


def test_few_events_are_detected_without_what_they_do_not_need(tmp_path):
    rules, events = tmp_path / "hot.tesla", tmp_path / "readings.jsonl"
    rules.write_text(SCHEMA + RULE)
    events.write_text('{"type": "Reading", "time": 1, "data": {"area": "a", "value": 50.5}}\n')
    assert not HEAVY - {"numpy"} & imported("check", str(rules))
    detection = "detect", "--rules", str(rules), "--events", str(events)
    imported(*detection)  # compiles, if nothing did before
    found = imported(*detection)
    # Of numba what compiled code needs, and none of the tables by which code is compiled.
    compiling = {"numba.np.arrayobj", "numba.cpython.unicode", "numba.cuda"}
    unused = {
        "rules.explaining",
        "rules.cutting",
        "studies.operators",
        "rules.engine.threads.parts",
    }
    assert not (HEAVY - {"numpy", "numba"} | compiling | unused) & found
    # Texts are read by pyarrow, which would ask pandas.
    time = "2024-05-01T10:00:00Z"
    event = {"type": "Reading", "time": time, "data": {"area": "a", "value": 50.5}}
    events.write_text(json.dumps(event) + "\n")
    assert "pandas" not in imported(*detection)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    done = rexmq(name, "--help")
    assert done.returncode == 0
    assert f"Example: rexmq {name}" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("output", "named"),
    [(name, name) for name in ("o.jsonl", "o.parquet", "o.csv", "o.arrow", "o.jsonl.gz")]
    + [(None, "standard output")],
)
def test_a_full_disk_is_said_with_the_file_that_is_not_whole(tmp_path, output, named):
    rules, events = tmp_path / "hot.tesla", tmp_path / "events.jsonl"
    rules.write_text(SCHEMA + RULE)
    events.write_text('{"type": "Reading", "time": 1, "data": {"area": "a", "value": 50}}\n')
    words = ["detect", "--engine", "naive", "--rules", str(rules), "--events", str(events)]
    if output is not None:
        (tmp_path / output).symlink_to("/dev/full")
        done = rexmq(*words, "--output", str(tmp_path / output))
    else:  # a process: what cannot be written stays in its buffer
        done = to_a_full_disk(*words)
    assert done.returncode == 1
    assert re.search(rf"^rexmq: .*{named}: .*No space left on device$", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr


def to_a_full_disk(*words):
    words = [sys.executable, "-m", "broker", *words]
    with open("/dev/full", "w") as full:
        return subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_help_that_cannot_be_printed_is_no_traceback():
    done = to_a_full_disk("--help")
    assert (done.returncode, done.stderr) == (1, "rexmq: No space left on device\n")


@pytest.mark.parametrize("word", ["add", "list", "show", "remove"])
def test_every_command_about_rules_has_an_example_of_its_own(word):
    assert f"Example: rexmq rule {word}" in rexmq("rule", word, "--help").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["sub"], "FILTER"),
        (["sub", "T()", "--when-full", "explode"], "--when-full: expected block or drop-oldest"),
        (["pub"], "either TYPE ATTR=VALUE... or --file"),
        (["pub", "T", "x=1", "--file", "x.jsonl"], "either TYPE ATTR=VALUE... or --file"),
        (["broker", "--retain", "long"], "--retain: expected a time such as 7d, 12h or 90min"),
        (["broker", "--link", "b2"], "--link: expected endpoints such as tcp://127.0.0.1:7461"),
        (["broker", "--lead-max-s", "long"], "--lead-max-s: expected a number of seconds"),
    ],
)
def test_wrong_usage_exits_2(words, message):
    done = rexmq(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [["status"], ["sub", "T()"], ["pub", "T", "x=1"], ["rule", "list"], ["rule", "remove", "r"]],
)
def test_a_broker_that_cannot_be_reached_exits_3(words):
    done = rexmq(*words, "--broker", "tcp://127.0.0.1:1", "--connect-timeout-s", "0.2")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no broker answers at tcp://127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_endpoint_that_is_none_is_refused():
    done = rexmq("status", "--broker", "7461")
    assert done.returncode == 1
    assert "expected an endpoint such as tcp://127.0.0.1:7461" in done.stderr


# --- the main commands, one after another ------------------------------------------------------


def test_publish_subscribe_and_rules(endpoint, tmp_path):
    (tmp_path / "hot.tesla").write_text(SCHEMA + RULE)
    added = shell("rule", "add", str(tmp_path / "hot.tesla"), endpoint=endpoint)
    assert (added.returncode, added.stdout, added.stderr) == (0, "hot\n", "")
    again = rexmq("rule", "add", str(tmp_path / "hot.tesla"), endpoint=endpoint)
    assert again.returncode == 1
    assert "hot" in again.stderr
    replaced = rexmq("rule", "add", "--replace", str(tmp_path / "hot.tesla"), endpoint=endpoint)
    assert replaced.returncode == 0

    sub = start("sub", "Hot()", "Reading(value < 0)", "--count", "2", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    cold = shell("pub", "Reading", "area=a1", "value=-1", "--name", "p1", endpoint=endpoint)
    assert (cold.returncode, cold.stderr) == (0, "")
    words = ["area=a2", "value=50", "--name", "p1", "--time", "2030-01-01T00:00:00Z", "--id", "x-1"]
    assert rexmq("pub", "--replay", "Reading", *words, endpoint=endpoint).returncode == 0
    output, errors = sub.communicate(timeout=20)
    assert sub.returncode == 0
    assert errors == "rexmq: Hot() waits: nobody publishes Reading for its rules\n"
    first, second = map(json.loads, output.splitlines())
    assert (first["type"], first["source"]) == ("Reading", "p1")
    assert first["data"] == {"area": "a1", "value": -1.0}
    assert (second["type"], second["time"]) == ("Hot", "2030-01-01T00:00:00Z")
    assert second["data"] == {"area": "a2"}
    assert second["cause"] == ["x-1"]
    assert second["source"] == "rexmq/rule/hot"

    listed = rexmq("rule", "list", endpoint=endpoint)
    assert listed.stdout.splitlines()[0].split()[:3] == ["name", "type", "state"]
    assert listed.stdout.splitlines()[1].split()[:2] == ["hot", "Hot"]
    as_json = rexmq("rule", "list", "--json", endpoint=endpoint)
    assert json.loads(as_json.stdout)["name"] == "hot"
    shown = rexmq("rule", "show", "hot", endpoint=endpoint)
    assert "define Hot(area: string)" in shown.stdout
    assert rexmq("rule", "remove", "hot", endpoint=endpoint).returncode == 0
    gone = rexmq("rule", "remove", "hot", endpoint=endpoint)
    assert gone.returncode == 1
    assert "hot" in gone.stderr
    assert "Traceback" not in gone.stderr


def test_a_filter_that_can_never_work_is_refused_before_its_type_is_known(endpoint):
    done = rexmq("sub", "Unheard(value > 3)", "Unheard(value > $a)", endpoint=endpoint)
    assert done.returncode == 1
    waiting, refused = done.stderr.split("\n", 1)
    assert 'message="subscription waits: its type is not known yet"' in waiting
    assert 'filter="Unheard(value > 3)"' in waiting
    assert "<subscription>:1:17: a subscription has no parameters" in refused


def test_values_follow_the_type_that_the_broker_knows(endpoint):
    known = EventType.of("Catalog", code="string", level="float")
    with (
        Publisher(endpoint, name="knows", types=[known]),
        Subscriber(endpoint, "Catalog()") as subscriber,
    ):
        done = rexmq("pub", "Catalog", "code=17", "level=3", endpoint=endpoint)
        assert done.returncode == 0, done.stderr
        assert subscriber.receive(timeout_s=10).data == {"code": "17", "level": 3.0}
        bad = rexmq("pub", "Catalog", "code=17", "level=high", endpoint=endpoint)
        assert bad.returncode == 1
        assert "attribute level: expected float, found string" in bad.stderr
        assert "Catalog(code: string, level: float)" in bad.stderr
        missing = rexmq("pub", "Catalog", "code=17", endpoint=endpoint)
        assert missing.returncode == 1
        assert "attribute level is missing" in missing.stderr


def test_a_guess_does_not_make_a_type_another_that_somebody_has_subscribed_to(endpoint):
    """Each pub guessed its type anew, and a subscription that did not fit ended."""
    sub = start("sub", "Odd(value > 20)", "--count", "4", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)

    def pub(*words):
        done = rexmq("pub", "Odd", *words, endpoint=endpoint)
        return done.returncode, done.stderr

    assert pub("area=x", "value=21.5") == (0, "")
    for bad in ("value=nan", "value=inf", "value=high", "value=null", "value=1e999"):
        status, said = pub("area=x", bad)
        assert (status, "attribute value: " in said) == (1, True), said
        assert "the broker knows Odd(area: string, value: float)" in said
    assert pub("area=7", "value=22") == (0, "")
    assert pub("area=x", "value=.5e2") == (0, "")
    # Whoever says the type makes it another; it is paused, is told, and goes on.
    assert pub("area=x", "value:string=nan") == (0, "")
    assert pub("area=x", "value:float=24") == (0, "")
    output, errors = sub.communicate(timeout=30)
    assert sub.returncode == 0, errors
    found = [json.loads(line)["data"] for line in output.splitlines()]
    assert [one["value"] for one in found] == [21.5, 22.0, 50.0, 24.0]
    assert found[1]["area"] == "7"
    waits, paused, goes_on = errors.splitlines()
    assert 'message="subscription waits' in waits
    assert 'message="subscription paused"' in paused
    assert "a string against an int; the type is Odd(area: string, value: string) now" in paused
    assert 'message="subscription goes on"' in goes_on


def test_a_first_guess_that_pauses_a_subscription_binds_nobody(endpoint):
    sub = start("sub", 'Zone(area = "7")', "--count", "2", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    for words in (["area=7"], ['area="7"'], ["area=7"], ["area= 7"]):
        done = rexmq("pub", "Zone", *words, "value=1", endpoint=endpoint)
        assert (done.returncode, done.stderr) == (0, "")
    output, errors = sub.communicate(timeout=30)
    assert sub.returncode == 0, errors
    assert [json.loads(line)["data"]["area"] for line in output.splitlines()] == ["7", "7"]
    waits, *later = errors.splitlines()
    assert 'message="subscription waits' in waits
    assert [" paused" in one for one in later] == [True, False]


@pytest.mark.parametrize("word", ["value", "=3"])
def test_a_word_that_is_no_attribute_is_wrong_usage(endpoint, word):
    done = rexmq("pub", "Guessed", word, endpoint=endpoint)
    assert done.returncode == 2
    assert f"expected ATTR=VALUE, found '{word}'" in done.stderr


def test_a_rules_file_with_errors_is_refused_with_every_place(endpoint, tmp_path):
    file = tmp_path / "bad.tesla"
    file.write_text("define A() from Nope(x > 1)\ndefine B( from\n")
    done = rexmq("rule", "add", str(file), endpoint=endpoint)
    assert done.returncode == 1
    assert f"{file}:" in done.stderr
    assert "^" in done.stderr
    assert rexmq("rule", "add", str(tmp_path / "none.tesla"), endpoint=endpoint).returncode == 1
    file.write_bytes(b"\xff\xfe")
    broken = rexmq("rule", "add", str(file), endpoint=endpoint)
    assert broken.returncode == 1
    assert "not UTF-8 at byte 0" in broken.stderr


# --- files -------------------------------------------------------------------------------------


def recording(tmp_path, prefix, count=300):
    lines = [
        {
            "type": f"{prefix}{'AB'[n % 2]}",
            "time": 1000 + n // 3,
            "source": f"{prefix}{n % 3}",
            "id": f"e{n}",
            "data": {"n": n},
        }
        for n in range(count)
    ]
    # Not in order of time as a whole, but for each source.
    lines.sort(key=lambda line: (line["time"] // 20, line["source"], line["time"]))
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file, lines


def test_a_file_is_published_in_order_of_time_under_its_own_sources(endpoint, tmp_path):
    file, lines = recording(tmp_path, "Rec")
    with Subscriber(endpoint, "RecA()", "RecB()") as subscriber:
        done = rexmq("pub", "--file", str(file), endpoint=endpoint)
        assert (done.returncode, done.stdout, done.stderr) == (0, "300 events published\n", "")
        events = [subscriber.receive(timeout_s=10) for _ in lines]
    seen = {(e.type, e.time, e.source, e.id, e.data["n"]) for e in events}
    assert seen == {
        (one["type"], one["time"] * 1_000_000, one["source"], one["id"], one["data"]["n"])
        for one in lines
    }
    for source in {event.source for event in events}:
        times = [event.time for event in events if event.source == source]
        assert times == sorted(times)


def test_what_is_late_of_a_file_is_counted_and_the_rest_is_published(endpoint, tmp_path):
    """The first late event ended the command, and nobody knew what had been published."""
    rules = tmp_path / "late.tesla"
    rules.write_text(
        "event Late(n: int)\nrule late: define Old(n: int) from Late() as e where n = e.n\n"
    )
    assert rexmq("rule", "add", str(rules), endpoint=endpoint).returncode == 0
    times = {"first": [100, 200], "then": [50, 150, 250, 350]}
    done = {}
    for name, own in times.items():
        file = tmp_path / f"{name}.jsonl"
        lines = [{"type": "Late", "time": at, "source": name, "data": {"n": at}} for at in own]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done[name] = rexmq("pub", "--file", str(file), endpoint=endpoint)
    assert done["first"].stdout == "2 events published\n"
    assert (done["then"].returncode, done["then"].stdout) == (1, "2 events published\n")
    assert done["then"].stderr.startswith("rexmq: 2 events refused: ")
    assert "late" in done["then"].stderr


def test_a_file_that_is_published_again_is_made_of_duplicates_however_late_they_are(
    endpoint, tmp_path
):
    """Rules have gone on beyond its times; what is new in it is late all the same."""
    rules = tmp_path / "twice.tesla"
    rules.write_text(
        "event Twice(n: int)\nrule twice: define T2(n) from Twice() as e where n=e.n\n"
    )
    assert rexmq("rule", "add", str(rules), endpoint=endpoint).returncode == 0
    file = tmp_path / "twice.csv"
    file.write_text("time,n\n100,1\n200,2\n")
    for _ in range(2):
        done = rexmq("pub", "--file", str(file), "--type", "Twice", endpoint=endpoint)
        assert (done.returncode, done.stdout, done.stderr) == (0, "2 events published\n", "")
    file.write_text("time,n\n100,1\n200,2\n150,3\n")
    done = rexmq("pub", "--file", str(file), "--type", "Twice", endpoint=endpoint)
    assert (done.returncode, done.stdout) == (1, "2 events published\n")
    assert done.stderr.startswith(
        "rexmq: 1 event refused: 1 late Twice: earliest at 1970-01-01T00:02:"
    )
    with RuleManager(endpoint) as manager:
        (source,) = [one for one in manager.status()["sources"] if one["name"] == file.name]
    counts = [source[one] for one in ("events", "duplicates", "late", "rejected")]
    assert counts == [2, 4, 1, 1]


def test_rules_over_several_sources_of_a_file_give_what_detect_gives(endpoint, tmp_path):
    file, _ = recording(tmp_path, "Det")
    rules = tmp_path / "pairs.tesla"
    rules.write_text(
        "event DetA(n: int)\nevent DetB(n: int)\n"
        "define Pair(a: int, b: int) from DetA() as a and last DetB(n < $n) as b within 5 s from a "
        "where a = a.n, b = b.n\n".replace("DetA() as a and", "DetA(n = $n) as a and")
    )
    expected = rexmq("detect", "--rules", str(rules), "--events", str(file))
    assert expected.returncode == 0, expected.stderr
    wanted = len(expected.stdout.splitlines())
    assert wanted > 50
    assert rexmq("rule", "add", str(rules), endpoint=endpoint).returncode == 0
    sub = start("sub", "Pair()", "--count", str(wanted), endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    assert rexmq("pub", "--file", str(file), endpoint=endpoint).returncode == 0
    output, _ = sub.communicate(timeout=20)
    assert output == expected.stdout
    rexmq("rule", "remove", "Pair", endpoint=endpoint)


def test_a_file_can_be_published_as_one_source_and_at_a_pace(endpoint, tmp_path):
    file = tmp_path / "paced.csv"
    file.write_text("time,n\n" + "".join(f"{100 + n / 10},{n}\n" for n in range(11)))
    started = time.monotonic()
    with Subscriber(endpoint, "Paced()") as subscriber:
        words = ["--file", str(file), "--type", "Paced", "--name", "pacer", "--speed", "2"]
        done = rexmq("pub", *words, endpoint=endpoint)
        assert (done.returncode, done.stdout) == (0, "11 events published\n")
        events = [subscriber.receive(timeout_s=10) for _ in range(11)]
    assert time.monotonic() - started > 0.5
    assert [(event.source, event.data["n"]) for event in events] == [
        ("pacer", n) for n in range(11)
    ]


def test_rules_and_events_come_through_pipes(endpoint):
    rules = "event Piped(n: int)\ndefine Through(n: int) from Piped() as p where n = p.n\n"
    assert rexmq("rule", "add", "-", endpoint=endpoint, stdin=rules).stdout == "Through\n"
    line = '{{"type": "Piped", "time": {0}, "data": {{"n": {0}}}}}\n'
    lines = line.format(1) + line.format(2)
    with Subscriber(endpoint, "Through()") as subscriber:
        done = rexmq("pub", "--file", "-", endpoint=endpoint, stdin=lines)
        assert (done.returncode, done.stdout) == (0, "2 events published\n")
        assert [subscriber.receive(timeout_s=10).data["n"] for _ in range(2)] == [1, 2]
    rexmq("rule", "remove", "Through", endpoint=endpoint)
    bad = rexmq("rule", "add", "-", endpoint=endpoint, stdin="event")
    assert bad.stderr.startswith("rexmq: standard input:1:")


def test_a_time_counts_what_is_said(endpoint):
    with Subscriber(endpoint, "Stamped()") as subscriber:
        words = ("pub", "Stamped", "n=1", "--time", "1541000542290")
        done = rexmq(*words, endpoint=endpoint)
        assert (done.returncode, "milliseconds? say --time-unit ms" in done.stderr) == (1, True)
        assert rexmq(*words, "--time-unit", "ms", endpoint=endpoint).returncode == 0
        assert subscriber.receive(timeout_s=10).time == 1_541_000_542_290_000


def test_a_bad_event_of_a_file_is_named_or_skipped(endpoint, tmp_path):
    file = tmp_path / "bad.jsonl"
    good = {"type": "Badly", "time": 1, "data": {"n": 1}}
    file.write_text(json.dumps(good) + '\n{"type": "Badly", "time": 2, "data": {"n": "x"}}\n')
    done = rexmq("pub", "--file", str(file), endpoint=endpoint)
    assert done.returncode == 1
    assert f"{file}:2: " in done.stderr
    skipped = rexmq("pub", "--file", str(file), "--skip-bad", endpoint=endpoint)
    assert (skipped.returncode, skipped.stdout) == (0, "1 event published\n")
    assert "1 bad event skipped" in skipped.stderr
    absent = rexmq("pub", "--file", str(tmp_path / "absent.jsonl"), endpoint=endpoint)
    assert absent.returncode == 1
    assert absent.stderr == f"rexmq: {tmp_path}/absent.jsonl: No such file or directory\n"


def test_the_broker_s_schema_goes_before_what_a_file_begins_with(endpoint, tmp_path):
    file = tmp_path / "whole.jsonl"
    file.write_text(
        '{"type": "Whole", "time": 1, "source": "w", "data": {"v": 46}}\n'
        '{"type": "Whole", "time": 2, "source": "w", "data": {"v": 46.5}}\n'
    )
    declared = EventType.of("Whole", v="float")
    odd = EventType.of("Odd", **{"a, b (c)": "int"})
    with (
        Publisher(endpoint, name="elder", types=[declared, odd]),
        Subscriber(endpoint, "Whole()") as subscriber,
    ):
        done = rexmq("pub", "--file", str(file), endpoint=endpoint)
        assert (done.returncode, done.stderr) == (0, "")
        assert [subscriber.receive(timeout_s=5).data["v"] for _ in range(2)] == [46.0, 46.5]


def test_of_an_id_with_other_contents_the_first_event_is_published_and_others_refused(
    endpoint, tmp_path
):
    file = tmp_path / "devices.csv"
    file.write_text("time,id,temp\n1,7,20\n2,7,50\n3,8,60\n4,7,70\n")
    with Subscriber(endpoint, "Device()") as subscriber:
        done = rexmq("pub", "--file", str(file), "--type", "Device", endpoint=endpoint)
        assert (done.returncode, done.stdout) == (1, "2 events published\n")
        assert done.stderr.startswith(
            "rexmq: 2 events refused: 2 Device with the id of another event: first id 7 of source "
            "'devices.csv' at 1970-01-01T00:00:02Z, which names one at 1970-01-01T00:00:01Z"
        )
        events = [subscriber.receive(timeout_s=5) for _ in range(2)]
        again = rexmq("pub", "--file", str(file), "--type", "Device", endpoint=endpoint)
        assert again.returncode == 1  # and what is the same again is a duplicate
        with pytest.raises(TimeoutError):
            subscriber.receive(timeout_s=0.2)
    assert [event.data["temp"] for event in events] == [20, 60]
    sources = json.loads(rexmq("status", "--json", endpoint=endpoint).stdout)["sources"]
    (source,) = [one for one in sources if one["name"] == "devices.csv"]
    assert (source["events"], source["duplicates"], source["rejected"]) == (2, 2, 4)


def test_tables_of_one_source_give_what_detect_gives(endpoint, tmp_path):
    rules, files = tmp_path / "cut.tesla", [tmp_path / "Warm.csv", tmp_path / "Smoky.csv"]
    rules.write_text(
        "event Warm(area: string, value: float)\nevent Smoky(area: string)\n"
        "define Cut(area, t) from Smoky(area = $a) and last Warm(area = $a) within 5 min "
        "from Smoky where area = $a, t = Warm.value\n"
    )
    files[0].write_text("time,type,source,area,value\n1,Warm,plc,hall,50\n")
    files[1].write_text("time,type,source,area\n2,Smoky,plc,hall\n")
    expected = rexmq("detect", "--rules", str(rules), "--events", *map(str, files)).stdout
    assert json.loads(expected)["cause"] == ["Smoky.csv:1", "Warm.csv:1"]
    assert rexmq("rule", "add", str(rules), endpoint=endpoint).returncode == 0
    sub = start("sub", "Cut()", "--count", "1", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    for file in files:
        assert rexmq("pub", "--file", str(file), endpoint=endpoint).returncode == 0
    output, _ = sub.communicate(timeout=20)
    assert output == expected
    rexmq("rule", "remove", "Cut", endpoint=endpoint)


def test_files_without_ids_that_are_published_under_one_name_do_not_collide(endpoint, tmp_path):
    ids = []
    with Subscriber(endpoint, "Merged()") as subscriber:
        for name in ("north", "south"):
            file = tmp_path / f"{name}.csv"
            file.write_text(f"time,n\n{len(name)},{len(ids)}\n")
            words = ["--file", str(file), "--type", "Merged", "--name", "merged"]
            assert rexmq("pub", *words, endpoint=endpoint).returncode == 0
            ids.append(subscriber.receive(timeout_s=10).id)
    assert ids == ["north.csv:1", "south.csv:1"]


# --- interruptions -----------------------------------------------------------------------------


def is_waiting_alone(errors):
    """Whether all that was said is that a subscription waits for its type."""
    return 'message="subscription waits' in errors and errors.count("\n") == 1


def test_an_interrupted_subscriber_exits_quietly_with_130(endpoint):
    sub = start("sub", "Never()", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    sub.send_signal(signal.SIGINT)
    output, errors = sub.communicate(timeout=10)
    assert (sub.returncode, output) == (130, "")
    assert is_waiting_alone(errors)


def test_a_reader_that_goes_away_ends_a_subscriber_quietly(endpoint):
    sub = start("sub", "Piped()", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    piped = EventType.of("Piped", n="int")
    with Publisher(endpoint, name="pipe", types=[piped], increasing=True) as publisher:
        publisher.publish("Piped", n=0)
        assert json.loads(sub.stdout.readline())["data"] == {"n": 0}
        sub.stdout.close()
        for number in range(1_000):
            publisher.publish("Piped", n=number)
            if sub.poll() is not None:
                break
            time.sleep(0.005)
    assert sub.wait(10) == 0
    assert is_waiting_alone(sub.stderr.read())
    sub.stderr.close()


def test_a_subscriber_ends_at_once_when_its_reader_has_gone_though_nothing_comes(endpoint):
    sub = start("sub", "Silent()", endpoint=endpoint)
    wait_for_sinks(endpoint, 1)
    sub.stdout.close()
    assert sub.wait(10) == 0
    assert is_waiting_alone(sub.stderr.read())
    sub.stderr.close()


def test_a_subscriber_ends_when_its_time_is_over(endpoint):
    timed = EventType.of("Timed", n="int")
    with Publisher(endpoint, name="timed", types=[timed]) as publisher:
        sub = start("sub", "Timed()", "--for", "1500ms", endpoint=endpoint)
        while sub.poll() is None:
            publisher.publish("Timed", n=7)
            time.sleep(0.05)
        output, errors = sub.communicate(timeout=20)
    assert (sub.returncode, errors) == (0, "")
    assert {json.loads(line)["data"]["n"] for line in output.splitlines()} == {7}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--queue-bytes", "5MB"), "are bounds of --durable subscriptions"),
        (("--durable", "k", "--queue-bytes", "many"), "--queue-bytes: expected a size such as"),
        (("--durable", "k", "--queue-age", "none"), "--queue-age: expected a time such as"),
    ],
)
def test_bounds_of_durable_subscriptions_are_checked(words, message):
    done = rexmq("sub", "Reading()", *words)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_a_durable_subscription_has_the_bounds_that_it_was_given(tmp_path):
    with BrokerProcess("--name", "b1", "--data", str(tmp_path / "b1")) as broker:
        sub = "sub", "Reading()", "--durable", "k"
        words = ("--queue", "10", "--queue-bytes", "5MB", "--queue-age", "2h")
        rexmq(*sub, *words, "--for", "100ms", endpoint=broker.endpoint)
        shown = json.loads(rexmq("durable", "show", "k", endpoint=broker.endpoint).stdout)
        assert (shown["home"], shown["queue"]) == (
            "b1",
            "block with 10 events, 5000000 bytes, 7200 s",
        )
        again = rexmq(
            "sub", "Reading()", "--durable", "k", "--queue", "11", endpoint=broker.endpoint
        )
        assert "the queue of 'k' is already block with 10 events" in again.stderr
        done = rexmq(
            "pub", "Reading", "area=a", "value=1.5", "--acks", "committed", endpoint=broker.endpoint
        )
        assert done.returncode == 0
        kept = rexmq("durable", "keep", "k", endpoint=broker.endpoint)
        assert kept.returncode != 0
        assert "'k' is not on its way to another broker" in kept.stderr
        listed = rexmq("durable", "list", endpoint=broker.endpoint).stdout.splitlines()
        assert listed[1].split()[:4] == ["k", "b1", "0", "1"]


@pytest.mark.parametrize("words", ["soon", "10 weeks", "0s", "-1s"])
def test_what_is_no_duration_is_wrong_usage(words):
    with pytest.raises(UsageError, match="--for"):
        duration_of("--for", words)


# --- status ------------------------------------------------------------------------------------


def test_status_shows_sources_rules_and_sinks(endpoint):
    shown = EventType.of("Shown", n="int")
    with (
        Publisher(endpoint, name="shown source", types=[shown]) as publisher,
        Subscriber(endpoint, "Shown(n > 1)", name="shown sink"),
    ):
        publisher.publish("Shown", n=1, at=1_000_000)
        publisher.promise(2_000_000)
        publisher.wait()
        page = rexmq("status", endpoint=endpoint)
        assert page.returncode == 0
        status = json.loads(rexmq("status", "--json", endpoint=endpoint).stdout)
    source = next(line for line in page.stdout.splitlines() if line.startswith("shown source"))
    assert "live" in source
    assert source.rstrip().endswith("1970-01-01T00:00:02Z")
    assert "Shown(n > 1)" in page.stdout
    assert {"broker", "sources", "types", "rules", "sinks", "totals", "rates"} <= set(status)


# --- the broker's configuration ----------------------------------------------------------------


def test_check_prints_the_effective_values_and_starts_nothing(tmp_path):
    file = tmp_path / "b.toml"
    file.write_text('[broker]\nname = "b1"\n')
    done = rexmq("broker", "--config", str(file), "--lead-max-s", "60", "--check")
    assert done.returncode == 0
    assert 'name = "b1"' in done.stdout
    assert "lead_max_s = 60.0" in done.stdout
    file.write_text("[broker]\nname = 1\n")
    bad = rexmq("broker", "--config", str(file), "--check")
    assert bad.returncode == 1
    assert (
        f"{file}: [broker] name: expected a text of at most 255 characters that can be printed, "
        "found 1" in bad.stderr
    )
    none = rexmq("broker", "--config", str(tmp_path / "none.toml"), "--check")
    assert none.returncode == 1
    assert "none.toml: No such file" in none.stderr


def test_sighup_reloads_and_a_bad_file_leaves_the_old_configuration_in_force(tmp_path):
    file, log = tmp_path / "b.toml", tmp_path / "log"
    file.write_text('[broker]\nname = "before"\n')

    def lines_with(text):
        for _ in range(1500):  # on a busy machine a broker takes seconds to get ready
            if text in log.read_text():
                return True
            time.sleep(0.02)
        return False

    listen, words = [f"ipc://{tmp_path}/b"], ("--config", str(file), "--engine", "naive")
    with (
        log.open("w") as stream,
        BrokerProcess(*words, listen=listen, log=stream) as b,
    ):
        file.write_text("[broker]\nname = 7\n")
        b.child.send_signal(signal.SIGHUP)
        assert lines_with("configuration refused; the old one stays in force")
        file.write_text(
            '[broker]\nname = "after"\nlog_level = "debug"\n[limits]\nsubscriptions_max = 1\n'
        )
        b.child.send_signal(signal.SIGHUP)
        assert lines_with("configuration reloaded")
        assert lines_with('message="takes effect at the next start" keys=name')
        assert rexmq("status", "--broker", b.endpoint).stdout.startswith("broker before:")
        refused = rexmq("sub", "--broker", b.endpoint, "A()", "B()")
        assert refused.returncode == 1
        assert "more than 1 subscriptions" in refused.stderr


# --- times ahead of the clock ------------------------------------------------------------------

FIRE = """event Heat(area: string, value: float)
event Smog(area: string)
rule fog:
define Fog(area: string, temperature: float)
from   Smog(area = $a) and last Heat(area = $a and value > 40) within 5 min from Smog
where  area = $a, temperature = Heat.value
"""
HOT = "rule hot: define Hot(area: string) from Heat(value > 45) as h where area = h.area\n"


def here(endpoint, *words):
    """The exit status of a command in this process."""
    return main([*words, "--broker", endpoint])


@pytest.mark.parametrize("rules", some_of([FIRE, FIRE + HOT], 1))
def test_one_event_of_the_far_future_is_refused_and_binds_nothing(tmp_path, capsys, rules):
    path = tmp_path / "rules.tesla"
    path.write_text(rules)
    heat = ("pub", "Heat", "area=b", "value=44")
    with BrokerProcess("--engine", "naive") as broker:
        at = broker.endpoint
        assert here(at, "rule", "add", str(path)) == 0
        for time_, cause in (
            ("2090-01-01T00:00:00Z", "Z; a replay of recorded events says so (--replay"),
            (f"{time.time() + 7_200:.3f}", "is it local time taken for UTC?"),
        ):
            assert here(at, *heat, "--time", time_) == 1
            said = capsys.readouterr().err
            assert "1 Heat ahead of the clock: " in said
            assert "more than 300 s (ahead_max_s) after this broker's clock" in said
            assert cause in said
        assert here(at, *heat, "--name", "heat") == 0
        assert here(at, "pub", "Smog", "area=b", "--name", "smog") == 0
        with RuleManager(at) as manager:
            status = manager.status()
        assert sum(one["ahead"] for one in status["sources"]) == 2
        assert status["totals"]["detected"] == 1


def test_a_replay_of_the_far_future_is_over_with_its_rule(tmp_path, capsys):
    path, events = tmp_path / "rules.tesla", tmp_path / "far.jsonl"
    path.write_text(FIRE)
    lines = [
        {"type": "Heat", "time": "2090-01-01T00:00:00Z", "source": "h", "id": "1"},
        {"type": "Smog", "time": "2090-01-01T00:01:00Z", "source": "s", "id": "1"},
    ]
    lines[0]["data"], lines[1]["data"] = {"area": "b", "value": 44.0}, {"area": "b"}
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with BrokerProcess("--engine", "naive") as broker:
        at = broker.endpoint
        assert here(at, "rule", "add", str(path)) == 0
        assert here(at, "pub", "--file", str(events)) == 1
        assert "0 events published" in capsys.readouterr().out
        assert here(at, "pub", "--file", str(events), "--replay") == 0
        assert "2 events published" in capsys.readouterr().out
        now = ("pub", "Heat", "area=b", "value=45", "--name", "now")
        assert here(at, *now) == 1
        assert "had been evaluated before it joined" in capsys.readouterr().err
        assert here(at, "rule", "remove", "fog") == 0
        assert here(at, *now) == 0
        assert here(at, "rule", "add", str(path)) == 0
        assert here(at, *now) == 0
        assert here(at, "pub", "Smog", "area=b", "--name", "smog") == 0
        with RuleManager(at) as manager:
            assert manager.status()["totals"]["detected"] == 2
